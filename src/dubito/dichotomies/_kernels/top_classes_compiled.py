"""The k most probable of many classes: selected from all, or found by best-first search."""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, softplus


@compiled()
def _insert(value, column, best, columns, count):  # type: ignore[no-untyped-def]
    """Insert a value into the descending `best`, after equal ones; the last drops out if full."""
    position = count
    while position > 0 and value > best[position - 1]:
        position -= 1
    for q in range(min(count, len(best) - 1), position, -1):
        best[q] = best[q - 1]
        columns[q] = columns[q - 1]
    best[position] = value
    columns[position] = column


@compiled()
def top_of_rows(values, best, columns):  # type: ignore[no-untyped-def]
    """Write the k largest values of each row, in descending order, and their columns.

    Of equal values the earlier column comes first.
    """
    k = best.shape[1]
    for i in range(len(values)):
        row = values[i]
        for j in range(k):
            _insert(row[j], j, best[i], columns[i], j)
        least = best[i, k - 1]
        for j in range(k, len(row)):
            if row[j] > least:
                _insert(row[j], j, best[i], columns[i], k - 1)
                least = best[i, k - 1]


@compiled()
def _push(heap, keys, size, key, item):  # type: ignore[no-untyped-def]
    """Insert an item into a heap with the largest key on top."""
    position = size
    while position > 0:
        above = (position - 1) // 2
        if keys[above] >= key:
            break
        keys[position], heap[position] = keys[above], heap[above]
        position = above
    keys[position], heap[position] = key, item


@compiled()
def _pop(heap, keys, size):  # type: ignore[no-untyped-def]
    """Remove the top of a heap of `size` items; the last item is moved into the gap."""
    key, item = keys[size - 1], heap[size - 1]
    position = 0
    while True:
        below = 2 * position + 1
        if below >= size - 1:
            break
        if below + 1 < size - 1 and keys[below + 1] > keys[below]:
            below += 1
        if keys[below] <= key:
            break
        keys[position], heap[position] = keys[below], heap[below]
        position = below
    keys[position], heap[position] = key, item


@compiled(fastmath=SIMD_FLAGS)
def _dot_in_precision(a, b):  # type: ignore[no-untyped-def]
    """Return the sum of products in the precision of `a`: single precision has twice the lanes."""
    total = a.dtype.type(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled()
def _are_separated(best, following, closeness):  # type: ignore[no-untyped-def]
    """Return whether neighbours differ by at least `closeness`, the last from `following` too."""
    for q in range(1, len(best)):
        if best[q - 1] - best[q] < closeness:
            return False
    return best[len(best) - 1] - following >= closeness


@compiled()
def _best_first(x, model, tree, max_visits, best, columns):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Write the k best classes of one row; return whether the search was completed.

    It is not if more than `max_visits` nodes are needed, or if two of the classes differ by little
    more than rounding.
    """
    coef, intercept, slope, offset = model
    closeness = 1e3 * np.finfo(coef.dtype).eps
    left, right, order = tree
    k = len(best)
    # Every node visited removes one item from the heap and inserts two.
    heap, keys = np.empty(max_visits + 2, np.int64), np.empty(max_visits + 2)
    heap[0], keys[0], size = 0, 0.0, 1
    found, visited = 0, 0
    while True:
        key, item = keys[0], heap[0]
        _pop(heap, keys, size)
        size -= 1
        if item < 0:
            best[found] = key
            columns[found] = order[-1 - item]
            found += 1
            if found == k:
                return _are_separated(best, keys[0] if size > 0 else -np.inf, closeness)
            continue
        if visited == max_visits:
            return False
        visited += 1
        log_odds = slope[item] * (_dot_in_precision(x, coef[item]) + intercept[item]) + offset[item]
        _push(heap, keys, size, key - softplus(log_odds), left[item])
        _push(heap, keys, size + 1, key - softplus(-log_odds), right[item])
        size += 2


@compiled()
def best_first_of_rows(X, model, tree, max_visits, best, columns):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Write the k best classes of each row and their log-probabilities; return which rows are done.

    Nodes are visited in descending order of their probability, so that no class below a node not
    visited is more probable than the k found first. A row is not done if it needs more than
    `max_visits` nodes, or has ties.

    `model` are coefficients, intercepts, and slopes and offsets of the nodes' calibration; `tree`
    are the children of each node and the column of each leaf.
    """
    done = np.empty(len(X), np.bool_)
    for i in range(len(X)):
        done[i] = _best_first(X[i], model, tree, max_visits, best[i], columns[i])
    return done
