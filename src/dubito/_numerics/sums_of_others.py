"""Sums of the other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def sums_of_others(values: FloatArray) -> FloatArray:
    """Return for each entry the sum of the others in its row; subtraction would cancel digits."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
