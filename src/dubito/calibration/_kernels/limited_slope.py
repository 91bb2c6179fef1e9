r"""One slope of softmax, fitted to scores whose gap to the best score of their row is limited.

Outliers must not dominate the slope. With :math:`d_k=\max_ju_j-u_k` the gap of class k to the best
score, the limited score is

.. math:: v_k=-\frac{d_k}{1+d_k/L}:

nearly :math:`-d_k` where the gap is small relative to the limit L, never below :math:`-L`. The
order of the classes stays. Naive Bayes, whose log-odds of hundreds mean no more than those of ten,
needs a limit; most classifiers need none, and :math:`L=\infty` is plain temperature scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.targets import PSEUDO_ROWS
from dubito.calibration._kernels.temperature_scaling import fit_slope, slope_loss

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Quantiles of all positive gaps that are candidate limits, besides no limit.
_QUANTILES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)
#: Increase of the log-likelihood that a limit must bring to be used.
_LEAST_GAIN_OF_LIMIT = 4.0
#: Largest number of scores on which the limit is chosen; of more, a fixed random sample of rows.
_MAX_SCORES = 300_000


class LimitedSlope(NamedTuple):
    """The limit of gaps, infinite for none, and the slope fitted to limited scores."""

    limit: float
    slope: float

    def log_proba(self, u: FloatArray) -> FloatArray:
        """Return the log softmax of limited scores times the slope."""
        z = self.slope * limit_gaps(u, self.limit)
        # The best limited score of a row is 0, so exp does not overflow.
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def limit_gaps(u: FloatArray, limit: float) -> FloatArray:
    """Return limited scores: 0 for the best class of a row, at least -limit for the others."""
    gaps = u.max(axis=1, keepdims=True) - u
    return np.asarray(-gaps / (1 + gaps / limit))


def fit_limited_slope(u: FloatArray, y: IntArray, weight: FloatArray) -> LimitedSlope:
    """Return the most likely limit and slope; a limit must gain `_LEAST_GAIN_OF_LIMIT`."""
    rows = subsample_rows(len(u), max(_MAX_SCORES // u.shape[1], 1000))
    u, y, weight = u[rows], y[rows], weight[rows]
    best, least = LimitedSlope(np.inf, 1.0), np.inf
    for limit in (np.inf, *_candidate_limits(u, weight)):
        v = np.ascontiguousarray(limit_gaps(u, limit))
        slope = fit_slope(v, y, weight, PSEUDO_ROWS).slope
        loss = (
            slope_loss(v, y, weight, PSEUDO_ROWS, slope) + (limit < np.inf) * _LEAST_GAIN_OF_LIMIT
        )
        if loss < least:
            best, least = LimitedSlope(float(limit), slope), loss
    if best.slope > 0:
        return best
    # The slope is 0, which would make all features of the next step 0: higher scores go with
    # other labels.
    typical = float(np.abs(limit_gaps(u, best.limit)).mean())
    return best._replace(slope=1 / typical if typical > 0 else 1.0)


def _candidate_limits(u: FloatArray, weight: FloatArray) -> FloatArray:
    """Return weighted quantiles of the positive gaps."""
    gaps = (u.max(axis=1, keepdims=True) - u).ravel()
    weights = np.repeat(weight, u.shape[1])
    positive = gaps > 0
    gaps, weights = gaps[positive], weights[positive]
    if not len(gaps):
        return gaps
    order = np.argsort(gaps)
    cumulated = np.cumsum(weights[order])
    rank = np.searchsorted(cumulated, np.array(_QUANTILES) * cumulated[-1])
    return np.unique(gaps[order[np.minimum(rank, len(order) - 1)]])
