r"""Is the form of a parametric map wrong? Its intervals against isotonic ones, on a few rows.

Bounds at a level promise something only where the map's form is right. A check that assumes no
form: sort the calibration rows by the fitted log-odds :math:`\eta`; an event whose fitted
probability is right rises with them, so the isotonic likelihood gives an interval of its
probability at each row. Where it does not meet the interval of the fitted probability,

.. math:: \sigma\bigl(\eta\pm z\,(x^\mathsf TH^{-1}x)^{1/2}\bigr),\qquad x=(1,\eta),\quad
          H=\sum_iw_i\,p_i(1-p_i)\,x_ix_i^\mathsf T,

one of the two is wrong. The fraction of such rows among at most 32, spread evenly over the weight,
is the misfit. More than two classes: the event is that the most probable class is the true one.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, ndtri

from dubito._kernels.isotonic import cut_bounds, pool_ties
from dubito.calibration.errors import MisfitWarning

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray

#: Rows at which intervals are compared.
_ROWS = 32

#: Level of both intervals, and the fraction of disjoint ones that is reported. With the right form
#: (two to ten classes, 10 to 2,000 rows) fewer than one fit in a hundred exceeded it, simulated.
_LEVEL = 0.9
_FRACTION = 1 / 6

#: Fitted log-odds are taken no further out: probabilities round to 0 and 1.
_FURTHEST = 30.0


def misfit_fraction(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the fraction of rows at which fitted probabilities and frequencies disagree.

    Parameters
    ----------
    proba : array (n,)
        Fitted probability of the event in each calibration row.
    event : boolean array (n,)
    weight : array (n,)
        Positive.
    """
    with np.errstate(divide="ignore"):
        eta = np.clip(logit(proba), -_FURTHEST, _FURTHEST)
    distinct, successes, failures = pool_ties(eta, event, weight)
    place = _spread(successes + failures)
    lower, upper = cut_bounds(place + 1, place, successes, failures, _LEVEL)
    reach = ndtri(0.5 * (1 + _LEVEL)) * _standard_error(distinct, successes + failures)[place]
    fitted = distinct[place]
    disjoint = (expit(fitted + reach) < lower) | (expit(fitted - reach) > upper)
    return float(disjoint.mean())


def event_of(proba: FloatArray, y: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return the fitted probability of the event that is checked, and where it took place.

    It is the second of two classes, or the most probable one of more.
    """
    if proba.shape[1] == 2:
        return proba[:, 1], y == 1
    top = proba.argmax(axis=1)
    return proba[np.arange(len(top)), top], y == top


def warn_of_misfit(calibrator: Any) -> None:
    """Warn where the fraction of disjoint intervals is large."""
    misfit = getattr(calibrator, "misfit_", 0.0)
    if misfit <= _FRACTION:
        return
    advice = (
        "Use EvidentialIsotonicCalibrator, which assumes no form, or a map with more parameters: "
        "EvidentialLogisticCalibrator has an offset that one slope has not."
    )
    if getattr(calibrator, "targets", None) == "smoothed":
        advice = f'Try targets="light" first: smoothed ones move probabilities. {advice}'
    warnings.warn(
        f"{type(calibrator).__name__}: in {misfit:.0%} of the calibration rows looked at, the "
        "interval of the fitted probability and that of an isotonic fit have no value in common. "
        "The form of the map is wrong there, and bounds at a level need not hold the true "
        f"probability so often. {advice}",
        MisfitWarning,
        stacklevel=3,
    )


def _spread(weight: FloatArray) -> IntArray:
    """Return at most 32 positions spread evenly over the weight."""
    end = np.cumsum(weight)
    middle = (np.arange(_ROWS) + 0.5) / _ROWS * end[-1]
    return np.unique(np.minimum(np.searchsorted(end, middle), len(end) - 1))


def _standard_error(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the standard error of log-odds fitted by a logistic regression on themselves."""
    spread = weight * expit(eta) * expit(-eta)
    total = spread.sum()
    centre = spread @ eta / total
    around = spread @ (eta - centre) ** 2
    slope = np.divide((eta - centre) ** 2, around, out=np.zeros_like(eta), where=around > 0)
    return np.sqrt(1 / total + slope)
