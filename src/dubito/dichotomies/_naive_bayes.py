r"""Naive Bayes at all nodes of a tree, without a separate fit at each.

GaussianNB and MultinomialNB estimate their parameters from sums over rows. The sums of a node's
sides are the sums of the classes below them, so that one pass over the rows and one up the tree
give the same parameters as a fit to the rows of every node.

Rows are in leaf order: those of leaf position j are ``offset[j]:offset[j + 1]``. Scores are
log-odds of the right side, one column per node, nodes in preorder. Out-of-fold scores are packed,
those of node t after those of node t - 1; the fold of a row is its position modulo the number of
folds. A side of a single row has none left when that row is held out: the out-of-fold scores of
such a node are nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from dubito.dichotomies._kernels.tree_paths import places_of_children

if TYPE_CHECKING:
    from sklearn.naive_bayes import GaussianNB, MultinomialNB

    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree

#: Rows in leaf order, with their sample weights.
_Rows: TypeAlias = "tuple[Any, FloatArray]"
#: Positions of the left and the right child of each node in an array of nodes, then leaves.
_Children: TypeAlias = tuple[npt.NDArray[np.uintp], npt.NDArray[np.uintp]]
#: Smoothing counts of the features, and whether class priors are fitted.
_Options: TypeAlias = "tuple[FloatArray, bool]"

#: No fold: a remainder that no position has.
_ALL_ROWS = (1, -1)

#: scikit-learn's own smallest alpha where `force_alpha` is False: the logarithm of 0 is not finite.
_SMALLEST_ALPHA = 1e-10

#: Number of rows that are converted between sparse and dense at a time.
_BLOCK = 1024


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
        from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import gaussian_scores  # noqa: PLC0415 - slow

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
    """Return the parameters that ``GaussianNB(var_smoothing=...)`` estimates at every node.

    As there, sample weights change means, variances and priors, but not the largest variance of
    the node's rows, of which a fraction `var_smoothing` is added to all variances.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Rows in leaf order.
    weight : ndarray, shape (n,), or None
        Positive sample weights.
    offset : ndarray of int, shape (K+1,)
        Start of the rows of each leaf position, and the end.
    tree : DichotomyTree
        A tree with K leaves.
    estimator : GaussianNB
        Source of the parameters; without `priors`.
    n_folds : int, optional
        Number of folds of out-of-fold scores. None: no such scores.

    Returns
    -------
    model : GaussianNodes
        Its ``scores(X)`` are the log-odds.
    cross : ndarray or None
        Out-of-fold scores, packed.
    """
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import gaussian_cross  # noqa: PLC0415

    _check_parameters(estimator, X)
    X = np.ascontiguousarray(X)
    rows = X, _row_weights(weight, len(X))
    children = _children(tree)
    smoothing = float(estimator.var_smoothing)
    model = _fit_gaussian(rows, offset, children, smoothing, without=_ALL_ROWS)
    if n_folds is None:
        return model, None
    begin, ptr = offset[tree.start], node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    for fold in range(n_folds):
        part = _fit_gaussian(rows, offset, children, smoothing, without=(n_folds, fold))
        parts = part.centre, part.scale, part.constant
        gaussian_cross(X, (begin, ptr), (n_folds, fold), parts, cross)
    _drop_single_row_sides(cross, ptr, offset, tree)
    return model, cross


def _fit_gaussian(
    rows: _Rows, offset: IntArray, children: _Children, smoothing: float, without: tuple[int, int]
) -> GaussianNodes:
    """Return the Gaussians of all rows except those of a fold."""
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import (  # noqa: PLC0415
        gaussian_sides,
        largest_variance,
    )

    X, weight = rows
    moments = _moments(rows, offset, children, without)
    plain = moments
    if np.ptp(weight) > 0:
        plain = _moments((X, np.ones(len(X))), offset, children, without)
    n_nodes, n_features = len(offset) - 2, X.shape[1]
    widest = np.empty(n_nodes)
    largest_variance(plain[0], plain[2], widest)
    centre, scale = np.empty((n_nodes, 2, n_features)), np.empty((n_nodes, 2, n_features))
    constant = np.empty(n_nodes)
    gaussian_sides(children, moments, smoothing * widest, (centre, scale, constant))
    return GaussianNodes(centre, scale, constant)


def _moments(
    rows: _Rows, offset: IntArray, children: _Children, without: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sample weights, means and centred sums of squares of all nodes, then all leaves."""
    from dubito.dichotomies._kernels.gaussian_naive_bayes_compiled import (  # noqa: PLC0415
        add_up_moments,
        class_moments,
    )

    n_places, n_features = 2 * len(offset) - 3, rows[0].shape[1]
    shape = n_places, n_features
    moments = np.empty(n_places), np.empty(shape), np.empty(shape)
    class_moments(rows, offset, without, moments)
    add_up_moments(*children, moments)
    return moments


@dataclass(frozen=True)
class CountNodes:
    r"""Two multinomial distributions at each node: log-odds :math:`c_t+\sum_jx_j\beta_{tj}`.

    Attributes
    ----------
    coef : ndarray, shape (K-1, n_features)
        Log-ratios of the features' probabilities.
    constant : ndarray, shape (K-1,)
        Log-odds of the sample weights of the sides.
    """

    coef: FloatArray
    constant: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import count_scores  # noqa: PLC0415

        out = np.empty((X.shape[0], len(self.constant)))
        for rows in _blocks(X):
            block = X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])
            count_scores(block, (self.coef, self.constant), out[rows])
        return out


@dataclass(frozen=True)
class SparseCountNodes:
    r"""As `CountNodes`, for features that most nodes do not have.

    A row x has the log-odds :math:`c_t+f_t\sum_jx_j+\sum_jx_jg_{tj}`. The last sum is over the
    features present at the node: entries ``first[j]:last[j]`` are the nodes of feature j.

    Attributes
    ----------
    first, last : ndarray of int, shape (n_features,)
        Start and end of the entries of each feature.
    node, value : ndarray
        Node of each entry, and the log-ratio of the smoothed counts.
    factor : ndarray, shape (K-1,)
        Log-ratio of the sums of the smoothed counts, left to right.
    constant : ndarray, shape (K-1,)
        Log-odds of the sample weights of the sides.
    """

    first: IntArray
    last: IntArray
    node: npt.NDArray[np.int32]
    value: FloatArray
    factor: FloatArray
    constant: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import sparse_count_scores  # noqa: PLC0415

        out = np.empty((X.shape[0], len(self.constant)))
        entries = (self.first, self.last), (self.node, self.value)
        model = *entries, self.factor, self.constant
        for rows in _blocks(X):
            block = sparse.csr_array(X[rows])
            sparse_count_scores((block.data, block.indices, block.indptr), model, out[rows])
        return out


def fit_multinomial(
    X: Any,
    weight: FloatArray | None,
    offset: IntArray,
    tree: DichotomyTree,
    estimator: MultinomialNB,
    *,
    n_folds: int | None = None,
) -> tuple[CountNodes | SparseCountNodes, FloatArray | None]:
    """Return the parameters that ``MultinomialNB(alpha=..., fit_prior=...)`` has at every node.

    Without smoothing (`alpha` 0) a side without some feature would get probability 0: `alpha` is
    then 1e-10, as in scikit-learn if `force_alpha` is False.

    Parameters
    ----------
    X : ndarray or CSR array, shape (n, n_features)
        Rows in leaf order, no value negative.
    weight, offset, tree, n_folds
        As for `fit_gaussian`.
    estimator : MultinomialNB
        Source of the parameters; without `class_prior`.

    Returns
    -------
    model : CountNodes or SparseCountNodes
        Dense for dense rows. Its ``scores(X)`` are the log-odds.
    cross : ndarray or None
        Out-of-fold scores, packed.
    """
    _check_parameters(estimator, X)
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"MultinomialNB counts features, and X has the negative value {values.min():g}. "
            "Use GaussianNB, or scale X to values of 0 and more."
        )
    rows = X, _row_weights(weight, X.shape[0])
    alpha = _smoothing_counts(estimator, X.shape[1])
    fit = _fit_sparse_counts if sparse.issparse(X) else _fit_dense_counts
    return fit(rows, offset, tree, (alpha, bool(estimator.fit_prior)), n_folds)


def _fit_dense_counts(
    rows: _Rows, offset: IntArray, tree: DichotomyTree, options: _Options, n_folds: int | None
) -> tuple[CountNodes, FloatArray | None]:
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import count_cross  # noqa: PLC0415

    rows = np.ascontiguousarray(rows[0]), rows[1]
    model = _contrasts(rows, offset, tree, options, without=_ALL_ROWS)
    if n_folds is None:
        return model, None
    begin, ptr = offset[tree.start], node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    for fold in range(n_folds):
        part = _contrasts(rows, offset, tree, options, without=(n_folds, fold))
        count_cross(rows[0], (begin, ptr), (n_folds, fold), (part.coef, part.constant), cross)
    _drop_single_row_sides(cross, ptr, offset, tree)
    return model, cross


def _contrasts(
    rows: _Rows, offset: IntArray, tree: DichotomyTree, options: _Options, without: tuple[int, int]
) -> CountNodes:
    """Return the coefficients of all rows except those of a fold."""
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import (  # noqa: PLC0415
        add_up_counts,
        class_counts,
        count_contrasts,
    )

    alpha, fit_prior = options
    left, right = children = _children(tree)
    n_places = 2 * len(offset) - 3
    total, counts = np.empty(n_places), np.empty((n_places, len(alpha)))
    class_counts(rows, offset, without, (total, counts))
    add_up_counts(left, right, (total, counts))
    coef = np.empty((tree.n_nodes, len(alpha)))
    count_contrasts(children, counts, alpha, coef)
    return CountNodes(coef, _prior_odds(total[left], total[right], fit_prior=fit_prior))


def _fit_sparse_counts(
    rows: _Rows, offset: IntArray, tree: DichotomyTree, options: _Options, n_folds: int | None
) -> tuple[SparseCountNodes, FloatArray | None]:
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import (  # noqa: PLC0415
        entries_of_features,
        sparse_count_contrasts,
        sparse_count_cross,
    )

    X, weight = sparse.csr_array(rows[0]), rows[1]
    alpha, fit_prior = options
    csr = X.data, X.indices, X.indptr
    nodes = offset[tree.start], offset[tree.split], offset[tree.stop]
    first, last = np.empty((2, len(alpha)), dtype=np.intp)
    n_entries = entries_of_features(csr, nodes, first, last)
    node, value = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
    factor, sides = np.empty(tree.n_nodes), np.empty((2, tree.n_nodes))
    entries = first.copy(), node, value
    sparse_count_contrasts((csr, weight), nodes, alpha, entries, (factor, sides))
    constant = _prior_odds(*sides, fit_prior=fit_prior)
    model = SparseCountNodes(first, last, node, value, factor, constant)
    if n_folds is None:
        return model, None
    ptr = node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    sparse_count_cross((csr, weight), (*nodes, ptr), alpha, (n_folds, fit_prior), cross)
    return model, cross


def _prior_odds(left: FloatArray, right: FloatArray, *, fit_prior: bool) -> FloatArray:
    if not fit_prior:
        return np.zeros(len(left))
    with np.errstate(divide="ignore", invalid="ignore"):  # sides without rows outside the fold
        return np.log(right) - np.log(left)


def _smoothing_counts(estimator: MultinomialNB, n_features: int) -> FloatArray:
    """Return alpha for each feature, positive."""
    alpha: FloatArray = np.full(n_features, estimator.alpha, dtype=float)
    too_small = alpha == 0 if estimator.force_alpha else alpha < _SMALLEST_ALPHA
    alpha[too_small] = _SMALLEST_ALPHA
    return alpha


def _blocks(X: Any) -> list[slice]:
    return [slice(first, first + _BLOCK) for first in range(0, X.shape[0], _BLOCK)]


def node_ptr(offset: IntArray, tree: DichotomyTree) -> IntArray:
    """Return the start of the packed scores of each node, and the end, (K,)."""
    sizes = offset[tree.stop] - offset[tree.start]
    return np.concatenate(([0], np.cumsum(sizes)))


def _check_parameters(estimator: Any, X: Any) -> None:
    """Raise scikit-learn's own error for bad parameters, or for sparse rows if it takes none."""
    with np.errstate(divide="ignore"):
        clone(estimator).fit(X[[0, X.shape[0] - 1]], [0, 1])


def _drop_single_row_sides(
    cross: FloatArray, ptr: IntArray, offset: IntArray, tree: DichotomyTree
) -> None:
    """Replace the scores of nodes with a side of a single row by nan."""
    middle = offset[tree.split]
    smaller = np.minimum(middle - offset[tree.start], offset[tree.stop] - middle)
    for t in np.flatnonzero(smaller < 2):
        cross[ptr[t] : ptr[t + 1]] = np.nan


def _children(tree: DichotomyTree) -> _Children:
    return places_of_children(tree.left, tree.right, np.arange(tree.n_classes))


def _row_weights(weight: FloatArray | None, n: int) -> FloatArray:
    """Return the sample weights, 1 each if none are given."""
    return np.ones(n) if weight is None else np.asarray(weight, dtype=float)
