"""Logistic model of a node with fewer columns than rows: Newton's method on its coefficients.

The Hessian of a subsample of the rows, spread evenly, is factored. It is the preconditioner of
conjugate gradients, which solve for the Newton step of all rows in a few passes over them; the
Hessian of all rows would cost as many passes as there are columns.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_solve_in_place
from dubito._numerics.jit import compiled
from dubito.dichotomies._kernels.logistic_node_loss_compiled import (
    final_decrement,
    row_terms,
    search_plane,
)

#: Limits on the Newton steps of a fit, and on the products with the Hessian in one of them.
_MAX_STEPS, _MAX_PRODUCTS = 100, 1000
#: Rows of a chunk: their features stay in the processor's cache while they are used twice.
_CHUNK_ROWS = 512
#: The subsample has at least this many rows per column.
_ROWS_PER_COLUMN = 64
#: With more columns the preconditioner is the diagonal of the Hessian.
_MAX_FACTORED = 400
#: Rows of the subsample are chosen by multiples of the first number modulo the second, a prime.
_STRIDE, _MODULUS = 40_503, 65_537
#: Computing this many columns of the Hessian takes as long as one product of it and a vector.
_COLUMNS_PER_PRODUCT = 8


@compiled()
def _gradient(X, residuals, penalty, w):  # type: ignore[no-untyped-def]
    """Return the gradient of the penalised loss.

    Products are in the precision of X, sums over blocks in double precision.
    """
    gradient = penalty * w
    for start in range(0, len(X), _CHUNK_ROWS):
        stop = min(start + _CHUNK_ROWS, len(X))
        gradient -= np.dot(residuals[start:stop].astype(X.dtype), X[start:stop])
    return gradient


@compiled()
def _factor(X, curvatures, penalty, every):  # type: ignore[no-untyped-def]
    """Return the Cholesky factor of the Hessian, estimated from one row out of `every`.

    For many columns return the diagonal of the Hessian, (1, p): a factor would cost more than the
    products that it saves.
    """
    p = X.shape[1]
    if p > _MAX_FACTORED:
        diagonal = penalty.copy()
        for i in range(len(X)):
            for j in range(p):
                diagonal[j] += curvatures[i] * X[i, j] * X[i, j]
        return diagonal.reshape((1, p))
    hessian = np.diag(penalty)
    scaled = np.empty((_CHUNK_ROWS, p), X.dtype)
    filled = 0
    for start in range(0, len(X), every):
        # One of the next `every` rows, at no regular distance: rows left out by a fold have one.
        i = min(start + (start // every * _STRIDE) % _MODULUS % every, len(X) - 1)
        root = X.dtype.type(np.sqrt(every * curvatures[i]))
        for j in range(p):
            scaled[filled, j] = X[i, j] * root
        filled += 1
        if filled == _CHUNK_ROWS or start + every >= len(X):
            rows = scaled[:filled]
            hessian += np.dot(rows.T, rows)
            filled = 0
    # Products in single precision may leave the matrix slightly indefinite.
    lift = 4.0 * np.finfo(X.dtype).eps * p
    for j in range(p):
        hessian[j, j] += lift * hessian[j, j] + 1e-300
    return np.linalg.cholesky(hessian)


@compiled()
def _solve(factor, out):  # type: ignore[no-untyped-def]
    """Replace the right-hand side in `out` by the solution; `factor` is the result of `_factor`."""
    if len(factor) == 1:
        out /= factor[0]
    else:
        cholesky_solve_in_place(factor, out)


@compiled()
def _times_hessian(X, curvatures, penalty, direction, rise):  # type: ignore[no-untyped-def]
    """Return the Hessian times a direction; write the change of every row's log-odds along it."""
    product = penalty * direction
    rounded = direction.astype(X.dtype)
    for start in range(0, len(X), _CHUNK_ROWS):
        stop = min(start + _CHUNK_ROWS, len(X))
        block = X[start:stop]
        along = np.dot(block, rounded)
        rise[start:stop] = along
        product += np.dot((along * curvatures[start:stop]).astype(X.dtype), block)
    return product


@compiled()
def _newton_step(X, hessian, gradient, factor, accuracy, rise):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Return the step by conjugate gradients, and the number of products with the Hessian.

    The change of the rows' log-odds along the step is written to `rise`. `accuracy` is relative to
    the gradient, in the norm of the preconditioner.
    """
    curvatures, penalty = hessian
    step = np.zeros(len(gradient))
    rise[:] = 0.0
    residual = -gradient
    preconditioned = residual.copy()
    _solve(factor, preconditioned)
    direction = preconditioned.copy()
    rise_of_direction = np.empty(len(X))
    size = np.dot(residual, preconditioned)
    small_enough = accuracy * accuracy * size
    products = 0
    while products < _MAX_PRODUCTS and size > small_enough:
        products += 1
        product = _times_hessian(X, curvatures, penalty, direction, rise_of_direction)
        length = size / np.dot(direction, product)
        step += length * direction
        rise += length * rise_of_direction
        residual -= length * product
        preconditioned[:] = residual
        _solve(factor, preconditioned)
        before, size = size, np.dot(residual, preconditioned)
        direction = preconditioned + (size / before) * direction
    return step, products


@compiled()
def fit_by_columns(X, sides, settings, w, log_odds):  # type: ignore[no-untyped-def]
    """Fit a node; return the last decrement and the number of products with the Hessian.

    `sides` are the number of rows on the left and the sample weights of all, `settings` the
    penalty of each column and the decrement at which to stop. `w` holds the start and is
    overwritten by the fit, `log_odds` by those of the rows. The intercept is a column of ones
    without a penalty. The decrement is as in `fit_by_gram`.
    """
    n_left, weight = sides
    penalty, tolerance = settings
    n, p = X.shape
    log_odds[:] = np.dot(X, w.astype(X.dtype))
    residuals, curvatures, rise = np.empty(n), np.empty(n), np.empty(n)
    every = max(n // (_ROWS_PER_COLUMN * p), 1)
    # A new factor takes as long as this number of products: computed if the last step had more.
    factor_cost = p / every / _COLUMNS_PER_PRODUCT
    factor = np.empty((0, 0))
    decrement, products, total = np.inf, np.inf, 0
    for _ in range(_MAX_STEPS):
        loss = row_terms(log_odds, n_left, weight, residuals, curvatures)
        gradient = _gradient(X, residuals, penalty, w)
        if products > factor_cost:
            factor = _factor(X, curvatures, penalty, every)
        accuracy = min(0.3, max(0.1 * decrement, 0.01))
        along, products = _newton_step(X, (curvatures, penalty), gradient, factor, accuracy, rise)
        total += products
        derivative = np.dot(gradient, along)  # of the objective along the step
        decrement = np.sqrt(max(-derivative, 0.0))
        penalised = penalty * along
        quadratic = (np.dot(penalty * w, w), np.dot(penalised, w), np.dot(penalised, along))
        before = loss + 0.5 * quadratic[0]
        keep, length = search_plane((log_odds, rise), sides, quadratic, before, decrement)
        w[:] = keep * w + length * along
        log_odds[:] = keep * log_odds + length * rise
        if decrement <= final_decrement(tolerance, before) or length == 0.0:
            break
    return decrement, total
