"""Logistic model of a node on sparse rows: Newton's method by conjugate gradients.

A column without an entry among a node's rows has coefficient 0 at the optimum, by the ridge
penalty. So vectors are as long as the number of columns present, however wide the matrix is. Rows
are given as in CSR: the start of each row, the index of each entry among the columns present, and
the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_factor, cholesky_solve
from dubito._numerics.jit import compiled
from dubito.dichotomies._kernels.logistic_node_loss_compiled import (
    final_decrement,
    prior_log_odds,
    row_terms,
    search_plane,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Limits on the Newton steps of a fit, and on the products with the Hessian in one of them.
_MAX_STEPS, _MAX_PRODUCTS = 100, 500
#: Number of columns of greatest curvature whose block of the Hessian is factored.
_N_HEAVY = 16


@compiled()
def columns_present(indices, local_index, local):  # type: ignore[no-untyped-def]
    """Return the distinct columns in the order they appear; write each entry's index among them.

    `local_index` is a buffer with an entry for each column of the matrix, all -1 before and after.
    """
    columns = np.empty(min(len(indices), len(local_index)), np.uint32)
    count = 0
    for e in range(len(indices)):
        column = indices[e]
        if local_index[column] < 0:
            local_index[column] = count
            columns[count] = column
            count += 1
        local[e] = local_index[column]
    columns = columns[:count]
    for column in columns:
        local_index[column] = -1
    return columns.copy()


@compiled()
def gram_of_rows(rows, n_columns):  # type: ignore[no-untyped-def]
    """Return the Gram matrix of the rows: their inner products."""
    indptr, local, data = rows
    n = len(indptr) - 1
    gram = np.empty((n, n))
    dense = np.zeros(n_columns)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            dense[local[e]] += data[e]
        for j in range(i + 1):
            total = 0.0
            for e in range(indptr[j], indptr[j + 1]):
                total += data[e] * dense[local[e]]
            gram[i, j] = total
            gram[j, i] = total
        for e in range(indptr[i], indptr[i + 1]):
            dense[local[e]] = 0.0
    return gram


@compiled()
def combine(rows, alpha, n_columns):  # type: ignore[no-untyped-def]
    """Return the linear combination of the rows with coefficients `alpha`, (n_columns,)."""
    indptr, local, data = rows
    total = np.zeros(n_columns)
    for i in range(len(alpha)):
        for e in range(indptr[i], indptr[i + 1]):
            total[local[e]] += data[e] * alpha[i]
    return total


@compiled()
def _gradient_and_diagonal(rows, terms, w, gradient, diagonal):  # type: ignore[no-untyped-def]
    """Write the gradient and the diagonal of the Hessian; the intercept comes last."""
    indptr, local, data = rows
    residuals, curvatures = terms
    width = len(w) - 1
    for j in range(width):
        gradient[j] = w[j]
        diagonal[j] = 1.0
    gradient[width] = 0.0
    diagonal[width] = 1e-300
    for i in range(len(residuals)):
        gradient[width] -= residuals[i]
        diagonal[width] += curvatures[i]
        for e in range(indptr[i], indptr[i + 1]):
            gradient[local[e]] -= data[e] * residuals[i]
            diagonal[local[e]] += data[e] * data[e] * curvatures[i]


@compiled()
def _times_hessian(rows, hessian, direction, rise, product):  # type: ignore[no-untyped-def]
    """Write the Hessian times a direction, and the change of every row's log-odds along it.

    `hessian` are the rows' curvatures and whether there is an intercept.
    """
    indptr, local, data = rows
    curvatures, has_intercept = hessian
    width = len(direction) - 1
    product[:] = direction
    product[width] = 0.0
    for i in range(len(curvatures)):
        along = direction[width]
        for e in range(indptr[i], indptr[i + 1]):
            along += data[e] * direction[local[e]]
        rise[i] = along
        along *= curvatures[i]
        product[width] += along
        for e in range(indptr[i], indptr[i + 1]):
            product[local[e]] += data[e] * along
    if not has_intercept:
        product[width] = 0.0


@compiled()
def _heaviest(diagonal, count, rank):  # type: ignore[no-untyped-def]
    """Return the columns of greatest curvature, the intercept first; write the rank of each column.

    `rank` is as long as the diagonal; columns that are not among those returned have -1.
    """
    width = len(diagonal) - 1
    count = min(count, width)
    heavy, columns = np.empty(count), np.empty(count, np.int64)
    n_chosen = 0
    for j in range(width):
        if n_chosen == count and (count == 0 or diagonal[j] <= heavy[count - 1]):
            continue
        position = min(n_chosen, count - 1)
        while position > 0 and diagonal[j] > heavy[position - 1]:
            heavy[position], columns[position] = heavy[position - 1], columns[position - 1]
            position -= 1
        heavy[position], columns[position] = diagonal[j], j
        n_chosen = min(n_chosen + 1, count)
    rank[:] = -1
    rank[width] = 0
    for q in range(n_chosen):
        rank[columns[q]] = q + 1
    chosen = np.empty(n_chosen + 1, np.int64)
    chosen[0] = width
    chosen[1:] = columns[:n_chosen]
    return chosen


@compiled()
def _factor_block(rows, hessian, chosen, rank):  # type: ignore[no-untyped-def]
    """Return the Cholesky factor of the Hessian of the heaviest columns and the intercept.

    Columns with entries in most rows, such as frequent words, are correlated with each other and
    with the intercept; the rest of the Hessian is nearly diagonal.
    """
    indptr, local, data = rows
    curvatures, has_intercept = hessian
    m = len(chosen)
    block, lower = np.zeros((m, m)), np.zeros((m, m))
    ranks, values = np.empty(m, np.int64), np.empty(m)
    for i in range(len(curvatures)):
        ranks[0], values[0], count = 0, 1.0, 1
        for e in range(indptr[i], indptr[i + 1]):
            q = rank[local[e]]
            if q > 0 and count < m:
                ranks[count], values[count] = q, data[e]
                count += 1
        for a in range(count):
            scaled = curvatures[i] * values[a]
            for b in range(a + 1):
                block[max(ranks[a], ranks[b]), min(ranks[a], ranks[b])] += scaled * values[b]
    for a in range(m):
        block[a, a] += 1e-300 if a == 0 else 1.0
        if not has_intercept and a > 0:
            block[a, 0] = 0.0
    if not cholesky_factor(block, 0.0, lower):
        lower[:] = 0.0
        for a in range(m):
            lower[a, a] = np.sqrt(block[a, a])
    return lower


@compiled()
def _precondition(residual, diagonal, block, out):  # type: ignore[no-untyped-def]
    """Write the preconditioned residual, by the factored block and elsewhere by the diagonal."""
    chosen, lower = block
    for j in range(len(residual)):
        out[j] = residual[j] / diagonal[j]
    heavy = residual[chosen]
    solution = np.empty(len(chosen))
    cholesky_solve(lower, heavy, solution)
    for a in range(len(chosen)):
        out[chosen[a]] = solution[a]


@compiled()
def _newton_step(rows, hessian, derivatives, block, accuracy, buffers):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Return the change of log-odds along the step, and the number of products with the Hessian.

    The step, by conjugate gradients, is written into the first buffer.
    """
    gradient, diagonal = derivatives
    step, residual, direction, product = buffers[0], buffers[1], buffers[2], buffers[3]
    preconditioned = buffers[6]
    n = len(hessian[0])
    rise, rise_of_direction = np.zeros(n), np.empty(n)
    step[:] = 0.0
    for j in range(len(gradient)):
        residual[j] = -gradient[j]
    _precondition(residual, diagonal, block, preconditioned)
    direction[:] = preconditioned
    size = np.dot(residual, preconditioned)
    small_enough = accuracy * accuracy * size
    products = 0
    while products < _MAX_PRODUCTS and size > small_enough:
        products += 1
        _times_hessian(rows, hessian, direction, rise_of_direction, product)
        length = size / np.dot(direction, product)
        for j in range(len(step)):
            step[j] += length * direction[j]
            residual[j] -= length * product[j]
        _precondition(residual, diagonal, block, preconditioned)
        before, size = size, np.dot(residual, preconditioned)
        ratio = size / before
        for j in range(len(step)):
            direction[j] = preconditioned[j] + ratio * direction[j]
        rise += length * rise_of_direction
    return rise, products


@compiled()
def fit_sparse(rows, sides, settings, w, log_odds, buffers):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Fit a node; return the last decrement and the number of products with the Hessian.

    `sides` and `settings` are those of `fit_by_gram`. `w` holds the start and is overwritten by the
    fit, with the intercept last; `log_odds` is overwritten by those of the rows. `buffers` are
    seven rows as long as w.
    """
    indptr, local, data = rows
    n_left, weight = sides
    has_intercept, tolerance = settings
    n = len(log_odds)
    width = len(w) - 1
    residuals, curvatures = np.empty(n), np.empty(n)
    chosen, rank = np.empty(0, np.int64), np.empty(width + 1, np.int64)
    gradient, diagonal, step = buffers[4], buffers[5], buffers[0]
    for i in range(n):
        log_odds[i] = w[width]
        for e in range(indptr[i], indptr[i + 1]):
            log_odds[i] += data[e] * w[local[e]]
    decrement, total = np.inf, 0
    for _ in range(_MAX_STEPS):
        loss = row_terms(log_odds, n_left, weight, residuals, curvatures)
        _gradient_and_diagonal(rows, (residuals, curvatures), w, gradient, diagonal)
        if not has_intercept:
            gradient[width] = 0.0
        accuracy = min(0.03, max(0.1 * decrement, 0.01))
        derivatives = (gradient, diagonal)
        if len(chosen) == 0:
            chosen = _heaviest(diagonal, _N_HEAVY, rank)
        hessian = (curvatures, has_intercept)
        block = (chosen, _factor_block(rows, hessian, chosen, rank))
        rise, products = _newton_step(rows, hessian, derivatives, block, accuracy, buffers)
        total += products
        derivative = np.dot(gradient, step)  # of the objective along the step
        decrement = np.sqrt(max(-derivative, 0.0))
        q0, q1, q2 = 0.0, 0.0, 0.0
        for j in range(width):
            q0 += w[j] * w[j]
            q1 += w[j] * step[j]
            q2 += step[j] * step[j]
        before = loss + 0.5 * q0
        quadratic = (q0, q1, q2)
        keep, length = search_plane((log_odds, rise), sides, quadratic, before, decrement)
        for j in range(len(w)):
            w[j] = keep * w[j] + length * step[j]
        log_odds[:] = keep * log_odds + length * rise
        if decrement <= final_decrement(tolerance, before) or length == 0.0:
            break
    return decrement, total


@compiled()
def start_at_prior(sides: tuple[int, FloatArray], has_intercept: bool, w: FloatArray) -> None:
    """Write the fit without features: coefficients 0, the intercept the log-odds of the sides."""
    w[:] = 0.0
    if has_intercept:
        w[len(w) - 1] = prior_log_odds(sides[0], sides[1])
