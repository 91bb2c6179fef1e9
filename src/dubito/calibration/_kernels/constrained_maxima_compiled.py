r"""Maximum of a concave functional f over level sets of the likelihood, as a solution path.

A functional is a soft minimum of linear ones,

.. math:: f(\beta)=-\log\sum_me^{-(\hat d_m+a_m^\top\beta)},

concave: the log-odds of a class against all others, or with one term a difference of linear
predictors. The point of its solution path at r is the maximiser of f over
:math:`D(\beta)\le r^2/2`, :math:`\beta\ge b`, where D is the excess of the negative
log-likelihood over its minimum: the level set of relative likelihood :math:`e^{-r^2/2}`. There
:math:`D'=\lambda f'` for the coefficients that are not at their bounds b. From one r to the next
the path is extrapolated and corrected by Newton's method on :math:`(\beta,\lambda)`
(`constrained_step_compiled`).

A path *ends* where f reaches its maximum over all :math:`\beta\ge b`. It is *lost* when no step in
r, however small, converges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.constrained_step_compiled import (
    constrained_step,
    newton_directions,
    next_release,
)
from dubito.calibration._kernels.extrapolation_compiled import append, extrapolate
from dubito.calibration._kernels.joint_softmax_likelihood_compiled import (
    excess,
    gradient_and_hessian,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood

    #: The likelihood, the coefficients' lower bounds (p,), the Hessian of D at the estimate (p, p),
    #: and a buffer (3, K-1, n).
    Problem: TypeAlias = tuple[Likelihood, FloatArray, FloatArray, FloatArray]
    #: The vectors a (m, p) and offsets d (m,) of a functional's terms.
    Functional: TypeAlias = tuple[FloatArray, FloatArray]

#: Squared length of a Newton step, in the metric of the Hessian, at which the next error is far
#: below the accuracy needed.
_CONVERGED = 3e-6

#: Number of Newton steps after which a smaller step in r is tried.
_MAX_NEWTON_STEPS = 14

#: Number of failed steps in r after which a path is lost.
_MAX_FAILURES = 15

#: Upper bound returned for a functional whose path is lost; its exponential is finite.
_LOST_VALUE = 700.0

#: Squared Newton decrement beyond which the last point of a path is not near its maximum.
_LARGEST_DECREMENT = 1e-2

#: Largest growth rate df/dr that may be rounding at the end of a path.
_ROUNDING_GROWTH = 1e-7

#: Growth rate df/dr below which a path has ended.
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
def _growth_rate(problem: Problem, gradient: FloatArray, beta: FloatArray) -> float:
    """Return df/dr for a functional with this gradient, with the Hessian of D at the estimate."""
    _, bounds, estimate_hessian, _ = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.zeros((2, p, p))
    gradients[0] = gradients[1] = gradient
    curvatures[0] = estimate_hessian
    no_step, directions = np.zeros(p), np.zeros((2, p))
    at_bound = (beta <= bounds) & (gradient <= 0.0)
    if at_bound.all():
        return 0.0
    newton_directions((gradients, curvatures), 0.0, at_bound, no_step, directions)
    return math.sqrt(max(dot(gradient, directions[1]), 0.0))


@compiled()
def _maximise(
    problem: Problem, functional: Functional, r: float, beta: FloatArray, multiplier: float
) -> tuple[bool, float, float]:
    """Move β to the maximiser of f at r; return whether it converged, f there and λ.

    λ is infinite where the path has ended.
    """
    likelihood, bounds, estimate_hessian, buffer = problem
    p = len(beta)
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    slack, step = np.empty(p), np.empty(p)
    n_steps = 0
    while n_steps < _MAX_NEWTON_STEPS:
        remaining = 0.5 * r * r - excess(likelihood, beta, buffer)
        gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
        value = _evaluate(functional, beta, gradients[1], curvatures[1])
        for a in range(p):
            slack[a] = bounds[a] - beta[a]
        new = constrained_step((gradients, curvatures), slack, remaining, multiplier, step)
        ended = new == np.inf and not step.any()
        if new > 5.0 * multiplier and new < np.inf:
            ended = _growth_rate(problem, gradients[1], beta) < _NO_GROWTH
        if remaining >= 0.0 and ended:
            return True, value, np.inf
        new = new if new < np.inf else multiplier
        squared_size, size_at_estimate, squared_distance = 0.0, 0.0, 1.0
        for a in range(p):
            squared_size += step[a] * (
                dot(curvatures[0, a], step) + new * dot(curvatures[1, a], step)
            )
            size_at_estimate += step[a] * dot(estimate_hessian[a], step)
            squared_distance += beta[a] * dot(estimate_hessian[a], beta)
        # Far out D is nearly linear, and in the metric of its Hessian any step is short.
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
    """Write the start of a solution path, at the estimate; return the growth rate df/dr there.

    Rows of `path` are (r, λ, β), the latest first. A path that has ended has λ infinite and r where
    it ended; r is -1 if the path is lost.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    beta, directions = np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    excess(likelihood, beta, buffer)
    gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    at_bound = bounds >= 0.0
    first, least_multiplier = next_release((gradients, curvatures), at_bound, 0.0, True)
    gradients[0] = gradients[1]  # the second direction is then the solution z of Mz = f'
    newton_directions((gradients, curvatures), 0.0, at_bound, beta, directions)
    growth_rate = math.sqrt(max(dot(gradients[1], directions[1]), 0.0))
    for k in range(len(path)):
        path[k, 0] = -0.1 * k
        path[k, 1] = least_multiplier if first >= 0 else np.inf
        path[k, 2:] = 0.0
        if growth_rate > 1e-12:
            path[k, 1] = -0.1 * k / growth_rate
            path[k, 2:] = (-0.1 * k / growth_rate) * directions[1]
    # All coefficients are at their bounds at the estimate: f grows with r².
    if growth_rate <= 1e-12 and first >= 0:
        return 1.0 / math.sqrt(2.0 * max(least_multiplier, 1e-300))
    return growth_rate


@compiled()
def follow_path(problem: Problem, functional: Functional, r: float, path: FloatArray) -> float:
    """Return the maximum of f over the level set at r; continue the solution path to it.

    The step in r is reduced where Newton's method does not converge.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    point, beta = np.empty(p + 1), np.empty(p)
    gradient, curvature = np.empty(p), np.empty((p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    last_value = _evaluate(functional, beta, gradient, curvature)
    r_step, failures = r - path[0, 0], 0
    while path[0, 1] < np.inf:
        next_r = path[0, 0] + r_step
        next_r = r if next_r > r - 1e-6 * r_step else next_r
        extrapolate(path, next_r, point)
        multiplier = max(point[0], 0.5 * path[0, 1])
        for a in range(p):
            beta[a] = max(point[a + 1], bounds[a])
        converged, value, multiplier = _maximise(problem, functional, next_r, beta, multiplier)
        # Maxima increase with r: a smaller one is wrong.
        if not converged or value < last_value - 1e-9 * (1.0 + abs(last_value)):
            r_step *= 0.25
            failures += 1
            if failures > _MAX_FAILURES:  # the path is lost
                path[0, 0], path[0, 1] = -1.0, np.inf
            continue
        r_step, last_value = 2.0 * r_step, value
        if multiplier == np.inf:
            next_r = min(next_r, math.sqrt(2.0 * max(excess(likelihood, beta, buffer), 0.0)))
        point[0] = multiplier
        point[1:] = beta
        append(path, next_r, point)
        if next_r >= r:
            return value
    if path[0, 0] < 0.0:
        return _LOST_VALUE
    for a in range(p):
        beta[a] = path[0, a + 2]
    return _evaluate(functional, beta, gradient, curvature)


@compiled()
def optimality_gap(problem: Problem, functional: Functional, r: float, path: FloatArray) -> float:
    r"""Return an upper bound of the maximum of f at r minus the value of the path there.

    For any :math:`\beta'` in the level set, convexity of D and concavity of f give
    :math:`\lambda(f(\beta')-f(\beta))\le\frac12r^2-D(\beta)-\epsilon^\top(\beta'-\beta)`, where the
    residual :math:`\epsilon=D'-\lambda f'` of the coefficients that are not at their bounds is 0
    at the maximum. Its term is at most :math:`\epsilon^\top M^{-1}\epsilon`, with M the Hessian of
    :math:`D-\lambda f`, as long as that is small; where it is not, the path counts as lost.
    """
    likelihood, bounds, _, buffer = problem
    p = len(bounds)
    multiplier = path[0, 1]
    if path[0, 0] < 0.0:
        return 0.0  # the path is lost: its value is an upper bound already
    beta, no_step, directions = np.empty(p), np.zeros(p), np.zeros((2, p))
    gradients, curvatures = np.empty((2, p)), np.empty((2, p, p))
    for a in range(p):
        beta[a] = path[0, a + 2]
    d = excess(likelihood, beta, buffer)
    gradient_and_hessian(likelihood, beta, buffer, gradients[0], curvatures[0])
    _evaluate(functional, beta, gradients[1], curvatures[1])
    if multiplier == np.inf:  # the path has ended
        return 0.0 if _growth_rate(problem, gradients[1], beta) < _ROUNDING_GROWTH else _LOST_VALUE
    at_bound = np.empty(p, dtype=np.bool_)
    for a in range(p):
        at_bound[a] = beta[a] <= bounds[a] and gradients[0, a] >= multiplier * gradients[1, a]
    newton_directions((gradients, curvatures), multiplier, at_bound, no_step, directions)
    decrement = 0.0
    for a in range(p):
        decrement += directions[0, a] * (multiplier * gradients[1, a] - gradients[0, a])
    if not decrement < _LARGEST_DECREMENT or not multiplier > 0.0:
        return _LOST_VALUE
    return (max(0.5 * r * r - d, 0.0) + max(decrement, 0.0)) / multiplier


@compiled()
def last_kink(bounds: FloatArray, path: FloatArray) -> float:
    """Return r = sqrt(2 excess) at a kink between the last two points of a path, inf without one.

    A path has a kink where a coefficient meets its bound, located by extrapolation of the earlier
    points, and where one leaves its bound, approximated by the middle of the two r.
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
