r"""Paths of constrained maxima: the most that a functional reaches where the likelihood is high.

A functional is a soft minimum of linear ones,

.. math:: f(\beta)=-\log\sum_me^{-(\hat d_m+a_m^\top\beta)},

concave: the log-odds of a class against all others, or with one term a difference of utilities.
At the level r the path holds its maximum over :math:`D(\beta)\le r^2/2`, :math:`\beta\ge b`, where
:math:`D'=\lambda f'` for the coefficients off their bounds. From one level to the next the path is
extrapolated and mended by Newton's method on :math:`(\beta,\lambda)`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.extrapolation_compiled import append, extrapolate
from dubito.calibration._kernels.joint_softmax_likelihood_compiled import fall, slope

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood

    #: The likelihood, the coefficients' lower bounds (p,), the Hessian of D at the estimate, and
    #: working memory.
    Problem: TypeAlias = tuple[Likelihood, FloatArray, FloatArray, FloatArray]
    #: The vectors (m, p) and heights (m,) of a functional's terms.
    Functional: TypeAlias = tuple[FloatArray, FloatArray]
    #: Gradients of D and f (2, p), the Hessian of D and the negative one of f (2, p, p).
    Model: TypeAlias = tuple[FloatArray, FloatArray]

#: Length of a Newton step, squared, when the model it comes from can be believed.
_NEAR = 3e-6

#: Newton steps after which a shorter stride is tried.
_PATIENCE = 14

#: Strides to one level that may fail before a path is given up.
_FAILURES = 15

#: What a functional is taken to reach where its path was lost: too much rather than too little.
_LOST = 700.0

#: Squared length of the step still to take, beyond which a path counts as lost.
_DOUBTFUL = 1e-2

#: Growth with the level that is put down to rounding where a functional is at its own maximum.
_SHORT = 1e-7

#: A functional that grows more slowly with the level has reached its own maximum.
_FLAT = 1e-10


@compiled()
def _evaluate(
    functional: Functional, beta: FloatArray, gradient: FloatArray, bend: FloatArray
) -> float:
    """Return f; write its gradient and its negative Hessian."""
    terms, heights = functional
    m, p = terms.shape
    weight = np.empty(m)
    least = np.inf
    for i in range(m):
        weight[i] = heights[i] + dot(terms[i], beta)
        least = min(least, weight[i])
    total = 0.0
    for i in range(m):
        weight[i] = math.exp(least - weight[i])
        total += weight[i]
    gradient[:] = 0.0
    bend[:] = 0.0
    for i in range(m):
        weight[i] /= total
        for a in range(p):
            gradient[a] += weight[i] * terms[i, a]
    for a in range(p):
        for i in range(m if m > 1 else 0):
            left = weight[i] * (terms[i, a] - gradient[a])
            for b in range(a + 1):
                bend[a, b] += left * (terms[i, b] - gradient[b])
        for b in range(a):
            bend[b, a] = bend[a, b]
    return least - math.log(total)


@compiled()
def _release(model: Model, held: BoolArray, multiplier: float, inside: bool) -> tuple[int, float]:
    """Return a held coefficient to let go, -1 if there is none, and a multiplier that does so.

    One is let go when the multiplier times f' exceeds D'. Inside the level the multiplier may grow
    until one does, outside it may fall.
    """
    g, q = model[0]
    first, nearest = -1, np.inf
    for a in range(len(g)):
        at = np.inf
        if held[a] and inside and q[a] > 1e-300:
            at = max(g[a] / q[a], 0.0)
        elif held[a] and not inside and g[a] < 0.0:
            at = -g[a] / q[a] if q[a] < 0.0 else -multiplier
        if at < nearest:
            first, nearest = a, at
    if inside:
        return first, max(multiplier, nearest * (1 + 1e-9))
    return first, min(multiplier, -nearest * (1 - 1e-9))


@compiled()
def _newton_pair(
    model: Model, multiplier: float, held: BoolArray, fixed: FloatArray, pair: FloatArray
) -> bool:
    """Write the steps y and z of which the answer is y - ρz: My = λf' - D' and Mz = D'.

    M is the curvature of D - λf. Coefficients that are held move by `fixed` in y.
    """
    (g, q), (hessian, bend) = model
    free = np.flatnonzero(~held)
    m = len(free)
    pair[0] = fixed
    pair[1] = 0.0
    block, lower = np.empty((m, m)), np.empty((m, m))
    right, out = np.empty((2, m)), np.empty((2, m))
    largest = 0.0
    for i in range(m):
        a = free[i]
        right[0, i], right[1, i] = multiplier * q[a] - g[a], g[a]
        for b in range(len(g)):
            right[0, i] -= (hessian[a, b] + multiplier * bend[a, b]) * fixed[b]
        for j in range(m):
            block[i, j] = hessian[a, free[j]] + multiplier * bend[a, free[j]]
        largest = max(largest, block[i, i])
    lift = 0.0
    while not cholesky_factor(block, lift, lower):
        lift = max(100.0 * lift, 1e-13 * largest)
        if not 0.0 < lift < 1e6 * largest:
            return False
    for k in range(2):
        cholesky_solve(lower, right[k], out[k])
        for i in range(m):
            pair[k, free[i]] = out[k, i]
    return m > 0 and dot(g, pair[1]) > 1e-300


@compiled()
def _length_to_level(model: Model, pair: FloatArray, missing: float) -> float:
    """Return ρ for which the quadratic model of D grows by what is missing along y - ρz."""
    g, hessian = model[0][0], model[1][0]
    y, z = pair
    curved = linear = 0.0
    constant = -missing
    for a in range(len(g)):
        bent = dot(hessian[a], z)
        curved += 0.5 * z[a] * bent
        linear += g[a] * z[a] + y[a] * bent
        constant += y[a] * (g[a] + 0.5 * dot(hessian[a], y))
    inside = linear * linear - 4.0 * curved * constant
    if inside <= 0.0:
        rho = linear / (2.0 * curved) if curved > 0.0 else 0.0
    else:
        rho = 2.0 * constant / (linear + math.copysign(math.sqrt(inside), linear))
    return min(max(rho, -0.9), 9.0)


@compiled()
def _hold(  # noqa: PLR0917 - numba knows no keyword-only arguments
    model: Model,
    slack: FloatArray,
    step: FloatArray,
    held: BoolArray,
    fixed: FloatArray,
    one_by_one: bool,
) -> bool:
    """Hold the coefficients whose step goes beyond their bounds, or the worst; say if any did."""
    worst, amount = -1, 1e-12
    for a in range(len(step)):
        excess = (slack[a] - step[a]) * math.sqrt(model[1][0, a, a])
        if not held[a] and excess > 1e-12 and not one_by_one:
            held[a], fixed[a], worst = True, slack[a], a
        elif not held[a] and excess > amount:
            worst, amount = a, excess
    if worst >= 0:
        held[worst], fixed[worst] = True, slack[worst]
    return worst >= 0


@compiled()
def _let_go(  # noqa: PLR0917
    model: Model,
    multiplier: float,
    step: FloatArray,
    held: BoolArray,
    released: FloatArray,
    one_by_one: bool,
) -> bool:
    """Let go the held coefficients that would gain, or the one that most would; say if any did.

    One that was let go twice stays held for this step: it would only come back.
    """
    (g, q), (hessian, bend) = model
    worst, amount = -1, 0.0
    for a in range(len(step)):
        gain = multiplier * (q[a] - dot(bend[a], step))
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
    model: Model, slack: FloatArray, missing: float, multiplier: float, step: FloatArray
) -> float:
    """Write the step to the maximum of the quadratic models; return the new multiplier.

    `slack` is how far down each coefficient may go, `missing` what D lacks to its level. The
    multiplier is infinite when the functional can grow no more.
    """
    p = len(slack)
    held, fixed, pair = slack >= 0.0, np.zeros(p), np.empty((2, p))
    released = np.zeros(p)
    new = multiplier
    for round_ in range(4 * p + 20):
        one_by_one = round_ >= 10  # many at once is faster, but may go round in circles
        if not _newton_pair(model, multiplier, held, fixed, pair):
            first, at = _release(model, held, multiplier, missing >= 0.0)
            if first < 0:
                step[:] = fixed
                return np.inf
            held[first], fixed[first], multiplier = False, 0.0, at
            continue
        rho = _length_to_level(model, pair, missing)
        new = multiplier / (1.0 + rho)
        for a in range(p):
            step[a] = pair[0, a] - rho * pair[1, a]
        if _hold(model, slack, step, held, fixed, one_by_one):
            continue
        if not _let_go(model, new, step, held, released, one_by_one):
            break
        for a in range(p):
            if not held[a]:
                fixed[a] = 0.0
    return new


@compiled()
def _growth_rate(problem: Problem, gradient: FloatArray, beta: FloatArray) -> float:
    """Return how fast a functional would grow with the level, at the curvature of the estimate."""
    _, bounds, metric, _ = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.zeros((2, p, p))
    gradients[0] = gradients[1] = gradient
    curvatures[0] = metric
    still, pair = np.zeros(p), np.zeros((2, p))
    held = (beta <= bounds) & (gradient <= 0.0)
    if held.all():
        return 0.0
    _newton_pair((gradients, curvatures), 0.0, held, still, pair)
    return math.sqrt(max(dot(gradient, pair[1]), 0.0))


@compiled()
def _to_level(
    problem: Problem, functional: Functional, level: float, beta: FloatArray, multiplier: float
) -> tuple[bool, float, float]:
    """Move β to the maximum at a level; return success, the functional and the multiplier."""
    likelihood, bounds, metric, work = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    slack, step = np.empty(p), np.empty(p)
    tries = 0
    while tries < _PATIENCE:
        missing = 0.5 * level * level - fall(likelihood, beta, work)
        slope(likelihood, beta, work, gradients[0], curvatures[0])
        height = _evaluate(functional, beta, gradients[1], curvatures[1])
        for a in range(p):
            slack[a] = bounds[a] - beta[a]
        model = (gradients, curvatures)
        new = _constrained_step(model, slack, missing, multiplier, step)
        ended = new == np.inf and not step.any()
        if new > 5.0 * multiplier and new < np.inf:
            ended = _growth_rate(problem, gradients[1], beta) < _FLAT
        if missing >= 0.0 and ended:
            return True, height, np.inf
        new = new if new < np.inf else multiplier
        size, size_at_first, away = 0.0, 0.0, 1.0
        for a in range(p):
            size += step[a] * (dot(curvatures[0, a], step) + new * dot(curvatures[1, a], step))
            size_at_first += step[a] * dot(metric[a], step)
            away += beta[a] * dot(metric[a], beta)
        # Far out, where D is nearly straight, its own curvature finds any step short.
        size = max(size, size_at_first / away)
        if not size < np.inf:
            break
        shrink = min(1.0, 1.0 / math.sqrt(size + 1e-300))
        for a in range(p):
            beta[a] = max(beta[a] + shrink * step[a], bounds[a])
        if size <= _NEAR and 0.5 * multiplier < new < 2.0 * multiplier:
            return True, _evaluate(functional, beta, gradients[1], curvatures[1]), new
        tries += 1
        multiplier = new
    return False, 0.0, multiplier


@compiled()
def start(problem: Problem, functional: Functional, path: FloatArray) -> float:
    """Begin a path at the estimate; return how fast the functional grows with the level.

    Rows of `path` are (level, multiplier, β), the latest first. A path whose functional can grow no
    more has an infinite multiplier, and the level where that happened; one that was lost, -1.
    """
    likelihood, bounds, _, work = problem
    p = len(bounds)
    beta, pair = np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    fall(likelihood, beta, work)
    slope(likelihood, beta, work, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    held = bounds >= 0.0
    first, least = _release((gradients, curvatures), held, 0.0, True)
    gradients[0] = gradients[1]  # the direction Mz = f'
    _newton_pair((gradients, curvatures), 0.0, held, beta, pair)
    speed = math.sqrt(max(dot(gradients[1], pair[1]), 0.0))
    for k in range(len(path)):
        path[k, 0] = -0.1 * k
        path[k, 1] = least if first >= 0 else np.inf
        path[k, 2:] = 0.0
        if speed > 1e-12:
            path[k, 1] = -0.1 * k / speed
            path[k, 2:] = (-0.1 * k / speed) * pair[1]
    if speed <= 1e-12 and first >= 0:  # held at first, it grows as the level's square
        return 1.0 / math.sqrt(2.0 * max(least, 1e-300))
    return speed


@compiled()
def follow(problem: Problem, functional: Functional, level: float, path: FloatArray) -> float:
    """Take the path to a level, in shorter strides where long ones fail; return the functional."""
    likelihood, bounds, _, work = problem
    p = len(bounds)
    point, beta = np.empty(p + 1), np.empty(p)
    gradient, bend = np.empty(p), np.empty((p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    before = _evaluate(functional, beta, gradient, bend)
    stride, failures = level - path[0, 0], 0
    while path[0, 1] < np.inf:
        there = path[0, 0] + stride
        there = level if there > level - 1e-6 * stride else there
        extrapolate(path, there, point)
        multiplier = max(point[0], 0.5 * path[0, 1])
        for a in range(p):
            beta[a] = max(point[a + 1], bounds[a])
        done, height, multiplier = _to_level(problem, functional, there, beta, multiplier)
        if not done or height < before - 1e-9 * (1.0 + abs(before)):  # maxima rise with the level
            stride *= 0.25
            failures += 1
            if failures > _FAILURES:  # the path is lost: anything is possible
                path[0, 0], path[0, 1] = -1.0, np.inf
            continue
        stride, before = 2.0 * stride, height
        if multiplier == np.inf:
            there = min(there, math.sqrt(2.0 * max(fall(likelihood, beta, work), 0.0)))
        point[0] = multiplier
        point[1:] = beta
        append(path, there, point)
        if there >= level:
            return height
    if path[0, 0] < 0.0:
        return _LOST
    for a in range(p):
        beta[a] = path[0, a + 2]
    return _evaluate(functional, beta, gradient, bend)


@compiled()
def missing_at(problem: Problem, functional: Functional, level: float, path: FloatArray) -> float:
    r"""Return how much the maximum at a level may exceed what a path has reached there.

    For any :math:`\beta'` in the level set, convexity of D and concavity of f give
    :math:`\lambda(f(\beta')-f(\beta))\le\frac12r^2-D(\beta)-\rho^\top(\beta'-\beta)`, where
    :math:`\rho=D'-\lambda f'` for the coefficients off their bounds is 0 at the maximum. Its part
    is at most :math:`\rho^\top M^{-1}\rho`, with M the curvature of :math:`D-\lambda f`, as long
    as that is small; where it is not, the path is lost.
    """
    likelihood, bounds, _, work = problem
    p = len(bounds)
    multiplier = path[0, 1]
    if path[0, 0] < 0.0:
        return 0.0  # it has been given up already, and counts as unlimited
    beta, still, pair = np.empty(p), np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    depth = fall(likelihood, beta, work)
    slope(likelihood, beta, work, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    if multiplier == np.inf:  # it has reached the maximum of f itself
        return 0.0 if _growth_rate(problem, gradients[1], beta) < _SHORT else _LOST
    held = np.empty(p, dtype=np.bool_)
    for a in range(p):
        held[a] = beta[a] <= bounds[a] and gradients[0, a] >= multiplier * gradients[1, a]
    _newton_pair((gradients, curvatures), multiplier, held, still, pair)
    decrement = 0.0
    for a in range(p):
        decrement += pair[0, a] * (multiplier * gradients[1, a] - gradients[0, a])
    if not decrement < _DOUBTFUL or not multiplier > 0.0:
        return _LOST
    return (max(0.5 * level * level - depth, 0.0) + max(decrement, 0.0)) / multiplier


@compiled()
def kink_behind(bounds: FloatArray, path: FloatArray) -> float:
    """Return the level, if any, between a path's last two points where it bends.

    It does where a coefficient meets its bound: where the curve through the points before would. It
    does where one leaves its bound: half-way, for want of better.
    """
    first = np.inf
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
        first = min(first, 0.5 * (low + high))
    return first
