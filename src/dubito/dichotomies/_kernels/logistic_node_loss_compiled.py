"""Logistic loss of the rows of a node, and the search along a Newton step.

The rows of the left side come first, then those of the right side. Log-odds are those of the right
side.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    exp_buffers,
    exp_in_place,
    softplus_terms,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Smallest curvature of a row of weight 1, not 0 because its square root is a divisor.
_LEAST_CURVATURE = 1e-40
#: Rows whose exponentials are computed at once.
_CHUNK_ROWS = 256
#: Newton steps of `search_plane`, and the decrement up to which it takes none: near the optimum.
_PLANE_STEPS = 2
_NEAR = 0.1


@compiled(fastmath=SIMD_FLAGS)
def _terms_of_side(log_odds, sign, weight, residuals, curvatures):  # type: ignore[no-untyped-def]
    """Return the loss of the rows of one side; write their residuals and curvatures.

    `sign` is +1 for the right side, -1 for the left.
    """
    small, power, bits = exp_buffers(_CHUNK_ROWS)
    total = 0.0
    for start in range(0, len(log_odds), _CHUNK_ROWS):
        m = min(_CHUNK_ROWS, len(log_odds) - start)
        z, w = log_odds[start : start + m], weight[start : start + m]
        r, c = residuals[start : start + m], curvatures[start : start + m]
        for i in range(m):
            small[i] = -abs(z[i])
        exp_in_place(small[:m], power[:m], bits[:m])
        for i in range(m):
            value, p, second = softplus_terms(-sign * z[i], small[i])
            total += w[i] * value
            r[i] = sign * w[i] * p
            c[i] = w[i] * max(second, _LEAST_CURVATURE)
    return total


@compiled()
def row_terms(log_odds, n_left, weight, residuals, curvatures):  # type: ignore[no-untyped-def]
    """Return the loss; write residuals and curvatures.

    They are its derivatives by the log-odds of each row: minus the first, and the second.
    """
    loss = _terms_of_side(
        log_odds[:n_left], -1.0, weight[:n_left], residuals[:n_left], curvatures[:n_left]
    )
    return loss + _terms_of_side(
        log_odds[n_left:], 1.0, weight[n_left:], residuals[n_left:], curvatures[n_left:]
    )


@compiled(fastmath=SIMD_FLAGS)
def _plane_of_side(plane, at, sign, weight, sums):  # type: ignore[no-untyped-def]
    """Add the loss of rows of one side at a point of the plane, and its derivatives there."""
    base, rise = plane
    small, power, bits = exp_buffers(_CHUNK_ROWS)
    eta = np.empty(_CHUNK_ROWS)
    total, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, len(base), _CHUNK_ROWS):
        m = min(_CHUNK_ROWS, len(base) - start)
        a, b, w = base[start : start + m], rise[start : start + m], weight[start : start + m]
        for i in range(m):
            eta[i] = -sign * (at[0] * a[i] + at[1] * b[i])
            small[i] = -abs(eta[i])
        exp_in_place(small[:m], power[:m], bits[:m])
        for i in range(m):
            value, p, second = softplus_terms(eta[i], small[i])
            p, second = w[i] * p, w[i] * second
            total += w[i] * value
            g0 -= p * a[i]
            g1 -= p * b[i]
            h00 += second * a[i] * a[i]
            h01 += second * a[i] * b[i]
            h11 += second * b[i] * b[i]
    sums[0] += total
    sums[1] += sign * g0
    sums[2] += sign * g1
    sums[3] += h00
    sums[4] += h01
    sums[5] += h11


@compiled()
def _plane_terms(plane, at, sides, penalty, sums):  # type: ignore[no-untyped-def]
    """Write the objective at a point of the plane, its gradient and its Hessian."""
    base, rise = plane
    n_left, weight = sides
    q0, q1, q2 = penalty
    x, y = at
    sums[0] = 0.5 * (q0 * x * x + 2.0 * q1 * x * y + q2 * y * y)
    sums[1] = q0 * x + q1 * y
    sums[2] = q1 * x + q2 * y
    sums[3:] = penalty
    _plane_of_side((base[:n_left], rise[:n_left]), at, -1.0, weight[:n_left], sums)
    _plane_of_side((base[n_left:], rise[n_left:]), at, 1.0, weight[n_left:], sums)


@compiled()
def search_plane(plane, sides, penalty, before, decrement):  # type: ignore[no-untyped-def]
    """Return factors of coefficients and Newton step whose combination minimises the objective.

    Where rows are separable, margins grow until the penalty stops them, and a Newton step makes
    them larger by about one: multiplying all coefficients, which needs no pass over the features,
    saves half of the steps. Near the optimum the plain Newton step is used, since a search in the
    plane adds rounding errors.

    The plane is spanned by the log-odds and their change along the step (`rise`). `penalty` are
    the products of coefficients and coefficients, coefficients and step, step and step. First the
    step alone is halved until the objective falls; (1, 0) is returned where it does not.
    """
    sums, trial = np.empty(6), np.empty(6)
    at = (1.0, 1.0)
    _plane_terms(plane, at, sides, penalty, sums)
    # Differences below rounding of a sum over rows count as a decrease.
    limit = before + 1e-13 * abs(before)
    length = 1.0
    while not sums[0] <= limit:
        length *= 0.5
        if length < 1e-10:
            return 1.0, 0.0
        at = (1.0, length)
        _plane_terms(plane, at, sides, penalty, sums)
    for _ in range(_PLANE_STEPS if decrement > _NEAR else 0):
        determinant = sums[3] * sums[5] - sums[4] * sums[4]
        if not determinant > 1e-9 * sums[3] * sums[5]:
            break
        x = at[0] - (sums[5] * sums[1] - sums[4] * sums[2]) / determinant
        y = at[1] - (sums[3] * sums[2] - sums[4] * sums[1]) / determinant
        _plane_terms(plane, (x, y), sides, penalty, trial)
        if not trial[0] < sums[0]:
            break
        at = (x, y)
        sums[:] = trial
    return at


@compiled()
def final_decrement(tolerance: float, objective: float) -> float:
    """Return the decrement at which to stop: `tolerance`, or less where the objective is small."""
    return tolerance * min(1.0, max(math.sqrt(objective), tolerance))


@compiled()
def prior_log_odds(n_left: int, weight: FloatArray) -> float:
    """Return the log-odds of the sample weights of both sides, each positive."""
    left = weight[:n_left].sum()
    return math.log(weight[n_left:].sum() / left)
