r"""Paths of constrained maxima in closed form: linear functionals of a quadratic likelihood.

Where :math:`D(\beta)=\frac12\beta^\top H\beta+\ell^\top\beta`, the minimiser of
:math:`D-\lambda c^\top\beta` over :math:`\beta\ge b` moves on a straight line in :math:`\lambda`
until a coefficient meets its bound or leaves it. On a stretch from :math:`\lambda_0`, with
:math:`\kappa=c_F^\top H_{FF}^{-1}c_F` over the free coefficients,

.. math:: D=D_0+\tfrac12\kappa(\lambda^2-\lambda_0^2),\qquad f=f_0+\kappa(\lambda-\lambda_0).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray


@compiled()
def _direction(hessian: FloatArray, c: FloatArray, held: BoolArray, out: FloatArray) -> None:
    """Write how the coefficients move with the multiplier."""
    free = np.flatnonzero(~held)
    m = len(free)
    block, lower = np.empty((m, m)), np.empty((m, m))
    right, moves = np.empty(m), np.empty(m)
    largest = 0.0
    for i in range(m):
        right[i] = c[free[i]]
        largest = max(largest, hessian[free[i], free[i]])
        for j in range(m):
            block[i, j] = hessian[free[i], free[j]]
    lift = 0.0
    while not cholesky_factor(block, lift, lower) and lift <= largest:
        lift = max(100.0 * lift, 1e-13 * largest)
    cholesky_solve(lower, right, moves)
    out[:] = 0.0
    for i in range(m):
        out[free[i]] = moves[i]


@compiled()
def _next_event(
    pressure: FloatArray,
    rates: FloatArray,
    slack: FloatArray,
    along: FloatArray,
    held: BoolArray,
) -> tuple[int, float]:
    """Return the coefficient that next meets or leaves its bound, -1 if none, and when."""
    event, stride = -1, np.inf
    for a in range(len(along)):
        if held[a]:
            wait = max(pressure[a], 0.0) / rates[a] if rates[a] > 0.0 else np.inf
        else:
            wait = slack[a] / along[a] if along[a] < 0.0 else np.inf
        if wait < stride:
            event, stride = a, wait
    return event, stride


@compiled()
def stretches(
    hessian: FloatArray, linear: FloatArray, bounds: FloatArray, c: FloatArray, out: FloatArray
) -> tuple[int, float]:
    """Write the stretches of a path, rows (D, λ, growth of f, κ) at their starts.

    Return how many there are, and the level at which the functional has grown all it can.
    """
    p = len(c)
    beta, along = np.zeros(p), np.empty(p)
    pressure, rates = np.empty(p), np.empty(p)
    held = bounds >= 0.0
    multiplier = depth = growth = 0.0
    for row in range(len(out)):
        _direction(hessian, c, held, along)
        kappa = dot(c, along)
        out[row, 0], out[row, 1], out[row, 2], out[row, 3] = depth, multiplier, growth, kappa
        for a in range(p):
            pressure[a] = dot(hessian[a], beta) + linear[a] - multiplier * c[a]
            rates[a] = c[a] - dot(hessian[a], along)
            if rates[a] <= 1e-12 * abs(c[a]):
                rates[a] = 0.0
        event, stride = _next_event(pressure, rates, bounds - beta, along, held)
        if event < 0:
            return row + 1, np.inf if kappa > 0.0 else math.sqrt(2.0 * depth)
        for a in range(p):
            beta[a] += stride * along[a]
        depth += 0.5 * kappa * stride * (2.0 * multiplier + stride)
        growth += kappa * stride
        multiplier += stride
        held[event] = not held[event]
        if held[event]:
            beta[event] = bounds[event]
    return len(out), np.inf


@compiled()
def growth_at(path: FloatArray, count: int, level: float) -> float:
    """Return how far the functional has grown at a level."""
    target = 0.5 * level * level
    row = count - 1
    while row > 0 and path[row, 0] > target:
        row -= 1
    depth, multiplier, growth, kappa = path[row]
    if kappa <= 0.0:
        return growth
    more = 2.0 * (target - depth) / kappa
    return growth + kappa * (more / (math.sqrt(multiplier * multiplier + more) + multiplier))
