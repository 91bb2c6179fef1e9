r"""Maximum of a linear functional over level sets of a quadratic likelihood, in closed form.

Where :math:`D(\beta)=\frac12\beta^\top H\beta+\ell^\top\beta` and :math:`f(\beta)=c^\top\beta`, the
solution path of `constrained_maxima_compiled`, the minimiser of :math:`D-\lambda f` over
:math:`\beta\ge b`, is linear in :math:`\lambda` until a coefficient meets its bound or leaves it.
On a segment from :math:`\lambda_0`, with :math:`\kappa=c_F^\top H_{FF}^{-1}c_F` over the free
coefficients F,

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
def _direction(hessian: FloatArray, c: FloatArray, at_bound: BoolArray, out: FloatArray) -> None:
    """Write dβ/dλ: the solution of H_FF x = c_F for the free coefficients, 0 for the others."""
    free = np.flatnonzero(~at_bound)
    m = len(free)
    block, lower = np.empty((m, m)), np.empty((m, m))
    rhs, solution = np.empty(m), np.empty(m)
    largest = 0.0
    for i in range(m):
        rhs[i] = c[free[i]]
        largest = max(largest, hessian[free[i], free[i]])
        for j in range(m):
            block[i, j] = hessian[free[i], free[j]]
    damping = 0.0
    while not cholesky_factor(block, damping, lower) and damping <= largest:
        damping = max(100.0 * damping, 1e-13 * largest)
    cholesky_solve(lower, rhs, solution)
    out[:] = 0.0
    for i in range(m):
        out[free[i]] = solution[i]


@compiled()
def _next_event(
    bound_gradient: FloatArray,
    bound_rates: FloatArray,
    slack: FloatArray,
    direction: FloatArray,
    at_bound: BoolArray,
) -> tuple[int, float]:
    """Return the coefficient that next meets or leaves its bound, -1 if none, and the step of λ.

    `bound_gradient` is D' - λc, which is positive for coefficients at a bound, and decreases at
    `bound_rates` in λ; `slack` is b - β, negative for the others.
    """
    event, step = -1, np.inf
    for a in range(len(direction)):
        if at_bound[a]:
            event_step = (
                max(bound_gradient[a], 0.0) / bound_rates[a] if bound_rates[a] > 0.0 else np.inf
            )
        else:
            event_step = slack[a] / direction[a] if direction[a] < 0.0 else np.inf
        if event_step < step:
            event, step = a, event_step
    return event, step


@compiled()
def path_segments(
    hessian: FloatArray, linear: FloatArray, bounds: FloatArray, c: FloatArray, out: FloatArray
) -> tuple[int, float]:
    """Write the segments of a solution path; return their number, and r where the path ends.

    Rows of `out` are D, λ, f minus f at the estimate, and κ at the start of a segment. The path
    ends where f reaches its maximum over all β ≥ b; r is infinite if it does not.
    """
    p = len(c)
    beta, direction = np.zeros(p), np.empty(p)
    bound_gradient, bound_rates = np.empty(p), np.empty(p)
    at_bound = bounds >= 0.0
    multiplier = d = growth = 0.0
    for row in range(len(out)):
        _direction(hessian, c, at_bound, direction)
        kappa = dot(c, direction)
        out[row, 0], out[row, 1], out[row, 2], out[row, 3] = d, multiplier, growth, kappa
        for a in range(p):
            bound_gradient[a] = dot(hessian[a], beta) + linear[a] - multiplier * c[a]
            bound_rates[a] = c[a] - dot(hessian[a], direction)
            if bound_rates[a] <= 1e-12 * abs(c[a]):
                bound_rates[a] = 0.0
        event, step = _next_event(bound_gradient, bound_rates, bounds - beta, direction, at_bound)
        if event < 0:
            return row + 1, np.inf if kappa > 0.0 else math.sqrt(2.0 * d)
        for a in range(p):
            beta[a] += step * direction[a]
        d += 0.5 * kappa * step * (2.0 * multiplier + step)
        growth += kappa * step
        multiplier += step
        at_bound[event] = not at_bound[event]
        if at_bound[event]:
            beta[event] = bounds[event]
    return len(out), np.inf


@compiled()
def growth_at(segments: FloatArray, n_segments: int, r: float) -> float:
    """Return the maximum of f over the level set D ≤ r²/2 minus its value at the estimate."""
    target = 0.5 * r * r
    row = n_segments - 1
    while row > 0 and segments[row, 0] > target:
        row -= 1
    d, multiplier, growth, kappa = segments[row]
    if kappa <= 0.0:
        return growth
    change = 2.0 * (target - d) / kappa
    return growth + kappa * (change / (math.sqrt(multiplier * multiplier + change) + multiplier))
