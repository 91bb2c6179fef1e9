r"""Naive Bayes at the nodes of a tree, without a fit per node.

What GaussianNB and MultinomialNB learn of a set of rows are sums over the rows. Those of a node's
two sides are the sums of the classes below them, so one pass over the rows and one up the tree
give what a fit to the rows of every node would.

Rows are in leaf order: the rows of leaf position j are ``offset[j]:offset[j + 1]``. Scores are
log-odds of the right side, one column a node, nodes in preorder. Out-of-fold scores are packed,
those of the rows of node t after those of node t - 1; a row's fold is its position modulo the
number of folds. A side of a single row has nothing to learn from once the row is left out: the
scores of such a node are nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from dubito.dichotomies._kernels.tree_paths import places_of_children

if TYPE_CHECKING:
    from sklearn.naive_bayes import GaussianNB

    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree

#: No fold: a remainder that no position has.
ALL_ROWS = (1, -1)


@dataclass(frozen=True)
class GaussianNodes:
    r"""Two Gaussians with independent features at each node.

    A row x has the log-odds :math:`c_t+\frac12\sum_j(a_j^2-b_j^2)`, where
    :math:`a_j=(x_j-\mu_j)/\sigma_j` on the left side, :math:`b_j` on the right.

    Attributes
    ----------
    centre, scale : ndarray, shape (K-1, 2, n_features)
        Means and inverse standard deviations of the left and the right side. A feature without
        variance on a side, smoothing included, says nothing at the node: its scale is 0 on both.
    constant : ndarray, shape (K-1,)
        Log-odds of the weights of the sides, and of the determinants.
    """

    centre: FloatArray
    scale: FloatArray
    constant: FloatArray

    def scores(self, X: npt.NDArray[Any]) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.naive_bayes_compiled import gaussian_scores  # noqa: PLC0415 - slow

        out = np.empty((len(X), len(self.constant)))
        model = self.centre, self.scale, self.constant
        gaussian_scores(np.ascontiguousarray(X), model, out)
        return out


def fit_gaussian(
    X: npt.NDArray[Any],
    weight: FloatArray | None,
    offset: IntArray,
    tree: DichotomyTree,
    estimator: GaussianNB,
    *,
    n_folds: int | None = None,
) -> tuple[GaussianNodes, FloatArray | None]:
    """Return what ``GaussianNB(var_smoothing=...)`` learns at every node.

    As there, weights change means, variances and priors; the largest variance of the node's rows,
    of which `var_smoothing` is a part, is that of the rows without weights.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Rows in leaf order.
    weight : ndarray, shape (n,), or None
        Positive weights of the rows.
    offset : ndarray of int, shape (K+1,)
        Where the rows of each leaf position begin, and the end.
    tree : DichotomyTree
        The tree of K leaves.
    estimator : GaussianNB
        Gives the parameters; without `priors`.
    n_folds : int, optional
        Ask for out-of-fold scores.

    Returns
    -------
    model : GaussianNodes
        Its ``scores(X)`` are the log-odds.
    cross : ndarray or None
        Out-of-fold scores, packed.
    """
    from dubito.dichotomies._kernels.naive_bayes_compiled import gaussian_cross  # noqa: PLC0415

    check_parameters(estimator, X)
    X = np.ascontiguousarray(X)
    rows = X, weights_of_rows(weight, len(X))
    children = child_places(tree)
    smoothing = float(estimator.var_smoothing)
    model = _fit_gaussian(rows, offset, children, smoothing, without=ALL_ROWS)
    if n_folds is None:
        return model, None
    begin, ptr = offset[tree.start], node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    for fold in range(n_folds):
        part = _fit_gaussian(rows, offset, children, smoothing, without=(n_folds, fold))
        parts = part.centre, part.scale, part.constant
        gaussian_cross(X, (begin, ptr), (n_folds, fold), parts, cross)
    forget_lone_rows(cross, ptr, offset, tree)
    return model, cross


def node_ptr(offset: IntArray, tree: DichotomyTree) -> IntArray:
    """Return where the packed scores of each node begin, and the end, (K,)."""
    sizes = offset[tree.stop] - offset[tree.start]
    return np.concatenate(([0], np.cumsum(sizes)))


def _fit_gaussian(
    rows: tuple[npt.NDArray[Any], FloatArray],
    offset: IntArray,
    children: tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp]],
    smoothing: float,
    *,
    without: tuple[int, int],
) -> GaussianNodes:
    """Return the Gaussians of all rows but those of a fold."""
    from dubito.dichotomies._kernels.naive_bayes_compiled import gaussian_sides  # noqa: PLC0415

    X, weight = rows
    moments = _moments(rows, offset, children, without)
    plain = moments
    if np.ptp(weight) > 0:
        plain = _moments((X, np.ones(len(X))), offset, children, without)
    epsilon = smoothing * _widest_variance(plain)
    n_nodes, n_features = len(epsilon), X.shape[1]
    centre, scale = np.empty((n_nodes, 2, n_features)), np.empty((n_nodes, 2, n_features))
    constant = np.empty(n_nodes)
    gaussian_sides(children, moments, epsilon, (centre, scale, constant))
    return GaussianNodes(centre, scale, constant)


def _moments(
    rows: tuple[npt.NDArray[Any], FloatArray],
    offset: IntArray,
    children: tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp]],
    without: tuple[int, int],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights, means and centred sums of squares of all nodes, then all leaves."""
    from dubito.dichotomies._kernels.naive_bayes_compiled import (  # noqa: PLC0415
        add_up_moments,
        class_moments,
    )

    n_places, n_features = 2 * len(offset) - 3, rows[0].shape[1]
    shape = n_places, n_features
    moments = np.empty(n_places), np.empty(shape), np.empty(shape)
    class_moments(rows, offset, without, moments)
    add_up_moments(*children, moments)
    return moments


def _widest_variance(moments: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
    from dubito.dichotomies._kernels.naive_bayes_compiled import widest_variance  # noqa: PLC0415

    total, _, squares = moments
    out = np.empty(len(total) // 2)
    widest_variance(total, squares, out)
    return out


def check_parameters(estimator: Any, X: Any) -> None:
    """Let scikit-learn itself refuse parameters, or sparse rows where it takes none."""
    with np.errstate(divide="ignore"):
        clone(estimator).fit(X[[0, X.shape[0] - 1]], [0, 1])


def forget_lone_rows(
    cross: FloatArray, ptr: IntArray, offset: IntArray, tree: DichotomyTree
) -> None:
    """Write nan for nodes with a side of a single row."""
    middle = offset[tree.split]
    smaller = np.minimum(middle - offset[tree.start], offset[tree.stop] - middle)
    for t in np.flatnonzero(smaller < 2):
        cross[ptr[t] : ptr[t + 1]] = np.nan


def child_places(tree: DichotomyTree) -> tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp]]:
    """Return where both children of each node are in a row of nodes, then leaves."""
    return places_of_children(tree.left, tree.right, np.arange(tree.n_classes))


def weights_of_rows(weight: FloatArray | None, n: int) -> FloatArray:
    """Return the weights, 1 each where there are none."""
    return np.ones(n) if weight is None else np.asarray(weight, dtype=float)
