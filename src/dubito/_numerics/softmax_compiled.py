"""Compiled version of `dubito._numerics.softmax`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place

if TYPE_CHECKING:
    from dubito._typing import FloatArray


@compiled(fastmath=SIMD_FLAGS)
def log_softmax_rows(z: FloatArray, out: FloatArray) -> None:
    """Write the logarithm of the softmax of each row of z into `out`."""
    n, n_classes = z.shape
    buffer = np.empty(n_classes)
    power = np.empty(n_classes)
    power_bits = power.view(np.int64)
    for i in range(n):
        row = z[i]
        top = row[0]
        for k in range(1, n_classes):
            top = row[k] if row[k] > top else top  # noqa: FURB136
        for k in range(n_classes):
            buffer[k] = row[k] - top
        exp_in_place(buffer, power, power_bits)
        total = 0.0
        for k in range(n_classes):
            total += buffer[k]
        # Subtract the maximum first: log(total) would be lost to rounding beside a large score.
        log_total = np.log(total)
        for k in range(n_classes):
            buffer[k] = row[k] - top
        for k in range(n_classes):
            out[i, k] = buffer[k] - log_total
