"""A logistic node with fewer rows than columns: Newton's method in the space of its rows.

With the weights :math:`w=X'\\alpha` a combination of rows, all that the fit needs of the features
is their Gram matrix G, and a step solves a system as large as the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.node_rows_compiled import (
    prior_odds,
    row_terms,
    search_length,
    solve_factored,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

_MOST_STEPS = 100


@compiled()
def _newton_target(
    gram: FloatArray,
    odds: FloatArray,
    pull: FloatArray,
    bend: FloatArray,
    intercept: bool,
    target: FloatArray,
) -> float:
    """Write the coefficients that Newton's step leads to; return its intercept.

    They solve :math:`(G+D^{-1})\\alpha=z+D^{-1}r-b1`, with D the curvatures and r the pulls, and
    sum to zero where there is an intercept. Scaled by the roots of D on both sides the matrix has
    no eigenvalue below 1.
    """
    n = len(odds)
    root = np.sqrt(bend)
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = root[i] * gram[i, j] * root[j]
        matrix[i, i] += 1.0
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
def fit_by_rows(
    gram: FloatArray,
    n_left: int,
    weight: FloatArray,
    intercept: bool,
    tolerance: float,
    alpha: FloatArray,
    odds: FloatArray,
) -> tuple[float, float, int]:
    """Fit a node by its Gram matrix; return the intercept, the last decrement and the steps.

    `alpha` holds the start and gets the coefficients of the rows, `odds` their log-odds. The
    decrement is :math:`\\sqrt{g'H^{-1}g}` before the last step: half its square is what the
    objective was above its minimum.
    """
    n = len(alpha)
    constant = prior_odds(n_left, weight) if intercept else 0.0
    odds[:] = np.dot(gram, alpha) + constant
    pull, bend, target = np.empty(n), np.empty(n), np.empty(n)
    decrement = np.inf
    for step in range(1, _MOST_STEPS + 1):
        loss = row_terms(odds, n_left, weight, pull, bend)
        goal = _newton_target(gram, odds, pull, bend, intercept, target)
        projected = odds - constant
        change = np.dot(gram, target) - projected
        along = target - alpha
        rise = change + (goal - constant)
        q1 = np.dot(along, projected)
        slope = q1 - np.dot(pull, rise)
        decrement = np.sqrt(max(-slope, 0.0))
        quadratic = (np.dot(alpha, projected), q1, np.dot(along, change))
        length = search_length(odds, rise, n_left, weight, quadratic, loss, slope)
        alpha += length * along
        constant += length * (goal - constant)
        odds += length * rise
        if decrement <= tolerance or length == 0.0:
            return constant, decrement, step
    return constant, decrement, _MOST_STEPS
