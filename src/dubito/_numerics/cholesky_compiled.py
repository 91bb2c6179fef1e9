"""Cholesky factor of a small symmetric matrix, and the solution of systems with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS

if TYPE_CHECKING:
    from dubito._typing import FloatArray


@compiled()
def cholesky_factor(matrix: FloatArray, ridge: float, lower: FloatArray) -> bool:
    """Write the Cholesky factor of matrix + ridge·I; return whether that is positive definite.

    A pivot of at most 1e-14 of the diagonal entry counts as 0.
    """
    for a in range(len(matrix)):
        for b in range(a + 1):
            value = matrix[a, b] + (ridge if a == b else 0.0)
            original = value
            for c in range(b):
                value -= lower[a, c] * lower[b, c]
            if a > b:
                lower[a, b] = value / lower[b, b]
            elif value > 1e-14 * original:
                lower[a, a] = math.sqrt(value)
            else:
                return False
    return True


@compiled()
def cholesky_solve(lower: FloatArray, rhs: FloatArray, out: FloatArray) -> None:
    """Write the solution of a system, given the Cholesky factor of its matrix."""
    out[:] = rhs
    cholesky_solve_in_place(lower, out)


@compiled(fastmath=SIMD_FLAGS)
def cholesky_solve_in_place(lower: FloatArray, out: FloatArray) -> None:
    """Replace the right-hand side in `out` by the solution; `lower` may be of single precision.

    Both loops read the factor row by row, so that they can be vectorised.
    """
    for a in range(len(out)):
        value = out[a]
        row = lower[a]
        for b in range(a):
            value -= row[b] * out[b]
        out[a] = value / row[a]
    for a in range(len(out) - 1, -1, -1):
        row = lower[a]
        out[a] /= row[a]
        for b in range(a):
            out[b] -= row[b] * out[a]
