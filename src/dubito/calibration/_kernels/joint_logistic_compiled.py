r"""Profile likelihood of a logistic model of several scores, along rays of its log-odds.

Coefficients are whitened: the estimate is 0 and the Hessian there is the identity. With
:math:`\delta_i=x_i^\top\beta` the excess D of the negative log-likelihood over its minimum is a
sum of Bregman divergences, which does not depend on the targets,

.. math:: D(\beta)=\sum_iw_i[\zeta(\hat\eta_i+\delta_i)-\zeta(\hat\eta_i)-\hat p_i\delta_i]
    +\tfrac12\beta^\top P\beta,\qquad\zeta(\eta)=\log(1+e^\eta).

A query z of length s has the log-odds :math:`\hat\eta_z+s\xi` where :math:`\xi=e^\top\beta` and
:math:`e=z/s`; the profile at :math:`\xi` is :math:`\min\{D(\beta):e^\top\beta=\xi\}`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.contour_cut_compiled import CERTAIN_LOG_ODDS
from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    combine_rows,
    dot,
    exp_in_place,
    logistic_density,
    softplus_terms,
    times,
)
from dubito.calibration._kernels.extrapolation_compiled import MEMORY, append, extrapolate

if TYPE_CHECKING:
    from dubito._typing import FloatArray

    #: Rows whitened (p, n); sample weight, log-odds, softplus and probability of each at the
    #: estimate (4, n); the Hessian of the penalty (p, p).
    Likelihood: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

#: Squared Newton decrement at which `profile` takes its last step without evaluating it.
_CONVERGED = 3e-6

#: Excess at which the plausibility exp(-excess) is 0 in double precision.
_LARGEST_EXCESS = 745.0


@compiled(fastmath=SIMD_FLAGS)
def _excess(likelihood: Likelihood, beta: FloatArray, buffer: FloatArray) -> float:
    """Return D(β); write weighted residuals to buffer[1] and curvatures to buffer[2]."""
    rows, at_estimate, penalty = likelihood
    delta, residual, curvature = buffer[0], buffer[1], buffer[2]
    combine_rows(rows, beta, delta)
    for i in range(len(delta)):
        eta = at_estimate[1, i] + delta[i]
        residual[i] = -eta if eta > 0 else eta
    exp_in_place(residual, curvature, curvature.view(np.int64))
    value = 0.0
    for i in range(len(delta)):
        weight, p_estimate = at_estimate[0, i], at_estimate[3, i]
        softplus, p, p_rate = softplus_terms(at_estimate[1, i] + delta[i], residual[i])
        value += weight * (softplus - at_estimate[2, i] - p_estimate * delta[i])
        residual[i] = weight * (p - p_estimate)
        curvature[i] = weight * p_rate
    for a in range(len(beta)):
        value += 0.5 * beta[a] * dot(penalty[a], beta)
    return value


@compiled()
def _gradient_and_hessian(
    likelihood: Likelihood,
    beta: FloatArray,
    buffer: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Write gradient and Hessian (lower triangle) of D, from the buffer that `_excess` wrote."""
    rows, _, penalty = likelihood
    for a in range(len(beta)):
        gradient[a] = dot(rows[a], buffer[1]) + dot(penalty[a], beta)
        times(rows[a], buffer[2], buffer[0])
        for b in range(a + 1):
            hessian[a, b] = dot(buffer[0], rows[b]) + penalty[a, b]


@compiled()
def _step_in_plane(
    lower: FloatArray, gradient: FloatArray, axis: FloatArray, step: FloatArray
) -> float:
    """Write the Newton step within the plane of constant e'β; return the squared decrement."""
    direction = np.empty_like(step)
    cholesky_solve(lower, gradient, step)
    cholesky_solve(lower, axis, direction)
    multiplier = dot(axis, step) / dot(axis, direction)
    for a in range(len(step)):
        step[a] = multiplier * direction[a] - step[a]
    rounding = dot(axis, step)  # accumulates where the Hessian is nearly singular
    for a in range(len(step)):
        step[a] -= rounding * axis[a]
    return -dot(gradient, step)


@compiled()
def profile(
    likelihood: Likelihood, axis: FloatArray, beta: FloatArray, buffer: FloatArray
) -> float:
    """Return the minimum of D over the plane e'β = ξ; move β, which lies in it, to the minimiser.

    Newton's method, with damping of the diagonal after a step that does not decrease D, which is
    convex. The last step is not evaluated: its quadratic model is accurate to third order.
    """
    p = len(beta)
    gradient, step = np.empty(p), np.empty(p)
    hessian, lower = np.empty((p, p)), np.empty((p, p))
    value = _excess(likelihood, beta, buffer)
    _gradient_and_hessian(likelihood, beta, buffer, gradient, hessian)
    damping = 0.0
    for _ in range(200):
        while not cholesky_factor(hessian, damping, lower):
            damping = max(10.0 * damping, 1e-13)
        decrement = _step_in_plane(lower, gradient, axis, step)
        converged = decrement <= _CONVERGED
        if converged and (damping < 1e-9 or decrement <= 1e-12):
            for a in range(p):
                beta[a] += step[a]
            return max(value - 0.5 * decrement, 0.0)
        if converged:
            damping *= 1e-2
            continue
        for a in range(p):
            beta[a] += step[a]
        new_value = _excess(likelihood, beta, buffer)
        if new_value <= value - 1e-4 * decrement:
            value, damping = new_value, 0.1 * damping
            _gradient_and_hessian(likelihood, beta, buffer, gradient, hessian)
            continue
        for a in range(p):
            beta[a] -= step[a]
        if decrement <= 1e-13 * (1.0 + value):
            break  # the decrease is below rounding
        damping = max(10.0 * damping, 1e-3)
    return value


@compiled()
def _start_path(axis: FloatArray, spacing: float, path: FloatArray) -> None:
    """Fill the path with the points ξ = 0, -h, -2h, … on the axis; row 0, (ξ, β), is the newest."""
    for k in range(len(path)):
        path[k, 0] = -k * spacing
        path[k, 1:] = -k * spacing * axis


@compiled()
def _next_profile(
    likelihood: Likelihood,
    axis: FloatArray,
    xi: float,
    path: FloatArray,
    buffer: FloatArray,
) -> float:
    """Return the profile, min D subject to e'β = ξ, and append its minimiser to the path."""
    beta = np.empty(len(axis))
    extrapolate(path, xi, beta)
    correction = xi - dot(axis, beta)
    for a in range(len(beta)):
        beta[a] += correction * axis[a]
    value = profile(likelihood, axis, beta, buffer)
    append(path, xi, beta)
    return value


@compiled()
def _integral_on_side(
    likelihood: Likelihood,
    axis: FloatArray,
    query: tuple[float, float, float],
    tolerance: float,
    buffer: FloatArray,
) -> float:
    """Return the integral of the contour over probabilities on one side of the estimate.

    `query` is the estimated log-odds, the length s and the side, -1 or 1.
    """
    estimate, length, sign = query
    path, saved = np.empty((MEMORY, len(axis) + 1)), np.empty((MEMORY, len(axis) + 1))
    start = sign * max(sign * estimate, -CERTAIN_LOG_ODDS)
    width = min(4.0 * length, 3.0)
    _start_path(axis, sign * min(0.1, 0.1 * width / length), path)
    area = 0.0
    while sign * start < CERTAIN_LOG_ODDS:
        end = sign * min(sign * start + width, CERTAIN_LOG_ODDS)
        middle, half = 0.5 * (start + end), 0.5 * (end - start)
        saved[:] = path
        kronrod, gauss, contour = 0.0, 0.0, 0.0
        for i in range(15):
            eta = middle + half * KRONROD_POINTS[i]
            excess = _next_profile(likelihood, axis, (eta - estimate) / length, path, buffer)
            contour = math.exp(-excess)
            density = contour * logistic_density(eta)
            kronrod += KRONROD_WEIGHTS[i] * density
            gauss += GAUSS_WEIGHTS[i] * density
        error = abs(half * (kronrod - gauss))
        if error > tolerance and width > 1e-9 * min(length, 1.0):
            path[:] = saved
            width *= 0.5
            continue
        area += abs(half) * kronrod
        start = end
        # The contour decreases from here on, so this bounds the rest of the integral.
        if contour * math.exp(-max(sign * start, 0.0)) < 1e-3 * tolerance:
            break
        if error < 1e-2 * tolerance:
            width *= 2.0
    return area


@compiled()
def integrals(
    likelihood: Likelihood, queries: FloatArray, log_odds: FloatArray, tolerance: float
) -> FloatArray:
    """Return ∫pl(u)du below and above the estimate for each whitened query, (m, 2)."""
    out = np.empty((len(queries), 2))
    buffer = np.empty((3, likelihood[0].shape[1]))
    for i in range(len(queries)):
        length = math.sqrt(dot(queries[i], queries[i]))
        axis = queries[i] / length
        out[i, 0] = _integral_on_side(
            likelihood, axis, (log_odds[i], length, -1.0), tolerance, buffer
        )
        out[i, 1] = _integral_on_side(
            likelihood, axis, (log_odds[i], length, 1.0), tolerance, buffer
        )
    return out


@compiled()
def contours(
    likelihood: Likelihood, queries: FloatArray, log_odds: FloatArray, etas: FloatArray
) -> FloatArray:
    """Return the relative profile likelihood of rising log-odds `etas` at each whitened query."""
    out = np.zeros((len(queries), len(etas)))
    buffer = np.empty((3, likelihood[0].shape[1]))
    path = np.empty((MEMORY, queries.shape[1] + 1))
    for i in range(len(queries)):
        length = math.sqrt(dot(queries[i], queries[i]))
        axis = queries[i] / length
        first = np.searchsorted(etas, log_odds[i])
        for step, start, stop in ((1, first, len(etas)), (-1, first - 1, -1)):
            _start_path(axis, 0.1 * step, path)
            for j in range(start, stop, step):
                xi = (etas[j] - log_odds[i]) / length
                if xi == path[0, 0]:
                    out[i, j] = 1.0
                    continue
                excess = _next_profile(likelihood, axis, xi, path, buffer)
                if excess > _LARGEST_EXCESS:
                    break  # farther out the likelihood is smaller still: zeros remain
                out[i, j] = math.exp(-excess)
    return out
