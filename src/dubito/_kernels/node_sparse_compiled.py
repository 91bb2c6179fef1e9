"""A logistic node on sparse rows: Newton's method by conjugate gradients on the columns present.

A column without an entry among a node's rows has weight zero at the optimum of a ridge penalty, so
that vectors need only be as long as the columns present, however wide the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.node_rows_compiled import prior_odds, row_terms, search_length

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int32]

_MOST_STEPS = 100
_MOST_PRODUCTS = 500


@compiled()
def columns_present(indices: IntArray, place: IntArray, local: IntArray) -> IntArray:
    """Return the distinct columns in the order they appear; write each entry's place among them.

    `place` is scratch as long as the matrix is wide, all -1 before and after.
    """
    columns = np.empty(min(len(indices), len(place)), np.int32)
    count = 0
    for e in range(len(indices)):
        column = indices[e]
        if place[column] < 0:
            place[column] = count
            columns[count] = column
            count += 1
        local[e] = place[column]
    columns = columns[:count]
    for column in columns:
        place[column] = -1
    return columns.copy()


@compiled()
def gram_of_rows(indptr, local, data, n_columns):  # type: ignore[no-untyped-def]
    """Return the inner products of the rows."""
    n = len(indptr) - 1
    gram = np.empty((n, n))
    wide = np.zeros(n_columns)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            wide[local[e]] += data[e]
        for j in range(i + 1):
            total = 0.0
            for e in range(indptr[j], indptr[j + 1]):
                total += data[e] * wide[local[e]]
            gram[i, j] = total
            gram[j, i] = total
        for e in range(indptr[i], indptr[i + 1]):
            wide[local[e]] = 0.0
    return gram


@compiled()
def combine(indptr, local, data, alpha, n_columns):  # type: ignore[no-untyped-def]
    """Return the sum of rows times coefficients."""
    total = np.zeros(n_columns)
    for i in range(len(alpha)):
        for e in range(indptr[i], indptr[i + 1]):
            total[local[e]] += data[e] * alpha[i]
    return total


@compiled()
def _slopes(indptr, local, data, pull, bend, w, gradient, diagonal):  # type: ignore[no-untyped-def]
    """Write the gradient and the diagonal of the Hessian; the intercept comes last."""
    width = len(w) - 1
    for j in range(width):
        gradient[j] = w[j]
        diagonal[j] = 1.0
    gradient[width] = 0.0
    diagonal[width] = 1e-300
    for i in range(len(pull)):
        gradient[width] -= pull[i]
        diagonal[width] += bend[i]
        for e in range(indptr[i], indptr[i + 1]):
            gradient[local[e]] -= data[e] * pull[i]
            diagonal[local[e]] += data[e] * data[e] * bend[i]


@compiled()
def _times_hessian(indptr, local, data, bend, direction, intercept, rise, product):  # type: ignore[no-untyped-def]
    """Write the Hessian times a direction, and the direction's rise in every row."""
    width = len(direction) - 1
    product[:] = direction
    product[width] = 0.0
    for i in range(len(bend)):
        along = direction[width]
        for e in range(indptr[i], indptr[i + 1]):
            along += data[e] * direction[local[e]]
        rise[i] = along
        along *= bend[i]
        product[width] += along
        for e in range(indptr[i], indptr[i + 1]):
            product[local[e]] += data[e] * along
    if not intercept:
        product[width] = 0.0


@compiled()
def _newton_step(indptr, local, data, bend, slopes, intercept, accuracy, rise, scratch):  # type: ignore[no-untyped-def]
    """Write the step by conjugate gradients into the first row of scratch, and its rise."""
    gradient, diagonal = slopes
    step, residual, direction, product = scratch[0], scratch[1], scratch[2], scratch[3]
    step[:] = 0.0
    rise[:] = 0.0
    rise_of_direction = np.empty(len(bend))
    size = 0.0
    for j in range(len(gradient)):
        residual[j] = -gradient[j]
        direction[j] = residual[j] / diagonal[j]
        size += residual[j] * direction[j]
    enough = accuracy * accuracy * size
    for _ in range(_MOST_PRODUCTS):
        if size <= enough or size == 0.0:
            break
        _times_hessian(indptr, local, data, bend, direction, intercept, rise_of_direction, product)
        length = size / np.dot(direction, product)
        before, size = size, 0.0
        for j in range(len(step)):
            step[j] += length * direction[j]
            residual[j] -= length * product[j]
            size += residual[j] * residual[j] / diagonal[j]
        ratio = size / before
        for j in range(len(step)):
            direction[j] = residual[j] / diagonal[j] + ratio * direction[j]
        rise += length * rise_of_direction


@compiled()
def fit_sparse(indptr, local, data, n_left, weight, intercept, tolerance, w, odds, scratch):  # type: ignore[no-untyped-def]
    """Fit a node; return the last decrement and the steps.

    `w` holds the start and gets the fit, with the intercept last; `odds` gets the log-odds of
    the rows. `scratch` has six rows as long as w.
    """
    n = len(odds)
    width = len(w) - 1
    pull, bend, rise = np.empty(n), np.empty(n), np.empty(n)
    gradient, diagonal, step = scratch[4], scratch[5], scratch[0]
    for i in range(n):
        odds[i] = w[width]
        for e in range(indptr[i], indptr[i + 1]):
            odds[i] += data[e] * w[local[e]]
    decrement = np.inf
    for count in range(1, _MOST_STEPS + 1):
        loss = row_terms(odds, n_left, weight, pull, bend)
        _slopes(indptr, local, data, pull, bend, w, gradient, diagonal)
        if not intercept:
            gradient[width] = 0.0
        accuracy = min(0.3, max(0.3 * decrement, 0.01))
        slopes = (gradient, diagonal)
        _newton_step(indptr, local, data, bend, slopes, intercept, accuracy, rise, scratch)
        slope = np.dot(gradient, step)
        decrement = np.sqrt(max(-slope, 0.0))
        q0, q1, q2 = 0.0, 0.0, 0.0
        for j in range(width):
            q0 += w[j] * w[j]
            q1 += w[j] * step[j]
            q2 += step[j] * step[j]
        length = search_length(odds, rise, n_left, weight, (q0, q1, q2), loss, slope)
        for j in range(len(w)):
            w[j] += length * step[j]
        odds += length * rise
        if decrement <= tolerance or length == 0.0:
            return decrement, count
    return decrement, _MOST_STEPS


@compiled()
def start_at_prior(n_left: int, weight: FloatArray, intercept: bool, w: FloatArray) -> None:
    """Write the fit without features: all weights zero, the intercept the sides' log-odds."""
    w[:] = 0.0
    if intercept:
        w[len(w) - 1] = prior_odds(n_left, weight)
