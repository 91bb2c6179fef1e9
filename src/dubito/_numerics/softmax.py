"""The softmax of each row and its logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def softmax_in_place(z: FloatArray) -> FloatArray:
    """Return the softmax of each row, which overwrites z."""
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def log_softmax(z: FloatArray) -> FloatArray:
    """Return the logarithm of the softmax, row by row."""
    from dubito._numerics.softmax_compiled import log_softmax_rows  # noqa: PLC0415 - loads numba

    out = np.empty(z.shape)
    log_softmax_rows(z, out)
    return out
