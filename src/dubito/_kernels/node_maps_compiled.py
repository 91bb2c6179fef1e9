"""Calibration maps of all nodes of a tree in one pass; import inside functions only.

The rows of node t are ``ptr[t]:ptr[t + 1]`` of the packed scores; those of its right side, the
event, begin at ``ptr[t] + middle[t]``, and their weights at ``weight[first[t]]``. A node whose
scores hold nan, or that has none, is left uncalibrated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES, exp_in_place

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    #: Scores, ptr, middle, weight, first.
    Packed: TypeAlias = tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray]
    Targets: TypeAlias = tuple[float, float]
    #: Room for exponentials: values, powers of two, the same as integers.
    Room: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: Objective; gradient by slope and level; Hessian: slope, mixed, level.
    Local: TypeAlias = tuple[float, float, float, float, float, float]

#: Log-odds are kept within this: sums of them along any path are then finite.
LARGEST = 1e300

#: Newton steps after which a fit is given up; ordinary data take five to ten.
_MAX_STEPS = 300

#: Rows that are looked up together, node by node: the node's table then stays at hand.
_ROWS = 64


@compiled()
def _standardise(score: FloatArray, weight: FloatArray, x: FloatArray) -> tuple[float, float]:
    """Write standardised scores to x; return mean and deviation, 0 for constant scores."""
    largest, low, high = 1e-300, np.inf, -np.inf
    for value in score:
        largest = max(largest, abs(value))
        low, high = min(low, value), max(high, value)
    total, centre = 0.0, 0.0
    for i in range(len(score)):
        x[i] = score[i] / largest  # squares of huge scores would overflow
        total += weight[i]
        centre += weight[i] * x[i]
    centre /= total
    spread = 0.0
    for i in range(len(score)):
        spread += weight[i] * (x[i] - centre) ** 2
    spread = math.sqrt(spread / total)
    if high / largest - low / largest <= 1e-13:  # scores that differ by rounding only
        spread = 0.0
    for i in range(len(score)):
        x[i] = (score[i] - centre * largest) / (spread * largest) if spread > 0.0 else 0.0
    return centre * largest, spread * largest


@compiled()
def _targets(x: FloatArray, weight: FloatArray, middle: int, sides: FloatArray) -> Targets:
    """Return what the objective needs of the sides' targets: sums of them, and of them times x."""
    total, sum_tx = 0.0, 0.0
    for i in range(len(x)):
        target = weight[i] * (sides[0] if i < middle else sides[1])
        total += target
        sum_tx += target * x[i]
    return total, sum_tx


@compiled(fastmath={"contract"}, inline="always")
def twice_atanh_ratio(q):  # type: ignore[no-untyped-def]
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


@compiled(fastmath=LANES)
def _expand(
    x: FloatArray, weight: FloatArray, targets: Targets, coef: tuple[float, float], room: Room
) -> Local:
    """Return the cross-entropy up to second order."""
    slope, level = coef
    small, power, bits = room
    n = len(x)
    for i in range(n):
        small[i] = -abs(slope * x[i] + level)
    exp_in_place(small[:n], power[:n], bits[:n])
    loss = -targets[0] * level - targets[1] * slope
    d_level, d_slope = -targets[0], -targets[1]
    dd_slope = dd_mixed = dd_level = 0.0
    for i in range(n):
        eta = slope * x[i] + level
        share = 1.0 / (1.0 + small[i])
        p = weight[i] * (share if eta >= 0.0 else small[i] * share)
        t = small[i] / (2.0 + small[i])  # log(1 + e) = 2 atanh(e / (2 + e))
        loss += weight[i] * (max(eta, 0.0) + t * twice_atanh_ratio(t * t))
        curvature = weight[i] * small[i] * share * share
        d_level += p
        d_slope += p * x[i]
        dd_level += curvature
        dd_mixed += curvature * x[i]
        dd_slope += curvature * x[i] * x[i]
    return loss, d_slope, d_level, dd_slope, dd_mixed, dd_level


@compiled()
def _newton_step(here: Local) -> tuple[float, float]:
    """Return the step to the optimum of the expansion, none in a direction the data do not see."""
    _, g, h, a, b, c = here
    top = 0.5 * (a + c) + math.hypot(0.5 * (a - c), b)
    determinant = a * c - b * b
    if determinant > 1e-14 * top * top:
        return (b * h - c * g) / determinant, (b * g - a * h) / determinant
    if not top > 0.0:
        return 0.0, 0.0
    # Rank one: along the eigenvector of `top`, taken from the column that cancels less.
    u, v = (b, top - a) if a < c else (top - c, b)
    along = -(u * g + v * h) / (top * (u * u + v * v))
    return along * u, along * v


@compiled()
def _fit_sigmoid(
    x: FloatArray, weight: FloatArray, targets: Targets, room: Room
) -> tuple[float, float, float]:
    """Return slope, level and the certificate: the largest gradient for each unit of weight."""
    total = weight.sum()
    slope, level = 0.0, 0.0
    here = _expand(x, weight, targets, (slope, level), room)
    size = max(abs(here[1]), abs(here[2]))
    for _ in range(_MAX_STEPS):
        d_slope, d_level = _newton_step(here)
        there = _expand(x, weight, targets, (slope + d_slope, level + d_level), room)
        # Below rounding of the objective only the gradient can tell whether a step still helps.
        if -(here[1] * d_slope + here[2] * d_level) <= 1e-12 * (total + abs(here[0])):
            if max(abs(there[1]), abs(there[2])) >= 0.5 * size:
                break
        else:
            while there[0] > here[0] and max(abs(d_slope), abs(d_level)) > 1e-12:
                d_slope, d_level = 0.5 * d_slope, 0.5 * d_level
                there = _expand(x, weight, targets, (slope + d_slope, level + d_level), room)
        slope, level, here = slope + d_slope, level + d_level, there
        size = max(abs(here[1]), abs(here[2]))
    return slope, level, size / total


@compiled()
def fit_sigmoids(packed: Packed, sides: FloatArray) -> FloatArray:
    """Fit a sigmoid at each node; return (centre, scale, slope, level, gradient) of each.

    `sides` are the targets of the left and of the right side of each node, (nodes, 2). Log-odds are
    slope (s - centre) / scale + level; an uncalibrated node has the identity.
    """
    scores, ptr, middle, weight, first = packed
    n_nodes = len(middle)
    out = np.empty((n_nodes, 5))
    longest = np.diff(ptr).max() if n_nodes > 0 else 0
    buffer, power = np.empty(longest), np.empty(longest)
    room = (np.empty(longest), power, power.view(np.int64))
    for t in range(n_nodes):
        n = ptr[t + 1] - ptr[t]
        score, w = scores[ptr[t] : ptr[t + 1]], weight[first[t] : first[t] + n]
        out[t] = 0.0, 1.0, 1.0, 0.0, 0.0
        if n > 0 and not np.isnan(score).any():
            x = buffer[:n]
            out[t, 0], out[t, 1] = _standardise(score, w, x)
            targets = _targets(x, w, middle[t], sides[t])
            out[t, 2], out[t, 3], out[t, 4] = _fit_sigmoid(x, w, targets, room)
    return out


@compiled()
def affine_log_odds(scores: FloatArray, coef: FloatArray) -> FloatArray:
    """Return slope (s - centre) / scale + level within ±LARGEST, (n, nodes).

    `coef` are the columns of `fit_sigmoids`; a scale of 0 says that the slope is nothing.
    """
    out = np.empty(scores.shape)
    for i in range(scores.shape[0]):
        for t in range(scores.shape[1]):
            score = min(max(scores[i, t], -LARGEST), LARGEST)
            value = coef[t, 3]
            if coef[t, 1] > 0.0 and coef[t, 2] != 0.0:
                value += coef[t, 2] * ((score - coef[t, 0]) / coef[t, 1])
            out[i, t] = min(max(value, -LARGEST), LARGEST)
    return out


@compiled()
def pool_ties(packed: Packed) -> tuple[FloatArray, IntArray]:
    """Gather the distinct scores of each node, ascending, with the weights of both sides.

    Columns ``ptr[t]:ptr[t] + count[t]`` of the first result are those of node t: scores, successes
    (weight of the right side), failures. An uncalibrated node has none.
    """
    scores, ptr, middle, weight, first = packed
    pools = np.zeros((3, len(scores)))
    count = np.zeros(len(middle), np.int64)
    for t in range(len(middle)):
        score = scores[ptr[t] : ptr[t + 1]]
        if np.isnan(score).any():
            continue
        last = ptr[t] - 1
        for i in np.argsort(score):
            if last < ptr[t] or score[i] > pools[0, last]:
                last += 1
                pools[0, last] = score[i]
            pools[1 if i >= middle[t] else 2, last] += weight[first[t] + i]
        count[t] = last + 1 - ptr[t]
    return pools, count


@compiled()
def _pool_violators(k: FloatArray, r: FloatArray, starts: IntArray) -> int:
    """Pool neighbours whose shares do not rise, in place; return the number of blocks.

    Block b begins at score ``starts[b]`` and has k[b] successes and r[b] failures.
    """
    blocks = 0
    for i in range(len(k)):
        starts[blocks], k[blocks], r[blocks] = i, k[i], r[i]
        while blocks > 0 and _share(k, r, blocks - 1) >= _share(k, r, blocks):
            blocks -= 1
            k[blocks] += k[blocks + 1]
            r[blocks] += r[blocks + 1]
        blocks += 1
    starts[blocks] = len(k)
    return blocks


@compiled(inline="always")
def _share(k: FloatArray, r: FloatArray, block: int) -> float:
    return k[block] / (k[block] + r[block])


@compiled()
def isotonic_knots(
    pools: FloatArray, ptr: IntArray, count: IntArray, smoothing: float
) -> tuple[FloatArray, IntArray]:
    """Fit isotonic values at each node; return knots and values, (2, all), and their numbers.

    Columns ``ptr[t]:ptr[t] + used[t]`` are those of node t: both ends of each block, for between
    them the value does not change.
    """
    knots = np.empty((2, pools.shape[1]))
    used = np.zeros(len(count), np.int64)
    for t in range(len(count)):
        low, m = ptr[t], count[t]
        if m == 0:
            continue
        k, r = pools[1, low : low + m].copy(), pools[2, low : low + m].copy()
        k[0] += smoothing
        r[m - 1] += smoothing
        starts = np.empty(m + 1, np.int64)
        for block in range(_pool_violators(k, r, starts)):
            left, right = starts[block], starts[block + 1] - 1
            for end in range(left, right + 1, max(right - left, 1)):
                knots[0, low + used[t]] = pools[0, low + end]
                knots[1, low + used[t]] = _share(k, r, block)
                used[t] += 1
    return knots, used


@compiled()
def _number_below(knots: FloatArray, score: float) -> int:
    """Return how many of ascending knots lie strictly below a score."""
    low, high = 0, len(knots)
    while low < high:
        middle = (low + high) // 2
        if knots[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def _interpolate(score: float, knots: FloatArray, values: FloatArray) -> float:
    """Interpolate linearly between ascending knots, flat beyond them; `values` do not decrease."""
    right = min(max(_number_below(knots, score), 1), len(knots) - 1)
    left = max(right - 1, 0)
    gap = knots[right] - knots[left]
    score = min(max(score, knots[0]), knots[-1])
    part = (score - knots[left]) / gap if gap > 0.0 else 0.0
    low, high = values[left], values[right]
    return min(max(low + part * (high - low), low), high)


@compiled()
def isotonic_log_odds(
    scores: FloatArray, knots: FloatArray, start: IntArray, cut: FloatArray
) -> FloatArray:
    """Return the log-odds of interpolated values, kept `cut` off 0 and 1; (n, nodes).

    Columns ``start[t]:start[t + 1]`` of `knots` are those of node t; one without any keeps its
    scores.
    """
    n, n_nodes = scores.shape
    out = np.empty((n, n_nodes))
    for row in range(0, n, _ROWS):
        for t in range(n_nodes):
            places = knots[0, start[t] : start[t + 1]]
            values = knots[1, start[t] : start[t + 1]]
            for i in range(row, min(row + _ROWS, n)):
                score = min(max(scores[i, t], -LARGEST), LARGEST)
                if len(places) > 0:
                    share = _interpolate(score, places, values)
                    share = min(max(share, cut[t]), 1.0 - cut[t])
                    score = math.log(share / (1.0 - share))
                out[i, t] = score
    return out


@compiled()
def step_bounds(
    scores: FloatArray, knots: FloatArray, start: IntArray, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the right side, each (n, nodes).

    ``knots[start[t]:start[t + 1]]`` are those of node t; its steps, one more, begin at
    ``start[t] + t``: belief of a score with j knots at or left of it, plausibility of one with j
    knots strictly left of it. A node without knots knows nothing.
    """
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, _ROWS):
        for t in range(n_nodes):
            places = knots[start[t] : start[t + 1]]
            if len(places) == 0:
                continue
            for i in range(row, min(row + _ROWS, n)):
                below = _number_below(places, scores[i, t])
                meets = below < len(places) and places[below] == scores[i, t]
                step = start[t] + t + below
                lower[i, t] = steps[0, step + 1 if meets else step]
                upper[i, t] = steps[1, step]
    return lower, upper
