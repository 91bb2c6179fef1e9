"""The best few of many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray


def top_columns(values: FloatArray, k: int) -> IntArray:
    """Return the columns of the k greatest values of each row, the greatest first.

    Of equal values the earlier column comes first.
    """
    n, n_classes = values.shape
    if k == 1:
        return np.argmax(values, axis=1)[:, None]
    if k < n_classes:
        least = -np.partition(-values, k - 1, axis=1)[:, k - 1 : k]
        above = values > least
        # Of those that tie for the last places the earliest are taken.
        wanted = k - above.sum(axis=1, keepdims=True)
        ties = values == least
        taken = above | (ties & (np.cumsum(ties, axis=1) <= wanted))
        columns = np.nonzero(taken)[1].reshape(n, k)
    else:
        columns = np.broadcast_to(np.arange(n_classes), (n, n_classes))
    order = np.argsort(-np.take_along_axis(values, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
