"""Sums and maxima of the other entries of each row, computed without subtraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def sums_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the sum of the others in its row; subtraction would cancel digits."""
    return _over_others(np.add, values, 0.0)


def log_sums_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the logarithm of the sum of exponentials of the others in its row."""
    return _over_others(np.logaddexp, values, -np.inf)


def _over_others(operation: np.ufunc, values: FloatArray, neutral: float) -> FloatArray:
    """Return an associative operation over the entries before and after each entry of a row."""
    before, after = np.full((2, *values.shape), neutral)
    before[:, 1:] = operation.accumulate(values[:, :-1], axis=1)
    after[:, :-1] = operation.accumulate(values[:, :0:-1], axis=1)[:, ::-1]
    return np.asarray(operation(before, after))


def maxima_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the largest of the others in its row; rows have at least two entries.

    From the two largest of a row, which takes a quarter of the time of `_over_others`.
    """
    top = values.argmax(axis=1)
    largest_two = np.partition(values, -2, axis=1)[:, -2:]
    maxima = np.repeat(largest_two[:, 1:], values.shape[1], axis=1)
    maxima[np.arange(len(values)), top] = largest_two[:, 0]
    return maxima
