r"""Matrix scaling: likelihood of :math:`\mathrm{softmax}(Wu+b)`, and its Newton steps.

The likelihood has two parts: :math:`\sum w\log\sum_ke^{(Wu+b)_k}`, computed here with its
derivatives, less a term linear in W and b that depends on the targets. With many classes the
Hessian is approximated by a Kronecker product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from dubito._numerics.row_subsets import CHUNK_ENTRIES, row_chunks
from dubito.calibration._kernels.hessian_solvers import HessianSolver

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def matrix_value(
    u: FloatArray, weight: FloatArray, matrix: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return Σw log Σ exp(matrix u + bias), and its gradients in matrix and in bias."""
    value = 0.0
    by_matrix, by_bias = np.zeros_like(matrix), np.zeros_like(bias)
    for rows in row_chunks(len(u), 2 * u.shape[1]):
        z = u[rows] @ matrix.T
        z += bias
        top = z.max(axis=1)
        z -= top[:, None]
        np.exp(z, out=z)
        total = z.sum(axis=1)
        value += float(weight[rows] @ (np.log(total) + top))
        z *= (weight[rows] / total)[:, None]
        by_matrix += z.T @ u[rows]
        by_bias += z.sum(axis=0)
    return value, by_matrix, by_bias


def matrix_hessian(features: FloatArray, weight: FloatArray, p: FloatArray) -> FloatArray:
    """Return the Hessian in a full matrix on features f: Σw (diag(p) - ppᵀ) ⊗ ffᵀ."""
    n_classes, n_features = p.shape[1], features.shape[1]
    size = n_classes * n_features
    hessian = np.zeros((size, size))
    root = np.sqrt(weight)[:, None]
    for rows in row_chunks(len(p), size, 4 * CHUNK_ENTRIES):
        part = (root[rows] * p[rows])[:, :, None] * features[rows, None, :]
        part = part.reshape(len(part), size)
        hessian -= part.T @ part
    blocks = hessian.reshape(n_classes, n_features, n_classes, n_features)
    for k in range(n_classes):
        blocks[k, :, k] += (features * (weight * p[:, k])[:, None]).T @ features
    return hessian


class Spectrum(NamedTuple):
    r"""The Hessian if probabilities did not depend on the features: :math:`A\otimes C`.

    A is the sum of :math:`\mathrm{diag}(p)-pp^\top` over the rows and C the mean of
    :math:`ff^\top`. In the eigenvectors of both it is diagonal: memory is O(K²).
    """

    values: FloatArray  # (K, K+1), products of the eigenvalues of A and C
    left: FloatArray  # eigenvectors of A, (K, K)
    right: FloatArray  # eigenvectors of C, (K+1, K+1)

    def rotate(self, x: FloatArray) -> FloatArray:
        """Return x (K, K+1) in the eigenvectors."""
        return self.left.T @ x.reshape(self.values.shape) @ self.right


def spectrum(features: FloatArray, weight: FloatArray, p: FloatArray) -> Spectrum:
    """Return the eigenvalues and eigenvectors of the approximate Hessian."""
    weighted = weight[:, None] * p
    a, left = linalg.eigh(np.diag(weighted.sum(axis=0)) - weighted.T @ p)
    c, right = linalg.eigh((features * (weight / weight.sum())[:, None]).T @ features)
    return Spectrum(np.outer(np.maximum(a, 0.0), np.maximum(c, 0.0)), left, right)


def kronecker_solver(hessian: Spectrum, penalty: FloatArray) -> HessianSolver:
    """Return the solver of the approximate Hessian with the penalty.

    Its ridge is the strength off the diagonal; entries with another strength are rescaled so
    that the diagonal of the inverse is right for theirs.
    """
    values, left, right = hessian
    penalties = penalty.reshape(values.shape)
    ridge = float(penalties[0, 1])
    middle = values + ridge + 1e-10 * max(values.max(), 1e-290)
    diagonal = (left**2 @ (1 / middle)) @ (right**2).T
    hessian_diagonal = np.maximum(1 / diagonal - ridge, 0.0) + penalties
    inverse_diagonal = 1 / np.maximum(hessian_diagonal, 1e-290)
    rescale = np.sqrt(inverse_diagonal / diagonal)

    def solve(gradient: FloatArray) -> FloatArray:
        rotated = hessian.rotate(rescale.ravel() * gradient)
        return (rescale * (left @ (rotated / middle) @ right.T)).ravel()

    return HessianSolver(solve, inverse_diagonal.ravel)
