"""The reject option: rows for which the risk of every act exceeds the cost of declining."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._validation import as_float_array, check_choice
from dubito.decision.choice import maximax, maximin, pignistic_choice
from dubito.decision.risk import Belief, as_belief, class_bounds, pignistic_risk, risk_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

#: The rule by which each strategy chooses an act.
CHOICES: dict[str, Callable[..., IntArray]] = {
    "optimistic": maximax,
    "pessimistic": maximin,
    "pignistic": pignistic_choice,
    "probabilistic": pignistic_choice,
}
STRATEGIES = tuple(CHOICES)


def reject(
    belief: Belief,
    cost: float,
    strategy: str = "pignistic",
    *,
    loss: npt.ArrayLike | None = None,
) -> BoolArray:
    r"""Return which rows to decline: those where declining costs less than every act.

    A row is declined when the cost of declining lies below the risk of every act (Minary et al.
    2017, section 2.1). In a tie the row is decided. *Reject*, in names, means to decline.

    Parameters
    ----------
    belief : Bounds, MassBatch, MassFunction or array of probabilities (n, K)
    cost : float
        Cost of declining, on the scale of the loss: for 0/1 loss between 0 (decline whatever is
        not certain) and 1 (never decline).
    strategy : {"pignistic", "pessimistic", "optimistic", "probabilistic"}, default "pignistic"
        Which risk counts: the expected loss under the pignistic probability, the upper risk, or
        the lower. With 0/1 loss a row is declined when the largest pignistic probability, belief
        or plausibility is below 1 - cost. "pessimistic" has a higher mean cost on rows like those
        the model was calibrated on, and a lower one on rows for which the model is wrong.
        "probabilistic" is another name of "pignistic" (Minary et al. 2017), meant for
        ``predict_proba``: probabilities are their own pignistic probability.
    loss : array-like of shape (acts, K), optional
        Loss of each act when each class is true; 0/1 loss for naming a class by default.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the row is declined.

    See Also
    --------
    dubito.metrics.reject_cost_curve : Error, accuracy and declined rows at every cost.
    dubito.plots.ErrorRejectDisplay : Their plot.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import reject
    >>> bounds = Bounds([[0.6, 0.1], [0.4, 0.2]], [[0.9, 0.4], [0.8, 0.6]])
    >>> reject(bounds, cost=0.3)
    array([False,  True])
    >>> reject(bounds, cost=0.3, strategy="pessimistic")
    array([ True,  True])
    >>> reject(bounds, cost=0.3, strategy="optimistic")
    array([False, False])
    """
    checked = as_belief(belief)
    reject_cost = float(as_float_array(cost, "cost", ndim=0))
    if loss is None and reject_cost < 0:
        raise ValueError(f"cost must not be negative with 0/1 loss. Got {cost!r} instead.")
    check_choice(strategy, "strategy", STRATEGIES)
    by_probability = CHOICES[strategy] is pignistic_choice
    risks = pignistic_risk(checked, loss) if by_probability else risk_bounds(checked, loss)
    risk = risks.lower if strategy == "optimistic" else risks.upper
    return reject_cost < (risk - risks.tie).min(axis=1)


def confidence_of(belief: Belief, strategy: str) -> FloatArray:
    """Return the largest pignistic probability, belief or plausibility of each row, (n,).

    With 0/1 loss `reject` declines a row where it is below 1 - cost, up to rounding.
    """
    checked = as_belief(belief)
    if CHOICES[strategy] is pignistic_choice:
        return checked.pignistic().max(axis=1)
    lower, upper = class_bounds(checked)
    largest = (lower if strategy == "pessimistic" else upper).max(axis=1)
    return np.clip(largest, 0.0, 1.0)  # sums of masses may exceed 1 by rounding
