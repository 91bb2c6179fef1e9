"""A logistic node with fewer columns than rows: Newton's method in the space of its columns.

The Hessian of some rows, spread evenly, is factored; where there are more rows, conjugate gradients
with that factor for a preconditioner solve for the step of all of them. A few passes over the rows
do, where the Hessian of all would cost as many passes as there are columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.node_rows_compiled import row_terms, search_length, solve_factored

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

_MOST_STEPS = 100
_MOST_PRODUCTS = 200
#: Rows that are taken at once: their features stay in the cache while they are used twice.
_BLOCK = 512
#: Rows for each column in the Hessian that is factored, and the most columns it may have.
_ROWS_PER_COLUMN = 64
_MOST_FACTORED = 400
#: Below this decrement curvatures have settled, and the factor of the last step is kept.
_SETTLED = 0.05


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
    for i in range(every // 2, len(X), every):
        root = X.dtype.type(np.sqrt(every * bend[i]))
        for j in range(p):
            scaled[filled, j] = X[i, j] * root
        filled += 1
        if filled == _BLOCK or i + every >= len(X):
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
def _newton_step(X, bend, penalty, gradient, lower, accuracy, rise):  # type: ignore[no-untyped-def]
    """Return the step by conjugate gradients, to a share of the gradient; write its rise."""
    step = np.zeros(len(gradient))
    rise[:] = 0.0
    residual = -gradient
    nearer = residual.copy()
    _solve(lower, nearer)
    direction = nearer.copy()
    rise_of_direction = np.empty(len(X))
    size = np.dot(residual, nearer)
    enough = accuracy * accuracy * size
    for _ in range(_MOST_PRODUCTS):
        if size <= enough or size == 0.0:
            break
        product = _times_hessian(X, bend, penalty, direction, rise_of_direction)
        length = size / np.dot(direction, product)
        step += length * direction
        rise += length * rise_of_direction
        residual -= length * product
        nearer[:] = residual
        _solve(lower, nearer)
        before, size = size, np.dot(residual, nearer)
        direction = nearer + (size / before) * direction
    return step


@compiled()
def fit_by_columns(X, n_left, weight, penalty, tolerance, w, odds):  # type: ignore[no-untyped-def]
    """Fit a node; return the last decrement and the steps.

    `w` holds the start and gets the fit, `odds` the log-odds of the rows. The intercept is a
    column of ones without a penalty. The decrement is as in `fit_by_rows`.
    """
    n, p = X.shape
    odds[:] = np.dot(X, w.astype(X.dtype))
    pull, bend, rise = np.empty(n), np.empty(n), np.empty(n)
    every = max(n // (_ROWS_PER_COLUMN * p), 1)
    lower = np.empty((0, 0))
    decrement = np.inf
    for step in range(1, _MOST_STEPS + 1):
        loss = row_terms(odds, n_left, weight, pull, bend)
        gradient = _gradient(X, pull, penalty, w)
        if not decrement < _SETTLED:
            lower = _factor(X, bend, penalty, every)
        if every == 1 and p <= _MOST_FACTORED:
            along = -gradient
            solve_factored(lower, along)
            rise[:] = np.dot(X, along.astype(X.dtype))
        else:
            accuracy = min(0.3, max(0.3 * decrement, 0.01))
            along = _newton_step(X, bend, penalty, gradient, lower, accuracy, rise)
        slope = np.dot(gradient, along)
        decrement = np.sqrt(max(-slope, 0.0))
        heavy = penalty * along
        quadratic = (np.dot(penalty * w, w), np.dot(heavy, w), np.dot(heavy, along))
        length = search_length(odds, rise, n_left, weight, quadratic, loss, slope)
        w += length * along
        odds += length * rise
        if decrement <= tolerance or length == 0.0:
            return decrement, step
    return decrement, _MOST_STEPS
