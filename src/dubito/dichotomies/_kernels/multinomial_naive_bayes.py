"""Multinomial naive Bayes at all nodes of a tree, from sums over classes.

Rows, scores and folds are as in `gaussian_naive_bayes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dubito._numerics.row_subsets import row_chunks
from dubito.dichotomies._kernels.gaussian_naive_bayes import ALL_ROWS
from dubito.dichotomies._kernels.leaf_order import node_spans
from dubito.dichotomies._kernels.tree_paths import child_indices

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies._kernels.gaussian_naive_bayes import Rows
    from dubito.dichotomies.tree import DichotomyTree

    #: Smoothing counts of the features, and whether class priors are fitted.
    Options: TypeAlias = tuple[FloatArray, bool]

#: scikit-learn's own smallest alpha where `force_alpha` is False: the logarithm of 0 is not finite.
_SMALLEST_ALPHA = 1e-10

#: Number of rows that are converted between sparse and dense at a time.
_CHUNK_ROWS = 1024


@dataclass(frozen=True)
class MultinomialNodes:
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
        from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import count_scores  # noqa: PLC0415 - loads numba

        out = np.empty((X.shape[0], len(self.constant)))
        for rows in row_chunks(X.shape[0], 1, _CHUNK_ROWS):
            block = X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])
            count_scores(block, (self.coef, self.constant), out[rows])
        return out


@dataclass(frozen=True)
class SparseMultinomialNodes:
    r"""The same distributions, stored for the features that occur in a node's rows.

    A row x has the log-odds :math:`c_t+f_t\sum_jx_j+\sum_jx_jg_{tj}`. The last sum is over the
    features present at the node: entries ``start[j]:stop[j]`` are the nodes of feature j.

    Attributes
    ----------
    start, stop : ndarray of int, shape (n_features,)
        Start and end of the entries of each feature.
    node, value : ndarray
        Node of each entry, and the log-ratio of the smoothed counts.
    factor : ndarray, shape (K-1,)
        Log-ratio of the sums of the smoothed counts, left to right.
    constant : ndarray, shape (K-1,)
        Log-odds of the sample weights of the sides.
    """

    start: IntArray
    stop: IntArray
    node: npt.NDArray[np.int32]
    value: FloatArray
    factor: FloatArray
    constant: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import sparse_count_scores  # noqa: PLC0415 - loads numba

        out = np.empty((X.shape[0], len(self.constant)))
        entries = (self.start, self.stop), (self.node, self.value)
        model = *entries, self.factor, self.constant
        for rows in row_chunks(X.shape[0], 1, _CHUNK_ROWS):
            block = sparse.csr_array(X[rows])
            sparse_count_scores((block.data, block.indices, block.indptr), model, out[rows])
        return out


def fit_multinomial_nodes(
    X: Any,
    weight: FloatArray,
    leaf_start: IntArray,
    tree: DichotomyTree,
    *,
    alpha: FloatArray,
    fit_prior: bool,
    n_folds: int = 0,
) -> tuple[MultinomialNodes | SparseMultinomialNodes, FloatArray]:
    """Return the parameters that ``MultinomialNB`` has at every node.

    Parameters
    ----------
    X : ndarray or CSR array, shape (n, n_features)
        Rows in leaf order, no value negative.
    weight, leaf_start, tree, n_folds
        As for `fit_gaussian_nodes`.
    alpha : ndarray, shape (n_features,)
        Smoothing counts, as `smoothing_counts` returns them.
    fit_prior : bool
        Whether the log-odds include those of the sample weights of the sides.

    Returns
    -------
    model : CountNodes or SparseCountNodes
        Dense for dense rows. Its ``scores(X)`` are the log-odds.
    out_of_fold : ndarray
        Out-of-fold scores, packed; empty without folds.
    """
    fit = _fit_sparse_counts if sparse.issparse(X) else _fit_dense_counts
    return fit((X, weight), leaf_start, tree, (alpha, fit_prior), n_folds)


def smoothing_counts(alpha: Any, n_features: int, *, force_alpha: bool) -> FloatArray:
    """Return the smoothing count of each feature, positive.

    Without smoothing (`alpha` 0) a side without some feature would get probability 0: `alpha` is
    then 1e-10, as in scikit-learn if `force_alpha` is False.
    """
    counts: FloatArray = np.full(n_features, alpha, dtype=float)
    too_small = counts == 0 if force_alpha else counts < _SMALLEST_ALPHA
    counts[too_small] = _SMALLEST_ALPHA
    return counts


def _fit_dense_counts(
    rows: Rows, leaf_start: IntArray, tree: DichotomyTree, options: Options, n_folds: int
) -> tuple[MultinomialNodes, FloatArray]:
    """Return the nodes of dense rows, and packed out-of-fold scores, empty without folds."""
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import count_out_of_fold  # noqa: PLC0415 - loads numba

    rows = np.ascontiguousarray(rows[0]), rows[1]
    model = _fit_without_fold(rows, leaf_start, tree, options, without=ALL_ROWS)
    if not n_folds:
        return model, np.empty(0)
    spans = node_spans(leaf_start, tree)
    start = spans.packed_start()
    out_of_fold = np.empty(start[-1])
    for fold in range(n_folds):
        part = _fit_without_fold(rows, leaf_start, tree, options, without=(n_folds, fold))
        parameters = part.coef, part.constant
        count_out_of_fold(rows[0], (spans.start, start), (n_folds, fold), parameters, out_of_fold)
    out_of_fold[np.repeat(spans.has_single_row, spans.sizes)] = np.nan
    return model, out_of_fold


def _fit_without_fold(
    rows: Rows,
    leaf_start: IntArray,
    tree: DichotomyTree,
    options: Options,
    without: tuple[int, int],
) -> MultinomialNodes:
    """Return the coefficients fitted to all rows except those of a fold."""
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import (  # noqa: PLC0415 - loads numba
        add_up_counts,
        class_counts,
        count_coefficients,
    )

    alpha, fit_prior = options
    left, right = children = child_indices(tree.left, tree.right, np.arange(tree.n_classes))
    n_nodes_and_leaves = 2 * len(leaf_start) - 3
    total, counts = np.empty(n_nodes_and_leaves), np.empty((n_nodes_and_leaves, len(alpha)))
    class_counts(rows, leaf_start, without, (total, counts))
    add_up_counts(left, right, (total, counts))
    coef = np.empty((tree.n_nodes, len(alpha)))
    count_coefficients(children, counts, alpha, coef)
    return MultinomialNodes(coef, _prior_log_odds(total[left], total[right], fit_prior=fit_prior))


def _fit_sparse_counts(
    rows: Rows, leaf_start: IntArray, tree: DichotomyTree, options: Options, n_folds: int
) -> tuple[SparseMultinomialNodes, FloatArray]:
    """Return the nodes of sparse rows, and packed out-of-fold scores, empty without folds."""
    from dubito.dichotomies._kernels.multinomial_naive_bayes_compiled import (  # noqa: PLC0415 - loads numba
        entries_of_features,
        sparse_count_coefficients,
        sparse_count_out_of_fold,
    )

    X, weight = sparse.csr_array(rows[0]), rows[1]
    alpha, fit_prior = options
    csr = X.data, X.indices, X.indptr
    spans = node_spans(leaf_start, tree)
    nodes = tuple(spans)
    entry_start, entry_stop = np.empty((2, len(alpha)), dtype=np.intp)
    n_entries = entries_of_features(csr, nodes, entry_start, entry_stop)
    node, value = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
    factor, sides = np.empty(tree.n_nodes), np.empty((2, tree.n_nodes))
    entries = entry_start.copy(), node, value
    sparse_count_coefficients((csr, weight), nodes, alpha, entries, (factor, sides))
    constant = _prior_log_odds(*sides, fit_prior=fit_prior)
    model = SparseMultinomialNodes(entry_start, entry_stop, node, value, factor, constant)
    if not n_folds:
        return model, np.empty(0)
    start = spans.packed_start()
    out_of_fold = np.empty(start[-1])
    sparse_count_out_of_fold(
        (csr, weight), (*nodes, start), alpha, (n_folds, fit_prior), out_of_fold
    )
    return model, out_of_fold


def _prior_log_odds(left: FloatArray, right: FloatArray, *, fit_prior: bool) -> FloatArray:
    """Return the log-odds of the sample weights of the sides, 0 if priors are not fitted."""
    if not fit_prior:
        return np.zeros(len(left))
    with np.errstate(divide="ignore", invalid="ignore"):  # a side may have no rows outside a fold
        return np.log(right) - np.log(left)
