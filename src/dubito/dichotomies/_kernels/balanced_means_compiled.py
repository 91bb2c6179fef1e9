"""Compiled half of trees by balanced 2-means; import only from `balanced_means`.

`points` are the rows of a matrix, (data, indices, indptr) as in CSR; without indices the rows are
dense. `direction` is scratch as long as a row, all zero between calls.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled


@compiled()
def grow_balanced(points, direction, order, draws, max_rounds):  # type: ignore[no-untyped-def]
    """Halve a set of points again and again, until every point is alone.

    Parameters
    ----------
    order : array of int (K,)
        The points; equal points part by their place in it. Reordered in place.
    draws : array (K-1, starts, 2)
        Uniform in [0, 1): the pair of points each node starts from, as often as it is tried.
    max_rounds : int
        The most rounds of one try.

    Returns
    -------
    array of int (K-1,)
        The sizes of left sides, nodes in preorder; `order` then lists the leaves.
    """
    n = len(order)
    sizes = np.empty(n - 1, np.int64)
    start, stop = np.empty(n, np.int64), np.empty(n, np.int64)
    start[0], stop[0] = 0, n
    node, waiting = 0, 1
    while waiting > 0:
        waiting -= 1
        begin, end = start[waiting], stop[waiting]
        if end - begin < 2:
            continue
        members = order[begin:end]
        first = _halve(points, direction, members, draws[node], max_rounds)
        sizes[node] = first
        node += 1
        start[waiting], stop[waiting] = begin + first, end
        start[waiting + 1], stop[waiting + 1] = begin, begin + first
        waiting += 2
    return sizes


@compiled()
def _halve(points, direction, members, draws, max_rounds):  # type: ignore[no-untyped-def]
    """Part the members in halves, the larger one first, by the best of some tries of 2-means."""
    n = len(members)
    first = (n + 1) // 2
    if n == 2:
        return first
    best, best_gap = np.zeros(n, np.bool_), -1.0
    for k in range(len(draws)):
        a = int(draws[k, 0] * n)
        b = int(draws[k, 1] * (n - 1))
        b += b >= a
        upper, gap = _two_means(points, direction, members, (a, b), max_rounds)
        if gap > best_gap:
            best, best_gap = upper, gap
    # Both halves keep the order of members: it is what ties are broken by.
    members[:] = np.concatenate((members[best], members[~best]))
    return first


@compiled()
def _two_means(points, direction, members, pair, max_rounds):  # type: ignore[no-untyped-def]
    """Find two halves, each nearer to its mean than their exchange would be, from two members.

    The members are sorted by their product with the difference of the means, that is by how much
    nearer they are to the first; the upper half makes the first mean. Every round shrinks the
    squared distances to the means, or is the last.

    Returns
    -------
    upper : array of bool (n,)
        Who is in the upper half.
    gap : float
        The squared distance of the means: the larger, the closer the halves are in themselves.
    """
    n = len(members)
    first = (n + 1) // 2
    to_first, to_second = 1.0 / first, 1.0 / (n - first)
    scores = np.empty(n)
    one, other = members[pair[0]], members[pair[1]]
    _add(points, direction, one, 1.0)
    _add(points, direction, other, -1.0)
    _project(points, direction, members, scores)
    upper = _upper_half(scores, first)
    _clear(points, direction, np.array([one, other]))
    for i in range(n):
        share = to_first if upper[i] else -to_second
        _add(points, direction, members[i], share)
    for _ in range(max_rounds):
        _project(points, direction, members, scores)
        moved = _upper_half(scores, first)
        changed = False
        for i in range(n):
            if moved[i] != upper[i]:
                changed = True
                share = to_first + to_second if moved[i] else -to_first - to_second
                _add(points, direction, members[i], share)
        if not changed:
            break
        upper = moved
    gap = 0.0
    for i in range(n):
        gap += scores[i] * (to_first if upper[i] else -to_second)
    _clear(points, direction, members)
    return upper, gap


@compiled()
def _upper_half(scores, size):  # type: ignore[no-untyped-def]
    """Mark the `size` largest scores; of equal ones those that come first."""
    upper = np.zeros(len(scores), np.bool_)
    upper[np.argsort(-scores, kind="mergesort")[:size]] = True
    return upper


@compiled()
def _project(points, direction, members, scores):  # type: ignore[no-untyped-def]
    """Write the product of each member with the direction."""
    data, indices, indptr = points
    for i in range(len(members)):
        begin, end = indptr[members[i]], indptr[members[i] + 1]
        if len(indices) == 0:
            scores[i] = _dot(data[begin:end], direction)
            continue
        # Summed in order: vector lanes gather entries slower than they are read one by one.
        total = 0.0
        for j in range(begin, end):
            total += data[j] * direction[indices[j]]
        scores[i] = total


@compiled(fastmath={"reassoc"})
def _dot(row, direction):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(row)):
        total += row[j] * direction[j]
    return total


@compiled()
def _add(points, direction, member, share):  # type: ignore[no-untyped-def]
    data, indices, indptr = points
    begin, end = indptr[member], indptr[member + 1]
    if len(indices) == 0:
        for j in range(end - begin):
            direction[j] += share * data[begin + j]
    else:
        for j in range(begin, end):
            direction[indices[j]] += share * data[j]


@compiled()
def _clear(points, direction, members):  # type: ignore[no-untyped-def]
    """Set to zero what the members may have touched."""
    _, indices, indptr = points
    touched = 0
    for member in members:
        touched += indptr[member + 1] - indptr[member]
    if len(indices) == 0 or touched > len(direction):
        direction[:] = 0.0
        return
    for member in members:
        for j in range(indptr[member], indptr[member + 1]):
            direction[indices[j]] = 0.0
