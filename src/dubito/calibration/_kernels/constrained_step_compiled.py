r"""Newton step towards the maximum of a concave functional f over a level set of the likelihood.

D is the excess of the negative log-likelihood over its minimum, and :math:`\lambda` the multiplier
for which :math:`D'=\lambda f'` at the maximum. The step from :math:`\beta` solves, with quadratic
models of D and f,

.. math:: \max_s f(\beta+s)\quad\text{subject to}\quad D(\beta+s)\le\tfrac12r^2,\;\beta+s\ge b.

To first order in :math:`\rho` it is :math:`s=y-\rho z` with :math:`My=\lambda f'-D'`, :math:`Mz=D'`
and M the Hessian of :math:`D-\lambda f`; the new multiplier is :math:`\lambda/(1+\rho)`. Which
coefficients are at their bounds b, and so left out of these systems, is found by an active-set
method.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

    #: Gradients of D and f (2, p); the Hessian of D and the negative Hessian of f (2, p, p).
    QuadraticModels: TypeAlias = tuple[FloatArray, FloatArray]


@compiled()
def next_release(
    models: QuadraticModels, at_bound: BoolArray, multiplier: float, inside: bool
) -> tuple[int, float]:
    """Return a coefficient to release from its bound, -1 if there is none, and its multiplier.

    A coefficient is released when λf' exceeds D'. `inside` is whether β lies in the level set: λ
    may then increase until one is released; outside it may decrease.
    """
    d_gradient, f_gradient = models[0]
    first, nearest = -1, np.inf
    for a in range(len(d_gradient)):
        candidate = np.inf
        if at_bound[a] and inside and f_gradient[a] > 1e-300:
            candidate = max(d_gradient[a] / f_gradient[a], 0.0)
        elif at_bound[a] and not inside and d_gradient[a] < 0.0:
            candidate = -d_gradient[a] / f_gradient[a] if f_gradient[a] < 0.0 else -multiplier
        if candidate < nearest:
            first, nearest = a, candidate
    if inside:
        return first, max(multiplier, nearest * (1 + 1e-9))
    return first, min(multiplier, -nearest * (1 - 1e-9))


@compiled()
def newton_directions(
    models: QuadraticModels,
    multiplier: float,
    at_bound: BoolArray,
    bound_step: FloatArray,
    directions: FloatArray,
) -> bool:
    """Write y and z of the step y - ρz to `directions`; return whether the step can change D.

    Coefficients at a bound move by `bound_step` in y and not at all in z. M is damped on its
    diagonal where it is not positive definite.
    """
    (d_gradient, f_gradient), (d_hessian, f_curvature) = models
    free = np.flatnonzero(~at_bound)
    m = len(free)
    directions[0] = bound_step
    directions[1] = 0.0
    block, lower = np.empty((m, m)), np.empty((m, m))
    rhs, solution = np.empty((2, m)), np.empty((2, m))
    largest = 0.0
    for i in range(m):
        a = free[i]
        rhs[0, i], rhs[1, i] = multiplier * f_gradient[a] - d_gradient[a], d_gradient[a]
        for b in range(len(d_gradient)):
            rhs[0, i] -= (d_hessian[a, b] + multiplier * f_curvature[a, b]) * bound_step[b]
        for j in range(m):
            block[i, j] = d_hessian[a, free[j]] + multiplier * f_curvature[a, free[j]]
        largest = max(largest, block[i, i])
    damping = 0.0
    while not cholesky_factor(block, damping, lower):
        damping = max(100.0 * damping, 1e-13 * largest)
        if not 0.0 < damping < 1e6 * largest:
            return False
    for k in range(2):
        cholesky_solve(lower, rhs[k], solution[k])
        for i in range(m):
            directions[k, free[i]] = solution[k, i]
    return m > 0 and dot(d_gradient, directions[1]) > 1e-300


@compiled()
def _rho(models: QuadraticModels, directions: FloatArray, remaining: float) -> float:
    """Return ρ for which the quadratic model of D increases by `remaining` along y - ρz."""
    d_gradient, d_hessian = models[0][0], models[1][0]
    y, z = directions
    quadratic = linear = 0.0
    constant = -remaining
    for a in range(len(d_gradient)):
        hessian_z = dot(d_hessian[a], z)
        quadratic += 0.5 * z[a] * hessian_z
        linear += d_gradient[a] * z[a] + y[a] * hessian_z
        constant += y[a] * (d_gradient[a] + 0.5 * dot(d_hessian[a], y))
    discriminant = linear * linear - 4.0 * quadratic * constant
    if discriminant <= 0.0:
        rho = linear / (2.0 * quadratic) if quadratic > 0.0 else 0.0
    else:
        rho = 2.0 * constant / (linear + math.copysign(math.sqrt(discriminant), linear))
    return min(max(rho, -0.9), 9.0)  # λ changes by at most a factor of 10


@compiled()
def _fix_at_bounds(  # noqa: PLR0917 - numba knows no keyword-only arguments
    models: QuadraticModels,
    slack: FloatArray,
    step: FloatArray,
    at_bound: BoolArray,
    bound_step: FloatArray,
    one_by_one: bool,
) -> bool:
    """Fix coefficients whose step violates a bound, or the worst one; return whether any did."""
    worst, amount = -1, 1e-12
    for a in range(len(step)):
        violation = (slack[a] - step[a]) * math.sqrt(models[1][0, a, a])
        if not at_bound[a] and violation > 1e-12 and not one_by_one:
            at_bound[a], bound_step[a], worst = True, slack[a], a
        elif not at_bound[a] and violation > amount:
            worst, amount = a, violation
    if worst >= 0:
        at_bound[worst], bound_step[worst] = True, slack[worst]
    return worst >= 0


@compiled()
def _release_from_bounds(  # noqa: PLR0917
    models: QuadraticModels,
    multiplier: float,
    step: FloatArray,
    at_bound: BoolArray,
    n_releases: FloatArray,
    one_by_one: bool,
) -> bool:
    """Release coefficients with negative D' - λf', or the worst one; return whether any was.

    One that was released twice stays at its bound for this step: the active set cannot cycle.
    """
    (d_gradient, f_gradient), (d_hessian, f_curvature) = models
    worst, amount = -1, 0.0
    for a in range(len(step)):
        gain = multiplier * (f_gradient[a] - dot(f_curvature[a], step))
        loss = d_gradient[a] + dot(d_hessian[a], step)
        if not at_bound[a] or gain - loss <= 1e-9 * (abs(gain) + abs(loss)) or n_releases[a] >= 2:
            continue
        if not one_by_one:
            at_bound[a], worst = False, a
            n_releases[a] += 1
        elif gain - loss > amount:
            worst, amount = a, gain - loss
    if worst >= 0 and one_by_one:
        at_bound[worst] = False
        n_releases[worst] += 1
    return worst >= 0


@compiled()
def constrained_step(
    models: QuadraticModels,
    slack: FloatArray,
    remaining: float,
    multiplier: float,
    step: FloatArray,
) -> float:
    """Write the step to the maximum of the quadratic models; return the new multiplier.

    `slack` b - β is the lower bound of each component of the step, `remaining` is r²/2 - D. The
    multiplier is infinite when the functional is at its own maximum.
    """
    p = len(slack)
    at_bound, bound_step, directions = slack >= 0.0, np.zeros(p), np.empty((2, p))
    n_releases = np.zeros(p)
    new = multiplier
    for round_ in range(4 * p + 20):
        one_by_one = round_ >= 10  # releasing many bounds at once is faster, but may cycle
        if not newton_directions(models, multiplier, at_bound, bound_step, directions):
            first, new_multiplier = next_release(models, at_bound, multiplier, remaining >= 0.0)
            if first < 0:
                step[:] = bound_step
                return np.inf
            at_bound[first], bound_step[first], multiplier = False, 0.0, new_multiplier
            continue
        rho = _rho(models, directions, remaining)
        new = multiplier / (1.0 + rho)
        for a in range(p):
            step[a] = directions[0, a] - rho * directions[1, a]
        if _fix_at_bounds(models, slack, step, at_bound, bound_step, one_by_one):
            continue
        if not _release_from_bounds(models, new, step, at_bound, n_releases, one_by_one):
            break
        for a in range(p):
            if not at_bound[a]:
                bound_step[a] = 0.0
    return new
