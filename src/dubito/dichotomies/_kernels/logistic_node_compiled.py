"""One logistic node from its rows: the road that suits its size, then its folds."""

from __future__ import annotations

import math

import numpy as np

from dubito._numerics.jit import compiled
from dubito.dichotomies._kernels.logistic_node_columns_compiled import fit_by_columns
from dubito.dichotomies._kernels.logistic_node_gram_compiled import fit_by_rows
from dubito.dichotomies._kernels.logistic_node_loss_compiled import prior_odds
from dubito.dichotomies._kernels.logistic_node_sparse_compiled import (
    columns_present,
    combine,
    fit_sparse,
    gram_of_rows,
    start_at_prior,
)

#: Dense rows for each column up to which a node is fitted by its Gram matrix, and the most rows.
_ROWS_PER_COLUMN = 1.5
_MOST_DENSE_ROWS = 800
#: The same for sparse rows: products with a few entries cost less than a system of many rows.
_MOST_SPARSE_ROWS = 40


@compiled()
def _without(weight, first_row, fold, n_folds):  # type: ignore[no-untyped-def]
    """Return where the rows of a node in a fold begin, and weights that are zero for them."""
    begin = (fold - first_row) % n_folds
    training = weight.copy()
    training[begin::n_folds] = 0.0
    return begin, training


@compiled()
def _can_cross_fit(n, n_left, n_folds):  # type: ignore[no-untyped-def]
    """Say whether every fold leaves rows on both sides: one row a side is too few."""
    return n_folds > 1 and min(n_left, n - n_left) > 1


@compiled()
def _serves(gram, weight):  # type: ignore[no-untyped-def]
    """Say whether steps by a Gram matrix are right to some digits, for curvatures of any size.

    It squares what features are in units of their penalty: beyond some size digits are lost.
    """
    total = 0.0
    for i in range(len(weight)):
        total += 0.25 * weight[i] * gram[i, i]
    eps = np.finfo(gram.dtype).eps
    return eps * total <= eps**0.25


@compiled()
def _centre_of(X):  # type: ignore[no-untyped-def]
    """Return the mean of the rows, in double."""
    centre = np.zeros(X.shape[1])
    for i in range(len(X)):
        centre += X[i]
    return centre / len(X)


@compiled()
def _gram_of(X, weight, penalty, intercept):  # type: ignore[no-untyped-def]
    """Return the Gram matrix of rows in units in which every column has penalty 1.

    With an intercept rows are taken from their mean, which it makes up for. The matrix is empty
    where there are too many rows for it, or where it would not serve.
    """
    n, p = X.shape
    width = p - 1 if intercept else p
    nothing = np.empty((0, 0), X.dtype)
    if n > min(_ROWS_PER_COLUMN * width, _MOST_DENSE_ROWS):
        return nothing
    centre = _centre_of(X) if intercept else np.zeros(p)
    scaled = np.empty((n, width), X.dtype)
    for j in range(width):
        unit = 1.0 / math.sqrt(penalty[j])
        for i in range(n):
            scaled[i, j] = (X[i, j] - centre[j]) * unit
    gram = np.dot(scaled, scaled.T)
    return gram if _serves(gram, weight) else nothing


@compiled()
def _fit_dense(X, gram, sides, settings, w, odds):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Fit by rows where a Gram matrix is given, by columns where it is empty."""
    penalty, intercept, tolerance = settings
    if len(gram) == 0:
        return fit_by_columns(X, sides, (penalty, tolerance), w, odds)
    alpha = np.zeros(len(gram))
    constant, decrement, steps = fit_by_rows(gram, sides, (intercept, tolerance), alpha, odds)
    width = len(penalty) - 1 if intercept else len(penalty)
    rows = np.dot(alpha.astype(X.dtype), X)
    w[:width] = rows[:width] / penalty[:width]
    if intercept:
        w[width] = constant - np.dot(_centre_of(X)[:width], w[:width])
    return decrement, steps


@compiled()
def fit_dense_node(X, place, weight, settings, n_folds):  # type: ignore[no-untyped-def]
    """Return weights of the columns, out-of-fold log-odds, the decrement and the work.

    X are the node's rows, the last column of ones where there is an intercept; `place` says where
    they begin among all rows, and how many are on the left; `settings` are the penalty of each
    column, whether there is an intercept, and the decrement at which to end. Fold f holds every
    row whose place among all rows is f modulo the number of folds. Log-odds are nan where a side
    has a single row, and none where there are no folds.
    """
    first_row, n_left = place
    penalty, intercept, _ = settings
    n, p = X.shape
    odds = np.empty(n)
    w = np.zeros(p)
    if intercept:
        w[p - 1] = prior_odds(n_left, weight)
    gram = _gram_of(X, weight, penalty, intercept)
    decrement, work = _fit_dense(X, gram, (n_left, weight), settings, w, odds)
    cross = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            begin, training = _without(weight, first_row, fold, n_folds)
            _fit_dense(X, gram, (n_left, training), settings, w.copy(), odds)
            cross[begin::n_folds] = odds[begin::n_folds]
    return w, cross, decrement, work


@compiled()
def _fit_sparse(rows, gram, sides, settings, w, odds, scratch):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Fit by rows where a Gram matrix is given, by conjugate gradients where it is empty."""
    if len(gram) == 0:
        return fit_sparse(rows, sides, settings, w, odds, scratch)
    alpha = np.zeros(len(gram))
    constant, decrement, steps = fit_by_rows(gram, sides, settings, alpha, odds)
    width = len(w) - 1
    w[:width] = combine(rows, alpha, width)
    w[width] = constant
    return decrement, steps


@compiled()
def fit_sparse_node(entries, place, weight, settings, n_folds, scratch):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Return columns present, their weights with the intercept last, and more as for dense rows.

    `entries` are where rows begin, from zero on, columns and values; the first two are unsigned, so
    that they are looked up without a test of their sign. `settings` are whether there is an
    intercept, and the decrement at which to end. `scratch` is that of `columns_present`.
    """
    indptr, indices, data = entries
    first_row, n_left = place
    intercept, _ = settings
    n = len(weight)
    local = np.empty(len(indices), np.uint32)
    columns = columns_present(indices, scratch, local)
    rows = (indptr, local, data)
    width = len(columns)
    odds, w = np.empty(n), np.empty(width + 1)
    start_at_prior((n_left, weight), intercept, w)
    gram = np.empty((0, 0))
    if n <= _MOST_SPARSE_ROWS:
        gram = gram_of_rows(rows, width)
        if not _serves(gram, weight):
            gram = np.empty((0, 0))
    room = np.empty((7, 0 if len(gram) > 0 else width + 1))
    decrement, work = _fit_sparse(rows, gram, (n_left, weight), settings, w, odds, room)
    cross = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            begin, training = _without(weight, first_row, fold, n_folds)
            _fit_sparse(rows, gram, (n_left, training), settings, w.copy(), odds, room)
            cross[begin::n_folds] = odds[begin::n_folds]
    return columns, w, cross, decrement, work
