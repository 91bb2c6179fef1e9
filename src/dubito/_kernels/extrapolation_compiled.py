"""Curves followed point by point: the next point guessed from the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._kernels.jit import compiled

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

#: Points that the next is guessed from.
MEMORY = 4


@compiled()
def extrapolate(curve: FloatArray, x: float, out: FloatArray) -> None:
    """Write the values at x of the polynomial through the last points of a curve.

    Rows of `curve` are x and the values there, the latest first. A long way off, a line means more.
    """
    size = len(curve) if abs(x - curve[0, 0]) <= abs(curve[0, 0] - curve[-1, 0]) else 2
    out[:] = 0.0
    for i in range(size):
        share = 1.0
        for j in range(size):
            if j != i:
                share *= (x - curve[j, 0]) / (curve[i, 0] - curve[j, 0])
        for a in range(len(out)):
            out[a] += share * curve[i, a + 1]


@compiled()
def append(curve: FloatArray, x: float, values: FloatArray) -> None:
    """Put a point first and forget the oldest."""
    for k in range(len(curve) - 1, 0, -1):
        curve[k] = curve[k - 1]
    curve[0, 0] = x
    curve[0, 1:] = values
