r"""The fraction of a diagonal majorant that suffices for a principal submatrix.

If :math:`\mathrm{Diag}(u)\succeq Q`, then on some of the coordinates a fraction of u suffices: the
largest eigenvalue of Q relative to Diag(u) among them. It is estimated from below by power
iterations, raised slightly, and then proved by a Cholesky factorisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, matrix_vector

if TYPE_CHECKING:
    from dubito._typing import FloatArray, SignArray

#: Power iterations for the largest eigenvalue.
_POWERS = 12


@compiled()
def fraction_needed(
    quad: FloatArray, majorant: FloatArray, signs: SignArray, buffer: FloatArray
) -> float:
    """Return t <= 1 with t Diag(u) above Q on the open coordinates, those of sign 0.

    `buffer` is (p + 2, p).
    """
    v, w, block = buffer[0], buffer[1], buffer[2:]
    for i in range(len(majorant)):
        # Unequal entries: a constant vector may lie in the null space of Q.
        v[i] = 1.0 + 0.37 * (i * 5 % 7) if signs[i] == 0 and majorant[i] > 0.0 else 0.0
    largest = _largest_ratio(quad, majorant, v, w)
    for slack in (1.01, 1.1):
        fraction = slack * largest
        # The comparison is also False for nan.
        if 0.0 < fraction < 1.0 and _is_above(quad, majorant, fraction, signs, block):
            return fraction
    return 1.0


@compiled(fastmath=SIMD_FLAGS)
def _largest_ratio(quad: FloatArray, majorant: FloatArray, v: FloatArray, w: FloatArray) -> float:
    """Return a lower estimate of the largest v'Qv / v'Diag(u)v over vectors with the zeros of v."""
    p = len(majorant)
    ratio = 0.0
    for _ in range(_POWERS):
        matrix_vector(quad, v, w)
        numerator, denominator, size = 0.0, 0.0, 0.0
        for i in range(p):
            numerator += v[i] * w[i]
            denominator += v[i] * v[i] * majorant[i]
        if not numerator > 0.0:
            break
        ratio = numerator / denominator
        for i in range(p):
            w[i] = w[i] / majorant[i] if v[i] != 0.0 else 0.0
            size = max(size, abs(w[i]))
        for i in range(p):
            # Keep open coordinates above zero: zero marks a fixed one.
            v[i] = w[i] / size if abs(w[i]) > 1e-30 * size else v[i] * 1e-30
    return ratio


@compiled(fastmath=SIMD_FLAGS)
def _is_above(
    quad: FloatArray, majorant: FloatArray, fraction: float, signs: SignArray, block: FloatArray
) -> bool:
    """Return whether fraction Diag(u) - Q on the open coordinates has a Cholesky factor.

    Rows are gathered as they are factored, so that the first failure saves the rest of the work;
    `cholesky_factor` would need the gathered matrix.
    """
    n = 0
    for i in range(len(majorant)):
        if signs[i] != 0 or majorant[i] <= 0.0:
            continue
        row = block[n]
        m = 0
        for j in range(i + 1):
            if signs[j] == 0 and majorant[j] > 0.0:
                row[m] = -quad[i, j]
                m += 1
        row[n] += fraction * majorant[i]
        for b in range(n):
            other, total = block[b], 0.0
            for d in range(b):
                total += row[d] * other[d]
            row[b] = (row[b] - total) / other[b]
        pivot = 0.0
        for d in range(n):
            pivot += row[d] * row[d]
        pivot = row[n] - pivot
        if not pivot > 1e-10 * fraction * majorant[i]:
            return False
        row[n] = pivot**0.5
        n += 1
    return True
