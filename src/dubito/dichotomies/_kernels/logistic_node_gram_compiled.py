r"""Logistic model of a node with fewer rows than columns: Newton's method on its Gram matrix.

The coefficients are a combination of rows, :math:`w=X^\top\alpha`. So the fit needs only the Gram
matrix :math:`G=XX^\top`, and a step solves a system as large as the number of rows.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.cholesky_compiled import cholesky_solve_in_place
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import matrix_vector
from dubito.dichotomies._kernels.logistic_node_loss_compiled import (
    final_decrement,
    prior_log_odds,
    row_terms,
    search_plane,
)

#: Limit on the Newton steps of a fit.
_MAX_STEPS = 100


@compiled()
def _newton_target(gram, log_odds, terms, has_intercept, target):  # type: ignore[no-untyped-def]
    r"""Write α after a full Newton step to `target`, and return the intercept after it.

    They solve :math:`(G+D^{-1})\alpha=\eta+D^{-1}r-b1`, with η the log-odds, D the curvatures, r
    the residuals and b the intercept; with an intercept the entries of α sum to zero. Scaled by
    the square roots of D on both sides the matrix has no eigenvalue below 1.
    """
    residuals, curvatures = terms
    n = len(log_odds)
    root = np.sqrt(curvatures)
    # In the precision of the features: the next step corrects the rounding errors of this one.
    rounded = root.astype(gram.dtype)
    matrix = np.empty((n, n), gram.dtype)
    for i in range(n):
        for j in range(n):
            matrix[i, j] = rounded[i] * gram[i, j] * rounded[j]
        matrix[i, i] += gram.dtype.type(1.0)
    lower = np.linalg.cholesky(matrix)
    for i in range(n):
        # A row of weight 0 has curvature 0, and coefficient 0.
        target[i] = root[i] * log_odds[i] + residuals[i] / root[i] if curvatures[i] > 0 else 0.0
    cholesky_solve_in_place(lower, target)
    intercept = 0.0
    if has_intercept:
        ones = root.copy()
        cholesky_solve_in_place(lower, ones)
        intercept = np.dot(root, target) / np.dot(root, ones)
        target -= intercept * ones
    target *= root
    return intercept


@compiled()
def fit_by_gram(gram, sides, settings, alpha, log_odds):  # type: ignore[no-untyped-def]
    r"""Fit a node by its Gram matrix; return intercept, last decrement and number of steps.

    `sides` are the number of rows on the left and the sample weights of all, `settings` whether
    there is an intercept and the decrement at which to stop.

    `alpha` holds the start and is overwritten by the coefficients of the rows, `log_odds` by their
    log-odds. The decrement is :math:`\sqrt{g^\top H^{-1}g}` before the last step: half its square
    estimates the objective less its minimum.
    """
    n_left, weight = sides
    has_intercept, tolerance = settings
    n = len(alpha)
    intercept = prior_log_odds(n_left, weight) if has_intercept else 0.0
    matrix_vector(gram, alpha, log_odds)
    log_odds += intercept
    residuals, curvatures, target, product = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    decrement = np.inf
    for step in range(1, _MAX_STEPS + 1):
        loss = row_terms(log_odds, n_left, weight, residuals, curvatures)
        target_intercept = _newton_target(
            gram, log_odds, (residuals, curvatures), has_intercept, target
        )
        projected = log_odds - intercept
        matrix_vector(gram, target, product)
        change = product - projected
        along = target - alpha
        rise = change + (target_intercept - intercept)
        q1 = np.dot(along, projected)
        derivative = q1 - np.dot(residuals, rise)  # of the objective along the step
        decrement = np.sqrt(max(-derivative, 0.0))
        quadratic = (np.dot(alpha, projected), q1, np.dot(along, change))
        before = loss + 0.5 * quadratic[0]
        keep, length = search_plane((log_odds, rise), sides, quadratic, before, decrement)
        alpha[:] = keep * alpha + length * along
        intercept = keep * intercept + length * (target_intercept - intercept)
        log_odds[:] = keep * log_odds + length * rise
        if decrement <= final_decrement(tolerance, before) or length == 0.0:
            return intercept, decrement, step
    return intercept, decrement, _MAX_STEPS
