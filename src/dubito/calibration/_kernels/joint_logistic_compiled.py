r"""Profile likelihood of a logistic model of several scores, along rays of its log-odds.

Coefficients are whitened: the estimate is 0 and the curvature there is the identity, so the
likelihood falls as :math:`\lVert\beta\rVert^2/2` at first. With :math:`\delta_i=x_i^\top\beta` the
fall is a sum of Bregman distances, in which the targets no longer occur,

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
from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    combine_rows,
    dot,
    exp_in_place,
    log_one_plus,
    times,
)
from dubito.calibration._kernels.extrapolation_compiled import MEMORY, append, extrapolate

if TYPE_CHECKING:
    from dubito._typing import FloatArray

    #: Rows whitened (p, n); weight, log-odds, softplus and probability of each at the estimate
    #: (4, n); the penalty's curvature (p, p).
    Likelihood: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

#: Beyond this the logistic density is below 5e-18: nothing is left to integrate.
FAR = 40.0

#: What a Newton step promises to gain, twice, when the model it comes from can be believed.
_NEAR = 3e-6

#: A fall of the log-likelihood that leaves no plausibility.
_DEEPEST = 745.0


@compiled(fastmath=SIMD_FLAGS)
def _fall(likelihood: Likelihood, beta: FloatArray, work: FloatArray) -> float:
    """Return D(β); leave residuals in work[1] and curvatures in work[2]."""
    rows, at, penalty = likelihood
    delta, residual, curvature = work[0], work[1], work[2]
    combine_rows(rows, beta, delta)
    for i in range(len(delta)):
        eta = at[1, i] + delta[i]
        residual[i] = -eta if eta > 0 else eta
    exp_in_place(residual, curvature, curvature.view(np.int64))
    value = 0.0
    for i in range(len(delta)):
        eta, small = at[1, i] + delta[i], residual[i]
        share = 1.0 / (1.0 + small)
        softplus = (eta if eta > 0 else 0.0) + log_one_plus(small)
        value += at[0, i] * (softplus - at[2, i] - at[3, i] * delta[i])
        residual[i] = at[0, i] * ((share if eta > 0 else small * share) - at[3, i])
        curvature[i] = at[0, i] * small * share * share
    for a in range(len(beta)):
        value += 0.5 * beta[a] * dot(penalty[a], beta)
    return value


@compiled()
def _slope(
    likelihood: Likelihood,
    beta: FloatArray,
    work: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Write gradient and Hessian of D, from what `_fall` left."""
    rows, _, penalty = likelihood
    for a in range(len(beta)):
        gradient[a] = dot(rows[a], work[1]) + dot(penalty[a], beta)
        times(rows[a], work[2], work[0])
        for b in range(a + 1):
            hessian[a, b] = dot(work[0], rows[b]) + penalty[a, b]


@compiled()
def _within(lower: FloatArray, gradient: FloatArray, axis: FloatArray, step: FloatArray) -> float:
    """Write the Newton step that leaves e'β as it is; return twice what it promises to gain."""
    along = np.empty_like(step)
    cholesky_solve(lower, gradient, step)
    cholesky_solve(lower, axis, along)
    multiplier = dot(axis, step) / dot(axis, along)
    for a in range(len(step)):
        step[a] = multiplier * along[a] - step[a]
    off = dot(axis, step)  # rounding, which would add up where the Hessian is nearly singular
    for a in range(len(step)):
        step[a] -= off * axis[a]
    return -dot(gradient, step)


@compiled()
def profile(likelihood: Likelihood, axis: FloatArray, beta: FloatArray, work: FloatArray) -> float:
    """Move β within its plane e'β = ξ to the least fall, and return that.

    Newton's method, with the diagonal lifted whenever a step does not gain: the fall is convex. The
    last step is not evaluated: its quadratic model is right to the third order.
    """
    p = len(beta)
    gradient, step = np.empty(p), np.empty(p)
    hessian, lower = np.empty((p, p)), np.empty((p, p))
    value = _fall(likelihood, beta, work)
    _slope(likelihood, beta, work, gradient, hessian)
    lift = 0.0
    for _ in range(200):
        while not cholesky_factor(hessian, lift, lower):
            lift = max(10.0 * lift, 1e-13)
        gain = _within(lower, gradient, axis, step)
        near = gain <= _NEAR
        if near and (lift < 1e-9 or gain <= 1e-12):
            for a in range(p):
                beta[a] += step[a]
            return max(value - 0.5 * gain, 0.0)
        if near:
            lift *= 1e-2
            continue
        for a in range(p):
            beta[a] += step[a]
        there = _fall(likelihood, beta, work)
        if there <= value - 1e-4 * gain:
            value, lift = there, 0.1 * lift
            _slope(likelihood, beta, work, gradient, hessian)
            continue
        for a in range(p):
            beta[a] -= step[a]
        if gain <= 1e-13 * (1.0 + value):
            break  # rounding has the last word
        lift = max(10.0 * lift, 1e-3)
    return value


@compiled()
def _begin(axis: FloatArray, unit: float, path: FloatArray) -> None:
    """Write a path that leaves the estimate along the axis: rows are (ξ, β), the latest first."""
    for k in range(len(path)):
        path[k, 0] = -k * unit
        path[k, 1:] = -k * unit * axis


@compiled()
def _visit(
    likelihood: Likelihood,
    axis: FloatArray,
    xi: float,
    path: FloatArray,
    work: FloatArray,
) -> float:
    """Return the least fall at ξ, next on the path."""
    beta = np.empty(len(axis))
    extrapolate(path, xi, beta)
    off = xi - dot(axis, beta)
    for a in range(len(beta)):
        beta[a] += off * axis[a]
    value = profile(likelihood, axis, beta, work)
    append(path, xi, beta)
    return value


@compiled()
def _outward(
    likelihood: Likelihood,
    axis: FloatArray,
    query: tuple[float, float, float],
    tolerance: float,
    work: FloatArray,
) -> float:
    """Integrate the contour's plausibility over probabilities on one side of the estimate.

    `query` is the estimated log-odds, the length s and the side, -1 or 1.
    """
    best, length, sign = query
    path, kept = np.empty((MEMORY, len(axis) + 1)), np.empty((MEMORY, len(axis) + 1))
    here = sign * max(sign * best, -FAR)
    width = min(4.0 * length, 3.0)
    _begin(axis, sign * min(0.1, 0.1 * width / length), path)
    area = 0.0
    while sign * here < FAR:
        end = sign * min(sign * here + width, FAR)
        middle, half = 0.5 * (here + end), 0.5 * (end - here)
        kept[:] = path
        kronrod, gauss, contour = 0.0, 0.0, 0.0
        for i in range(15):
            k = i if i < 8 else 14 - i
            eta = middle - half * KRONROD_POINTS[k] if i < 8 else middle + half * KRONROD_POINTS[k]
            fall = _visit(likelihood, axis, (eta - best) / length, path, work)
            contour = math.exp(-fall)
            small = math.exp(-abs(eta))
            density = contour * small / (1.0 + small) ** 2
            kronrod += KRONROD_WEIGHTS[k] * density
            gauss += GAUSS_WEIGHTS[k] * density
        error = abs(half * (kronrod - gauss))
        if error > tolerance and width > 1e-9 * min(length, 1.0):
            path[:] = kept
            width *= 0.5
            continue
        area += abs(half) * kronrod
        here = end
        # The contour only falls from here, so this bounds what is left.
        if contour * math.exp(-max(sign * here, 0.0)) < 1e-3 * tolerance:
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
    work = np.empty((3, likelihood[0].shape[1]))
    for i in range(len(queries)):
        length = math.sqrt(dot(queries[i], queries[i]))
        axis = queries[i] / length
        out[i, 0] = _outward(likelihood, axis, (log_odds[i], length, -1.0), tolerance, work)
        out[i, 1] = _outward(likelihood, axis, (log_odds[i], length, 1.0), tolerance, work)
    return out


@compiled()
def contours(
    likelihood: Likelihood, queries: FloatArray, log_odds: FloatArray, etas: FloatArray
) -> FloatArray:
    """Return the relative profile likelihood of rising log-odds `etas` at each whitened query."""
    out = np.zeros((len(queries), len(etas)))
    work = np.empty((3, likelihood[0].shape[1]))
    path = np.empty((MEMORY, queries.shape[1] + 1))
    for i in range(len(queries)):
        length = math.sqrt(dot(queries[i], queries[i]))
        axis = queries[i] / length
        first = np.searchsorted(etas, log_odds[i])
        for step, start, stop in ((1, first, len(etas)), (-1, first - 1, -1)):
            _begin(axis, 0.1 * step, path)
            for j in range(start, stop, step):
                xi = (etas[j] - log_odds[i]) / length
                if xi == path[0, 0]:
                    out[i, j] = 1.0
                    continue
                fall = _visit(likelihood, axis, xi, path, work)
                if fall > _DEEPEST:
                    break  # and falls further
                out[i, j] = math.exp(-fall)
    return out
