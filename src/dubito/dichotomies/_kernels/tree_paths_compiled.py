"""Compiled loops over the paths of a binary tree, row by row; import only from `tree_paths`.

Nodes are in preorder, so parents come before their children: one forward pass takes values from a
node to its two children, one backward pass collects values from below. Values are arrays of the
inner nodes, then the classes; `left` and `right` are the indices of the children there. They are
unsigned, since numba tests the sign of signed indices at every step.

Comparisons propagate nan. They are conditional expressions, because max() distinguishes the signs
of zero and is then not vectorised.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import (
    SIMD_FLAGS,
    exp_buffers,
    exp_in_place,
    log_one_plus,
)

#: The smallest normal number: products below it lose digits and are slow.
_TINY = 2.2250738585072014e-308

#: From this x on exp(-x) is taken as 0: -708 is the smallest argument of `exp_in_place`.
_LARGEST_EXPONENT = 708.0

#: Two probabilities are tied if the logarithm of their ratio is this small, relative to the sum of
#: the absolute logarithms in it.
_RATIO_TIE = 1e-12


@compiled()
def log_proba_of_rows(log_odds, left, right, out):  # type: ignore[no-untyped-def]
    """Write the sums of the log-probabilities of the edges on the path to each class."""
    n, n_nodes = log_odds.shape
    values, to_right = np.empty(2 * n_nodes + 1), np.empty(n_nodes)
    to_left, power, power_bits = exp_buffers(n_nodes)
    for i in range(n):
        _log_sigmoids(log_odds[i], to_left, to_right, power, power_bits)
        values[0] = 0.0
        for t in range(n_nodes):
            values[left[t]] = values[t] + to_left[t]
            values[right[t]] = values[t] + to_right[t]
        out[i] = values[n_nodes:]


@compiled()
def proba_of_rows(log_odds, left, right, out):  # type: ignore[no-untyped-def]
    """Write the products of the probabilities of the edges on the path to each class."""
    n, n_nodes = log_odds.shape
    values, to_right = np.empty(2 * n_nodes + 1), np.empty(n_nodes)
    to_left, power, power_bits = exp_buffers(n_nodes)
    for i in range(n):
        _sigmoids(log_odds[i], to_left, to_right, power, power_bits)
        values[0] = 1.0
        for t in range(n_nodes):
            values[left[t]] = values[t] * to_left[t]
            values[right[t]] = values[t] * to_right[t]
        out[i] = values[n_nodes:]


@compiled(fastmath=SIMD_FLAGS)
def _exp_minus_abs(log_odds, out, power, power_bits):  # type: ignore[no-untyped-def]
    """Write exp(-abs(log_odds)), but at least exp(-708), and exp(-708) for nan."""
    for t in range(len(log_odds)):
        out[t] = -abs(log_odds[t])
    exp_in_place(out, power, power_bits)


@compiled(fastmath=SIMD_FLAGS)
def _log_sigmoids(log_odds, to_left, to_right, power, power_bits):  # type: ignore[no-untyped-def]
    """Write the log-probabilities of both sides, without cancellation or overflow."""
    small = to_left  # exp(-abs(log_odds)), until the results replace it
    _exp_minus_abs(log_odds, small, power, power_bits)
    for t in range(len(log_odds)):
        z = log_odds[t]
        common = log_one_plus(small[t]) if abs(z) < _LARGEST_EXPONENT else 0.0
        to_left[t] = (0.0 if z <= 0.0 else -z) - common
        to_right[t] = (0.0 if z >= 0.0 else z) - common  # noqa: FURB136


@compiled(fastmath=SIMD_FLAGS)
def _sigmoids(log_odds, to_left, to_right, power, power_bits):  # type: ignore[no-untyped-def]
    """Write the probabilities of both sides, the smaller one without cancellation."""
    small = to_left  # exp(-abs(log_odds)), until the results replace it
    _exp_minus_abs(log_odds, small, power, power_bits)
    for t in range(len(log_odds)):
        z = log_odds[t]
        odds = small[t] if abs(z) < _LARGEST_EXPONENT else 0.0  # of the less probable side
        larger = 1.0 / (1.0 + odds)
        smaller = odds * larger
        to_left[t] = smaller if z > 0.0 else (larger if z <= 0.0 else z)
        to_right[t] = larger if z > 0.0 else smaller


@compiled()
def bounds_of_rows(lower, upper, children, class_lower, class_upper):  # type: ignore[no-untyped-def]
    """Write the products of the edges' bounds, rounded outwards where they underflow."""
    n, n_nodes = lower.shape
    left, right = children
    least, most = np.empty(2 * n_nodes + 1), np.empty(2 * n_nodes + 1)
    least[0] = most[0] = 1.0
    for i in range(n):
        for t in range(n_nodes):
            low, high = lower[i, t], upper[i, t]
            least[left[t]] = _down(least[t] * (1.0 - high))
            least[right[t]] = _down(least[t] * low)
            most[left[t]] = _up(most[t], 1.0 - low)
            most[right[t]] = _up(most[t], high)
        class_lower[i] = least[n_nodes:]
        class_upper[i] = most[n_nodes:]


@compiled(inline="always")
def _down(product):  # type: ignore[no-untyped-def]
    """Return the product, rounded down to 0 where it underflows."""
    return product if product >= _TINY else 0.0


@compiled(inline="always")
def _up(a, b):  # type: ignore[no-untyped-def]
    """Return the product, rounded up where it underflows: 0 only if a factor is 0."""
    product = a * b
    return product if product >= _TINY or a == 0.0 or b == 0.0 else _TINY


@compiled()
def maximal_of_rows(lower, upper, left, right, out):  # type: ignore[no-untyped-def]
    """Write which classes no other one dominates.

    `below` is L of `tree_paths.maximal_classes`: the largest lower log-probability of a class below
    a node, given the node, and 0 for a class. `log_ratio` is G, that of the strongest rival of all
    classes below; `size` is the sum of the logarithms in it, the scale of its rounding error.
    """
    n, n_nodes = lower.shape
    n_values = 2 * n_nodes + 1
    below, log_ratio, size = np.zeros(n_values), np.empty(n_values), np.empty(n_values)
    logs = np.empty((4, n_nodes))
    for i in range(n):
        _log_bounds(lower[i], upper[i], logs)
        for t in range(n_nodes - 1, -1, -1):
            a = logs[0, t] + below[left[t]]
            b = logs[2, t] + below[right[t]]
            below[t] = max(a, b)
        log_ratio[0], size[0] = -np.inf, 0.0
        for t in range(n_nodes):
            a, b = left[t], right[t]
            here = log_ratio[t], size[t]
            log_ratio[a], size[a] = _after_edge(here, logs[2, t] + below[b], logs[1, t])
            log_ratio[b], size[b] = _after_edge(here, logs[0, t] + below[a], logs[3, t])
        for k in range(n_nodes + 1):
            out[i, k] = log_ratio[n_nodes + k] <= _RATIO_TIE * (1.0 + size[n_nodes + k])


@compiled()
def _log_bounds(lower, upper, logs):  # type: ignore[no-untyped-def]
    """Write logarithms of the lower and upper probability of going left, then of going right."""
    for t in range(len(lower)):
        logs[0, t] = np.log1p(-upper[t])
        logs[1, t] = np.log1p(-lower[t])
        logs[2, t] = np.log(lower[t])
        logs[3, t] = np.log(upper[t])


@compiled(inline="always")
def _after_edge(here, rival, log_most):  # type: ignore[no-untyped-def]
    """Return log ratio and size below an edge; `rival` is the best log-probability across it."""
    if log_most == -np.inf:
        # An impossible class is dominated by every possible one, however improbable.
        return np.inf, 0.0
    return max(here[0], rival) - log_most, here[1] - log_most


@compiled()
def group_sums_of_rows(proba, group, out):  # type: ignore[no-untyped-def]
    """Write the sums of the columns of each group."""
    out[:] = 0.0
    for i in range(len(proba)):
        for k in range(len(group)):
            out[i, group[k]] += proba[i, k]
