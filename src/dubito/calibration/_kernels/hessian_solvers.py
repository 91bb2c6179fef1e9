"""Solvers of linear systems with a Hessian plus the diagonal of a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray


@dataclass(frozen=True)
class HessianSolver:
    """Functions that solve a system with a Hessian, or give the diagonal of its inverse.

    The Hessian is exact or approximate, and includes a penalty.
    """

    solve: Callable[[FloatArray], FloatArray]
    inverse_diagonal: Callable[[], FloatArray]


def dense_solver(hessian: FloatArray, penalty: FloatArray) -> HessianSolver:
    """Return the solver of systems with a full Hessian plus a diagonal penalty."""
    factor = _cholesky(hessian, penalty)

    def inverse_diagonal() -> FloatArray:
        inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
        return np.einsum("ij,ij->j", inverse, inverse)

    def solve(gradient: FloatArray) -> FloatArray:
        return linalg.cho_solve((factor, True), gradient, check_finite=False)

    return HessianSolver(solve, inverse_diagonal)


def dense_inverse(hessian: FloatArray, penalty: FloatArray) -> FloatArray:
    """Return the inverse of a full Hessian with a penalty, regularised where it is singular."""
    inverse, _ = linalg.lapack.dpotri(_cholesky(hessian, penalty), lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


def _cholesky(hessian: FloatArray, penalty: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a Hessian with a penalty and a jitter that makes it definite.

    Without a penalty the Hessian is singular: a constant added to all biases changes no
    probability, and where all probabilities are 0 or 1 no parameter does.
    """
    diagonal = hessian.diagonal() + penalty
    jitter = 1e-10 * max(diagonal.max(), 1e-290)
    while True:
        matrix = hessian.copy()
        np.fill_diagonal(matrix, diagonal + jitter)
        try:
            return linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            jitter *= 100
