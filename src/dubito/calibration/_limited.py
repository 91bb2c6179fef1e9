r"""Temperature scaling that outliers cannot spoil: gaps between scores are limited first.

With :math:`d_k=\max_ju_j-u_k` the gap of class k to the best score, the limited score is

.. math:: v_k=-\frac{d_k}{1+d_k/L}:

nearly :math:`-d_k` where the gap is small beside the limit L, never below :math:`-L`. The order of
the classes stays. Naive Bayes, whose log-odds of hundreds mean no more than those of ten, needs a
limit; most classifiers need none, and :math:`L=\infty` is plain temperature scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels.softmax import fit_slope, slope_loss, spread_rows
from dubito.calibration._shrinkage import AUTO_PSEUDO

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray

#: Limits that are tried: these quantiles of all gaps, and none.
_QUANTILES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)
#: A limit must raise the log-likelihood by so much to be believed.
_GAIN = 4.0
#: Scores on which the limit is chosen; with more a fixed random sample of rows decides.
_MOST_SCORES = 300_000


class LimitedSlope(NamedTuple):
    """The limit of gaps, infinite where there is none, and the slope fitted to limited scores."""

    limit: float
    slope: float

    def log_proba(self, u: FloatArray) -> FloatArray:
        """Return limited scores times the slope, less what makes them log-probabilities."""
        z = self.slope * limit_gaps(u, self.limit)
        # The best score is 0, so that nothing overflows.
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def limit_gaps(u: FloatArray, limit: float) -> FloatArray:
    """Return limited scores: 0 for the best class of a row, at least -limit for the others."""
    gaps = u.max(axis=1, keepdims=True) - u
    return np.asarray(-gaps / (1 + gaps / limit))


def fit_limited_slope(u: FloatArray, y: IntArray, weight: FloatArray) -> LimitedSlope:
    """Fit slope and limit by likelihood, with none unless one is clearly better."""
    rows = spread_rows(len(u), max(_MOST_SCORES // u.shape[1], 1000))
    u, y, weight = u[rows], y[rows], weight[rows]
    best, least = LimitedSlope(np.inf, 1.0), np.inf
    for limit in (np.inf, *_candidates(u, weight)):
        v = np.ascontiguousarray(limit_gaps(u, limit))
        slope = fit_slope(v, y, weight, AUTO_PSEUDO).theta
        loss = slope_loss(v, y, weight, AUTO_PSEUDO, slope) + (limit < np.inf) * _GAIN
        if loss < least:
            best, least = LimitedSlope(float(limit), slope), loss
    if best.slope > 0:
        return best
    # Scores point away from the labels: a slope of 0 would hide them from the maps that follow.
    typical = float(np.abs(limit_gaps(u, best.limit)).mean())
    return best._replace(slope=1 / typical if typical > 0 else 1.0)


def _candidates(u: FloatArray, weight: FloatArray) -> FloatArray:
    """Return weighted quantiles of the positive gaps."""
    gaps = (u.max(axis=1, keepdims=True) - u).ravel()
    weights = np.repeat(weight, u.shape[1])
    positive = gaps > 0
    gaps, weights = gaps[positive], weights[positive]
    if not len(gaps):
        return gaps
    order = np.argsort(gaps)
    below = np.cumsum(weights[order])
    at = np.searchsorted(below, np.array(_QUANTILES) * below[-1])
    return np.unique(gaps[order[np.minimum(at, len(order) - 1)]])
