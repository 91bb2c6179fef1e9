"""A logistic node with fewer columns than rows: Newton's method in the space of its columns.

The Hessian of some rows, spread evenly, is factored; where there are more rows, conjugate gradients
with that factor for a preconditioner solve for the step of all of them. A few passes over the rows
do, where the Hessian of all would cost as many passes as there are columns.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito.dichotomies._kernels.logistic_node_loss_compiled import (
    enough,
    row_terms,
    search_plane,
    solve_factored,
)

_MOST_STEPS = 100
_MOST_PRODUCTS = 1000
#: Rows that are taken at once: their features stay in the cache while they are used twice.
_BLOCK = 512
#: Rows for each column in the Hessian that is factored, and the most columns it may have.
_ROWS_PER_COLUMN = 64
_MOST_FACTORED = 400
#: Multiples of the first modulo the second, a prime, are as good as random.
_STRIDE, _MODULUS = 40_503, 65_537
#: Columns of a Hessian that cost as much as a product with it, where all rows are in it.
_PRODUCTS_PER_COLUMN = 8


@compiled()
def _gradient(X, pull, penalty, w):  # type: ignore[no-untyped-def]
    """Return the gradient: products in the precision of X, sums over blocks in double."""
    gradient = penalty * w
    for first in range(0, len(X), _BLOCK):
        last = min(first + _BLOCK, len(X))
        gradient -= np.dot(pull[first:last].astype(X.dtype), X[first:last])
    return gradient


@compiled()
def _factor(X, bend, penalty, every):  # type: ignore[no-untyped-def]
    """Return the Cholesky factor of the Hessian, estimated from one row of every so many.

    Of many columns it is the diagonal alone, by itself in a row: a factor would cost more than the
    products that it saves.
    """
    p = X.shape[1]
    if p > _MOST_FACTORED:
        diagonal = penalty.copy()
        for i in range(len(X)):
            for j in range(p):
                diagonal[j] += bend[i] * X[i, j] * X[i, j]
        return diagonal.reshape((1, p))
    hessian = np.diag(penalty)
    scaled = np.empty((_BLOCK, p), X.dtype)
    filled = 0
    for first in range(0, len(X), every):
        # Any of the next so many rows, by a rule without a period: rows of a fold have one.
        i = min(first + (first // every * _STRIDE) % _MODULUS % every, len(X) - 1)
        root = X.dtype.type(np.sqrt(every * bend[i]))
        for j in range(p):
            scaled[filled, j] = X[i, j] * root
        filled += 1
        if filled == _BLOCK or first + every >= len(X):
            rows = scaled[:filled]
            hessian += np.dot(rows.T, rows)
            filled = 0
    # Products in single precision may leave the matrix a little short of definite.
    lift = 4.0 * np.finfo(X.dtype).eps * p
    for j in range(p):
        hessian[j, j] += lift * hessian[j, j] + 1e-300
    return np.linalg.cholesky(hessian)


@compiled()
def _solve(factor, out):  # type: ignore[no-untyped-def]
    """Replace the right-hand side in `out` by the solution."""
    if len(factor) == 1:
        out /= factor[0]
    else:
        solve_factored(factor, out)


@compiled()
def _times_hessian(X, bend, penalty, direction, rise):  # type: ignore[no-untyped-def]
    """Return the Hessian times a direction, and write the direction's rise in every row."""
    product = penalty * direction
    short = direction.astype(X.dtype)
    for first in range(0, len(X), _BLOCK):
        last = min(first + _BLOCK, len(X))
        block = X[first:last]
        along = np.dot(block, short)
        rise[first:last] = along
        product += np.dot((along * bend[first:last]).astype(X.dtype), block)
    return product


@compiled()
def _newton_step(X, curvature, gradient, lower, accuracy, rise):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Return the step by conjugate gradients, to a share of the gradient; write its rise."""
    bend, penalty = curvature
    step = np.zeros(len(gradient))
    rise[:] = 0.0
    residual = -gradient
    nearer = residual.copy()
    _solve(lower, nearer)
    direction = nearer.copy()
    rise_of_direction = np.empty(len(X))
    size = np.dot(residual, nearer)
    small_enough = accuracy * accuracy * size
    products = 0
    while products < _MOST_PRODUCTS and size > small_enough:
        products += 1
        product = _times_hessian(X, bend, penalty, direction, rise_of_direction)
        length = size / np.dot(direction, product)
        step += length * direction
        rise += length * rise_of_direction
        residual -= length * product
        nearer[:] = residual
        _solve(lower, nearer)
        before, size = size, np.dot(residual, nearer)
        direction = nearer + (size / before) * direction
    return step, products


@compiled()
def fit_by_columns(X, sides, settings, w, odds):  # type: ignore[no-untyped-def]
    """Fit a node; return the last decrement and the products with the Hessian.

    `sides` are the number of rows on the left and the weights of all, `settings` the penalty of
    each column and the decrement at which to end. `w` holds the start and gets the fit, `odds`
    the log-odds of the rows. The intercept is a column of ones without a penalty. The decrement
    is as in `fit_by_rows`.
    """
    n_left, weight = sides
    penalty, tolerance = settings
    n, p = X.shape
    odds[:] = np.dot(X, w.astype(X.dtype))
    pull, bend, rise = np.empty(n), np.empty(n), np.empty(n)
    every = max(n // (_ROWS_PER_COLUMN * p), 1)
    # A new factor costs as much as so many products: it is made where the last step took more.
    worth = p / every / _PRODUCTS_PER_COLUMN
    lower = np.empty((0, 0))
    decrement, products, total = np.inf, np.inf, 0
    for _ in range(_MOST_STEPS):
        loss = row_terms(odds, n_left, weight, pull, bend)
        gradient = _gradient(X, pull, penalty, w)
        if products > worth:
            lower = _factor(X, bend, penalty, every)
        accuracy = min(0.3, max(0.1 * decrement, 0.01))
        along, products = _newton_step(X, (bend, penalty), gradient, lower, accuracy, rise)
        total += products
        slope = np.dot(gradient, along)
        decrement = np.sqrt(max(-slope, 0.0))
        heavy = penalty * along
        quadratic = (np.dot(penalty * w, w), np.dot(heavy, w), np.dot(heavy, along))
        before = loss + 0.5 * quadratic[0]
        keep, length = search_plane((odds, rise), sides, quadratic, before, decrement)
        w[:] = keep * w + length * along
        odds[:] = keep * odds + length * rise
        if decrement <= enough(tolerance, before) or length == 0.0:
            break
    return decrement, total
