r"""Belief and plausibility of the sigmoids of all tree nodes, from tables over the score.

The same numbers as `dubito._numerics.logistic_profile`, for thousands of curves and scores. With
curvature-weighted mean m and deviation d of a curve's rows a score x has the angle
:math:`\psi=\arctan((x-m)/d)`, and in these units the likelihood at its optimum is round: the
log-odds at x are :math:`\hat\eta+\tau s` with :math:`\tau=1/(h\cos\psi)` their deviation, h² the
sum of curvatures and s the part of the step from the optimum that points along
:math:`(\cos\psi,\sin\psi)`. What is left to maximise over is the part across, b.

As functions of ψ the integrals of the contour are smooth on the whole half circle, infinite scores
included: a few panels of Chebyshev series hold them for every score, and a look-up costs no more
than a few dozen products. Panels are halved until their series have converged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.condensed_rows_compiled import condense
from dubito._numerics.jit import compiled
from dubito._numerics.logistic_fit import LARGEST
from dubito.dichotomies._kernels.sigmoid_contour_compiled import (
    FAR,
    chebyshev,
    clenshaw,
    exp_buffers,
    profile,
    upper_integral,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    #: Buffers of `exp_in_place`: values, powers of two, the same memory as integers.
    ExpBuffers: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: Start, edges and series of panels.
    Tables: TypeAlias = tuple[IntArray, FloatArray, FloatArray]
    Pair: TypeAlias = tuple[float, float]

#: Degree of the series over angles, and the bound on its last coefficients and its errors.
DEGREE = 24
_CONVERGED = 3e-9
_NARROWEST = 1e-4

#: Rows looked up together, node by node, so that the node's table stays in the processor's cache.
_BLOCK_ROWS = 64


_PLACES, _TO_SERIES = chebyshev(DEGREE + 1)
_CHECKS = np.array([-0.97, -0.42, 0.29, 0.93])


@compiled()
def _integrals(
    psi: float, points: FloatArray, totals: FloatArray, optimum: FloatArray, buffers: ExpBuffers
) -> Pair:
    """Return ∫pl(u)du below and above the estimate at an angle; all else is in round units."""
    level, slope, h = optimum
    c, s = math.cos(psi), math.sin(psi)
    rows = np.empty((4, points.shape[1]))
    least = 0.0
    for j in range(points.shape[1]):
        x = points[0, j]
        rows[0, j], rows[1, j] = points[1, j], level + slope * x
        rows[2, j], rows[3, j] = (c + s * x) / h, (c * x - s) / h
        least += points[1, j] * (max(rows[1, j], 0.0) + math.log1p(math.exp(-abs(rows[1, j]))))
    along, across = (c * totals[0] + s * totals[1]) / h, (c * totals[1] - s * totals[0]) / h
    best, deviation = level + slope * s / c, 1.0 / (h * c)
    above = upper_integral(rows, (along, across, least), (best, deviation), buffers)
    rows[2] *= -1.0  # the lower side is the upper side of the mirrored axis
    below = upper_integral(rows, (-along, across, least), (-best, deviation), buffers)
    return below, above


@compiled()
def _frame(points: FloatArray, optimum: FloatArray) -> tuple[float, float, float]:
    """Return mean, deviation and sum of the curvatures of the terms at the optimum."""
    curvature = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        small = math.exp(-abs(optimum[0] + optimum[1] * points[0, j]))
        curvature[j] = points[1, j] * small / (1.0 + small) ** 2
    total = curvature.sum()
    mean = (curvature * points[0]).sum() / total
    return mean, math.sqrt((curvature * (points[0] - mean) ** 2).sum() / total), total


@compiled()
def _angle_series(
    ends: Pair, points: FloatArray, totals: FloatArray, optimum: FloatArray, buffers: ExpBuffers
) -> tuple[FloatArray, float]:
    """Return the series of both integrals over a panel of angles, and how far they may be off."""
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    values = np.empty((DEGREE + 1, 2))
    for i in range(DEGREE + 1):
        values[i] = _integrals(middle + half * _PLACES[i], points, totals, optimum, buffers)
    series = np.ascontiguousarray((_TO_SERIES @ values).T)
    missed = np.abs(series[:, DEGREE - 2 :]).max()
    for place in _CHECKS:
        if missed > _CONVERGED:
            break
        below, above = _integrals(middle + half * place, points, totals, optimum, buffers)
        missed = max(missed, abs(clenshaw(series[0], place) - below))
        missed = max(missed, abs(clenshaw(series[1], place) - above))
    return series, missed


@compiled()
def _steepest(points: FloatArray, totals: FloatArray, optimum: FloatArray) -> float:
    """Return a bound on the slope of coefficients whose log-likelihood falls by at most `FAR`."""
    level, slope, h = optimum
    buffers = exp_buffers(points.shape[1])
    rows = np.empty((4, points.shape[1]))
    rows[0], rows[1] = points[1], level + slope * points[0]
    least = 0.0
    for j in range(points.shape[1]):
        least += rows[0, j] * (max(rows[1, j], 0.0) + math.log1p(math.exp(-abs(rows[1, j]))))
    reach = abs(slope)
    for sign in (-1.0, 1.0):
        rows[2], rows[3] = sign * points[0] / h, -sign / h
        sums = (sign * totals[1] / h, -sign * totals[0] / h, least)
        s, b = 6.0, 0.0
        for _ in range(60):
            b, fall = profile(rows, sums, s, b, buffers)
            if fall > FAR:
                break
            s, b = 1.5 * s, 1.5 * b
        reach = max(reach, abs(slope + sign * s / h))
    return reach


@compiled()
def tabulate(
    points: FloatArray, totals: FloatArray, optimum: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Tabulate both integrals of the contour of one curve over all angles.

    Parameters
    ----------
    points : array (2, n)
        Positions, ascending, and weights of the rows.
    totals : array (2,)
        Sums of targets, and of targets times positions.
    optimum : array (2,)
        Level and slope.

    Returns
    -------
    frame : array (2,)
        Mean and deviation that angles are taken from.
    edges : array (panels,)
        The left edge of each panel, ascending.
    series : array (panels, 2, DEGREE + 1)
        Chebyshev series on each panel.
    """
    mean, spread, total = _frame(points, optimum)
    constant = not spread > 0.0
    unit = 1.0 if constant else spread
    sums = np.array([totals[0], (totals[1] - mean * totals[0]) / unit])
    best = np.array([optimum[0] + optimum[1] * mean, optimum[1] * unit, math.sqrt(total)])
    rows = np.empty(points.shape)
    rows[0], rows[1] = (points[0] - mean) / unit, points[1]
    rows = condense(rows, 0.0 if constant else _steepest(rows, sums, best))
    buffers = exp_buffers(rows.shape[1])
    quarter = 0.25 * np.pi
    stack = [(quarter, 2 * quarter), (0.0, quarter), (-quarter, 0.0), (-2 * quarter, -quarter)]
    edges, panels = [0.0 for _ in range(0)], [np.empty((2, 0)) for _ in range(0)]
    if constant:  # every score is the same one, of angle 0
        stack.clear()
        series = np.zeros((2, DEGREE + 1))
        series[:, 0] = _integrals(0.0, rows, sums, best, buffers)
        edges.append(-2 * quarter)
        panels.append(series)
    while len(stack) > 0:
        left, right = stack.pop()
        series, missed = _angle_series((left, right), rows, sums, best, buffers)
        if missed < _CONVERGED or right - left < _NARROWEST:
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
    scores: FloatArray, coef: FloatArray, frames: FloatArray, tables: Tables
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the right side, each (n, nodes).

    `coef` are those of `fit_sigmoids`, `frames` and `tables` those of `tabulate`: panels
    ``start[t]:start[t + 1]`` are those of node t. The bounds of a node without panels are 0 and 1.
    """
    start, edges, series = tables
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, _BLOCK_ROWS):
        for t in range(n_nodes):
            if start[t] == start[t + 1]:
                continue
            centre, scale, slope, level = coef[t, 0], coef[t, 1], coef[t, 2], coef[t, 3]
            for i in range(row, min(row + _BLOCK_ROWS, n)):
                score = min(max(scores[i, t], -LARGEST), LARGEST)
                x = (score - centre) / scale if scale > 0.0 else 0.0
                theta = _sigmoid(level + slope * x if slope != 0.0 else level)
                psi = math.atan((x - frames[t, 0]) / frames[t, 1])
                panel = start[t]
                while panel + 1 < start[t + 1] and edges[panel + 1] <= psi:
                    panel += 1
                end = edges[panel + 1] if panel + 1 < start[t + 1] else 0.5 * np.pi
                place = 2.0 * (psi - edges[panel]) / (end - edges[panel]) - 1.0
                lower[i, t] = min(max(theta - clenshaw(series[panel, 0], place), 0.0), theta)
                upper[i, t] = max(min(theta + clenshaw(series[panel, 1], place), 1.0), theta)
    return lower, upper


@compiled()
def _sigmoid(eta: float) -> float:
    small = math.exp(-abs(eta))
    return (1.0 if eta >= 0.0 else small) / (1.0 + small)
