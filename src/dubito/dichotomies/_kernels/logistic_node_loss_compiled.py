"""The rows of a node as a logistic loss: its left rows come first, then its right ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place, log_one_plus

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Curvature of a row is kept above this share of its weight, so that its root can be divided by.
_LEAST_CURVATURE = 1e-40
#: Rows whose exponentials are taken at once.
_BLOCK = 256
#: Newton steps in the plane of the weights and the step, taken above this decrement.
_PLANE_STEPS = 2
_NEAR = 0.1


@compiled(fastmath=SIMD_FLAGS)
def _terms_of_side(odds, sign, weight, pull, bend):  # type: ignore[no-untyped-def]
    """Return the loss of rows of one side, +1 right and -1 left; write pulls and curvatures."""
    small, power = np.empty(_BLOCK), np.empty(_BLOCK)
    bits = power.view(np.int64)
    value = 0.0
    for first in range(0, len(odds), _BLOCK):
        m = min(_BLOCK, len(odds) - first)
        z, w = odds[first : first + m], weight[first : first + m]
        to, curve = pull[first : first + m], bend[first : first + m]
        for i in range(m):
            small[i] = -abs(z[i])
        exp_in_place(small[:m], power[:m], bits[:m])
        for i in range(m):
            share = small[i] / (1.0 + small[i])
            towards = sign * z[i]
            value += w[i] * (log_one_plus(small[i]) + max(-towards, 0.0))
            to[i] = sign * w[i] * (share if towards >= 0.0 else 1.0 - share)
            curve[i] = w[i] * max(share / (1.0 + small[i]), _LEAST_CURVATURE)
    return value


@compiled()
def row_terms(odds, n_left, weight, pull, bend):  # type: ignore[no-untyped-def]
    """Return the loss; write minus its slope and its curvature in the log-odds of every row."""
    left = _terms_of_side(odds[:n_left], -1.0, weight[:n_left], pull[:n_left], bend[:n_left])
    right = _terms_of_side(odds[n_left:], 1.0, weight[n_left:], pull[n_left:], bend[n_left:])
    return left + right


@compiled(fastmath=SIMD_FLAGS)
def _plane_of_side(plane, at, sign, weight, sums):  # type: ignore[no-untyped-def]
    """Add the loss of rows of one side at a point of the plane, and its derivatives there."""
    base, rise = plane
    small, power = np.empty(_BLOCK), np.empty(_BLOCK)
    bits = power.view(np.int64)
    towards = np.empty(_BLOCK)
    value, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, len(base), _BLOCK):
        m = min(_BLOCK, len(base) - first)
        a, b, w = base[first : first + m], rise[first : first + m], weight[first : first + m]
        for i in range(m):
            towards[i] = sign * (at[0] * a[i] + at[1] * b[i])
            small[i] = -abs(towards[i])
        exp_in_place(small[:m], power[:m], bits[:m])
        for i in range(m):
            share = small[i] / (1.0 + small[i])
            value += w[i] * (log_one_plus(small[i]) + max(-towards[i], 0.0))
            pull = w[i] * (share if towards[i] >= 0.0 else 1.0 - share)
            bend = w[i] * share / (1.0 + small[i])
            g0 -= pull * a[i]
            g1 -= pull * b[i]
            h00 += bend * a[i] * a[i]
            h01 += bend * a[i] * b[i]
            h11 += bend * b[i] * b[i]
    sums[0] += value
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
    """Return how much of the weights to keep and how far to go along the step.

    Where rows can be told apart, margins grow until the penalty stops them, and a Newton step
    makes them larger by about one: growing them as a whole, which needs no features, saves half
    of the steps. Near the optimum Newton's step is right as it is: the plane adds noise.

    The plane is spanned by the log-odds and their rise. The penalty is that of the weights, of
    weights and step, and of the step; the step alone is halved until the objective falls, and
    (1, 0) says that it does not.
    """
    sums, trial = np.empty(6), np.empty(6)
    at = (1.0, 1.0)
    _plane_terms(plane, at, sides, penalty, sums)
    # The last digits of a sum over rows are noise: a fall that drowns in it is believed.
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
def enough(tolerance: float, objective: float) -> float:
    """Return the decrement at which to end: a share of the objective, where that is small."""
    return tolerance * min(1.0, max(math.sqrt(objective), tolerance))


@compiled()
def prior_odds(n_left: int, weight: FloatArray) -> float:
    """Return the log-odds of the right side without features: where both sides have weight."""
    left = weight[:n_left].sum()
    return math.log(weight[n_left:].sum() / left)


@compiled(fastmath=SIMD_FLAGS)
def solve_factored(lower: FloatArray, out: FloatArray) -> None:
    """Replace the right-hand side in `out` by the solution, by a Cholesky factor."""
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
