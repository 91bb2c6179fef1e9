"""Rows of a logistic likelihood replaced by few weighted points with the same moments.

Groups of rows become Gauss rules of their own discrete measure (Stieltjes' procedure; Golub and
Welsch 1969), which integrate the softplus over the group to 13 digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Gauss points that replace the rows of a group; exact for polynomials of degree 23.
_POINTS = 12

#: Largest range of log-odds in a group: the softplus, whose nearest singularities are π off the
#: real line, is a polynomial of that degree there, to 13 digits.
_SPAN = 4.0

#: The next orthogonal polynomial with a squared norm below this is zero but for rounding: the group
#: has no more distinct values.
_ZERO_NORM = 1e-13


@compiled()
def condense(points: FloatArray, steepest: float) -> FloatArray:
    """Return few rows with the same softplus sums for slopes up to `steepest`, to 13 digits.

    Parameters
    ----------
    points : array (2, n)
        Positions, ascending, and weights.
    steepest : float
        The largest slope.

    Returns
    -------
    array (2, m)
        Positions and weights, positive where those of the rows are; m is at most n.
    """
    x = points[0]
    n = len(x)
    width = _SPAN / max(steepest, 1e-6)
    out = np.empty((2, n))
    count, begin = 0, 0
    while begin < n:
        stop = begin + np.searchsorted(x[begin:], x[begin] + width, side="right")
        group = points[:, begin:stop]
        if stop - begin > _POINTS:
            group = _gauss(group[0], group[1])
        m = group.shape[1]
        out[:, count : count + m] = group
        count, begin = count + m, stop
    return out[:, :count].copy()


@compiled()
def _gauss(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Return positions and weights, (2, m), of the Gauss rule of a group of rows.

    The recurrence coefficients come from Stieltjes' procedure, the rule from the eigenvalues of
    the Jacobi matrix (Golub and Welsch 1969).
    """
    middle, half = 0.5 * (x[0] + x[-1]), 0.5 * (x[-1] - x[0])
    total = weight.sum()
    if not (half > 0.0 and total > 0.0):
        return np.array([[x[0]], [total]])
    local = (x - middle) / half
    # Orthonormal polynomials of two successive degrees, at the rows.
    previous, current = np.zeros(len(x)), np.full(len(x), 1.0 / np.sqrt(total))
    matrix = np.zeros((_POINTS, _POINTS))
    beta, size = 0.0, _POINTS
    for k in range(_POINTS):
        alpha = (weight * local * current * current).sum()
        matrix[k, k] = alpha
        following = (local - alpha) * current - beta * previous
        square = (weight * following * following).sum()
        if k + 1 == _POINTS or square < _ZERO_NORM:
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
