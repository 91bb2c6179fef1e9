"""The sums of `temperature_scaling`, in one pass over the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_buffers, exp_in_place

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

# Comparisons are written out: max() handles signed zeros and nan, which prevents vectorisation.


@compiled(fastmath=SIMD_FLAGS)
def temperature_sums(
    u: FloatArray, y: IntArray, weight: FloatArray, fraction: float, slope: float
) -> tuple[float, float, float, float]:
    """Return the negative log-likelihood of softmax(slope·u) and three derivatives in the slope.

    `fraction` of each target is distributed evenly over the classes. All sums are of differences
    from the row's largest score, to avoid cancellation for large scores.
    """
    n, n_classes = u.shape
    buffer, power, power_bits = exp_buffers(n_classes)
    loss = first = second = third = 0.0
    for i in range(n):
        row = u[i]
        top = row[0]
        for k in range(1, n_classes):
            top = row[k] if row[k] > top else top  # noqa: FURB136
        total_difference = 0.0
        for k in range(n_classes):
            d = row[k] - top
            total_difference += d
            buffer[k] = slope * d
        exp_in_place(buffer, power, power_bits)
        total = m1 = m2 = m3 = 0.0
        for k in range(n_classes):
            e, d = buffer[k], row[k] - top
            ed = e * d
            edd = ed * d
            total += e
            m1 += ed
            m2 += edd
            m3 += edd * d
        m1 /= total
        m2 /= total
        m3 /= total
        target = (1 - fraction) * (row[y[i]] - top) + fraction * total_difference / n_classes
        w = weight[i]
        loss += w * (np.log(total) - slope * target)
        first += w * (m1 - target)
        second += w * (m2 - m1 * m1)
        third += w * (m3 - 3 * m1 * m2 + 2 * m1 * m1 * m1)
    return loss, first, second, third
