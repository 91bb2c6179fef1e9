"""One logistic node from its rows: the road that suits its size, then its folds."""

from __future__ import annotations

import math

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.node_dense_compiled import fit_by_columns
from dubito._kernels.node_gram_compiled import fit_by_rows
from dubito._kernels.node_sparse_compiled import (
    columns_present,
    combine,
    fit_sparse,
    gram_of_rows,
    start_at_prior,
)

#: Dense rows up to which a node is fitted by its Gram matrix, where they are fewer than columns.
_MOST_DENSE_ROWS = 800
#: The same for sparse rows: products with a few entries cost less than a system of many rows.
_MOST_SPARSE_ROWS = 40


@compiled()
def _held_out(n, first_row, fold, n_folds):  # type: ignore[no-untyped-def]
    """Return the first row of a node that is in a fold: every so many after it is as well."""
    return (fold - first_row) % n_folds


@compiled()
def _without(weight, first_row, fold, n_folds):  # type: ignore[no-untyped-def]
    """Return weights of the rows of a node, zero for those in the fold."""
    training = weight.copy()
    training[_held_out(len(weight), first_row, fold, n_folds) :: n_folds] = 0.0
    return training


@compiled()
def _can_cross_fit(n, n_left, n_folds):  # type: ignore[no-untyped-def]
    """Say whether every fold leaves rows on both sides: one row a side is too few."""
    return n_folds > 1 and min(n_left, n - n_left) > 1


@compiled()
def _fit_dense(X, gram, n_left, weight, penalty, intercept, tolerance, w, odds):  # type: ignore[no-untyped-def]
    """Fit by rows where a Gram matrix is given, by columns where it is empty."""
    if len(gram) == 0:
        return fit_by_columns(X, n_left, weight, penalty, tolerance, w, odds)
    alpha = np.zeros(len(gram))
    constant, decrement, steps = fit_by_rows(
        gram, n_left, weight, intercept, tolerance, alpha, odds
    )
    width = len(penalty) - 1 if intercept else len(penalty)
    rows = np.dot(alpha.astype(X.dtype), X)
    w[:width] = rows[:width] / penalty[:width]
    if intercept:
        w[width] = constant
    return decrement, steps


@compiled()
def _gram_of(X, penalty, intercept):  # type: ignore[no-untyped-def]
    """Return the Gram matrix of rows in units in which every column has penalty 1."""
    n, p = X.shape
    width = p - 1 if intercept else p
    if n > min(width, _MOST_DENSE_ROWS):
        return np.empty((0, 0))
    scaled = np.empty((n, width))
    for j in range(width):
        unit = 1.0 / math.sqrt(penalty[j])
        for i in range(n):
            scaled[i, j] = X[i, j] * unit
    return np.dot(scaled, scaled.T)


@compiled()
def fit_dense_node(X, first_row, n_left, weight, penalty, intercept, tolerance, n_folds):  # type: ignore[no-untyped-def]
    """Return weights of the columns, out-of-fold log-odds, the decrement and the steps.

    X are the node's rows, the last column of ones where there is an intercept. Fold f holds every
    row whose place among all rows is f modulo the number of folds. Log-odds are nan where a side
    has a single row, and none where there are no folds.
    """
    n, p = X.shape
    odds = np.empty(n)
    w = np.zeros(p)
    gram = _gram_of(X, penalty, intercept)
    decrement, steps = _fit_dense(X, gram, n_left, weight, penalty, intercept, tolerance, w, odds)
    cross = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            training = _without(weight, first_row, fold, n_folds)
            begin = _held_out(n, first_row, fold, n_folds)
            near = w.copy()
            _fit_dense(X, gram, n_left, training, penalty, intercept, tolerance, near, odds)
            cross[begin::n_folds] = odds[begin::n_folds]
    return w, cross, decrement, steps


@compiled()
def _fit_sparse(rows, gram, n_left, weight, intercept, tolerance, w, odds, scratch):  # type: ignore[no-untyped-def]
    """Fit by rows where a Gram matrix is given, by conjugate gradients where it is empty."""
    indptr, local, data = rows
    if len(gram) == 0:
        return fit_sparse(
            indptr, local, data, n_left, weight, intercept, tolerance, w, odds, scratch
        )
    alpha = np.zeros(len(gram))
    constant, decrement, steps = fit_by_rows(
        gram, n_left, weight, intercept, tolerance, alpha, odds
    )
    width = len(w) - 1
    w[:width] = combine(indptr, local, data, alpha, width)
    w[width] = constant
    return decrement, steps


@compiled()
def fit_sparse_node(  # type: ignore[no-untyped-def]
    indptr, indices, data, first_row, n_left, weight, intercept, tolerance, n_folds, place
):
    """Return columns present, their weights with the intercept last, and more as for dense rows.

    `indptr` of the node's rows begins at zero. `place` is scratch, see `columns_present`.
    """
    n = len(weight)
    local = np.empty(len(indices), np.int32)
    columns = columns_present(indices, place, local)
    width = len(columns)
    odds = np.empty(n)
    w = np.empty(width + 1)
    start_at_prior(n_left, weight, intercept, w)
    by_rows = n <= _MOST_SPARSE_ROWS
    gram = gram_of_rows(indptr, local, data, width) if by_rows else np.empty((0, 0))
    scratch = np.empty((6, 0 if by_rows else width + 1))
    rows = (indptr, local, data)
    decrement, steps = _fit_sparse(
        rows, gram, n_left, weight, intercept, tolerance, w, odds, scratch
    )
    cross = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            training = _without(weight, first_row, fold, n_folds)
            begin = _held_out(n, first_row, fold, n_folds)
            near = w.copy()
            _fit_sparse(rows, gram, n_left, training, intercept, tolerance, near, odds, scratch)
            cross[begin::n_folds] = odds[begin::n_folds]
    return columns, w, cross, decrement, steps
