"""Logistic model of one node: the fit by the method that suits its size, then fits without a fold.

========================  ====================================
rows of the node          method
========================  ====================================
dense, few                `logistic_node_gram_compiled`
dense, many               `logistic_node_columns_compiled`
sparse, few               `logistic_node_gram_compiled`
sparse, many              `logistic_node_sparse_compiled`
========================  ====================================
"""

from __future__ import annotations

import math

import numpy as np

from dubito._numerics.jit import compiled
from dubito.dichotomies._kernels.logistic_node_columns_compiled import fit_by_columns
from dubito.dichotomies._kernels.logistic_node_gram_compiled import fit_by_gram
from dubito.dichotomies._kernels.logistic_node_loss_compiled import prior_log_odds
from dubito.dichotomies._kernels.logistic_node_sparse_compiled import (
    columns_present,
    combine,
    fit_sparse,
    gram_of_rows,
    start_at_prior,
)

#: Dense nodes are fitted by their Gram matrix up to this many rows per column, and rows in all.
_ROWS_PER_COLUMN = 1.5
_MAX_DENSE_ROWS = 800
#: Sparse nodes up to this many rows: products with few entries cost less than solving for many.
_MAX_SPARSE_ROWS = 40


@compiled()
def _training_weights(weight, first_row, fold, n_folds):  # type: ignore[no-untyped-def]
    """Return the node's first row in the fold, and the sample weights, 0 for rows in the fold."""
    start = (fold - first_row) % n_folds
    training = weight.copy()
    training[start::n_folds] = 0.0
    return start, training


@compiled()
def _can_cross_fit(n, n_left, n_folds):  # type: ignore[no-untyped-def]
    """Return whether both sides keep a row whichever fold is held out: each has at least two."""
    return n_folds > 1 and min(n_left, n - n_left) > 1


@compiled()
def _is_accurate(gram, weight):  # type: ignore[no-untyped-def]
    """Return whether Newton steps by a Gram matrix have some correct digits, at any curvatures.

    Its entries are products of features in units of their penalty: large ones lose digits.
    """
    total = 0.0
    for i in range(len(weight)):
        total += 0.25 * weight[i] * gram[i, i]
    eps = np.finfo(gram.dtype).eps
    return eps * total <= eps**0.25


@compiled()
def _centre_of(X):  # type: ignore[no-untyped-def]
    """Return the mean of the rows, in double precision."""
    centre = np.zeros(X.shape[1])
    for i in range(len(X)):
        centre += X[i]
    return centre / len(X)


@compiled()
def _gram_of(X, weight, penalty, has_intercept):  # type: ignore[no-untyped-def]
    """Return the Gram matrix of the rows, scaled so that every column has penalty 1.

    With an intercept the mean of the rows is subtracted. The matrix is empty if rows are too many,
    or if steps by it would be inaccurate.
    """
    n, p = X.shape
    width = p - 1 if has_intercept else p
    nothing = np.empty((0, 0), X.dtype)
    if n > min(_ROWS_PER_COLUMN * width, _MAX_DENSE_ROWS):
        return nothing
    centre = _centre_of(X) if has_intercept else np.zeros(p)
    scaled = np.empty((n, width), X.dtype)
    for j in range(width):
        unit = 1.0 / math.sqrt(penalty[j])
        for i in range(n):
            scaled[i, j] = (X[i, j] - centre[j]) * unit
    gram = np.dot(scaled, scaled.T)
    return gram if _is_accurate(gram, weight) else nothing


@compiled()
def _fit_dense_once(X, gram, sides, settings, w, log_odds):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Fit by the Gram matrix, or by columns if it is empty; return the decrement and the work."""
    penalty, has_intercept, tolerance = settings
    if len(gram) == 0:
        return fit_by_columns(X, sides, (penalty, tolerance), w, log_odds)
    alpha = np.zeros(len(gram))
    intercept, decrement, steps = fit_by_gram(
        gram, sides, (has_intercept, tolerance), alpha, log_odds
    )
    width = len(penalty) - 1 if has_intercept else len(penalty)
    rows = np.dot(alpha.astype(X.dtype), X)
    w[:width] = rows[:width] / penalty[:width]
    if has_intercept:
        w[width] = intercept - np.dot(_centre_of(X)[:width], w[:width])
    return decrement, steps


@compiled()
def fit_dense_node(X, span, weight, settings, n_folds):  # type: ignore[no-untyped-def]
    """Return coefficients, out-of-fold log-odds, the decrement and the work (steps or products).

    X are the node's rows, the last column of ones where there is an intercept; `span` is the
    position of the first among all rows, and the number on the left; `settings` are the penalty of
    each column, whether there is an intercept, and the decrement at which to stop. Fold f holds
    every row whose position among all rows is f modulo the number of folds. Out-of-fold log-odds
    are nan where a side has a single row, and empty without folds.
    """
    first_row, n_left = span
    penalty, has_intercept, _ = settings
    n, p = X.shape
    log_odds = np.empty(n)
    w = np.zeros(p)
    if has_intercept:
        w[p - 1] = prior_log_odds(n_left, weight)
    gram = _gram_of(X, weight, penalty, has_intercept)
    decrement, work = _fit_dense_once(X, gram, (n_left, weight), settings, w, log_odds)
    out_of_fold = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            start, training = _training_weights(weight, first_row, fold, n_folds)
            _fit_dense_once(X, gram, (n_left, training), settings, w.copy(), log_odds)
            out_of_fold[start::n_folds] = log_odds[start::n_folds]
    return w, out_of_fold, decrement, work


@compiled()
def _fit_sparse_once(rows, gram, sides, settings, w, log_odds, buffers):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Fit by the Gram matrix, or by `fit_sparse` if it is empty; return the decrement and work."""
    if len(gram) == 0:
        return fit_sparse(rows, sides, settings, w, log_odds, buffers)
    alpha = np.zeros(len(gram))
    intercept, decrement, steps = fit_by_gram(gram, sides, settings, alpha, log_odds)
    width = len(w) - 1
    w[:width] = combine(rows, alpha, width)
    w[width] = intercept
    return decrement, steps


@compiled()
def fit_sparse_node(entries, span, weight, settings, n_folds, local_index):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Return the columns present, their coefficients, and the rest as `fit_dense_node`.

    The intercept is the last coefficient.
    `entries` are as in CSR: starts of rows, counted from 0, columns and values; the first two are
    unsigned, so that indexing does not test their sign. `settings` are whether there is an
    intercept, and the decrement at which to stop; `local_index` is a buffer of `columns_present`.
    """
    indptr, indices, data = entries
    first_row, n_left = span
    has_intercept, _ = settings
    n = len(weight)
    local = np.empty(len(indices), np.uint32)
    columns = columns_present(indices, local_index, local)
    rows = (indptr, local, data)
    width = len(columns)
    log_odds, w = np.empty(n), np.empty(width + 1)
    start_at_prior((n_left, weight), has_intercept, w)
    gram = np.empty((0, 0))
    if n <= _MAX_SPARSE_ROWS:
        gram = gram_of_rows(rows, width)
        if not _is_accurate(gram, weight):
            gram = np.empty((0, 0))
    buffers = np.empty((7, 0 if len(gram) > 0 else width + 1))
    decrement, work = _fit_sparse_once(rows, gram, (n_left, weight), settings, w, log_odds, buffers)
    out_of_fold = np.full(n if n_folds > 1 else 0, np.nan)
    if _can_cross_fit(n, n_left, n_folds):
        for fold in range(n_folds):
            start, training = _training_weights(weight, first_row, fold, n_folds)
            _fit_sparse_once(rows, gram, (n_left, training), settings, w.copy(), log_odds, buffers)
            out_of_fold[start::n_folds] = log_odds[start::n_folds]
    return columns, w, out_of_fold, decrement, work
