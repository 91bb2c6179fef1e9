"""Compiled sums of softmax models, one pass over the scores each (`softmax_models`)."""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place

# Comparisons are written out: max() minds the sign of zero and nan, which costs vector lanes.


@compiled(fastmath=SIMD_FLAGS)
def temperature_sums(u, y, weight, share, theta):  # type: ignore[no-untyped-def]
    """Return the negative log-likelihood of softmax(θu) and its first three derivatives in θ.

    `share` of each target is spread evenly over the classes. All sums are of differences from
    the row's largest score, so nothing cancels however large the scores.
    """
    n, n_classes = u.shape
    buffer = np.empty(n_classes)
    power = np.empty(n_classes)
    power_bits = power.view(np.int64)
    loss = first = second = third = 0.0
    for i in range(n):
        row = u[i]
        top = row[0]
        for k in range(1, n_classes):
            top = row[k] if row[k] > top else top  # noqa: FURB136
        spread = 0.0
        for k in range(n_classes):
            d = row[k] - top
            spread += d
            buffer[k] = theta * d
        exp_in_place(buffer, power, power_bits)
        total = m1 = m2 = m3 = 0.0
        for k in range(n_classes):
            e, d = buffer[k], row[k] - top
            ed = e * d
            edd = ed * d
            total += e
            m1 += ed
            m2 += edd
            m3 += edd * d
        m1 /= total
        m2 /= total
        m3 /= total
        target = (1 - share) * (row[y[i]] - top) + share * spread / n_classes
        w = weight[i]
        loss += w * (np.log(total) - theta * target)
        first += w * (m1 - target)
        second += w * (m2 - m1 * m1)
        third += w * (m3 - 3 * m1 * m2 + 2 * m1 * m1 * m1)
    return loss, first, second, third


@compiled(fastmath=SIMD_FLAGS)
def diagonal_sums(u, weight, slope, bias):  # type: ignore[no-untyped-def]
    """Return Σw log Σ exp(slope∘u + bias), its gradients, and its curvatures class by class.

    Rows of the table are Σwp (u, 1) and Σwp(1-p) (u², u, 1). The curvatures cost a fifth of a
    pass when taken along, and a pass when asked for later.
    """
    n, n_classes = u.shape
    buffer = np.empty(n_classes)
    power = np.empty(n_classes)
    power_bits = power.view(np.int64)
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
        w, share = weight[i], 1 / total
        value += w * (np.log(total) + top)
        for k in range(n_classes):
            p = share * buffer[k]
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
def count_likely(u, y, theta, share):  # type: ignore[no-untyped-def]
    """Count the classes of each row whose probability under softmax(θu) exceeds `share`.

    The row's label is counted whatever its probability. Returned besides: the row's largest score
    times θ, how far below it the classes end that count, and the logarithm of Σ exp(θu) over those
    that do not.
    """
    n, n_classes = u.shape
    buffer = np.empty(n_classes)
    power = np.empty(n_classes)
    power_bits = power.view(np.int64)
    count = np.empty(n, np.int64)
    tops, cuts, rests = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        row = u[i]
        top = theta * row[0]
        for k in range(1, n_classes):
            z = theta * row[k]
            top = z if z > top else top  # noqa: FURB136
        for k in range(n_classes):
            buffer[k] = theta * row[k] - top
        exp_in_place(buffer, power, power_bits)
        total = 0.0
        for k in range(n_classes):
            total += buffer[k]
        cut = np.log(share * total)
        found, rest = 0, 0.0
        for k in range(n_classes):
            if theta * row[k] - top > cut or k == y[i]:
                found += 1
            else:
                rest += buffer[k]
        count[i], tops[i], cuts[i] = found, top, cut
        rests[i] = top + np.log(rest) if found < n_classes else -np.inf
    return count, tops, cuts, rests


@compiled()
def list_likely(u, y, theta, limits, lists):  # type: ignore[no-untyped-def]
    """Write the classes that `count_likely` counts, and their scores, row after row.

    `limits` are its tops and cuts; `lists` say where a row begins, and take columns and scores.
    """
    n, n_classes = u.shape
    tops, cuts = limits
    start, column, score = lists
    for i in range(n):
        row, place = u[i], start[i]
        for k in range(n_classes):
            if theta * row[k] - tops[i] > cuts[i] or k == y[i]:
                column[place] = k
                score[place] = row[k]
                place += 1


@compiled(fastmath=SIMD_FLAGS)
def likely_sums(likely, weight, slope, bias):  # type: ignore[no-untyped-def]
    """Return `diagonal_sums` over listed classes, the others of a row kept at exp(rest)."""
    start, column, score, rest = likely
    n_classes = len(slope)
    longest = 0
    for i in range(len(weight)):
        longest = max(longest, start[i + 1] - start[i])
    buffer = np.empty(longest)
    power = np.empty(longest)
    power_bits = power.view(np.int64)
    sums = np.zeros((n_classes, 5))  # the five of a class lie together: they are met together
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
        w, share = weight[i], 1 / total
        value += w * (np.log(total) + top)
        for j in range(length):
            p, u = share * buffer[j], score[first + j]
            wp = w * p
            curvature = wp * (1 - p)
            own = sums[column[first + j]]
            own[0] += wp * u
            own[1] += wp
            own[2] += curvature * u * u
            own[3] += curvature * u
            own[4] += curvature
    return value, sums.T.copy()
