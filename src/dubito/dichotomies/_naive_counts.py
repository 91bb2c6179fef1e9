"""Multinomial naive Bayes at the nodes of a tree; rows, scores and folds as in `_naive_bayes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dubito.dichotomies._naive_bayes import (
    ALL_ROWS,
    check_parameters,
    child_places,
    forget_lone_rows,
    node_ptr,
    weights_of_rows,
)

if TYPE_CHECKING:
    from sklearn.naive_bayes import MultinomialNB

    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree

#: scikit-learn's own least alpha, where it is let: the logarithm of a count of 0 is no number.
_LEAST_ALPHA = 1e-10

#: Rows changed from sparse to dense or back at a time.
_BLOCK = 1024


@dataclass(frozen=True)
class CountNodes:
    r"""Two multinomial distributions at each node: log-odds :math:`c_t+\sum_jx_j\beta_{tj}`.

    Attributes
    ----------
    coef : ndarray, shape (K-1, n_features)
        Log-ratios of the features' probabilities.
    constant : ndarray, shape (K-1,)
        Log-odds of the weights of the sides.
    """

    coef: FloatArray
    constant: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.naive_counts_compiled import count_scores  # noqa: PLC0415

        out = np.empty((X.shape[0], len(self.constant)))
        for rows in _blocks(X):
            block = X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])
            count_scores(block, (self.coef, self.constant), out[rows])
        return out


@dataclass(frozen=True)
class SparseCountNodes:
    r"""The same, of features that most nodes do not have.

    A row x has the log-odds :math:`c_t+f_t\sum_jx_j+\sum_jx_jg_{tj}`. The last sum is over the
    features present at the node: at entries ``first[j]:last[j]`` are the nodes of feature j.

    Attributes
    ----------
    first, last : ndarray of int, shape (n_features,)
        Where the entries of each feature begin and end.
    node, value : ndarray
        For each entry the node, and the log-ratio of the smoothed counts.
    factor : ndarray, shape (K-1,)
        Log-ratio of the sums of the smoothed counts, left to right.
    constant : ndarray, shape (K-1,)
        Log-odds of the weights of the sides.
    """

    first: IntArray
    last: IntArray
    node: npt.NDArray[np.int32]
    value: FloatArray
    factor: FloatArray
    constant: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, K-1)."""
        from dubito.dichotomies._kernels.naive_counts_compiled import sparse_scores  # noqa: PLC0415

        out = np.empty((X.shape[0], len(self.constant)))
        entries = (self.first, self.last), (self.node, self.value)
        model = *entries, self.factor, self.constant
        for rows in _blocks(X):
            block = sparse.csr_array(X[rows])
            sparse_scores((block.data, block.indices, block.indptr), model, out[rows])
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
    """Return what ``MultinomialNB(alpha=..., fit_prior=...)`` learns at every node.

    Without smoothing (`alpha` 0) a feature that a side does not have would give it a probability
    of 0: 1e-10 is taken then, as scikit-learn does where `force_alpha` is False.

    Parameters
    ----------
    X : ndarray or CSR array, shape (n, n_features)
        Rows in leaf order, not negative.
    weight, offset, tree, n_folds
        As for `fit_gaussian`.
    estimator : MultinomialNB
        Gives the parameters; without `class_prior`.

    Returns
    -------
    model : CountNodes or SparseCountNodes
        Dense for dense rows. Its ``scores(X)`` are the log-odds.
    cross : ndarray or None
        Out-of-fold scores, packed.
    """
    check_parameters(estimator, X)
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"MultinomialNB counts features, and X has the negative value {values.min():g}. "
            "Use GaussianNB, or scale X to values of 0 and more."
        )
    rows = X, weights_of_rows(weight, X.shape[0])
    alpha = _smoothing_counts(estimator, X.shape[1])
    fit = _fit_sparse_counts if sparse.issparse(X) else _fit_dense_counts
    return fit(rows, offset, tree, (alpha, bool(estimator.fit_prior)), n_folds)


def _fit_dense_counts(
    rows: tuple[npt.NDArray[Any], FloatArray],
    offset: IntArray,
    tree: DichotomyTree,
    options: tuple[FloatArray, bool],
    n_folds: int | None,
) -> tuple[CountNodes, FloatArray | None]:
    from dubito.dichotomies._kernels.naive_counts_compiled import count_cross  # noqa: PLC0415

    rows = np.ascontiguousarray(rows[0]), rows[1]
    model = _contrasts(rows, offset, tree, options, without=ALL_ROWS)
    if n_folds is None:
        return model, None
    begin, ptr = offset[tree.start], node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    for fold in range(n_folds):
        part = _contrasts(rows, offset, tree, options, without=(n_folds, fold))
        count_cross(rows[0], (begin, ptr), (n_folds, fold), (part.coef, part.constant), cross)
    forget_lone_rows(cross, ptr, offset, tree)
    return model, cross


def _contrasts(
    rows: tuple[npt.NDArray[Any], FloatArray],
    offset: IntArray,
    tree: DichotomyTree,
    options: tuple[FloatArray, bool],
    *,
    without: tuple[int, int],
) -> CountNodes:
    """Return the coefficients of all rows but those of a fold."""
    from dubito.dichotomies._kernels.naive_counts_compiled import (  # noqa: PLC0415
        add_up_counts,
        class_counts,
        count_contrasts,
    )

    alpha, fit_prior = options
    left, right = children = child_places(tree)
    n_places = 2 * len(offset) - 3
    total, counts = np.empty(n_places), np.empty((n_places, len(alpha)))
    class_counts(rows, offset, without, (total, counts))
    add_up_counts(left, right, (total, counts))
    coef = np.empty((tree.n_nodes, len(alpha)))
    count_contrasts(children, counts, alpha, coef)
    return CountNodes(coef, _prior_odds(total[left], total[right], fit_prior=fit_prior))


def _fit_sparse_counts(
    rows: tuple[Any, FloatArray],
    offset: IntArray,
    tree: DichotomyTree,
    options: tuple[FloatArray, bool],
    n_folds: int | None,
) -> tuple[SparseCountNodes, FloatArray | None]:
    from dubito.dichotomies._kernels.naive_counts_compiled import (  # noqa: PLC0415
        entries_of_features,
        sparse_contrasts,
        sparse_cross,
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
    sparse_contrasts((csr, weight), nodes, alpha, entries, (factor, sides))
    constant = _prior_odds(*sides, fit_prior=fit_prior)
    model = SparseCountNodes(first, last, node, value, factor, constant)
    if n_folds is None:
        return model, None
    ptr = node_ptr(offset, tree)
    cross = np.empty(ptr[-1])
    sparse_cross((csr, weight), (*nodes, ptr), alpha, (n_folds, fit_prior), cross)
    return model, cross


def _prior_odds(left: FloatArray, right: FloatArray, *, fit_prior: bool) -> FloatArray:
    if not fit_prior:
        return np.zeros(len(left))
    with np.errstate(divide="ignore", invalid="ignore"):  # sides that a fold leaves without rows
        return np.log(right) - np.log(left)


def _smoothing_counts(estimator: MultinomialNB, n_features: int) -> FloatArray:
    """Return alpha for each feature, positive."""
    alpha: FloatArray = np.full(n_features, estimator.alpha, dtype=float)
    too_small = alpha == 0 if estimator.force_alpha else alpha < _LEAST_ALPHA
    alpha[too_small] = _LEAST_ALPHA
    return alpha


def _blocks(X: Any) -> list[slice]:
    return [slice(first, first + _BLOCK) for first in range(0, X.shape[0], _BLOCK)]
