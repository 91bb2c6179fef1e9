"""Compiled part of trees by balanced 2-means; import only from `balanced_means`.

`points` are the rows of a matrix, (data, indices, indptr) as in CSR; without indices the rows are
dense. `direction` is a buffer as long as a row, all zero between calls. A `subset` of the points is
given by their numbers.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import add_multiple, dot


@compiled()
def grow_balanced(points, direction, order, draws, max_rounds):  # type: ignore[no-untyped-def]
    """Halve sets of points recursively, down to single points; return the sizes of left sides.

    Parameters
    ----------
    order : array of int (K,)
        The points, by whose position ties are broken. Reordered in place.
    draws : array (K-1, starts, 2)
        Uniform in [0, 1): the pair of points of each start of each node.
    max_rounds : int
        Limit on the rounds of one start.

    Returns
    -------
    array of int (K-1,)
        Sizes of left sides, nodes in preorder; `order` then lists the leaves.
    """
    n = len(order)
    sizes = np.empty(n - 1, np.int64)
    range_start, range_stop = np.empty(n, np.int64), np.empty(n, np.int64)
    range_start[0], range_stop[0] = 0, n
    node, waiting = 0, 1
    while waiting > 0:
        waiting -= 1
        start, stop = range_start[waiting], range_stop[waiting]
        if stop - start < 2:
            continue
        subset = order[start:stop]
        first = _halve(points, direction, subset, draws[node], max_rounds)
        sizes[node] = first
        node += 1
        range_start[waiting], range_stop[waiting] = start + first, stop
        range_start[waiting + 1], range_stop[waiting + 1] = start, start + first
        waiting += 2
    return sizes


@compiled()
def _halve(points, direction, subset, draws, max_rounds):  # type: ignore[no-untyped-def]
    """Reorder a subset into two halves, the larger one first, by the best start of 2-means.

    Return the size of the first half.
    """
    n = len(subset)
    first = (n + 1) // 2
    if n == 2:
        return first
    best, largest_distance = np.zeros(n, np.bool_), -1.0
    for k in range(len(draws)):
        a = int(draws[k, 0] * n)
        b = int(draws[k, 1] * (n - 1))
        b += b >= a
        upper, squared_distance = _two_means(points, direction, subset, (a, b), max_rounds)
        if squared_distance > largest_distance:
            best, largest_distance = upper, squared_distance
    # Both halves keep the order of the points, by which ties are broken.
    subset[:] = np.concatenate((subset[best], subset[~best]))
    return first


@compiled()
def _two_means(points, direction, subset, pair, max_rounds):  # type: ignore[no-untyped-def]
    """Return halves of a subset that are a fixed point of balanced 2-means.

    `pair` are the positions in it of the points to start from. The points are sorted by their
    product with the difference of the means, that is by how much nearer they are to the first; the
    upper half makes the first mean. Every round decreases the squared distances to the means, or
    is the last; `max_rounds` limits their number.

    Returns
    -------
    upper : array of bool (n,)
        Which points are in the upper half.
    squared_distance : float
        Between the means: the larger, the smaller the distances within the halves.
    """
    n = len(subset)
    first = (n + 1) // 2
    to_first, to_second = 1.0 / first, 1.0 / (n - first)
    scores = np.empty(n)
    one, other = subset[pair[0]], subset[pair[1]]
    _add(points, direction, one, 1.0)
    _add(points, direction, other, -1.0)
    _project(points, direction, subset, scores)
    upper = _upper_half(scores, first)
    _clear(points, direction, np.array([one, other]))
    for i in range(n):
        _add(points, direction, subset[i], to_first if upper[i] else -to_second)
    for _ in range(max_rounds):
        _project(points, direction, subset, scores)
        moved = _upper_half(scores, first)
        changed = False
        for i in range(n):
            if moved[i] != upper[i]:
                changed = True
                factor = to_first + to_second if moved[i] else -to_first - to_second
                _add(points, direction, subset[i], factor)
        if not changed:
            break
        upper = moved
    squared_distance = 0.0
    for i in range(n):
        squared_distance += scores[i] * (to_first if upper[i] else -to_second)
    _clear(points, direction, subset)
    return upper, squared_distance


@compiled()
def _upper_half(scores, size):  # type: ignore[no-untyped-def]
    """Return which are the `size` largest scores; of equal scores those that come first."""
    upper = np.zeros(len(scores), np.bool_)
    upper[np.argsort(-scores, kind="mergesort")[:size]] = True
    return upper


@compiled()
def _project(points, direction, subset, scores):  # type: ignore[no-untyped-def]
    """Write the product of each point with the direction."""
    data, indices, indptr = points
    for i in range(len(subset)):
        start, stop = indptr[subset[i]], indptr[subset[i] + 1]
        if len(indices) == 0:
            scores[i] = dot(data[start:stop], direction)
            continue
        # A plain loop: gathering entries into vector lanes would be slower.
        total = 0.0
        for j in range(start, stop):
            total += data[j] * direction[indices[j]]
        scores[i] = total


@compiled()
def _add(points, direction, point, factor):  # type: ignore[no-untyped-def]
    """Add a multiple of a point to the direction."""
    data, indices, indptr = points
    start, stop = indptr[point], indptr[point + 1]
    if len(indices) == 0:
        add_multiple(data[start:stop], factor, direction)
    else:
        for j in range(start, stop):
            direction[indices[j]] += factor * data[j]


@compiled()
def _clear(points, direction, subset):  # type: ignore[no-untyped-def]
    """Set to zero the entries of the direction that the points may have changed."""
    _, indices, indptr = points
    changed = 0
    for point in subset:
        changed += indptr[point + 1] - indptr[point]
    if len(indices) == 0 or changed > len(direction):
        direction[:] = 0.0
        return
    for point in subset:
        for j in range(indptr[point], indptr[point + 1]):
            direction[indices[j]] = 0.0
