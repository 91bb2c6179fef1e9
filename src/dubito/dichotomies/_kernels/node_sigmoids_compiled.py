r"""Sigmoids of all nodes of a tree, fitted in one pass over packed rows (Platt 1999).

The fit is that of `dubito._numerics.logistic_fit` for one score and an intercept, without a ridge.
There numpy fits any number of coefficients, with sign constraints, and does not load numba; here
two coefficients are written out, since thousands of small fits would spend their time in calls of
numpy.

**Packed rows.** The rows of node t are ``start[t]:start[t + 1]`` of the packed scores; those of its
right side, the event, begin at ``start[t] + n_left[t]``; the weights of node t begin at
``weight[weight_start[t]]``. A node whose scores contain nan, or that has no rows, is left
uncalibrated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.logistic_fit import LARGEST
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    exp_buffers,
    exp_in_place,
    softplus_terms,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

    #: Packed rows: scores, start, n_left, weight, weight_start.
    PackedRows: TypeAlias = tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray]
    #: Sums of the rows' targets, and of their targets times x.
    TargetSums: TypeAlias = tuple[float, float]
    #: Buffers of `exp_in_place`.
    ExpBuffers: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: The objective, its derivatives by slope and by intercept, and the second derivatives: by the
    #: slope, by both, by the intercept.
    Expansion: TypeAlias = tuple[float, float, float, float, float, float]

#: Limit on the Newton steps of a fit; ordinary data take five to ten.
_MAX_STEPS = 300


@compiled()
def _standardise(score: FloatArray, weight: FloatArray, x: FloatArray) -> tuple[float, float]:
    """Write standardised scores to x; return mean and deviation, 0 for constant scores.

    As `standardisation` and `standardised` of `logistic_fit`.
    """
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
def _target_sums(x: FloatArray, weight: FloatArray, n_left: int, sides: FloatArray) -> TargetSums:
    """Return sums of targets, and of targets times x; `sides` is the target of each side."""
    total, sum_tx = 0.0, 0.0
    for i in range(len(x)):
        target = weight[i] * (sides[0] if i < n_left else sides[1])
        total += target
        sum_tx += target * x[i]
    return total, sum_tx


@compiled(fastmath=SIMD_FLAGS)
def _expand(
    x: FloatArray,
    weight: FloatArray,
    targets: TargetSums,
    coef: tuple[float, float],
    buffers: ExpBuffers,
) -> Expansion:
    """Return the cross-entropy, its gradient and its Hessian; `coef` are slope and intercept."""
    slope, intercept = coef
    small, power, bits = buffers
    n = len(x)
    for i in range(n):
        small[i] = -abs(slope * x[i] + intercept)
    exp_in_place(small[:n], power[:n], bits[:n])
    loss = -targets[0] * intercept - targets[1] * slope
    d_intercept, d_slope = -targets[0], -targets[1]
    dd_slope = dd_mixed = dd_intercept = 0.0
    for i in range(n):
        value, p, curvature = softplus_terms(slope * x[i] + intercept, small[i])
        p, curvature = weight[i] * p, weight[i] * curvature
        loss += weight[i] * value
        d_intercept += p
        d_slope += p * x[i]
        dd_intercept += curvature
        dd_mixed += curvature * x[i]
        dd_slope += curvature * x[i] * x[i]
    return loss, d_slope, d_intercept, dd_slope, dd_mixed, dd_intercept


@compiled()
def _newton_step(here: Expansion) -> tuple[float, float]:
    """Return the step to the optimum of the quadratic model, by its pseudo-inverse.

    A direction without curvature, such as the slope of constant scores, has step 0.
    """
    _, g, h, a, b, c = here
    top = 0.5 * (a + c) + math.hypot(0.5 * (a - c), b)
    determinant = a * c - b * b
    if determinant > 1e-14 * top * top:
        return (b * h - c * g) / determinant, (b * g - a * h) / determinant
    if not top > 0.0:
        return 0.0, 0.0
    # A singular Hessian: the step is along the eigenvector of its eigenvalue `top`, computed from
    # the column that loses fewer digits.
    u, v = (b, top - a) if a < c else (top - c, b)
    along = -(u * g + v * h) / (top * (u * u + v * v))
    return along * u, along * v


@compiled()
def _fit_sigmoid(
    x: FloatArray, weight: FloatArray, targets: TargetSums, buffers: ExpBuffers
) -> tuple[float, float, float]:
    """Return slope, intercept and the largest gradient component per unit of sample weight."""
    total = weight.sum()
    slope, intercept = 0.0, 0.0
    here = _expand(x, weight, targets, (slope, intercept), buffers)
    size = max(abs(here[1]), abs(here[2]))
    for _ in range(_MAX_STEPS):
        d_slope, d_intercept = _newton_step(here)
        there = _expand(x, weight, targets, (slope + d_slope, intercept + d_intercept), buffers)
        # If a step changes the objective by rounding only, the gradient decides whether it helps.
        if -(here[1] * d_slope + here[2] * d_intercept) <= 1e-12 * (total + abs(here[0])):
            if max(abs(there[1]), abs(there[2])) >= 0.5 * size:
                break
        else:
            while there[0] > here[0] and max(abs(d_slope), abs(d_intercept)) > 1e-12:
                d_slope, d_intercept = 0.5 * d_slope, 0.5 * d_intercept
                there = _expand(
                    x, weight, targets, (slope + d_slope, intercept + d_intercept), buffers
                )
        slope, intercept, here = slope + d_slope, intercept + d_intercept, there
        size = max(abs(here[1]), abs(here[2]))
    return slope, intercept, size / total


@compiled()
def fit_sigmoids(packed: PackedRows, sides: FloatArray) -> FloatArray:
    """Return centre, scale, slope, intercept and gradient of the sigmoid of each node, (nodes, 5).

    `sides` are the targets of the left and of the right side of each node, (nodes, 2). Log-odds are
    slope (s - centre) / scale + intercept; an uncalibrated node has the identity. Of the gradient
    at the end of the fit it is the largest component per unit of sample weight.
    """
    scores, start, n_left, weight, weight_start = packed
    n_nodes = len(n_left)
    out = np.empty((n_nodes, 5))
    longest = np.diff(start).max() if n_nodes > 0 else 0
    buffer, buffers = np.empty(longest), exp_buffers(longest)
    for t in range(n_nodes):
        n = start[t + 1] - start[t]
        score, w = scores[start[t] : start[t + 1]], weight[weight_start[t] : weight_start[t] + n]
        out[t] = 0.0, 1.0, 1.0, 0.0, 0.0
        if n > 0 and not np.isnan(score).any():
            x = buffer[:n]
            out[t, 0], out[t, 1] = _standardise(score, w, x)
            targets = _target_sums(x, w, n_left[t], sides[t])
            out[t, 2], out[t, 3], out[t, 4] = _fit_sigmoid(x, w, targets, buffers)
    return out


@compiled()
def affine_log_odds(scores: FloatArray, coef: FloatArray) -> FloatArray:
    """Return slope (s - centre) / scale + intercept within ±LARGEST, (n, nodes).

    `coef` are the columns of `fit_sigmoids`; a scale of 0 marks constant scores, without a slope.
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
