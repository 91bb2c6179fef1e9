r"""Profile likelihood of a logistic curve at a score, the contour and its integrals.

Coefficients are written in axes of the query x: with :math:`z=(1,x)/\lVert(1,x)\rVert` and the
perpendicular unit vector u they are :math:`\sigma=\sigma^0+(sz+bu)/h`. The log-odds at x depend on
s alone, and the profile maximises over b. This is well conditioned for x far from the data too.
Here :math:`\sigma^0=0`, h = 1 and s is called ζ: the log-odds at x are
:math:`\eta=\zeta\lVert(1,x)\rVert`.

The kernels of nested dichotomies use `in_axes` and `profile` for tables of belief over all scores
(`node_sigmoid_beliefs_compiled`). For several scores see `joint_logistic_compiled` of calibration.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.contour_cut_compiled import CERTAIN_LOG_ODDS
from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    exp_buffers,
    exp_in_place,
    logistic_density,
    softplus_terms,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

    #: Both ends of an interval.
    Interval: TypeAlias = tuple[float, float]
    #: (ζ, b, db/dζ): a point of the profile, or near it, and the derivative by which the next b is
    #: extrapolated.
    ProfilePoint: TypeAlias = tuple[float, float, float]
    #: Positions and weights of the softplus terms, (2, terms); the sums of targets and of targets
    #: times positions; the negative log-likelihood at the optimum.
    CurveLikelihood: TypeAlias = tuple[FloatArray, FloatArray, float]
    #: Intercept and slope of the optimum, the Hessian there, the tolerance of a panel.
    Model: TypeAlias = tuple[FloatArray, FloatArray, float]
    #: The likelihood in axes (s, b) of the coefficients, in which the log-odds at the query depend
    #: on s alone. First an array (4, terms), a column for each softplus term; its rows are:
    #: weight; log-odds at s = b = 0; their derivative in s; their derivative in b.
    #: Then three numbers: the sums of targets times the derivatives in s and in b, and the constant
    #: with which the excess is 0 at the optimum.
    AxesLikelihood: TypeAlias = tuple[FloatArray, tuple[float, float, float]]
    #: Buffers of `exp_in_place`.
    ExpBuffers: TypeAlias = tuple[FloatArray, FloatArray, IntArray]

#: Squared Newton decrement at which `profile` takes its last step without evaluating it. The error
#: of the excess is then of third order in the step, below the rounding error of most likelihoods.
EXACT = 1e-10


@compiled()
def in_axes(
    likelihood: CurveLikelihood,
    origin: tuple[float, float],
    axes: tuple[float, float],
    scale: float,
) -> tuple[FloatArray, tuple[float, float, float]]:
    """Return the likelihood in the axes of a query; `origin` are intercept and slope at (0, 0).

    `axes` are the components of z, `scale` is h of the module's formula.
    """
    points, totals, least = likelihood
    z0, z1 = axes[0] / scale, axes[1] / scale
    terms = np.empty((4, points.shape[1]))
    for j in range(points.shape[1]):
        x = points[0, j]
        terms[0, j], terms[1, j] = points[1, j], origin[0] + origin[1] * x
        terms[2, j], terms[3, j] = z0 + z1 * x, z0 * x - z1
    constant = least + totals[0] * origin[0] + totals[1] * origin[1]
    return terms, (z0 * totals[0] + z1 * totals[1], z0 * totals[1] - z1 * totals[0], constant)


@compiled(fastmath=SIMD_FLAGS)
def _excess_and_derivatives(
    rotated: AxesLikelihood, s: float, b: float, buffers: ExpBuffers
) -> tuple[float, float, float]:
    """Return the excess at (s, b), and its first two derivatives with respect to b.

    The excess is the maximum of the log-likelihood minus its value.
    """
    terms, sums = rotated
    small, power, bits = buffers
    n = terms.shape[1]
    for j in range(n):
        small[j] = -abs(terms[1, j] + s * terms[2, j] + b * terms[3, j])
    exp_in_place(small[:n], power[:n], bits[:n])
    excess = -sums[0] * s - sums[1] * b - sums[2]
    first, second = -sums[1], 0.0
    for j in range(n):
        weight, across = terms[0, j], terms[3, j]
        eta = terms[1, j] + s * terms[2, j] + b * across
        value, p, curvature = softplus_terms(eta, small[j])
        excess += weight * value
        first += weight * across * p
        second += weight * across * across * curvature
    return excess, first, second


@compiled()
def profile(
    rotated: AxesLikelihood, s: float, b: float, buffers: ExpBuffers, accuracy: float
) -> tuple[float, float]:
    """Return the b of largest likelihood at s, and the excess there.

    Safeguarded Newton steps; the last one, of squared decrement at most `accuracy`, is not
    evaluated.
    """
    low, high, reach = -np.inf, np.inf, 8.0
    excess = np.inf
    for _ in range(200):
        excess, first, second = _excess_and_derivatives(rotated, s, b, buffers)
        if first == 0.0:  # always so if all rows have the same score
            break
        gain = first * first  # times 1 / second: the squared decrement
        if gain <= accuracy * second:
            return b - first / second, excess - 0.5 * gain / second
        if first > 0.0:
            high = b
        else:
            low = b
        step = -first / second if second > 1e-300 else math.copysign(np.inf, -first)
        if abs(step) > reach:  # far out the loss is nearly linear and Newton steps are too long
            step = math.copysign(reach, step)
            reach *= 2.0
        new = b + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b, excess


@compiled()
def query_axes(x: float, model: Model) -> tuple[float, tuple[float, float], ProfilePoint, float]:
    """Return norm and axes of a query, (ζ, b, db/dζ) at the optimum, and the std. error of η."""
    optimum, hessian, _ = model
    norm = math.hypot(1.0, x)
    z0, z1 = 1.0 / norm, x / norm
    zeta = z0 * optimum[0] + z1 * optimum[1]
    b = z0 * optimum[1] - z1 * optimum[0]
    zz = z0 * z0 * hessian[0, 0] + 2 * z0 * z1 * hessian[0, 1] + z1 * z1 * hessian[1, 1]
    zu = z0 * z0 * hessian[0, 1] - z0 * z1 * hessian[0, 0] + z0 * z1 * hessian[1, 1]
    zu -= z1 * z1 * hessian[0, 1]
    uu = z1 * z1 * hessian[0, 0] - 2 * z0 * z1 * hessian[0, 1] + z0 * z0 * hessian[1, 1]
    tilt = -zu / uu if uu > 0 else 0.0
    information = zz + zu * tilt
    std_error = norm / math.sqrt(information) if information > 0 else np.inf
    return norm, (z0, z1), (zeta, b, tilt), std_error


@compiled()
def _panel_integrals(
    rotated: AxesLikelihood, norm: float, last: ProfilePoint, ends: Interval, buffers: ExpBuffers
) -> tuple[float, float, float, ProfilePoint]:
    """Return two estimates of ∫pl(η)σ'(η)dη over a panel, and contour and profile at its end.

    b is extrapolated from point to point, beginning at `last`.
    """
    zeta_last, b_last, tilt = last
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    kronrod, gauss, contour = 0.0, 0.0, 0.0
    for i in range(15):
        eta = middle + half * KRONROD_POINTS[i]
        zeta = eta / norm
        b, excess = profile(rotated, zeta, b_last + tilt * (zeta - zeta_last), buffers, EXACT)
        if zeta != zeta_last:
            tilt = (b - b_last) / (zeta - zeta_last)
        zeta_last, b_last = zeta, b
        contour = math.exp(min(-excess, 0.0))
        density = contour * logistic_density(eta)
        kronrod += KRONROD_WEIGHTS[i] * density
        gauss += GAUSS_WEIGHTS[i] * density
    width = abs(half)
    return kronrod * width, gauss * width, contour, (zeta_last, b_last, tilt)


@compiled()
def _integrals_of_query(
    likelihood: CurveLikelihood, x: float, model: Model, buffers: ExpBuffers
) -> tuple[float, float]:
    """Return ∫pl(η)σ'(η)dη below and above the estimate."""
    tolerance = model[2]
    norm, axes, optimum, std_error = query_axes(x, model)
    rotated = in_axes(likelihood, (0.0, 0.0), axes, 1.0)
    best = optimum[0] * norm
    below = 0.0
    area = 0.0
    for sign in (-1.0, 1.0):
        below, area = area, 0.0
        here = sign * max(sign * best, -CERTAIN_LOG_ODDS)
        last = optimum
        width = min(4.0 * std_error, 3.0)
        while sign * here < CERTAIN_LOG_ODDS:
            end = sign * min(sign * here + width, CERTAIN_LOG_ODDS)
            fine, coarse, contour, after = _panel_integrals(
                rotated, norm, last, (here, end), buffers
            )
            error = abs(fine - coarse)
            if error > tolerance and width > 1e-9 * min(std_error, 1.0):
                width *= 0.5
                continue
            area += fine
            here, last = end, after
            # The contour decreases outward, so this bounds the remaining integral.
            if contour * math.exp(-max(sign * here, 0.0)) < 1e-3 * tolerance:
                break
            if error < 1e-2 * tolerance:
                width *= 2.0
    return below, area


@compiled()
def integrals(likelihood: CurveLikelihood, queries: FloatArray, model: Model) -> FloatArray:
    """Return ∫pl(u)du below and above the estimate for each query, (n, 2)."""
    out = np.empty((len(queries), 2))
    buffers = exp_buffers(likelihood[0].shape[1])
    for i in range(len(queries)):
        out[i, 0], out[i, 1] = _integrals_of_query(likelihood, queries[i], model, buffers)
    return out


@compiled()
def contours(
    likelihood: CurveLikelihood, queries: FloatArray, etas: FloatArray, model: Model
) -> FloatArray:
    """Return the profile likelihood, relative to the best, of log-odds `etas` at each query."""
    out = np.empty((len(queries), len(etas)))
    buffers = exp_buffers(likelihood[0].shape[1])
    for i in range(len(queries)):
        norm, axes, optimum, _ = query_axes(queries[i], model)
        rotated = in_axes(likelihood, (0.0, 0.0), axes, 1.0)
        for j in range(len(etas)):
            zeta = etas[j] / norm
            b = optimum[1] + optimum[2] * (zeta - optimum[0])
            _, excess = profile(rotated, zeta, b, buffers, EXACT)
            out[i, j] = math.exp(min(-excess, 0.0))
    return out


@compiled()
def slope_reach(likelihood: CurveLikelihood, model: Model, largest: float) -> float:
    """Return a bound on abs(slope) of coefficients with an excess of at most `largest`."""
    optimum, hessian, _ = model
    reach = abs(optimum[1])
    remaining = hessian[1, 1] - hessian[0, 1] ** 2 / hessian[0, 0]
    rotated = in_axes(likelihood, (0.0, 0.0), (0.0, 1.0), 1.0)
    buffers = exp_buffers(likelihood[0].shape[1])
    for sign in (-1.0, 1.0):
        step = math.sqrt(2.0 * largest / remaining)
        b = -optimum[0]
        for _ in range(60):
            slope = optimum[1] + sign * step
            b, excess = profile(rotated, slope, b, buffers, EXACT)
            if excess >= largest:
                break
            step *= 1.5
        reach = max(reach, abs(optimum[1] + sign * step))
    return reach
