r"""Belief and plausibility of many logistic curves, tabulated; import inside functions only.

The same numbers as `logistic_compiled`, for thousands of curves at thousands of scores. With
curvature-weighted mean m and deviation d of a curve's rows a score x has the angle
:math:`\psi=\arctan((x-m)/d)`, and in these units the likelihood at its optimum is round: the
log-odds at x are :math:`\hat\eta+\tau s` with :math:`\tau=1/(h\cos\psi)` their deviation, h² the
sum of curvatures and s the part of the step from the optimum that points along
:math:`(\cos\psi,\sin\psi)`. What is left to maximise over is the part across, b.

As functions of ψ the integrals of the contour are smooth on the whole half circle, infinite scores
included: a few panels of Chebyshev series hold them for every score, and a look-up costs no more
than a few dozen products. Panels are halved until their series have converged.

Along s the contour is exp(-ρ²/2) with ρ/s nearly constant, exactly so for a normal likelihood: ρ/s
is held as a short series too, of a dozen profiles on a panel, however steep the curve.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._kernels.condensed_rows_compiled import condense
from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES, exp_in_place
from dubito._kernels.node_maps_compiled import LARGEST

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    #: (4, terms): weights, log-odds at the optimum, how these change along and across the query.
    Rows: TypeAlias = FloatArray
    #: Room for exponentials: values, powers of two, the same as integers.
    Room: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: Sums of targets along and across the query, and the loss at the optimum without them.
    Totals: TypeAlias = tuple[float, float, float]
    #: A point (s, b) of the profile and db/ds there.
    Path: TypeAlias = tuple[float, float, float]
    #: Start, edges and series of panels.
    Tables: TypeAlias = tuple[IntArray, FloatArray, FloatArray]
    Pair: TypeAlias = tuple[float, float]

#: Log-odds, and falls of the log-likelihood, beyond which less than 2e-11 is left to integrate.
_FAR = 25.0

#: Profiles on a panel of s and its width: the contour falls to 0.002, or little more, on it.
_PROFILES = 14
_WIDTH = 3.55

#: Deviation of log-odds below which rows are so many that one panel does for two.
_SURE = 0.15

#: What the last coefficients of ρ/s may move a contour by.
_UNSURE = 3e-9

#: Nodes of the integral over log-odds, one set for each stretch of them.
_LEGENDRE, _SHARES = np.polynomial.legendre.leggauss(12)
_STRETCH = 4.0

#: Degree of the series over angles, and what its last coefficients and its misses must be below.
DEGREE = 24
_CONVERGED = 3e-9
_NARROWEST = 1e-4

#: Rows that are looked up together, node by node: the node's table then stays at hand.
_ROWS = 64


def _chebyshev(size: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes of a series, falling, and the matrix that makes it of values there."""
    angles = (np.arange(size) + 0.5) * np.pi / size
    to_series = np.cos(np.outer(np.arange(size), angles)) * (2 / size)
    to_series[0] /= 2
    return np.cos(angles), to_series


_ALONG, _TO_ROOTS = _chebyshev(_PROFILES)
_PLACES, _TO_SERIES = _chebyshev(DEGREE + 1)
_CHECKS = np.array([-0.97, -0.42, 0.29, 0.93])


@compiled(fastmath=LANES)
def _expand(rows: Rows, totals: Totals, s: float, b: float, room: Room) -> tuple[float, float, float]:
    """Return the fall of the log-likelihood at (s, b), and its two derivatives by b."""
    small, power, bits = room
    weight, base, along, across = rows[0], rows[1], rows[2], rows[3]
    n = len(weight)
    for j in range(n):
        small[j] = -abs(base[j] + s * along[j] + b * across[j])
    exp_in_place(small, power, bits)
    fall = -totals[0] * s - totals[1] * b - totals[2]
    first, second = -totals[1], 0.0
    for j in range(n):
        eta = base[j] + s * along[j] + b * across[j]
        share = 1.0 / (1.0 + small[j])
        p = share if eta >= 0.0 else small[j] * share
        t = small[j] / (2.0 + small[j])  # log(1 + e) = 2 atanh(e / (2 + e))
        fall += weight[j] * ((eta if eta >= 0.0 else 0.0) + t * _twice_atanh_ratio(t * t))
        first += weight[j] * across[j] * p
        second += weight[j] * across[j] * across[j] * small[j] * share * share
    return fall, first, second


@compiled(fastmath={"contract"}, inline="always")
def _twice_atanh_ratio(q):  # type: ignore[no-untyped-def]
    """Return 2 atanh(t) / t for q = t² of at most 1/9, to rounding."""
    p = 2.0 / 29.0
    p = p * q + 2.0 / 27.0
    p = p * q + 2.0 / 25.0
    p = p * q + 2.0 / 23.0
    p = p * q + 2.0 / 21.0
    p = p * q + 2.0 / 19.0
    p = p * q + 2.0 / 17.0
    p = p * q + 2.0 / 15.0
    p = p * q + 2.0 / 13.0
    p = p * q + 2.0 / 11.0
    p = p * q + 2.0 / 9.0
    p = p * q + 2.0 / 7.0
    p = p * q + 2.0 / 5.0
    p = p * q + 2.0 / 3.0
    return p * q + 2.0


@compiled()
def _profile(rows: Rows, totals: Totals, s: float, b: float, room: Room) -> Pair:
    """Maximise over b by safeguarded Newton steps; return b and the fall of the log-likelihood."""
    low, high, reach = -np.inf, np.inf, 8.0
    fall = np.inf
    for _ in range(200):
        fall, first, second = _expand(rows, totals, s, b, room)
        gain = first * first  # in units of twice the curvature
        # What so short a step gains is known to its third power.
        if gain <= 1e-6 * second:
            return b - first / second, fall - 0.5 * gain / second
        if first > 0.0:
            high = b
        else:
            low = b
        step = -first / second if second > 1e-300 else math.copysign(np.inf, -first)
        if abs(step) > reach:  # far out, where the curve is straight, Newton's step means little
            step = math.copysign(reach, step)
            reach *= 2.0
        new = b + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b, fall


@compiled()
def _root_series(
    rows: Rows, totals: Totals, ends: Pair, path: Path, room: Room
) -> tuple[FloatArray, Path]:
    """Return the series of ρ/s over a panel of s, and the path at its end."""
    s_last, b_last, tilt = path
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    roots = np.empty(_PROFILES)
    for i in range(_PROFILES - 1, -1, -1):
        s = middle + half * _ALONG[i]
        b, fall = _profile(rows, totals, s, b_last + tilt * (s - s_last), room)
        tilt = (b - b_last) / (s - s_last)
        s_last, b_last = s, b
        roots[i] = math.sqrt(2.0 * max(fall, 0.0)) / s
    return _TO_ROOTS @ roots, (s_last, b_last, tilt)


@compiled()
def _panel(series: FloatArray, ends: Pair, line: Pair) -> float:
    """Integrate pl(η)σ'(η) over a panel of s."""
    best, deviation = line
    pieces = 1 + int(deviation * (ends[1] - ends[0]) / _STRETCH)
    width = (ends[1] - ends[0]) / pieces
    area = 0.0
    for piece in range(pieces):
        middle = ends[0] + (piece + 0.5) * width
        for i in range(len(_LEGENDRE)):
            s = middle + 0.5 * width * _LEGENDRE[i]
            root = s * _clenshaw(series, 2.0 * (s - ends[0]) / (ends[1] - ends[0]) - 1.0)
            small = math.exp(-abs(best + deviation * s))
            area += _SHARES[i] * math.exp(-0.5 * root * root) * small / (1.0 + small) ** 2
    return 0.5 * width * deviation * area


@compiled()
def _one_side(rows: Rows, totals: Totals, line: Pair, room: Room) -> float:
    """Integrate pl(η)σ'(η) from the estimate upwards; `line` are estimate and deviation of η."""
    best, deviation = line
    here, end = max(-_FAR - best, 0.0) / deviation, (_FAR - best) / deviation
    path = (0.0, 0.0, 0.0)
    if here > 0.0:
        b, fall = _profile(rows, totals, here, 0.0, room)
        path = (here, b, b / here)
        if fall > _FAR:
            return 0.0
    area, width = 0.0, _WIDTH if deviation > _SURE else 2.0 * _WIDTH
    while here < end:
        stop = min(here + width, end)
        series, after = _root_series(rows, totals, (here, stop), path, room)
        # A share of ρ moves the contour by ρ² exp(-ρ²/2) of it, most at ρ² = 2.
        root = max(here * _clenshaw(series, -1.0), 1.4142135623730951)
        unsure = max(abs(series[_PROFILES - 1]), abs(series[_PROFILES - 2])) / series[0]
        unsure *= root * root * math.exp(-0.5 * root * root)
        unsure *= min(1.0, 0.25 * deviation * (stop - here))  # of the integral of the density
        if unsure > _UNSURE and width > 1e-3:
            width = 0.5 * (stop - here)
            continue
        area += _panel(series, (here, stop), line)
        here, path = stop, after
        if unsure < 1e-3 * _UNSURE:
            width = 2.0 * width
        root = stop * _clenshaw(series, 1.0)
        if 0.5 * root * root + max(best + deviation * stop, 0.0) > _FAR:
            break
    return area


@compiled()
def _integrals(
    psi: float, points: FloatArray, totals: FloatArray, optimum: FloatArray, room: Room
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
        least += points[1, j] * (
            max(rows[1, j], 0.0) + math.log1p(math.exp(-abs(rows[1, j])))
        )
    along, across = (c * totals[0] + s * totals[1]) / h, (c * totals[1] - s * totals[0]) / h
    best, deviation = level + slope * s / c, 1.0 / (h * c)
    above = _one_side(rows, (along, across, least), (best, deviation), room)
    rows[2] *= -1.0  # downwards is upwards the other way round
    below = _one_side(rows, (-along, across, least), (-best, deviation), room)
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
def _angle_series(ends: Pair, points: FloatArray, totals: FloatArray, optimum: FloatArray, room: Room) -> tuple[FloatArray, float]:
    """Return the series of both integrals over a panel of angles, and how far they may be off."""
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    values = np.empty((DEGREE + 1, 2))
    for i in range(DEGREE + 1):
        values[i] = _integrals(middle + half * _PLACES[i], points, totals, optimum, room)
    series = np.ascontiguousarray((_TO_SERIES @ values).T)
    missed = np.abs(series[:, DEGREE - 2 :]).max()
    for place in _CHECKS:
        if missed > _CONVERGED:
            break
        below, above = _integrals(middle + half * place, points, totals, optimum, room)
        missed = max(missed, abs(_clenshaw(series[0], place) - below))
        missed = max(missed, abs(_clenshaw(series[1], place) - above))
    return series, missed


@compiled()
def _steepest(points: FloatArray, totals: FloatArray, optimum: FloatArray) -> float:
    """Return a slope that no coefficients exceed whose log-likelihood is worth a look."""
    level, slope, h = optimum
    power = np.empty(points.shape[1])
    room = (np.empty(len(power)), power, power.view(np.int64))
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
            b, fall = _profile(rows, sums, s, b, room)
            if fall > _FAR:
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
    power = np.empty(rows.shape[1])
    room = (np.empty(len(power)), power, power.view(np.int64))
    quarter = 0.25 * np.pi
    stack = [(quarter, 2 * quarter), (0.0, quarter), (-quarter, 0.0), (-2 * quarter, -quarter)]
    edges, panels = [0.0 for _ in range(0)], [np.empty((2, 0)) for _ in range(0)]
    if constant:  # every score is the same one, of angle 0
        stack.clear()
        series = np.zeros((2, DEGREE + 1))
        series[:, 0] = _integrals(0.0, rows, sums, best, room)
        edges.append(-2 * quarter)
        panels.append(series)
    while len(stack) > 0:
        left, right = stack.pop()
        series, missed = _angle_series((left, right), rows, sums, best, room)
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
def _clenshaw(series: FloatArray, x: float) -> float:
    """Return a Chebyshev series at x."""
    ahead = after = 0.0
    for k in range(len(series) - 1, 0, -1):
        ahead, after = series[k] + 2.0 * x * ahead - after, ahead
    return series[0] + x * ahead - after


@compiled()
def sigmoid_bounds(
    scores: FloatArray, coef: FloatArray, frames: FloatArray, tables: Tables
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the right side, each (n, nodes).

    `coef` are those of `fit_sigmoids`, `frames` and `tables` those of `tabulate`: panels
    ``start[t]:start[t + 1]`` are those of node t. A node without panels knows nothing.
    """
    start, edges, series = tables
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, _ROWS):
        for t in range(n_nodes):
            if start[t] == start[t + 1]:
                continue
            centre, scale, slope, level = coef[t, 0], coef[t, 1], coef[t, 2], coef[t, 3]
            for i in range(row, min(row + _ROWS, n)):
                score = min(max(scores[i, t], -LARGEST), LARGEST)
                x = (score - centre) / scale if scale > 0.0 else 0.0
                theta = _sigmoid(level + slope * x if slope != 0.0 else level)
                psi = math.atan((x - frames[t, 0]) / frames[t, 1])
                panel = start[t]
                while panel + 1 < start[t + 1] and edges[panel + 1] <= psi:
                    panel += 1
                end = edges[panel + 1] if panel + 1 < start[t + 1] else 0.5 * np.pi
                place = 2.0 * (psi - edges[panel]) / (end - edges[panel]) - 1.0
                lower[i, t] = min(max(theta - _clenshaw(series[panel, 0], place), 0.0), theta)
                upper[i, t] = max(min(theta + _clenshaw(series[panel, 1], place), 1.0), theta)
    return lower, upper


@compiled()
def _sigmoid(eta: float) -> float:
    small = math.exp(-abs(eta))
    return (1.0 if eta >= 0.0 else small) / (1.0 + small)
