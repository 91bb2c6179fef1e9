"""Polynomial extrapolation of a solution path, or other curve, from its last points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Number of points that the polynomial interpolates.
MEMORY = 4


@compiled()
def extrapolate(curve: FloatArray, x: float, out: FloatArray) -> None:
    """Write the values at x of the polynomial through the last points of a curve.

    Rows of `curve` are x and the values there, the latest first. Farther from the latest point than
    the oldest is, a line through the last two is used: high powers would diverge.
    """
    size = len(curve) if abs(x - curve[0, 0]) <= abs(curve[0, 0] - curve[-1, 0]) else 2
    out[:] = 0.0
    for i in range(size):
        factor = 1.0
        for j in range(size):
            if j != i:
                factor *= (x - curve[j, 0]) / (curve[i, 0] - curve[j, 0])
        for a in range(len(out)):
            out[a] += factor * curve[i, a + 1]


@compiled()
def append(curve: FloatArray, x: float, values: FloatArray) -> None:
    """Insert a point as the latest of a curve, and drop the oldest."""
    for k in range(len(curve) - 1, 0, -1):
        curve[k] = curve[k - 1]
    curve[0, 0] = x
    curve[0, 1:] = values
