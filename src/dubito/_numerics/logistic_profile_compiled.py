r"""Profile likelihood of a logistic curve at a score, and its belief and plausibility, row by row.

A vectorised version for tables of many tree nodes is in the kernels of nested dichotomies
(`sigmoid_contour_compiled`); for several scores see `joint_logistic_compiled` of calibration.

Coefficients are written in axes of the query: with :math:`z=(1,x)/\lVert(1,x)\rVert` and the
perpendicular unit vector u, :math:`\sigma=\zeta z+bu`. The log-odds at x are
:math:`\eta=\zeta\lVert(1,x)\rVert`, and what is left to maximise over is the one number b. This
stays well conditioned however far x lies from the data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS

if TYPE_CHECKING:
    from dubito._typing import FloatArray

    Pair: TypeAlias = tuple[float, float]
    Triple: TypeAlias = tuple[float, float, float]
    #: Positions and weights of the softplus terms, (2, terms); the sums of targets and of targets
    #: times positions; the negative log-likelihood at the optimum.
    Likelihood: TypeAlias = tuple[FloatArray, FloatArray, float]
    #: Intercept and slope of the optimum, the Hessian there, the tolerance of a panel.
    Model: TypeAlias = tuple[FloatArray, FloatArray, float]

#: Beyond this the logistic density is below 5e-18: nothing is left to integrate.
FAR = 40.0


@compiled()
def profile(likelihood: Likelihood, axes: Pair, zeta: float, b: float) -> Pair:
    """Maximise over b by safeguarded Newton steps; return b and the negative log-likelihood."""
    points, totals, _ = likelihood
    c, s = axes
    slope_total = totals[1] * c - totals[0] * s
    low, high, reach = -np.inf, np.inf, 8.0
    for _ in range(200):
        gradient, curvature = -slope_total, 0.0
        for j in range(points.shape[1]):
            u = c * points[0, j] - s
            eta = zeta * (c + s * points[0, j]) + b * u
            small = math.exp(-abs(eta))
            larger = 1.0 / (1.0 + small)
            weighted = points[1, j] * u
            gradient += weighted * (larger if eta >= 0 else small * larger)
            curvature += weighted * u * small * larger * larger
        gain = gradient * gradient  # in units of twice the curvature
        if gain <= 1e-15 * curvature or gradient == 0.0:
            break
        if gradient > 0:
            high = b
        else:
            low = b
        step = -gradient / curvature if curvature > 1e-300 else math.copysign(np.inf, -gradient)
        if abs(step) > reach:  # far out the loss is nearly linear and Newton steps are too long
            step = math.copysign(reach, step)
            reach *= 2
        new = b + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
        # Newton steps converge quadratically: after this one the rest is below rounding.
        if gain <= 1e-8 * curvature and abs(step) <= 1e-3:
            break
    return b, _loss(likelihood, axes, zeta, b)


@compiled()
def _loss(likelihood: Likelihood, axes: Pair, zeta: float, b: float) -> float:
    """Return the negative log-likelihood at (ζ, b)."""
    points, totals, _ = likelihood
    c, s = axes
    level, slope = zeta * c - b * s, zeta * s + b * c
    value = -totals[0] * level - totals[1] * slope
    for j in range(points.shape[1]):
        eta = level + slope * points[0, j]
        value += points[1, j] * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
    return value


@compiled()
def query_axes(x: float, model: Model) -> tuple[float, Pair, Triple, float]:
    """Return norm and axes of a query, (ζ, b, db/dζ) at the optimum, and the deviation of η."""
    optimum, hessian, _ = model
    norm = math.hypot(1.0, x)
    c, s = 1.0 / norm, x / norm
    zeta = c * optimum[0] + s * optimum[1]
    b = c * optimum[1] - s * optimum[0]
    zz = c * c * hessian[0, 0] + 2 * c * s * hessian[0, 1] + s * s * hessian[1, 1]
    zu = c * c * hessian[0, 1] - c * s * hessian[0, 0] + c * s * hessian[1, 1]
    zu -= s * s * hessian[0, 1]
    uu = s * s * hessian[0, 0] - 2 * c * s * hessian[0, 1] + c * c * hessian[1, 1]
    tilt = -zu / uu if uu > 0 else 0.0
    precision = zz + zu * tilt
    deviation = norm / math.sqrt(precision) if precision > 0 else np.inf
    return norm, (c, s), (zeta, b, tilt), deviation


@compiled()
def _panel(
    likelihood: Likelihood, norm: float, axes: Pair, path: Triple, ends: Pair
) -> tuple[float, float, float, Triple]:
    """Integrate the contour over one panel; return two rules, the last contour and the path there.

    `path` is a point (ζ, b) of the profile and db/dζ there; from point to point it is extrapolated.
    """
    least = likelihood[2]
    zeta_last, b_last, tilt = path
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    kronrod, gauss, contour = 0.0, 0.0, 0.0
    for i in range(15):
        k = i if i < 8 else 14 - i
        eta = middle - half * KRONROD_POINTS[k] if i < 8 else middle + half * KRONROD_POINTS[k]
        zeta = eta / norm
        b, value = profile(likelihood, axes, zeta, b_last + tilt * (zeta - zeta_last))
        if zeta != zeta_last:
            tilt = (b - b_last) / (zeta - zeta_last)
        zeta_last, b_last = zeta, b
        contour = math.exp(min(least - value, 0.0))
        small = math.exp(-abs(eta))
        density = contour * small / (1.0 + small) ** 2
        kronrod += KRONROD_WEIGHTS[k] * density
        gauss += GAUSS_WEIGHTS[k] * density
    width = abs(half)
    return kronrod * width, gauss * width, contour, (zeta_last, b_last, tilt)


@compiled()
def _outward(likelihood: Likelihood, x: float, model: Model) -> Pair:
    """Integrate pl(η)σ'(η) from the estimate downwards and upwards."""
    tolerance = model[2]
    norm, axes, optimum, deviation = query_axes(x, model)
    best = optimum[0] * norm
    below = 0.0
    area = 0.0
    for sign in (-1.0, 1.0):
        below, area = area, 0.0
        here = sign * max(sign * best, -FAR)
        path = optimum
        width = min(4.0 * deviation, 3.0)
        while sign * here < FAR:
            end = sign * min(sign * here + width, FAR)
            fine, coarse, contour, path_end = _panel(likelihood, norm, axes, path, (here, end))
            error = abs(fine - coarse)
            if error > tolerance and width > 1e-9 * min(deviation, 1.0):
                width *= 0.5
                continue
            area += fine
            here, path = end, path_end
            # The contour only falls from here, so this bounds what is left.
            if contour * math.exp(-max(sign * here, 0.0)) < 1e-3 * tolerance:
                break
            if error < 1e-2 * tolerance:
                width *= 2.0
    return below, area


@compiled()
def integrals(likelihood: Likelihood, queries: FloatArray, model: Model) -> FloatArray:
    """Return ∫pl(u)du below and above the estimate for each query, (n, 2)."""
    out = np.empty((len(queries), 2))
    for i in range(len(queries)):
        out[i, 0], out[i, 1] = _outward(likelihood, queries[i], model)
    return out


@compiled()
def contours(
    likelihood: Likelihood, queries: FloatArray, etas: FloatArray, model: Model
) -> FloatArray:
    """Return the profile likelihood, relative to the best, of log-odds `etas` at each query."""
    out = np.empty((len(queries), len(etas)))
    for i in range(len(queries)):
        norm, axes, optimum, _ = query_axes(queries[i], model)
        for j in range(len(etas)):
            zeta = etas[j] / norm
            b = optimum[1] + optimum[2] * (zeta - optimum[0])
            _, value = profile(likelihood, axes, zeta, b)
            out[i, j] = math.exp(min(likelihood[2] - value, 0.0))
    return out


@compiled()
def slope_reach(likelihood: Likelihood, model: Model, drop: float) -> float:
    """Return a slope that no coefficients within `drop` of the best log-likelihood exceed."""
    optimum, hessian, _ = model
    reach = abs(optimum[1])
    remaining = hessian[1, 1] - hessian[0, 1] ** 2 / hessian[0, 0]
    for sign in (-1.0, 1.0):
        step = math.sqrt(2.0 * drop / remaining)
        b = -optimum[0]
        for _ in range(60):
            slope = optimum[1] + sign * step
            b, value = profile(likelihood, (0.0, 1.0), slope, b)
            if value - likelihood[2] >= drop:
                break
            step *= 1.5
        reach = max(reach, abs(optimum[1] + sign * step))
    return reach
