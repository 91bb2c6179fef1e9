r"""Belief and plausibility of the sigmoids of all tree nodes, from tables over the score.

They are those of `dubito._numerics.logistic_profile` within 1e-8, for thousands of curves. In the
units of a node's angles (`node_sigmoid_tables_compiled`) the Hessian of the likelihood at its
optimum is h² times the identity: the log-odds at x are :math:`\hat\eta+\tau s` with
:math:`\tau=1/(h\cos\psi)` their deviation, h² the sum of curvatures and s the component of the step
from the optimum along :math:`(\cos\psi,\sin\psi)`. The profile maximises over b, the
perpendicular component.

The contour is :math:`\exp(-\rho^2/2)`, and ρ/s is nearly constant, exactly so for a normal
likelihood: a panel of s needs a short series of it, from 14 profiles, however steep the curve. The
adaptive Gauss-Kronrod rule of `logistic_profile_compiled` assumes nothing about the contour, and
takes about three times as many profiles for the same integral.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.condensed_rows_compiled import condense
from dubito._numerics.jit import compiled
from dubito._numerics.logistic_profile_compiled import in_axes, profile, slope_reach
from dubito._numerics.vector_math_compiled import exp_buffers, logistic_density, sigmoid, softplus
from dubito.dichotomies._kernels.node_sigmoid_tables_compiled import (
    CHECKS,
    CHUNK_ROWS,
    chebyshev,
    clenshaw,
    find_panel,
    standardised_score,
)

if TYPE_CHECKING:
    from dubito._numerics.logistic_profile_compiled import (
        AxesLikelihood,
        CurveLikelihood,
        ExpBuffers,
        Interval,
        ProfilePoint,
    )
    from dubito._typing import FloatArray
    from dubito.dichotomies._kernels.node_sigmoid_tables_compiled import Tables

    #: The likelihood of one node's curve in its angle units; intercept, slope and h at the optimum;
    #: buffers.
    Curve: TypeAlias = tuple[CurveLikelihood, tuple[float, float, float], ExpBuffers]

#: Degree of the series over angles, and the bound on its last coefficients and its errors.
DEGREE = 24
_CONVERGED = 3e-9
#: Panels of angles are not halved below this width.
_NARROWEST = 1e-4

#: Log-odds, and excess (the maximum of the log-likelihood minus its value), beyond which less than
#: 2e-11 is left to integrate.
_NEGLIGIBLE_BEYOND = 25.0

#: Number of profiles on a panel of s, and its width: the contour falls to about
#: exp(-3.55²/2) = 0.002 on the first panel.
_N_PROFILES = 14
_PANEL_WIDTH = 3.55

#: Below this standard deviation of the log-odds the panel width is doubled.
_SMALL_DEVIATION = 0.15

#: Largest change of the contour that the last coefficients of ρ/s may cause.
_SERIES_ERROR = 3e-9

#: Accuracy of profiles (`logistic_profile_compiled.profile`): the excess is exact to about 1e-9.
_ACCURACY = 1e-6

#: Gauss-Legendre rule of the integral over log-odds, and the width up to which it is accurate.
_LEGENDRE_POINTS, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(12)
_LEGENDRE_WIDTH = 4.0

#: Chebyshev points, and the matrices from values there to coefficients.
_S_POINTS, _TO_ROOTS = chebyshev(_N_PROFILES)
_ANGLE_POINTS, _TO_SERIES = chebyshev(DEGREE + 1)


@compiled()
def _root_series(
    rotated: AxesLikelihood, ends: Interval, last: ProfilePoint, buffers: ExpBuffers
) -> tuple[FloatArray, ProfilePoint]:
    """Return the series of ρ/s over a panel of s, and the last point of the profile on it.

    `last` is the last point on the panel before: s, b and db/ds, from which b is extrapolated.
    """
    s_last, b_last, tilt = last
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    roots = np.empty(_N_PROFILES)
    for i in range(_N_PROFILES - 1, -1, -1):
        s = middle + half * _S_POINTS[i]
        b, excess = profile(rotated, s, b_last + tilt * (s - s_last), buffers, _ACCURACY)
        tilt = (b - b_last) / (s - s_last)
        s_last, b_last = s, b
        roots[i] = math.sqrt(2.0 * max(excess, 0.0)) / s
    return _TO_ROOTS @ roots, (s_last, b_last, tilt)


@compiled()
def _panel_integral(series: FloatArray, ends: Interval, eta: tuple[float, float]) -> float:
    """Return ∫pl(η)σ'(η)dη over a panel of s; `eta` holds estimate and deviation of η."""
    best, deviation = eta
    n_parts = 1 + int(deviation * (ends[1] - ends[0]) / _LEGENDRE_WIDTH)
    width = (ends[1] - ends[0]) / n_parts
    area = 0.0
    for part in range(n_parts):
        middle = ends[0] + (part + 0.5) * width
        for i in range(len(_LEGENDRE_POINTS)):
            s = middle + 0.5 * width * _LEGENDRE_POINTS[i]
            root = s * clenshaw(series, 2.0 * (s - ends[0]) / (ends[1] - ends[0]) - 1.0)
            density = math.exp(-0.5 * root * root) * logistic_density(best + deviation * s)
            area += _LEGENDRE_WEIGHTS[i] * density
    return 0.5 * width * deviation * area


@compiled()
def _upper_integral(
    rotated: AxesLikelihood, eta: tuple[float, float], buffers: ExpBuffers
) -> float:
    """Return ∫pl(η)σ'(η)dη from the estimate upwards; `eta` holds estimate and deviation of η."""
    best, deviation = eta
    here = max(-_NEGLIGIBLE_BEYOND - best, 0.0) / deviation
    end = (_NEGLIGIBLE_BEYOND - best) / deviation
    last = (0.0, 0.0, 0.0)
    if here > 0.0:
        b, excess = profile(rotated, here, 0.0, buffers, _ACCURACY)
        last = (here, b, b / here)
        if excess > _NEGLIGIBLE_BEYOND:
            return 0.0
    area, width = 0.0, _PANEL_WIDTH if deviation > _SMALL_DEVIATION else 2.0 * _PANEL_WIDTH
    while here < end:
        stop = min(here + width, end)
        series, after = _root_series(rotated, (here, stop), last, buffers)
        # A relative error e of ρ changes the contour by e ρ² exp(-ρ²/2), largest at ρ² = 2.
        root = max(here * clenshaw(series, -1.0), 1.4142135623730951)
        error = max(abs(series[_N_PROFILES - 1]), abs(series[_N_PROFILES - 2])) / series[0]
        error *= root * root * math.exp(-0.5 * root * root)
        error *= min(1.0, 0.25 * deviation * (stop - here))  # of the integral of the density
        if error > _SERIES_ERROR and width > 1e-3:
            width = 0.5 * (stop - here)
            continue
        area += _panel_integral(series, (here, stop), eta)
        here, last = stop, after
        if error < 1e-3 * _SERIES_ERROR:
            width = 2.0 * width
        root = stop * clenshaw(series, 1.0)
        if 0.5 * root * root + max(best + deviation * stop, 0.0) > _NEGLIGIBLE_BEYOND:
            break
    return area


@compiled()
def _integrals(psi: float, curve: Curve) -> tuple[float, float]:
    """Return the integrals of the contour over probabilities below and above the estimate."""
    likelihood, (intercept, slope, h), buffers = curve
    c, s = math.cos(psi), math.sin(psi)
    terms, (along, across, constant) = in_axes(likelihood, (intercept, slope), (c, s), h)
    best, deviation = intercept + slope * s / c, 1.0 / (h * c)
    above = _upper_integral((terms, (along, across, constant)), (best, deviation), buffers)
    terms[2] *= -1.0  # the lower side is the upper side of the mirrored axis
    below = _upper_integral((terms, (-along, across, constant)), (-best, deviation), buffers)
    return below, above


@compiled()
def _angle_units(points: FloatArray, optimum: FloatArray) -> tuple[float, float, float]:
    """Return mean and deviation of scores, weighted by curvature at the optimum, and its sum."""
    curvature = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        curvature[j] = points[1, j] * logistic_density(optimum[0] + optimum[1] * points[0, j])
    total = curvature.sum()
    mean = (curvature * points[0]).sum() / total
    return mean, math.sqrt((curvature * (points[0] - mean) ** 2).sum() / total), total


@compiled()
def _likelihood(
    points: FloatArray, totals: FloatArray, optimum: tuple[float, float, float]
) -> CurveLikelihood:
    """Return the likelihood of weighted scores: points, totals, and the loss at the optimum."""
    intercept, slope, _ = optimum
    least = -totals[0] * intercept - totals[1] * slope
    for j in range(points.shape[1]):
        least += points[1, j] * softplus(intercept + slope * points[0, j])
    return points, totals, least


@compiled()
def _angle_series(ends: Interval, curve: Curve) -> tuple[FloatArray, float]:
    """Return the series of both integrals over a panel of angles, and their largest error."""
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    values = np.empty((DEGREE + 1, 2))
    for i in range(DEGREE + 1):
        values[i] = _integrals(middle + half * _ANGLE_POINTS[i], curve)
    series = np.ascontiguousarray((_TO_SERIES @ values).T)
    error = np.abs(series[:, DEGREE - 2 :]).max()
    for u in CHECKS:
        if error > _CONVERGED:
            break
        below, above = _integrals(middle + half * u, curve)
        error = max(error, abs(clenshaw(series[0], u) - below))
        error = max(error, abs(clenshaw(series[1], u) - above))
    return series, error


@compiled()
def tabulate_beliefs(
    points: FloatArray, totals: FloatArray, optimum: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return series, over the angle, of a contour's integrals below and above the estimate.

    The contour is that of one curve, whose belief and plausibility are computed from them.

    Parameters
    ----------
    points : array (2, n)
        Standardised scores, ascending, and sample weights of the rows.
    totals : array (2,)
        Sums of targets, and of targets times scores.
    optimum : array (2,)
        Intercept and slope.

    Returns
    -------
    units : array (2,)
        Mean and deviation that define angles.
    edges : array (panels,)
        The left edge of each panel, ascending.
    series : array (panels, 2, DEGREE + 1)
        Chebyshev series on each panel.
    """
    mean, spread, total = _angle_units(points, optimum)
    constant = not spread > 0.0
    unit = 1.0 if constant else spread
    sums = np.array([totals[0], (totals[1] - mean * totals[0]) / unit])
    best = (optimum[0] + optimum[1] * mean, optimum[1] * unit, math.sqrt(total))
    rows = np.empty(points.shape)
    rows[0], rows[1] = (points[0] - mean) / unit, points[1]
    steepest = 0.0
    if not constant:
        model = (np.array([best[0], best[1]]), total * np.eye(2), 0.0)
        steepest = slope_reach(_likelihood(rows, sums, best), model, _NEGLIGIBLE_BEYOND)
    rows = condense(rows, steepest)
    curve = (_likelihood(rows, sums, best), best, exp_buffers(rows.shape[1]))
    quarter = 0.25 * np.pi
    stack = [(quarter, 2 * quarter), (0.0, quarter), (-quarter, 0.0), (-2 * quarter, -quarter)]
    # Empty lists whose type of items numba can infer.
    edges, panels = [0.0 for _ in range(0)], [np.empty((2, 0)) for _ in range(0)]
    if constant:  # all scores are equal, of angle 0
        stack.clear()
        series = np.zeros((2, DEGREE + 1))
        series[:, 0] = _integrals(0.0, curve)
        edges.append(-2 * quarter)
        panels.append(series)
    while len(stack) > 0:
        left, right = stack.pop()
        series, error = _angle_series((left, right), curve)
        if error < _CONVERGED or right - left < _NARROWEST:
            edges.append(left)
            panels.append(series)
        else:
            middle = 0.5 * (left + right)
            stack.append((middle, right))
            stack.append((left, middle))
    table = np.empty((len(panels), 2, DEGREE + 1))
    for i in range(len(panels)):
        table[i] = panels[i]
    return np.array([mean, unit]), np.array(edges), table


@compiled()
def sigmoid_bounds(
    scores: FloatArray, coef: FloatArray, tables: Tables
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the right side, each (n, nodes).

    `coef` are those of `fit_sigmoids`, `tables` those of `tabulate_beliefs`. The bounds of a node
    without panels are 0 and 1.
    """
    start, series = tables[0], tables[3]
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, CHUNK_ROWS):
        for t in range(n_nodes):
            if start[t] == start[t + 1]:
                continue
            slope, intercept = coef[t, 2], coef[t, 3]
            for i in range(row, min(row + CHUNK_ROWS, n)):
                x = standardised_score(scores[i, t], coef[t])
                theta = sigmoid(intercept + slope * x if slope != 0.0 else intercept)
                _, panel, u = find_panel(x, t, tables)
                lower[i, t] = min(max(theta - clenshaw(series[panel, 0], u), 0.0), theta)
                upper[i, t] = max(min(theta + clenshaw(series[panel, 1], u), 1.0), theta)
    return lower, upper
