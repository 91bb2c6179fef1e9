r"""A logistic node with fewer rows than columns: Newton's method in the space of its rows.

With the weights :math:`w=X'\alpha` a combination of rows, all that the fit needs of the features
is their Gram matrix G, and a step solves a system as large as the number of rows.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS
from dubito.dichotomies._kernels.logistic_node_loss_compiled import (
    enough,
    prior_odds,
    row_terms,
    search_plane,
    solve_factored,
)

_MOST_STEPS = 100


@compiled(fastmath=SIMD_FLAGS)
def _times(gram, vector):  # type: ignore[no-untyped-def]
    """Return the product of a matrix, of either precision, with a vector, summed in double."""
    out = np.empty(len(vector))
    for i in range(len(vector)):
        row = gram[i]
        total = 0.0
        for j in range(len(vector)):
            total += row[j] * vector[j]
        out[i] = total
    return out


@compiled()
def _newton_target(gram, odds, terms, intercept, target):  # type: ignore[no-untyped-def]
    r"""Write the coefficients that Newton's step leads to; return its intercept.

    They solve :math:`(G+D^{-1})\alpha=z+D^{-1}r-b1`, with D the curvatures and r the pulls, and
    sum to zero where there is an intercept. Scaled by the roots of D on both sides the matrix has
    no eigenvalue below 1.
    """
    pull, bend = terms
    n = len(odds)
    root = np.sqrt(bend)
    # A step need not be more exact than the features: the next one mends it.
    short = root.astype(gram.dtype)
    matrix = np.empty((n, n), gram.dtype)
    for i in range(n):
        for j in range(n):
            matrix[i, j] = short[i] * gram[i, j] * short[j]
        matrix[i, i] += gram.dtype.type(1.0)
    lower = np.linalg.cholesky(matrix)
    for i in range(n):
        # A row of no weight has no curvature: it takes no part.
        target[i] = root[i] * odds[i] + pull[i] / root[i] if bend[i] > 0 else 0.0
    solve_factored(lower, target)
    constant = 0.0
    if intercept:
        ones = root.copy()
        solve_factored(lower, ones)
        constant = np.dot(root, target) / np.dot(root, ones)
        target -= constant * ones
    target *= root
    return constant


@compiled()
def fit_by_rows(gram, sides, settings, alpha, odds):  # type: ignore[no-untyped-def]
    r"""Fit a node by its Gram matrix; return the intercept, the last decrement and the steps.

    `sides` are the number of rows on the left and the weights of all, `settings` whether there is
    an intercept and the decrement at which to end.

    `alpha` holds the start and gets the coefficients of the rows, `odds` their log-odds. The
    decrement is :math:`\sqrt{g'H^{-1}g}` before the last step: half its square is what the
    objective was above its minimum.
    """
    n_left, weight = sides
    intercept, tolerance = settings
    n = len(alpha)
    constant = prior_odds(n_left, weight) if intercept else 0.0
    odds[:] = _times(gram, alpha) + constant
    pull, bend, target = np.empty(n), np.empty(n), np.empty(n)
    decrement = np.inf
    for step in range(1, _MOST_STEPS + 1):
        loss = row_terms(odds, n_left, weight, pull, bend)
        goal = _newton_target(gram, odds, (pull, bend), intercept, target)
        projected = odds - constant
        change = _times(gram, target) - projected
        along = target - alpha
        rise = change + (goal - constant)
        q1 = np.dot(along, projected)
        slope = q1 - np.dot(pull, rise)
        decrement = np.sqrt(max(-slope, 0.0))
        quadratic = (np.dot(alpha, projected), q1, np.dot(along, change))
        before = loss + 0.5 * quadratic[0]
        keep, length = search_plane((odds, rise), sides, quadratic, before, decrement)
        alpha[:] = keep * alpha + length * along
        constant = keep * constant + length * (goal - constant)
        odds[:] = keep * odds + length * rise
        if decrement <= enough(tolerance, before) or length == 0.0:
            return constant, decrement, step
    return constant, decrement, _MOST_STEPS
