"""Gauss rule of a discrete measure: few weighted points in place of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: A smaller squared norm of the next orthogonal polynomial is rounding: the polynomial is zero at
#: all distinct points.
_ZERO_NORM = 1e-13


@compiled()
def gauss_rule(x: FloatArray, weight: FloatArray, n_points: int) -> FloatArray:
    """Return the Gauss rule of weighted points x: points, ascending, and weights, (2, m).

    Sums of polynomials up to degree 2m - 1 over the rule and over x are equal; m is `n_points`, or
    the number of distinct x if that is smaller.
    The recurrence coefficients come from Stieltjes' procedure, the rule from the eigenvalues of
    the Jacobi matrix (Golub and Welsch 1969).
    """
    middle, half = 0.5 * (x[0] + x[-1]), 0.5 * (x[-1] - x[0])
    total = weight.sum()
    if not (half > 0.0 and total > 0.0):
        return np.array([[x[0]], [total]])
    local = (x - middle) / half
    # Orthonormal polynomials of two successive degrees, at all x.
    previous, current = np.zeros(len(x)), np.full(len(x), 1.0 / np.sqrt(total))
    matrix = np.zeros((n_points, n_points))
    beta, size = 0.0, n_points
    for k in range(n_points):
        alpha = (weight * local * current * current).sum()
        matrix[k, k] = alpha
        following = (local - alpha) * current - beta * previous
        square = (weight * following * following).sum()
        if k + 1 == n_points or square < _ZERO_NORM:
            size = k + 1
            break
        beta = np.sqrt(square)
        matrix[k, k + 1] = matrix[k + 1, k] = beta
        previous, current = current, following / beta
    positions, vectors = np.linalg.eigh(matrix[:size, :size].copy())
    rule = np.empty((2, size))
    rule[0] = middle + half * positions
    rule[1] = total * vectors[0] ** 2
    return rule
