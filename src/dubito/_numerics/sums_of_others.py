"""Sums and maxima of the other entries of each row, computed without subtraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def sums_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the sum of the others in its row: those before and those after it."""
    before, after = np.zeros((2, *values.shape))
    before[:, 1:] = np.cumsum(values[:, :-1], axis=1)
    after[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return np.asarray(before + after)


def log_sums_of_others(values: FloatArray) -> FloatArray:
    r"""Return :math:`\log\sum_{j\ne k}e^{z_j}` for each entry k of a row z.

    The others of the largest entry are summed; for the rest the largest dominates the sum, and
    :math:`\log(1-p_k)` is added to the logarithm of the total.
    """
    rows, top = np.arange(len(values)), values.argmax(axis=1)
    others = values.copy()
    others[rows, top] = -np.inf
    others_of_top = logsumexp(others, axis=1)
    total = np.logaddexp(others_of_top, values[rows, top])[:, None]
    with np.errstate(invalid="ignore"):  # -inf minus -inf, where a row has no other entry
        proba = np.fmin(np.exp(values - total), 0.75)  # only the largest can exceed 1/2
    result = total + np.log1p(-proba)
    result[rows, top] = others_of_top
    return np.asarray(result)


def maxima_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the largest of the others in its row, of two or more."""
    top = values.argmax(axis=1)
    largest_two = np.partition(values, -2, axis=1)[:, -2:]
    maxima = np.repeat(largest_two[:, 1:], values.shape[1], axis=1)
    maxima[np.arange(len(values)), top] = largest_two[:, 0]
    return maxima
