"""Many rows of a likelihood replaced by few of the same moments; import only from kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._kernels.jit import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]

#: Nodes that replace the rows of a group. Those of Gauss are exact for polynomials of degree 23.
_NODES = 12

#: Log-odds that a group may span: the softplus, whose nearest poles are π off the real line, is a
#: polynomial of that degree there, to 13 digits.
_SPAN = 4.0

#: Below this share of the last one the next squared norm is rounding: the rows hold no more values.
_EXHAUSTED = 1e-13


@compiled()
def condense(points: FloatArray, steepest: float) -> FloatArray:
    """Replace rows by few that give every softplus sum of slope up to `steepest`, to 13 digits.

    Parameters
    ----------
    points : array (2, n)
        Positions, ascending, and positive weights.
    steepest : float
        The largest slope.

    Returns
    -------
    array (2, m)
        Positions and positive weights; m is at most n.
    """
    x = points[0]
    n = len(x)
    width = _SPAN / max(steepest, 1e-6)
    out = np.empty((2, n))
    count, begin = 0, 0
    while begin < n:
        stop = begin + np.searchsorted(x[begin:], x[begin] + width, side="right")
        group = points[:, begin:stop]
        if stop - begin > _NODES:
            group = _gauss(group[0], group[1])
        m = group.shape[1]
        out[:, count : count + m] = group
        count, begin = count + m, stop
    return out[:, :count].copy()


@compiled()
def _gauss(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the rule of Gauss of a group of rows (Stieltjes' procedure, Golub and Welsch)."""
    middle, half = 0.5 * (x[0] + x[-1]), 0.5 * (x[-1] - x[0])
    total = weight.sum()
    if not half > 0.0:
        return np.array([[x[0]], [total]])
    place = (x - middle) / half
    before, here = np.zeros(len(x)), np.full(len(x), 1.0 / np.sqrt(total))
    matrix = np.zeros((_NODES, _NODES))
    beta, size = 0.0, _NODES
    for k in range(_NODES):
        alpha = (weight * place * here * here).sum()
        matrix[k, k] = alpha
        after = (place - alpha) * here - beta * before
        square = (weight * after * after).sum()
        if k + 1 == _NODES or square < _EXHAUSTED:
            size = k + 1
            break
        beta = np.sqrt(square)
        matrix[k, k + 1] = matrix[k + 1, k] = beta
        before, here = here, after / beta
    places, vectors = np.linalg.eigh(matrix[:size, :size].copy())
    rule = np.empty((2, size))
    rule[0] = middle + half * places
    rule[1] = total * vectors[0] ** 2
    return rule
