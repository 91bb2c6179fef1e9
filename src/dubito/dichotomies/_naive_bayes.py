"""Naive Bayes at all nodes: the parameters of scikit-learn's classifiers, and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dubito.dichotomies._kernels.gaussian_naive_bayes import fit_gaussian_nodes
from dubito.dichotomies._kernels.multinomial_naive_bayes import (
    fit_multinomial_nodes,
    smoothing_counts,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.dichotomies._kernels.leaf_order import LeafRows
    from dubito.dichotomies.tree import DichotomyTree


def is_plain_naive_bayes(estimator: Any) -> bool:
    """Return whether all nodes of a classifier can be fitted at once."""
    if type(estimator) is GaussianNB:
        return estimator.priors is None
    return type(estimator) is MultinomialNB and estimator.class_prior is None


def fit_naive_bayes_nodes(
    rows: LeafRows, tree: DichotomyTree, estimator: Any, *, weighted: bool, n_folds: int
) -> tuple[Any, FloatArray]:
    """Return the fitted nodes, and packed out-of-fold log-odds, empty without folds."""
    X = rows.gather()
    if isinstance(estimator, MultinomialNB):
        _refuse_negative(X)
    _check_parameters(estimator, X)
    weight = rows.weight if weighted else np.ones(len(rows.weight))
    if isinstance(estimator, GaussianNB):
        smoothing = float(estimator.var_smoothing)
        return fit_gaussian_nodes(
            X, weight, rows.leaf_start, tree, smoothing=smoothing, n_folds=n_folds
        )
    alpha = smoothing_counts(estimator.alpha, X.shape[1], force_alpha=estimator.force_alpha)
    fit_prior = bool(estimator.fit_prior)
    return fit_multinomial_nodes(
        X, weight, rows.leaf_start, tree, alpha=alpha, fit_prior=fit_prior, n_folds=n_folds
    )


def _refuse_negative(X: Any) -> None:
    """Raise an error for rows that are not counts."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"MultinomialNB counts features, and X has the negative value {values.min():g}. "
            "Use GaussianNB, or scale X to values of 0 and more."
        )


def _check_parameters(estimator: Any, X: Any) -> None:
    """Raise scikit-learn's own error for bad parameters, or for sparse rows if it takes none."""
    with np.errstate(divide="ignore"):
        clone(estimator).fit(X[[0, X.shape[0] - 1]], [0, 1])
