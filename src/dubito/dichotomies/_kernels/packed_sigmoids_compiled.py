r"""Sigmoids of all nodes of a tree, fitted in one pass over packed rows (Platt 1999).

The fit is that of `dubito._numerics.logistic_fit` for one score and an intercept, without a ridge:
thousands of small fits, where the calls of numpy would cost more than the arithmetic.

**Packed rows.** The rows of node t are ``ptr[t]:ptr[t + 1]`` of the packed scores; those of its
right side, the event, begin at ``ptr[t] + middle[t]``, and their weights at ``weight[first[t]]``.
A node whose scores hold nan, or that has none, is left uncalibrated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.logistic_fit import LARGEST
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place, log_one_plus

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    #: Scores, ptr, middle, weight, first.
    Packed: TypeAlias = tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray]
    Targets: TypeAlias = tuple[float, float]
    #: Buffers of `exp_in_place`: values, powers of two, the same memory as integers.
    ExpBuffers: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: Objective; gradient by slope and level; Hessian: slope, mixed, level.
    Local: TypeAlias = tuple[float, float, float, float, float, float]

#: Newton steps after which a fit is given up; ordinary data take five to ten.
_MAX_STEPS = 300


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


@compiled(fastmath=SIMD_FLAGS)
def _expand(
    x: FloatArray,
    weight: FloatArray,
    targets: Targets,
    coef: tuple[float, float],
    buffers: ExpBuffers,
) -> Local:
    """Return the cross-entropy up to second order."""
    slope, level = coef
    small, power, bits = buffers
    n = len(x)
    for i in range(n):
        small[i] = -abs(slope * x[i] + level)
    exp_in_place(small[:n], power[:n], bits[:n])
    loss = -targets[0] * level - targets[1] * slope
    d_level, d_slope = -targets[0], -targets[1]
    dd_slope = dd_mixed = dd_level = 0.0
    for i in range(n):
        eta = slope * x[i] + level
        fraction = 1.0 / (1.0 + small[i])
        p = weight[i] * (fraction if eta >= 0.0 else small[i] * fraction)
        loss += weight[i] * (max(eta, 0.0) + log_one_plus(small[i]))
        curvature = weight[i] * small[i] * fraction * fraction
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
    x: FloatArray, weight: FloatArray, targets: Targets, buffers: ExpBuffers
) -> tuple[float, float, float]:
    """Return slope, level and the certificate: the largest gradient for each unit of weight."""
    total = weight.sum()
    slope, level = 0.0, 0.0
    here = _expand(x, weight, targets, (slope, level), buffers)
    size = max(abs(here[1]), abs(here[2]))
    for _ in range(_MAX_STEPS):
        d_slope, d_level = _newton_step(here)
        there = _expand(x, weight, targets, (slope + d_slope, level + d_level), buffers)
        # Below rounding of the objective only the gradient can tell whether a step still helps.
        if -(here[1] * d_slope + here[2] * d_level) <= 1e-12 * (total + abs(here[0])):
            if max(abs(there[1]), abs(there[2])) >= 0.5 * size:
                break
        else:
            while there[0] > here[0] and max(abs(d_slope), abs(d_level)) > 1e-12:
                d_slope, d_level = 0.5 * d_slope, 0.5 * d_level
                there = _expand(x, weight, targets, (slope + d_slope, level + d_level), buffers)
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
    buffers = (np.empty(longest), power, power.view(np.int64))
    for t in range(n_nodes):
        n = ptr[t + 1] - ptr[t]
        score, w = scores[ptr[t] : ptr[t + 1]], weight[first[t] : first[t] + n]
        out[t] = 0.0, 1.0, 1.0, 0.0, 0.0
        if n > 0 and not np.isnan(score).any():
            x = buffer[:n]
            out[t, 0], out[t, 1] = _standardise(score, w, x)
            targets = _targets(x, w, middle[t], sides[t])
            out[t, 2], out[t, 3], out[t, 4] = _fit_sigmoid(x, w, targets, buffers)
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
