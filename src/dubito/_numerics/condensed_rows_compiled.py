"""Rows of a logistic likelihood replaced by few weighted points with the same moments.

A group of rows is replaced by its Gauss rule (`quadrature_compiled.gauss_rule`), over which sums of
softplus terms are the same to 13 digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.quadrature_compiled import gauss_rule

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Number of Gauss points that replace the rows of a group; exact for polynomials of degree 23.
_POINTS = 12

#: Largest range of log-odds in a group. On it the softplus, whose singularities are π away from the
#: real line, is a polynomial of that degree to 13 digits.
_SPAN = 4.0


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
            group = gauss_rule(group[0].copy(), group[1].copy(), _POINTS)
        m = group.shape[1]
        out[:, count : count + m] = group
        count, begin = count + m, stop
    return out[:, :count].copy()
