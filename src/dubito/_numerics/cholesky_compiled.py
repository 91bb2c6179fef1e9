"""Cholesky factor of a small symmetric matrix, and the solution of systems with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray


@compiled()
def cholesky_factor(matrix: FloatArray, lift: float, lower: FloatArray) -> bool:
    """Write the Cholesky factor of a matrix with its diagonal lifted; False if not definite."""
    for a in range(len(matrix)):
        for b in range(a + 1):
            value = matrix[a, b] + (lift if a == b else 0.0)
            whole = value
            for c in range(b):
                value -= lower[a, c] * lower[b, c]
            if a > b:
                lower[a, b] = value / lower[b, b]
            elif value > 1e-14 * whole:
                lower[a, a] = math.sqrt(value)
            else:
                return False
    return True


@compiled()
def cholesky_solve(lower: FloatArray, rhs: FloatArray, out: FloatArray) -> None:
    """Solve with a factor and its transpose."""
    p = len(rhs)
    for a in range(p):
        value = rhs[a]
        for b in range(a):
            value -= lower[a, b] * out[b]
        out[a] = value / lower[a, a]
    for a in range(p - 1, -1, -1):
        value = out[a]
        for b in range(a + 1, p):
            value -= lower[b, a] * out[b]
        out[a] = value / lower[a, a]
