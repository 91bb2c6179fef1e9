r"""Probabilities, bounds and maximal classes from the nodes of a binary tree.

A tree of K leaves has K-1 inner nodes, numbered in preorder. Node t has the children ``left[t]``
and ``right[t]``: the number of a node, or ``-1 - position`` of a leaf. ``order[position]`` is the
column of that leaf's class. Each node has a probability of going right; the probability of a class
is the product of those of the edges on the path from the root to its leaf.

Rows are computed one by one, in order, so the result for a row never depends on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

    #: Indices of the left and the right child of each node in arrays of all nodes, then all leaves.
    Children: TypeAlias = tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp]]


def log_class_proba(
    log_odds: npt.NDArray[np.floating[Any]], left: IntArray, right: IntArray, order: IntArray
) -> FloatArray:
    r"""Return the log-probability of each class, (n, K), from log-odds of going right, (n, K-1).

    That is the sum of :math:`\log\sigma(z_t)` over the nodes where the path goes right, and of
    :math:`\log\sigma(-z_t)` where it goes left: exact to rounding for all log-odds, and 0 or
    :math:`-\infty` for infinite ones.

    Examples
    --------
    A root with the leaf of class 1 to its left and a node over classes 0 and 2 to its right:

    >>> left, right, order = np.array([-1, -2]), np.array([1, -3]), np.array([1, 0, 2])
    >>> np.exp(log_class_proba(np.array([[0.0, np.log(3)]]), left, right, order))
    array([[0.125, 0.5  , 0.375]])
    """
    from dubito.dichotomies._kernels.tree_paths_compiled import log_proba_of_rows  # noqa: PLC0415 - loads numba

    out = np.empty((len(log_odds), len(order)))
    log_proba_of_rows(np.ascontiguousarray(log_odds), *child_indices(left, right, order), out)
    return out


def class_proba(
    log_odds: npt.NDArray[np.floating[Any]], left: IntArray, right: IntArray, order: IntArray
) -> FloatArray:
    """Return the probability of each class, (n, K), from log-odds of going right, (n, K-1).

    Products take about two thirds of the time of `log_class_proba`; rows sum to 1 up to rounding.
    """
    from dubito.dichotomies._kernels.tree_paths_compiled import proba_of_rows  # noqa: PLC0415 - loads numba

    out = np.empty((len(log_odds), len(order)))
    proba_of_rows(np.ascontiguousarray(log_odds), *child_indices(left, right, order), out)
    return out


def class_bounds(
    lower: FloatArray, upper: FloatArray, left: IntArray, right: IntArray, order: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds of each class, (n, K) each, from bounds on going right, (n, K-1) each.

    They are the products of the bounds of the edges on the path; an edge to the left has
    :math:`[1-u_t,1-l_t]`. They are exact: the nodes vary independently in their intervals, and a
    path contains every node at most once. Products that underflow are rounded outwards, so an upper
    bound is 0 only for an impossible class.
    """
    from dubito.dichotomies._kernels.tree_paths_compiled import bounds_of_rows  # noqa: PLC0415 - loads numba

    shape = (len(lower), len(order))
    class_lower, class_upper = np.empty(shape), np.empty(shape)
    given = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
    bounds_of_rows(*given, child_indices(left, right, order), class_lower, class_upper)
    return class_lower, class_upper


def maximal_classes(
    lower: FloatArray, upper: FloatArray, left: IntArray, right: IntArray, order: IntArray
) -> BoolArray:
    r"""Return which classes are maximal for 0/1 loss, (n, K), exactly, in O(K) a row.

    Node t goes right with any probability in :math:`[l_t,u_t]`, independently of the others. Class
    a dominates class b if :math:`p_a>p_b` for all such probabilities. The paths to a and b separate
    at one node; the factors above it are common and cancel, and below it they have no node in
    common. So

    .. math:: \min\frac{p_a}{p_b}=\frac{l_a\prod_{e\to a}l_e}{u_b\prod_{e\to b}u_e},

    where :math:`l_a=1-u_b` belong to the two edges at that node, and e are the edges below it. One
    pass from the root thus finds the strongest rival of all classes below an edge: with
    :math:`L_s=\max_{a\text{ below }s}\sum\log l_e` and :math:`G=-\infty` at the root,

    .. math:: G_c=\max(G_v,\log l_s+L_s)-\log u_c

    for the child c of v with sibling s, and class b is maximal if :math:`G_b\le0`. Neither of two
    tied classes dominates; a tie is up to 1e-12 of the logarithms summed. A set is never empty.

    Where a common edge may have probability 0 the ratio decides, and an impossible class (an upper
    bound of 0 on its path) is dominated by all possible ones.
    """
    from dubito.dichotomies._kernels.tree_paths_compiled import maximal_of_rows  # noqa: PLC0415 - loads numba

    out = np.empty((len(lower), len(order)), dtype=np.bool_)
    given = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
    maximal_of_rows(*given, *child_indices(left, right, order), out)
    return out


def group_sums(proba: FloatArray, group: IntArray) -> FloatArray:
    """Return the sums of the columns of each group, (n, groups); `group` numbers them from 0."""
    from dubito.dichotomies._kernels.tree_paths_compiled import group_sums_of_rows  # noqa: PLC0415 - loads numba

    out = np.empty((len(proba), int(group.max()) + 1))
    group_sums_of_rows(np.ascontiguousarray(proba), group.astype(np.uintp), out)
    return out


def child_indices(left: IntArray, right: IntArray, order: IntArray) -> Children:
    """Return the indices of both children of each node in an array of K-1 nodes, then K classes."""
    leaf = len(order) - 1 + np.asarray(order)
    index = np.concatenate((np.arange(len(order) - 1), leaf[::-1]))  # leaf 0 is the last, at -1
    return index[left].astype(np.uintp), index[right].astype(np.uintp)
