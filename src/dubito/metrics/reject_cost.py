"""Fraction declined, error and accuracy as functions of the cost of declining."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._validation import TIE, as_float_array
from dubito._wording import name_rows
from dubito.metrics._selective import ranked_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


class RejectCostCurve(NamedTuple):
    """Costs of declining, and the fraction declined, error, accuracy and mean cost at each."""

    cost: FloatArray
    rejection: FloatArray
    error: FloatArray  # errors per row, decided or not; `ErrorRejectCurve.error` is per decided row
    accuracy: FloatArray  # of the decided rows
    mean_cost: FloatArray


def reject_cost_curve(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    confidence: npt.ArrayLike,
    *,
    costs: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> RejectCostCurve:
    r"""Return the fraction declined, the error and the accuracy at each cost of declining.

    A wrong label costs 1. At the cost r of declining, a row of confidence c is decided when the
    risk of its label is no larger, :math:`1-c\le r`, as by `dubito.decision.reject`; other rows are
    declined (*reject*, in names, means to decline):

    .. math:: \mathrm{rejection}(r) = \frac{w(1 - c > r)}{w}, \qquad
              \mathrm{error}(r) = \frac{w(1 - c \le r,\ \hat y \ne y)}{w}, \qquad
              \mathrm{accuracy}(r) = \frac{w(1 - c \le r,\ \hat y = y)}{w(1 - c \le r)}.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : array-like of shape (n,)
        1 minus the risk of the label, in [0, 1]: the largest plausibility and the label that
        has it for the optimistic strategy (Minary et al. 2017, 2.1), the largest belief for the
        pessimistic, the largest pignistic probability for the pignistic, the largest probability
        for the probabilistic.
    costs : array-like of shape (m,), default=None
        Costs of declining in [0, 1] (:math:`R_{rej}` of Minary et al. 2017), in any order. By
        default 0, 1 and every cost from which on a further row is decided: between two of them no
        rate changes.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row.

    Returns
    -------
    RejectCostCurve
        Named tuple of arrays, one entry per cost:

        - `cost`, as given, or rising from 0 to 1;
        - `rejection`, the fraction of rows declined;
        - `error`, the errors among **all** rows, the error rate of Minary et al. 2017. (That of
          `error_reject_curve` is among the decided, here 1 - accuracy.)
        - `accuracy`, the fraction of right labels among the **decided** rows, their accuracy rate.
          It is nan where every row is declined: plots leave such a point out, and so does
          ``np.nanmean``.
        - `mean_cost`, what a row costs on average: error + cost x fraction declined.

    Notes
    -----
    Where probabilities are right, no other choice of rows has a smaller expected cost (Chow 1970).
    In a tie the row is decided: cost and risk that differ by no more than 1e-12 are equal, so that
    confidence 0.7 is decided at the cost 0.3 whatever 1 - 0.7 rounds to.

    References
    ----------
    Chow (1970), On optimum recognition error and reject tradeoff.
    Minary, Pichon, Mercier, Lefevre and Droit (2017), Evidential joint calibration of binary SVM
    classifiers using logistic regression, sections 2.1 and 4.

    Examples
    --------
    >>> from dubito.metrics import reject_cost_curve
    >>> y, y_pred, confidence = [0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.6, 0.7]
    >>> curve = reject_cost_curve(y, y_pred, confidence, costs=[0.05, 0.3, 0.5])
    >>> curve.rejection.tolist(), curve.error.tolist()
    ([1.0, 0.25, 0.0], [0.0, 0.0, 0.25])
    >>> curve.accuracy.tolist(), curve.mean_cost.round(3).tolist()
    ([nan, 1.0, 0.75], [0.05, 0.075, 0.25])
    """
    confidences, weight, wrong = ranked_rows(y_true, y_pred, confidence, sample_weight)
    risk = 1 - _check_confidence(confidences)[::-1]
    cost = np.union1d([0.0, 1.0], risk) if costs is None else _check_costs(costs)
    n_decided = np.searchsorted(risk - TIE, cost, side="right")
    # Cumulative weights of rows and of wrong rows, the most confident first.
    rows_up_to, wrong_up_to = (np.append(0.0, np.cumsum(w[::-1])) for w in (weight, wrong))
    total, decided, errors = rows_up_to[-1], rows_up_to[n_decided], wrong_up_to[n_decided]
    rejection, error = (total - decided) / total, errors / total
    accuracy = np.full(len(cost), np.nan)
    np.divide(decided - errors, decided, out=accuracy, where=decided > 0)
    return RejectCostCurve(cost, rejection, error, accuracy, error + cost * rejection)


def _check_confidence(rising: FloatArray) -> FloatArray:
    """Return confidences, given in rising order, clipped to [0, 1]; an error if far outside."""
    if rising[0] < -1e-9 or rising[-1] > 1 + 1e-9:
        raise ValueError(
            "confidence must lie in [0, 1], since 1 - confidence is compared with the cost; it "
            f"goes from {rising[0]:.6g} to {rising[-1]:.6g}. Pass probabilities, beliefs or "
            "plausibilities; error_reject_curve takes any scores."
        )
    return np.clip(rising, 0.0, 1.0)


def _check_costs(costs: npt.ArrayLike) -> FloatArray:
    array = as_float_array(costs, "costs", ndim=1)
    outside = np.flatnonzero((array < 0) | (array > 1))
    if len(outside):
        raise ValueError(
            "costs must lie in [0, 1], between declining all that is not certain and declining "
            f"nothing; not so in {name_rows(outside)} ({array[outside[0]]:.6g})."
        )
    return array
