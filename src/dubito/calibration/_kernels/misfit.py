r"""Misfit: the fraction of calibration rows that contradict the form of a fitted map.

Bounds at a level are valid only if the map's form is right. The check assumes no form: sort the
calibration rows by the fitted log-odds :math:`\eta`; an event whose fitted probability is right
rises with them, so the isotonic likelihood gives an interval of its probability at each row. Where
it and the interval of the fitted probability,

.. math:: \sigma\bigl(\eta\pm z\,(x^\mathsf TH^{-1}x)^{1/2}\bigr),\qquad x=(1,\eta),\quad
          H=\sum_iw_i\,p_i(1-p_i)\,x_ix_i^\mathsf T,

are disjoint, one of the two is wrong. The fraction of such rows among at most 32, spread evenly
over the weight, is the misfit. With more than two classes it is the larger of two: that of the
event that the most probable class is the true one, and the mean over the events of the most
frequent classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.isotonic import cut_bounds, pool_ties
from dubito._numerics.logistic_curvature import logistic_curvature

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest number of rows at which intervals are compared.
_CHECKED_ROWS = 32

#: Largest number of classes whose events are checked: the most frequent ones.
_CHECKED_CLASSES = 10

#: Confidence level of both intervals.
_LEVEL = 0.9

#: Larger fitted log-odds are clipped: their probabilities round to 0 and 1.
_LARGEST_LOG_ODDS = 30.0


def misfit_fraction(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the fraction of rows at which fitted and isotonic intervals are disjoint.

    Parameters
    ----------
    proba : array (n,)
        Fitted probability of the event in each calibration row.
    event : boolean array (n,)
    weight : array (n,)
        Positive sample weights.
    """
    with np.errstate(divide="ignore"):
        eta = np.clip(logit(proba), -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    distinct, successes, failures = pool_ties(eta, event, weight)
    index = _spread_rows(successes + failures)
    lower, upper = cut_bounds(index + 1, index, successes, failures, _LEVEL)
    half_width = root_chi2_quantile(_LEVEL) * _standard_error(distinct, successes + failures)[index]
    fitted = distinct[index]
    disjoint = (expit(fitted + half_width) < lower) | (expit(fitted - half_width) > upper)
    return float(disjoint.mean())


def events_of(proba: FloatArray, y: IntArray, classes: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return fitted probabilities of the checked events, and whether they occurred, by row.

    Two classes have one event, the second class. More have one column for the most probable class
    and one for each of `classes`.
    """
    if proba.shape[1] == 2:
        return proba[:, 1:], (y == 1)[:, None]
    top = proba.argmax(axis=1)
    fitted = np.column_stack([proba[np.arange(len(top)), top], proba[:, classes]])
    return fitted, np.column_stack([y == top, y[:, None] == classes])


def frequent_classes(y: IntArray, weight: FloatArray, n_classes: int) -> IntArray:
    """Return the classes with the largest weight, whose events are checked."""
    return np.argsort(-np.bincount(y, weight, n_classes), kind="stable")[:_CHECKED_CLASSES]


def misfit_of(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the misfit of the first event, or the mean of the others' if that is larger."""
    first, *others = (misfit_fraction(p, e, weight) for p, e in zip(proba.T, event.T, strict=True))
    return max(first, float(np.mean(others)) if others else 0.0)


def _spread_rows(weight: FloatArray) -> IntArray:
    """Return indices of at most 32 distinct scores, spread evenly over the sample weight."""
    cumulated = np.cumsum(weight)
    middle = (np.arange(_CHECKED_ROWS) + 0.5) / _CHECKED_ROWS * cumulated[-1]
    return np.unique(np.minimum(np.searchsorted(cumulated, middle), len(cumulated) - 1))


def _standard_error(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the standard error of log-odds fitted by a logistic regression on themselves."""
    curvature = logistic_curvature(eta, weight)
    total = curvature.sum()
    centre = curvature @ eta / total
    squares = curvature @ (eta - centre) ** 2
    of_slope = np.divide((eta - centre) ** 2, squares, out=np.zeros_like(eta), where=squares > 0)
    return np.sqrt(1 / total + of_slope)
