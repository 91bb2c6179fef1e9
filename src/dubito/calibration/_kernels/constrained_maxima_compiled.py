r"""Maximum of a concave functional over level sets of the likelihood, as a path in the level.

A functional is a soft minimum of linear ones,

.. math:: f(\beta)=-\log\sum_me^{-(\hat d_m+a_m^\top\beta)},

concave: the log-odds of a class against all others, or with one term a difference of utilities.
The point of the path at the level r is the maximiser over :math:`D(\beta)\le r^2/2`,
:math:`\beta\ge b`, where D is the excess of the negative log-likelihood over its minimum. There
:math:`D'=\lambda f'` for the coefficients off their bounds. From one level to the next the path is
extrapolated and corrected by Newton's method on :math:`(\beta,\lambda)`.

A coefficient is *held* while it is fixed at its bound (the active set). A path is *lost* when no
step in the level, however small, converges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.extrapolation_compiled import append, extrapolate
from dubito.calibration._kernels.joint_softmax_likelihood_compiled import (
    excess,
    gradient_and_hessian,
)

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood

    #: The likelihood, the coefficients' lower bounds (p,), the Hessian of D at the estimate (p, p),
    #: and a buffer (3, K-1, n).
    Problem: TypeAlias = tuple[Likelihood, FloatArray, FloatArray, FloatArray]
    #: The vectors a (m, p) and offsets d (m,) of a functional's terms.
    Functional: TypeAlias = tuple[FloatArray, FloatArray]
    #: Gradients of D and f (2, p); the Hessian of D and the negative Hessian of f (2, p, p).
    Model: TypeAlias = tuple[FloatArray, FloatArray]

#: Squared length of a Newton step, in the metric of the Hessian, at which the next error is far
#: below the accuracy needed.
_CONVERGED = 3e-6

#: Newton steps after which a smaller step in the level is tried.
_MAX_NEWTON = 14

#: Failed steps in the level after which a path is lost.
_MAX_FAILURES = 15

#: Upper bound returned for a functional whose path was lost; its exponential is finite.
_LOST_VALUE = 700.0

#: Squared Newton decrement beyond which the last point of a path is not near its maximum.
_MAX_DECREMENT = 1e-2

#: Growth rate with the level that may be rounding where a functional is at its own maximum.
_ROUNDING_GROWTH = 1e-7

#: Growth rate with the level below which a functional has reached its own maximum.
_NO_GROWTH = 1e-10


@compiled()
def _evaluate(
    functional: Functional, beta: FloatArray, gradient: FloatArray, curvature: FloatArray
) -> float:
    """Return f(β); write its gradient and its negative Hessian (`curvature`)."""
    terms, offsets = functional
    m, p = terms.shape
    weight = np.empty(m)
    least = np.inf
    for i in range(m):
        weight[i] = offsets[i] + dot(terms[i], beta)
        least = min(least, weight[i])
    total = 0.0
    for i in range(m):
        weight[i] = math.exp(least - weight[i])
        total += weight[i]
    gradient[:] = 0.0
    curvature[:] = 0.0
    for i in range(m):
        weight[i] /= total
        for a in range(p):
            gradient[a] += weight[i] * terms[i, a]
    for a in range(p):
        for i in range(m if m > 1 else 0):
            weighted_difference = weight[i] * (terms[i, a] - gradient[a])
            for b in range(a + 1):
                curvature[a, b] += weighted_difference * (terms[i, b] - gradient[b])
        for b in range(a):
            curvature[b, a] = curvature[a, b]
    return least - math.log(total)


@compiled()
def _next_release(
    model: Model, held: BoolArray, multiplier: float, inside: bool
) -> tuple[int, float]:
    """Return a held coefficient to release, -1 if there is none, and the multiplier that does so.

    A coefficient is released when λf' exceeds D'. Inside the level set λ may increase until one
    does, outside it may decrease.
    """
    g, q = model[0]
    first, nearest = -1, np.inf
    for a in range(len(g)):
        candidate = np.inf
        if held[a] and inside and q[a] > 1e-300:
            candidate = max(g[a] / q[a], 0.0)
        elif held[a] and not inside and g[a] < 0.0:
            candidate = -g[a] / q[a] if q[a] < 0.0 else -multiplier
        if candidate < nearest:
            first, nearest = a, candidate
    if inside:
        return first, max(multiplier, nearest * (1 + 1e-9))
    return first, min(multiplier, -nearest * (1 - 1e-9))


@compiled()
def _newton_pair(
    model: Model, multiplier: float, held: BoolArray, fixed: FloatArray, pair: FloatArray
) -> bool:
    """Write y and z, of which the Newton step is y - ρz: My = λf' - D' and Mz = D'.

    M is the Hessian of D - λf. Coefficients that are held move by `fixed` in y. Returns whether
    the step can change D.
    """
    (g, q), (hessian, curvature) = model
    free = np.flatnonzero(~held)
    m = len(free)
    pair[0] = fixed
    pair[1] = 0.0
    block, lower = np.empty((m, m)), np.empty((m, m))
    rhs, solution = np.empty((2, m)), np.empty((2, m))
    largest = 0.0
    for i in range(m):
        a = free[i]
        rhs[0, i], rhs[1, i] = multiplier * q[a] - g[a], g[a]
        for b in range(len(g)):
            rhs[0, i] -= (hessian[a, b] + multiplier * curvature[a, b]) * fixed[b]
        for j in range(m):
            block[i, j] = hessian[a, free[j]] + multiplier * curvature[a, free[j]]
        largest = max(largest, block[i, i])
    damping = 0.0
    while not cholesky_factor(block, damping, lower):
        damping = max(100.0 * damping, 1e-13 * largest)
        if not 0.0 < damping < 1e6 * largest:
            return False
    for k in range(2):
        cholesky_solve(lower, rhs[k], solution[k])
        for i in range(m):
            pair[k, free[i]] = solution[k, i]
    return m > 0 and dot(g, pair[1]) > 1e-300


@compiled()
def _rho_at_level(model: Model, pair: FloatArray, remaining: float) -> float:
    """Return ρ for which the quadratic model of D increases by `remaining` along y - ρz."""
    g, hessian = model[0][0], model[1][0]
    y, z = pair
    quadratic = linear = 0.0
    constant = -remaining
    for a in range(len(g)):
        hessian_z = dot(hessian[a], z)
        quadratic += 0.5 * z[a] * hessian_z
        linear += g[a] * z[a] + y[a] * hessian_z
        constant += y[a] * (g[a] + 0.5 * dot(hessian[a], y))
    discriminant = linear * linear - 4.0 * quadratic * constant
    if discriminant <= 0.0:
        rho = linear / (2.0 * quadratic) if quadratic > 0.0 else 0.0
    else:
        rho = 2.0 * constant / (linear + math.copysign(math.sqrt(discriminant), linear))
    return min(max(rho, -0.9), 9.0)


@compiled()
def _fix_at_bounds(  # noqa: PLR0917 - numba knows no keyword-only arguments
    model: Model,
    slack: FloatArray,
    step: FloatArray,
    held: BoolArray,
    fixed: FloatArray,
    one_by_one: bool,
) -> bool:
    """Hold coefficients whose step violates a bound, or the worst one; return whether any did."""
    worst, amount = -1, 1e-12
    for a in range(len(step)):
        violation = (slack[a] - step[a]) * math.sqrt(model[1][0, a, a])
        if not held[a] and violation > 1e-12 and not one_by_one:
            held[a], fixed[a], worst = True, slack[a], a
        elif not held[a] and violation > amount:
            worst, amount = a, violation
    if worst >= 0:
        held[worst], fixed[worst] = True, slack[worst]
    return worst >= 0


@compiled()
def _free_from_bounds(  # noqa: PLR0917
    model: Model,
    multiplier: float,
    step: FloatArray,
    held: BoolArray,
    released: FloatArray,
    one_by_one: bool,
) -> bool:
    """Release held coefficients with negative D' - λf', or the worst one; return whether any had.

    One that was released twice stays held for this step, so that the active set cannot cycle.
    """
    (g, q), (hessian, curvature) = model
    worst, amount = -1, 0.0
    for a in range(len(step)):
        gain = multiplier * (q[a] - dot(curvature[a], step))
        loss = g[a] + dot(hessian[a], step)
        if not held[a] or gain - loss <= 1e-9 * (abs(gain) + abs(loss)) or released[a] >= 2:
            continue
        if not one_by_one:
            held[a], worst = False, a
            released[a] += 1
        elif gain - loss > amount:
            worst, amount = a, gain - loss
    if worst >= 0 and one_by_one:
        held[worst] = False
        released[worst] += 1
    return worst >= 0


@compiled()
def _constrained_step(
    model: Model, slack: FloatArray, remaining: float, multiplier: float, step: FloatArray
) -> float:
    """Write the step to the maximum of the quadratic models; return the new multiplier.

    `slack` is the lower bound of each component of the step, `remaining` is r²/2 - D. The
    multiplier is infinite when the functional is at its own maximum.
    """
    p = len(slack)
    held, fixed, pair = slack >= 0.0, np.zeros(p), np.empty((2, p))
    released = np.zeros(p)
    new = multiplier
    for round_ in range(4 * p + 20):
        one_by_one = round_ >= 10  # changing many at once is faster, but may cycle
        if not _newton_pair(model, multiplier, held, fixed, pair):
            released_first, new_multiplier = _next_release(
                model, held, multiplier, remaining >= 0.0
            )
            if released_first < 0:
                step[:] = fixed
                return np.inf
            held[released_first], fixed[released_first], multiplier = False, 0.0, new_multiplier
            continue
        rho = _rho_at_level(model, pair, remaining)
        new = multiplier / (1.0 + rho)
        for a in range(p):
            step[a] = pair[0, a] - rho * pair[1, a]
        if _fix_at_bounds(model, slack, step, held, fixed, one_by_one):
            continue
        if not _free_from_bounds(model, new, step, held, released, one_by_one):
            break
        for a in range(p):
            if not held[a]:
                fixed[a] = 0.0
    return new


@compiled()
def _growth_rate(problem: Problem, gradient: FloatArray, beta: FloatArray) -> float:
    """Return df/dr for a functional with this gradient, with the Hessian of the estimate."""
    _, bounds, estimate_hessian, _ = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.zeros((2, p, p))
    gradients[0] = gradients[1] = gradient
    curvatures[0] = estimate_hessian
    no_step, pair = np.zeros(p), np.zeros((2, p))
    held = (beta <= bounds) & (gradient <= 0.0)
    if held.all():
        return 0.0
    _newton_pair((gradients, curvatures), 0.0, held, no_step, pair)
    return math.sqrt(max(dot(gradient, pair[1]), 0.0))


@compiled()
def _to_level(
    problem: Problem, functional: Functional, level: float, beta: FloatArray, multiplier: float
) -> tuple[bool, float, float]:
    """Move β to the maximiser at a level; return whether it converged, f and the multiplier."""
    likelihood, bounds, estimate_hessian, buffer = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    slack, step = np.empty(p), np.empty(p)
    n_steps = 0
    while n_steps < _MAX_NEWTON:
        remaining = 0.5 * level * level - excess(likelihood, beta, buffer)
        gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
        value = _evaluate(functional, beta, gradients[1], curvatures[1])
        for a in range(p):
            slack[a] = bounds[a] - beta[a]
        model = (gradients, curvatures)
        new = _constrained_step(model, slack, remaining, multiplier, step)
        at_maximum = new == np.inf and not step.any()
        if new > 5.0 * multiplier and new < np.inf:
            at_maximum = _growth_rate(problem, gradients[1], beta) < _NO_GROWTH
        if remaining >= 0.0 and at_maximum:
            return True, value, np.inf
        new = new if new < np.inf else multiplier
        squared_size, size_at_estimate, squared_distance = 0.0, 0.0, 1.0
        for a in range(p):
            squared_size += step[a] * (
                dot(curvatures[0, a], step) + new * dot(curvatures[1, a], step)
            )
            size_at_estimate += step[a] * dot(estimate_hessian[a], step)
            squared_distance += beta[a] * dot(estimate_hessian[a], beta)
        # Far out D is nearly linear, and its own Hessian would make any step look short.
        squared_size = max(squared_size, size_at_estimate / squared_distance)
        if not squared_size < np.inf:
            break
        shrink = min(1.0, 1.0 / math.sqrt(squared_size + 1e-300))
        for a in range(p):
            beta[a] = max(beta[a] + shrink * step[a], bounds[a])
        if squared_size <= _CONVERGED and 0.5 * multiplier < new < 2.0 * multiplier:
            return True, _evaluate(functional, beta, gradients[1], curvatures[1]), new
        n_steps += 1
        multiplier = new
    return False, 0.0, multiplier


@compiled()
def start_path(problem: Problem, functional: Functional, path: FloatArray) -> float:
    """Start a path at the estimate; return the growth rate df/dr of the functional.

    Rows of `path` are (level, multiplier, β), the latest first. A path that has ended has an
    infinite multiplier; its level is where the functional reached its own maximum, or -1 if the
    path was lost.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    beta, pair = np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    excess(likelihood, beta, buffer)
    gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    held = bounds >= 0.0
    first, least = _next_release((gradients, curvatures), held, 0.0, True)
    gradients[0] = gradients[1]  # the direction Mz = f'
    _newton_pair((gradients, curvatures), 0.0, held, beta, pair)
    growth_rate = math.sqrt(max(dot(gradients[1], pair[1]), 0.0))
    for k in range(len(path)):
        path[k, 0] = -0.1 * k
        path[k, 1] = least if first >= 0 else np.inf
        path[k, 2:] = 0.0
        if growth_rate > 1e-12:
            path[k, 1] = -0.1 * k / growth_rate
            path[k, 2:] = (-0.1 * k / growth_rate) * pair[1]
    # All held at the estimate: f grows with the square of the level.
    if growth_rate <= 1e-12 and first >= 0:
        return 1.0 / math.sqrt(2.0 * max(least, 1e-300))
    return growth_rate


@compiled()
def follow_path(problem: Problem, functional: Functional, level: float, path: FloatArray) -> float:
    """Return the maximum of the functional at a level; continue the path to it.

    The step in the level is reduced where Newton's method does not converge.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    point, beta = np.empty(p + 1), np.empty(p)
    gradient, curvature = np.empty(p), np.empty((p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    last_value = _evaluate(functional, beta, gradient, curvature)
    level_step, failures = level - path[0, 0], 0
    while path[0, 1] < np.inf:
        next_level = path[0, 0] + level_step
        next_level = level if next_level > level - 1e-6 * level_step else next_level
        extrapolate(path, next_level, point)
        multiplier = max(point[0], 0.5 * path[0, 1])
        for a in range(p):
            beta[a] = max(point[a + 1], bounds[a])
        converged, value, multiplier = _to_level(problem, functional, next_level, beta, multiplier)
        # Maxima increase with the level: a smaller one is wrong.
        if not converged or value < last_value - 1e-9 * (1.0 + abs(last_value)):
            level_step *= 0.25
            failures += 1
            if failures > _MAX_FAILURES:  # the path is lost
                path[0, 0], path[0, 1] = -1.0, np.inf
            continue
        level_step, last_value = 2.0 * level_step, value
        if multiplier == np.inf:
            next_level = min(
                next_level, math.sqrt(2.0 * max(excess(likelihood, beta, buffer), 0.0))
            )
        point[0] = multiplier
        point[1:] = beta
        append(path, next_level, point)
        if next_level >= level:
            return value
    if path[0, 0] < 0.0:
        return _LOST_VALUE
    for a in range(p):
        beta[a] = path[0, a + 2]
    return _evaluate(functional, beta, gradient, curvature)


@compiled()
def optimality_gap(
    problem: Problem, functional: Functional, level: float, path: FloatArray
) -> float:
    r"""Return an upper bound of the maximum at a level minus the value of the path there.

    For any :math:`\beta'` in the level set, convexity of D and concavity of f give
    :math:`\lambda(f(\beta')-f(\beta))\le\frac12r^2-D(\beta)-\rho^\top(\beta'-\beta)`, where
    :math:`\rho=D'-\lambda f'` for the coefficients off their bounds is 0 at the maximum. Its term
    is at most :math:`\rho^\top M^{-1}\rho`, with M the Hessian of :math:`D-\lambda f`, as long
    as that is small; where it is not, the path is lost.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    multiplier = path[0, 1]
    if path[0, 0] < 0.0:
        return 0.0  # lost: its value is an upper bound already
    beta, no_step, pair = np.empty(p), np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    d = excess(likelihood, beta, buffer)
    gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    if multiplier == np.inf:  # the path is at the maximum of f itself
        return 0.0 if _growth_rate(problem, gradients[1], beta) < _ROUNDING_GROWTH else _LOST_VALUE
    held = np.empty(p, dtype=np.bool_)
    for a in range(p):
        held[a] = beta[a] <= bounds[a] and gradients[0, a] >= multiplier * gradients[1, a]
    _newton_pair((gradients, curvatures), multiplier, held, no_step, pair)
    decrement = 0.0
    for a in range(p):
        decrement += pair[0, a] * (multiplier * gradients[1, a] - gradients[0, a])
    if not decrement < _MAX_DECREMENT or not multiplier > 0.0:
        return _LOST_VALUE
    return (max(0.5 * level * level - d, 0.0) + max(decrement, 0.0)) / multiplier


@compiled()
def last_kink(bounds: FloatArray, path: FloatArray) -> float:
    """Return the level of a kink between a path's last two points, infinite if there is none.

    A path has a kink where a coefficient meets its bound, located by extrapolation of the earlier
    points, and where one leaves its bound, approximated by the middle of the two levels.
    """
    kink = np.inf
    point = np.empty(len(bounds) + 1)
    for a in range(len(bounds)):
        before, after = path[1, a + 2] <= bounds[a], path[0, a + 2] <= bounds[a]
        if before == after or path[1, 0] < 0.0:
            continue
        low, high = path[1, 0], path[0, 0]
        for _ in range(20 if after else 1):
            middle = 0.5 * (low + high)
            extrapolate(path[1:], middle, point)
            if point[a + 1] > bounds[a]:
                low = middle
            else:
                high = middle
        kink = min(kink, 0.5 * (low + high))
    return kink
