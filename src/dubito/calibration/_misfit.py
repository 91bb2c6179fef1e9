r"""Is the form of a parametric map wrong? Its intervals against isotonic ones, on a few rows.

Bounds at a level promise something only where the map's form is right. A check that assumes no
form: sort the calibration rows by the fitted log-odds :math:`\eta`; an event whose fitted
probability is right rises with them, so the isotonic likelihood gives an interval of its
probability at each row. Where it does not meet the interval of the fitted probability,

.. math:: \sigma\bigl(\eta\pm z\,(x^\mathsf TH^{-1}x)^{1/2}\bigr),\qquad x=(1,\eta),\quad
          H=\sum_iw_i\,p_i(1-p_i)\,x_ix_i^\mathsf T,

one of the two is wrong. The fraction of such rows among at most 32, spread evenly over the weight,
is the misfit. More than two classes: that of the event that the most probable class is the true
one, or the mean over the events of the most frequent classes, whichever is larger.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, ndtri

from dubito._kernels.isotonic import cut_bounds, pool_ties
from dubito._rows import frames_to_the_user
from dubito.calibration.errors import MisfitWarning

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray

#: Rows at which intervals are compared.
_ROWS = 32

#: Of more classes than this the most frequent ones are looked at.
_CLASSES = 10

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


def events_of(proba: FloatArray, y: IntArray, classes: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return fitted probabilities of the events that are checked, and where they took place.

    One column for the second of two classes; of more, one for the most probable class, and one for
    each of `classes`.
    """
    if proba.shape[1] == 2:
        return proba[:, 1:], (y == 1)[:, None]
    top = proba.argmax(axis=1)
    fitted = np.column_stack([proba[np.arange(len(top)), top], proba[:, classes]])
    return fitted, np.column_stack([y == top, y[:, None] == classes])


def frequent_classes(y: IntArray, weight: FloatArray, n_classes: int) -> IntArray:
    """Return the classes of the largest weight, of which events are checked."""
    return np.argsort(-np.bincount(y, weight, n_classes), kind="stable")[:_CLASSES]


def misfit_of(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the misfit of the first event, or the mean of the others' if that is larger."""
    first, *others = (misfit_fraction(p, e, weight) for p, e in zip(proba.T, event.T, strict=True))
    return max(first, float(np.mean(others)) if others else 0.0)


def warn_of_misfit(calibrator: Any, misfit: float) -> None:
    """Warn where the fraction of disjoint intervals is large."""
    if misfit <= _FRACTION:
        return
    advice = "Use IsotonicCalibrator, which assumes no form"
    if hasattr(calibrator, "map_"):  # AutoCalibrator's has all parameters already
        advice += "."
    else:
        advice += (
            ", or a map with more parameters: PlattCalibrator and VectorCalibrator have offsets "
            "that one slope has not."
        )
    if getattr(calibrator, "targets", None) == "smoothed":
        advice = f'Try targets="light" first: smoothed ones move probabilities. {advice}'
    warnings.warn(
        f"{type(calibrator).__name__}: in {misfit:.0%} of the calibration rows looked at, the "
        "interval of the fitted probability and that of an isotonic fit have no value in common. "
        "The form of the map is wrong there, and bounds at a level need not hold the true "
        f"probability so often. {advice}",
        MisfitWarning,
        stacklevel=frames_to_the_user(),
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
