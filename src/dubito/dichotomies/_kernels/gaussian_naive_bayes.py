r"""Gaussian naive Bayes at all nodes of a tree, without a separate fit at each.

The parameters are estimated from sums over rows. The sums of a node's sides are the sums of the
classes below them, so that one pass over the rows and one up the tree give the same parameters as a
fit to the rows of every node.

Rows are in leaf order (`leaf_order`). Scores are log-odds of the right side, one column per node,
nodes in preorder. Out-of-fold scores are packed, those of node t after those of node t - 1; the
fold of a row is its position modulo the number of folds. A side of a single row has none left when
that row is held out: the out-of-fold scores of such a node are nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dubito.dichotomies._kernels.leaf_order import node_spans
from dubito.dichotomies._kernels.tree_paths import child_indices

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies._kernels.tree_paths import Children
    from dubito.dichotomies.tree import DichotomyTree

    #: Rows in leaf order, with their sample weights.
    Rows: TypeAlias = tuple[Any, FloatArray]

#: Value of `without` with which no row is left out: no position is -1 modulo 1.
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
        variance on a side, even after smoothing, is ignored at the node: its scale is 0 on both.
    constant : ndarray, shape (K-1,)
        Log-odds of the sample weights of the sides, and the log-ratio of the determinants.
    """

    centre: FloatArray
    scale: FloatArray
    constant: FloatArray

    def scores(self, X: npt.NDArray[Any]) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import gaussian_scores  # noqa: PLC0415 - loads numba

        out = np.empty((len(X), len(self.constant)))
        model = self.centre, self.scale, self.constant
        gaussian_scores(np.ascontiguousarray(X), model, out)
        return out


def fit_gaussian_nodes(
    X: npt.NDArray[Any],
    weight: FloatArray,
    leaf_start: IntArray,
    tree: DichotomyTree,
    *,
    smoothing: float,
    n_folds: int = 0,
) -> tuple[GaussianNodes, FloatArray]:
    """Return the parameters that ``GaussianNB(var_smoothing=smoothing)`` estimates at every node.

    As there, sample weights change means, variances and priors, but not the largest variance of
    the node's rows, of which a fraction `smoothing` is added to all variances.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Rows in leaf order.
    weight : ndarray, shape (n,)
        Positive sample weights.
    leaf_start : ndarray of int, shape (K+1,)
        Start of the rows of each leaf position, and the end.
    tree : DichotomyTree
        A tree with K leaves.
    smoothing : float
        Fraction of the largest variance that is added to all variances.
    n_folds : int, default=0
        Number of folds of out-of-fold scores. 0: no such scores.

    Returns
    -------
    model : GaussianNodes
        Its ``scores(X)`` are the log-odds.
    out_of_fold : ndarray
        Out-of-fold scores, packed; empty without folds.
    """
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import gaussian_out_of_fold  # noqa: PLC0415 - loads numba

    rows = np.ascontiguousarray(X), weight
    children = child_indices(tree.left, tree.right, np.arange(tree.n_classes))
    model = _fit_without_fold(rows, leaf_start, children, smoothing, without=ALL_ROWS)
    if not n_folds:
        return model, np.empty(0)
    spans = node_spans(leaf_start, tree)
    start = spans.packed_start()
    out_of_fold = np.empty(start[-1])
    for fold in range(n_folds):
        part = _fit_without_fold(rows, leaf_start, children, smoothing, without=(n_folds, fold))
        parameters = part.centre, part.scale, part.constant
        gaussian_out_of_fold(
            rows[0], (spans.start, start), (n_folds, fold), parameters, out_of_fold
        )
    out_of_fold[np.repeat(spans.has_single_row, spans.sizes)] = np.nan
    return model, out_of_fold


def _fit_without_fold(
    rows: Rows, leaf_start: IntArray, children: Children, smoothing: float, without: tuple[int, int]
) -> GaussianNodes:
    """Return the Gaussians fitted to all rows except those of a fold."""
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import (  # noqa: PLC0415 - loads numba
        gaussian_sides,
        largest_variance,
    )

    X, weight = rows
    moments = unweighted = _moments(rows, leaf_start, children, without)
    if np.ptp(weight) > 0:
        unweighted = _moments((X, np.ones(len(X))), leaf_start, children, without)
    n_nodes, n_features = len(leaf_start) - 2, X.shape[1]
    largest = np.empty(n_nodes)
    largest_variance(unweighted[0], unweighted[2], largest)
    centre, scale = np.empty((n_nodes, 2, n_features)), np.empty((n_nodes, 2, n_features))
    constant = np.empty(n_nodes)
    gaussian_sides(children, moments, smoothing * largest, (centre, scale, constant))
    return GaussianNodes(centre, scale, constant)


def _moments(
    rows: Rows, leaf_start: IntArray, children: Children, without: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sample weights, means and centred sums of squares of all nodes, then all leaves."""
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import (  # noqa: PLC0415 - loads numba
        add_up_moments,
        class_moments,
    )

    shape = 2 * len(leaf_start) - 3, rows[0].shape[1]
    moments = np.empty(shape[0]), np.empty(shape), np.empty(shape)
    class_moments(rows, leaf_start, without, moments)
    add_up_moments(*children, moments)
    return moments
