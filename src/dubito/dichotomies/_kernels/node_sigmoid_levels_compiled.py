"""Bounds of the sigmoids of all tree nodes at a confidence level, from tables over the score.

The ends of the two cuts whose hull bounds a probability (`dubito._numerics.logistic_level`) are
tabulated over the angle of the score (`node_sigmoid_tables_compiled`); `level_ends` computes them
exactly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.logistic_level_compiled import level_ends
from dubito._numerics.vector_math_compiled import sigmoid
from dubito.dichotomies._kernels.node_sigmoid_tables_compiled import (
    CHECKS,
    CHUNK_ROWS,
    chebyshev,
    clenshaw,
    find_panel,
    standardised_score,
)

if TYPE_CHECKING:
    from dubito._numerics.logistic_profile_compiled import CurveLikelihood, Interval, Model
    from dubito._typing import FloatArray
    from dubito.dichotomies._kernels.node_sigmoid_tables_compiled import Tables

    #: A likelihood, and its optimum with the Hessian there.
    Fit: TypeAlias = tuple[CurveLikelihood, Model]

#: Degree of the Chebyshev series on a panel. A panel is halved until its last coefficients, and its
#: errors at `CHECKS`, are below `_CONVERGED`.
DEGREE = 20
_CONVERGED = 1e-8
#: Panels are not halved below this width: bounds there are the widest on the panel.
_NARROWEST = 1e-3

#: Within this distance of the left edge of a panel, bounds are the hull of those of the panel and
#: of the one before: the ends of cuts jump at the scores of `gap`, which are edges.
_BESIDE = 1e-9

_POINTS, _TO_SERIES = chebyshev(DEGREE + 1)
_ALL_POINTS = np.concatenate((_POINTS, CHECKS))


@compiled()
def _ends_at(
    psi: FloatArray,
    units: tuple[float, float],
    light: Fit,
    raw: Fit,
    root_quantile: float,
) -> FloatArray:
    """Return probabilities at the ends of both cuts at n angles, (n, 4): lower, upper of each."""
    queries = np.empty(len(psi))
    for i in range(len(psi)):
        queries[i] = units[0] + units[1] * math.tan(psi[i])
    ends = level_ends(light, raw, queries, root_quantile)
    for i in range(len(psi)):
        for e in range(4):
            ends[i, e] = sigmoid(ends[i, e])
    return ends


@compiled()
def _panel_series(values: FloatArray) -> tuple[FloatArray, float]:
    """Return the series of values at `_ALL_POINTS` of a panel, (4, DEGREE + 1), and its error."""
    series = np.ascontiguousarray((_TO_SERIES @ values[: DEGREE + 1]).T)
    error = np.abs(series[:, DEGREE - 2 :]).max()
    for i in range(DEGREE + 1, len(values)):
        for e in range(4):
            error = max(error, abs(clenshaw(series[e], _ALL_POINTS[i]) - values[i, e]))
    return series, error


@compiled()
def _widest(values: FloatArray) -> FloatArray:
    """Return series of the smallest lower and the largest upper ends on a panel: constants."""
    series = np.zeros((4, DEGREE + 1))
    for e in range(4):
        series[e, 0] = values[:, e].min() if e % 2 == 0 else values[:, e].max()
    return series


@compiled()
def tabulate_level_ends(
    light: Fit, raw: Fit, gap: FloatArray, root_quantile: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the table of the ends of the cuts of one curve, over all angles.

    `root_quantile` is the square root of the chi-square quantile of the cuts. `gap` are the two
    scores, ascending, between which a threshold separates the sides; empty where they overlap. At
    these scores the end of the raw likelihood's cut jumps to infinity.

    Returns
    -------
    units : array (2,)
        Mean and deviation that define angles.
    edges : array (panels,)
        The left edge of each panel, ascending.
    series : array (panels, 4, DEGREE + 1)
        Chebyshev series on each panel: lower and upper end of the first cut, of the second.
    """
    hessian = light[1][1]
    mean = hessian[0, 1] / hessian[0, 0]
    variance = hessian[1, 1] / hessian[0, 0] - mean * mean
    quarter = 0.25 * np.pi
    edges, panels = [0.0 for _ in range(0)], [np.empty((4, 0)) for _ in range(0)]
    units = (mean, math.sqrt(max(variance, 0.0)))
    breaks = [-2 * quarter, -quarter, 0.0, quarter, 2 * quarter]
    if variance > 1e-24:
        breaks.extend([math.atan((x - mean) / units[1]) for x in gap])
    breaks.sort()
    stack = [(breaks[i], breaks[i + 1]) for i in range(len(breaks) - 2, -1, -1)]
    if not variance > 1e-24:  # all scores are equal, of angle 0
        units = (0.0, 1.0)
        stack.clear()
        edges.append(-2 * quarter)
        panels.append(_widest(_ends_at(np.zeros(1), units, light, raw, root_quantile)))
    while len(stack) > 0:
        left, right = stack.pop()
        if not right > left:
            continue
        middle, half = 0.5 * (left + right), 0.5 * (right - left)
        values = _ends_at(middle + half * _ALL_POINTS, units, light, raw, root_quantile)
        series, error = _panel_series(values)
        if error < _CONVERGED or right - left < _NARROWEST:
            edges.append(left)
            panels.append(_widest(values) if not error < _CONVERGED else series)
        else:
            stack.append((middle, right))
            stack.append((left, middle))
    table = np.empty((len(panels), 4, DEGREE + 1))
    for i in range(len(panels)):
        table[i] = panels[i]
    return np.array(units), np.array(edges), table


@compiled()
def _hull(series: FloatArray, u: float) -> Interval:
    """Return the smallest interval that contains both cuts, from the Chebyshev series at u."""
    low = min(clenshaw(series[0], u), clenshaw(series[2], u))
    return low, max(clenshaw(series[1], u), clenshaw(series[3], u))


@compiled()
def sigmoid_level_bounds(
    scores: FloatArray, coef: FloatArray, tables: Tables
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the right side at a confidence level, each (n, nodes).

    `coef` are those of `fit_sigmoids`, `tables` those of `tabulate_level_ends`. A node without
    panels has the bounds 0 and 1.
    """
    start, _, edges, series = tables
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, CHUNK_ROWS):
        for t in range(n_nodes):
            if start[t] == start[t + 1]:
                continue
            for i in range(row, min(row + CHUNK_ROWS, n)):
                x = standardised_score(scores[i, t], coef[t])
                psi, panel, u = find_panel(x, t, tables)
                low, high = _hull(series[panel], u)
                if panel > start[t] and psi - edges[panel] < _BESIDE:
                    low_before, high_before = _hull(series[panel - 1], 1.0)
                    low, high = min(low, low_before), max(high, high_before)
                lower[i, t] = min(max(min(low, high), 0.0), 1.0)  # rounding may cross them
                upper[i, t] = max(min(max(low, high), 1.0), 0.0)
    return lower, upper
