"""Isotonic fits of all nodes of a tree, and look-ups of their values and bounds.

Rows of nodes are packed one node after the other (`node_sigmoids_compiled` describes the packing).
Adjacent violators are pooled by `dubito._numerics.isotonic_compiled`. Ties and interpolation are
those of `dubito._numerics.isotonic`, which works on one sample with numpy: here one call treats
thousands of small nodes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.isotonic_compiled import suffix_chains
from dubito._numerics.jit import compiled
from dubito._numerics.logistic_fit import LARGEST

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies._kernels.node_sigmoids_compiled import PackedRows

#: Rows looked up together, node by node, so that the node's table stays in the processor's cache.
_CHUNK_ROWS = 64


@compiled()
def pool_ties_of_nodes(packed: PackedRows) -> tuple[FloatArray, IntArray]:
    """Return the distinct scores of each node, ascending, with the weights of both sides.

    Columns ``start[t]:start[t] + count[t]`` of the first result are those of node t: scores,
    successes (weight of the right side), failures. An uncalibrated node has none. The second result
    is `count`.
    """
    scores, start, n_left, weight, weight_start = packed
    pools = np.zeros((3, len(scores)))
    count = np.zeros(len(n_left), np.int64)
    for t in range(len(n_left)):
        score = scores[start[t] : start[t + 1]]
        if np.isnan(score).any():
            continue
        last = start[t] - 1
        for i in np.argsort(score):
            if last < start[t] or score[i] > pools[0, last]:
                last += 1
                pools[0, last] = score[i]
            pools[1 if i >= n_left[t] else 2, last] += weight[weight_start[t] + i]
        count[t] = last + 1 - start[t]
    return pools, count


@compiled()
def isotonic_knots(
    pools: FloatArray, start: IntArray, count: IntArray, smoothing: float
) -> tuple[FloatArray, IntArray]:
    """Return knots and values of the isotonic fit of each node, (2, all), and their numbers.

    Columns ``start[t]:start[t] + used[t]`` are those of node t: both ends of each block, since the
    value is constant between them. `smoothing` is a success added to the first score of a node and
    a failure added to its last.
    """
    knots = np.empty((2, pools.shape[1]))
    used = np.zeros(len(count), np.int64)
    for t in range(len(count)):
        low, m = start[t], count[t]
        if m == 0:
            continue
        k, r = pools[1, low : low + m].copy(), pools[2, low : low + m].copy()
        k[0] += smoothing
        r[m - 1] += smoothing
        # Products of tiny weights underflow; scaling by a power of two changes no digit.
        unit = math.ldexp(1.0, min(-math.frexp(max(k.max(), r.max()))[1], 1000))
        follow, k, r = suffix_chains(unit * k, unit * r)
        left = 0
        while left < m:
            right = follow[left] - 1
            for end in range(left, right + 1, max(right - left, 1)):
                knots[0, low + used[t]] = pools[0, low + end]
                knots[1, low + used[t]] = k[left] / (k[left] + r[left])
                used[t] += 1
            left = right + 1
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
    """Return the value at a score, linear between ascending knots and constant beyond them.

    `values` do not decrease. Knots are within ±`LARGEST`, so their differences do not overflow.
    """
    right = min(max(_number_below(knots, score), 1), len(knots) - 1)
    left = max(right - 1, 0)
    gap = knots[right] - knots[left]
    score = min(max(score, knots[0]), knots[-1])
    fraction = (score - knots[left]) / gap if gap > 0.0 else 0.0
    low, high = values[left], values[right]
    return min(max(low + fraction * (high - low), low), high)


@compiled()
def isotonic_log_odds(
    scores: FloatArray, knots: FloatArray, start: IntArray, floor: FloatArray
) -> FloatArray:
    """Return the log-odds of interpolated values, clipped to [floor, 1 - floor], (n, nodes).

    Columns ``start[t]:start[t + 1]`` of `knots` are those of node t; one without any keeps its
    scores.
    """
    n, n_nodes = scores.shape
    out = np.empty((n, n_nodes))
    for row in range(0, n, _CHUNK_ROWS):
        for t in range(n_nodes):
            node_knots = knots[0, start[t] : start[t + 1]]
            values = knots[1, start[t] : start[t + 1]]
            for i in range(row, min(row + _CHUNK_ROWS, n)):
                score = min(max(scores[i, t], -LARGEST), LARGEST)
                if len(node_knots) > 0:
                    value = _interpolate(score, node_knots, values)
                    value = min(max(value, floor[t]), 1.0 - floor[t])
                    score = math.log(value / (1.0 - value))
                out[i, t] = score
    return out


@compiled()
def step_bounds(
    scores: FloatArray, knots: FloatArray, start: IntArray, steps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the right side, each (n, nodes).

    ``knots[start[t]:start[t + 1]]`` are those of node t; its steps, one more, begin at
    ``start[t] + t``: belief of a score with j knots at or left of it, plausibility of one with j
    knots strictly left of it. The bounds of a node without knots are 0 and 1.
    """
    n, n_nodes = scores.shape
    lower, upper = np.zeros((n, n_nodes)), np.ones((n, n_nodes))
    for row in range(0, n, _CHUNK_ROWS):
        for t in range(n_nodes):
            node_knots = knots[start[t] : start[t + 1]]
            if len(node_knots) == 0:
                continue
            for i in range(row, min(row + _CHUNK_ROWS, n)):
                below = _number_below(node_knots, scores[i, t])
                is_knot = below < len(node_knots) and node_knots[below] == scores[i, t]
                step = start[t] + t + below
                lower[i, t] = steps[0, step + 1 if is_knot else step]
                upper[i, t] = steps[1, step]
    return lower, upper
