"""The sums of `vector_scaling`, in one pass over the scores each."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_buffers, exp_in_place

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

    #: The value, its gradients in slope and bias, and its three curvatures.
    Sums: TypeAlias = tuple[
        float, tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]
    ]

# Comparisons are written out: max() handles signed zeros and nan, which prevents vectorisation.


@compiled(fastmath=SIMD_FLAGS)
def diagonal_sums(u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray) -> Sums:
    """Return Σw log Σ exp(slope∘u + bias), its gradients, and its curvatures class by class.

    The gradients in slope and bias are Σwp (u, 1), the curvatures Σwp(1-p) (u², u, 1). The
    curvatures add a fifth to the time of a pass; computed separately they would take a whole pass.
    """
    n, n_classes = u.shape
    buffer, power, power_bits = exp_buffers(n_classes)
    by_slope, by_bias = np.zeros(n_classes), np.zeros(n_classes)
    slope_slope, slope_bias, bias_bias = (
        np.zeros(n_classes),
        np.zeros(n_classes),
        np.zeros(n_classes),
    )
    value = 0.0
    for i in range(n):
        row = u[i]
        top = -np.inf
        for k in range(n_classes):
            z = slope[k] * row[k] + bias[k]
            buffer[k] = z
            top = z if z > top else top  # noqa: FURB136
        for k in range(n_classes):
            buffer[k] -= top
        exp_in_place(buffer, power, power_bits)
        total = 0.0
        for k in range(n_classes):
            total += buffer[k]
        w, inverse_total = weight[i], 1 / total
        value += w * (np.log(total) + top)
        for k in range(n_classes):
            p = inverse_total * buffer[k]
            wp = w * p
            by_bias[k] += wp
            by_slope[k] += wp * row[k]
            curvature = wp * (1 - p)
            bias_bias[k] += curvature
            curvature *= row[k]
            slope_bias[k] += curvature
            slope_slope[k] += curvature * row[k]
    return value, (by_slope, by_bias), (slope_slope, slope_bias, bias_bias)


@compiled(fastmath=SIMD_FLAGS)
def count_likely(
    u: FloatArray, y: IntArray, base_slope: float, threshold: float
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return how many classes of each row are likelier than `threshold` by softmax(base_slope·u).

    The row's label is counted whatever its probability. Also returned: the row's largest logit
    (top), the least difference from it of a class that counts (log-threshold), and the logarithm
    of Σ exp(logit) over the classes that do not count.
    """
    n, n_classes = u.shape
    buffer, power, power_bits = exp_buffers(n_classes)
    count = np.empty(n, np.int64)
    tops, log_thresholds, rests = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        row = u[i]
        top = base_slope * row[0]
        for k in range(1, n_classes):
            z = base_slope * row[k]
            top = z if z > top else top  # noqa: FURB136
        for k in range(n_classes):
            buffer[k] = base_slope * row[k] - top
        exp_in_place(buffer, power, power_bits)
        total = 0.0
        for k in range(n_classes):
            total += buffer[k]
        log_threshold = np.log(threshold * total)
        found, rest = 0, 0.0
        for k in range(n_classes):
            if base_slope * row[k] - top > log_threshold or k == y[i]:
                found += 1
            else:
                rest += buffer[k]
        count[i], tops[i], log_thresholds[i] = found, top, log_threshold
        rests[i] = top + np.log(rest) if found < n_classes else -np.inf
    return count, tops, log_thresholds, rests


@compiled()
def list_likely(
    u: FloatArray,
    y: IntArray,
    base_slope: float,
    limits: tuple[FloatArray, FloatArray],
    lists: tuple[IntArray, IntArray, FloatArray],
) -> None:
    """Write the classes that `count_likely` counts, and their scores, row after row.

    `limits` are its tops and log-thresholds; `lists` are the first index of each row, and the
    columns and scores to write.
    """
    n, n_classes = u.shape
    tops, log_thresholds = limits
    start, column, score = lists
    for i in range(n):
        row, position = u[i], start[i]
        for k in range(n_classes):
            if base_slope * row[k] - tops[i] > log_thresholds[i] or k == y[i]:
                column[position] = k
                score[position] = row[k]
                position += 1


@compiled(fastmath=SIMD_FLAGS)
def likely_sums(
    likely: tuple[IntArray, IntArray, FloatArray, FloatArray],
    weight: FloatArray,
    slope: FloatArray,
    bias: FloatArray,
) -> tuple[float, FloatArray]:
    """Return the sums of `diagonal_sums` over listed classes; a row's others add exp(rest)."""
    start, column, score, rest = likely
    n_classes = len(slope)
    longest = 0
    for i in range(len(weight)):
        longest = max(longest, start[i + 1] - start[i])
    buffer, power, power_bits = exp_buffers(longest)
    # The five sums of a class are adjacent in memory, as they are used together.
    sums = np.zeros((n_classes, 5))
    value = 0.0
    for i in range(len(weight)):
        first, length = start[i], start[i + 1] - start[i]
        top = rest[i]
        for j in range(length):
            k = column[first + j]
            z = slope[k] * score[first + j] + bias[k]
            buffer[j] = z
            top = z if z > top else top  # noqa: FURB136
        for j in range(length):
            buffer[j] -= top
        exp_in_place(buffer[:length], power[:length], power_bits[:length])
        total = np.exp(rest[i] - top)
        for j in range(length):
            total += buffer[j]
        w, inverse_total = weight[i], 1 / total
        value += w * (np.log(total) + top)
        for j in range(length):
            p, u = inverse_total * buffer[j], score[first + j]
            wp = w * p
            curvature = wp * (1 - p)
            class_sums = sums[column[first + j]]
            class_sums[0] += wp * u
            class_sums[1] += wp
            class_sums[2] += curvature * u * u
            class_sums[3] += curvature * u
            class_sums[4] += curvature
    return value, sums.T.copy()
