r"""Diagonal matrices above Q, :math:`\mathrm{Diag}(u)\succeq Q`, with small :math:`\sum_iu_i`.

Then :math:`s^\top Qs\le\sum_iu_i` for all signs s, and :math:`s^\top(Q-\mathrm{Diag}(u))s` is
concave, which bounds the farthest corner of a box. Minimising the sum is a semidefinite programme,
solved approximately by Newton's method on its log barrier; every iterate is feasible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Where S p^3 of S matrices (p, p) is larger, the diagonal from the eigenvalue is used as it is.
_LARGEST_COST = 2e7
#: Relative suboptimality at which Newton's method stops.
_LARGEST_GAP = 1e-2
#: Relative increase of the diagonal that covers rounding errors.
_MARGIN = 1e-9


def diagonal_majorants(quads: FloatArray) -> FloatArray:
    """Return u for each symmetric non-negative definite matrix, (S, p) from (S, p, p)."""
    diagonals = np.stack([_by_eigenvalue(quad) for quad in quads])
    if len(quads) * quads.shape[1] ** 3 <= _LARGEST_COST:
        for quad, diagonal in zip(quads, diagonals, strict=True):
            _reduce_sum(quad, diagonal)
    return diagonals


def _by_eigenvalue(quad: FloatArray) -> FloatArray:
    """Return the diagonal of Q times the largest eigenvalue of its correlations."""
    diagonal = np.diagonal(quad).copy()
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    largest = np.linalg.eigvalsh(quad / np.outer(root, root))[-1]
    return diagonal * max(largest, 1.0) * (1 + _MARGIN)


def _reduce_sum(quad: FloatArray, diagonal: FloatArray) -> None:
    r"""Reduce the sum of the diagonal, in place, by the barrier :math:`-\mu\log\det`."""
    used = np.flatnonzero(diagonal > 0)
    if len(used) < 2:
        return
    root = np.sqrt(np.diagonal(quad)[used])
    # Scale Q to unit diagonal; the objective is weighted accordingly.
    correlation, objective = quad[np.ix_(used, used)] / np.outer(root, root), root**2
    objective = objective / objective.sum()
    u = diagonal[used] / root**2 * 1.01
    barrier = float(objective @ u) / len(u)
    for _ in range(40):
        inverse = _inverse(np.diag(u) - correlation)
        if inverse is None or barrier * len(u) < _LARGEST_GAP * float(objective @ u):
            break
        gradient = objective - barrier * np.diagonal(inverse)
        step = np.linalg.solve(inverse**2 + 1e-12 * np.eye(len(u)), -gradient / barrier)
        u = _feasible_step(u, step, correlation)
        barrier *= 0.3
    if _inverse(np.diag(u) - correlation) is not None:
        diagonal[used] = u * root**2 * (1 + _MARGIN)


def _feasible_step(u: FloatArray, step: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return u plus the step, halved until Diag(u) minus the correlations is positive definite."""
    step_length = 1.0
    while step_length > 1e-6:
        moved = u + step_length * step
        if _inverse(np.diag(moved) - correlation) is not None:
            return moved
        step_length /= 2
    return u


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse of a positive definite matrix, or None where it is not."""
    try:
        factor = cholesky(matrix, lower=True, check_finite=False)
    except LinAlgError:
        return None
    return np.asarray(cho_solve((factor, True), np.eye(len(matrix)), check_finite=False))
