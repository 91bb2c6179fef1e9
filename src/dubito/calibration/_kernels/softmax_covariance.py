r"""Standard errors of the log-odds of each class, from the covariance of a softmax map.

The log-odds of class k against the rest are :math:`\eta_k=z_k-\log\sum_{j\ne k}e^{z_j}`, with
:math:`\partial\eta_k/\partial z=c_k=(e_k-p)/(1-p_k)`. Where the logits z are linear in parameters
of covariance C, those of a row have a covariance V (K, K), and by the delta method

.. math:: \operatorname{Var}\eta_k=c_k^\mathsf TVc_k=
          \frac{V_{kk}-2(Vp)_k+p^\mathsf TVp}{(1-p_k)^2}.

V is not formed: a covariance gives its diagonal and its products with vectors. One direction w of
the parameters, the slope common to all classes, is kept apart from C, because the likelihood may be
asymmetric along it. Along it the log-odds change by :math:`c_k` times the change of z.

Features f of a row are its scores in units of their size, and 1 for the bias.

====================  ==========================================  ===================  ============
structure             parameters                                  kept                 cost of a row
====================  ==========================================  ===================  ============
`DenseMatrix`         matrix and bias                             O(K⁴)/4              O(K⁴)/2
`DenseDiagonal`       slope and bias of each class                O(K²)                O(K²)
`ClassBlocks`         the same, classes independent               O(K)                 O(K)
`KroneckerMatrix`     matrix and bias, as if probabilities did    O(K²)                O(K²)
                      not depend on the features
====================  ==========================================  ===================  ============
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dubito._numerics.softmax import softmax_in_place
from dubito._numerics.sums_of_others import log_sums_of_others

if TYPE_CHECKING:
    from dubito._typing import FloatArray


class LogOdds(NamedTuple):
    """Log-odds of each class against the rest, their variance and derivative, each (n, K)."""

    value: FloatArray
    variance: FloatArray  # without the direction kept apart
    along: FloatArray  # derivative along the direction kept apart


class LogitCovariances(ABC):
    """The covariances V of the logits of some rows, one matrix (K, K) for each row."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the variances of the logits, (n, K)."""

    @abstractmethod
    def times(self, vectors: FloatArray) -> FloatArray:
        """Return V times a vector of each row, (n, K)."""

    def log_odds(self, logits: FloatArray, along: FloatArray) -> LogOdds:
        """Return the log-odds of each class against the rest, and their variance.

        Parameters
        ----------
        logits : array (n, K)
        along : array (n, K)
            Derivatives of the logits along the direction kept apart.
        """
        rows, best = np.arange(len(logits)), logits.argmax(axis=1)
        others = logits.copy()
        others[rows, best] = -np.inf
        p = softmax_in_place(logits.copy())
        product = self.times(p)
        rest = np.maximum(1 - p, 0.5)  # only the best class can have less, and is replaced below
        variance = self.diagonal() - 2 * product + _dot(p, product)[:, None]
        variance /= rest**2
        slope = (along - _dot(p, along)[:, None]) / rest
        gradient = -softmax_in_place(others)
        gradient[rows, best] = 1.0
        variance[rows, best] = _dot(gradient, self.times(gradient))
        slope[rows, best] = _dot(gradient, along)
        return LogOdds(logits - log_sums_of_others(logits), np.maximum(variance, 0.0), slope)


class Covariance(Protocol):
    """The covariance of the parameters of a softmax map."""

    def of_rows(self, scores: FloatArray) -> LogitCovariances:
        """Return the covariances of the logits at scores (n, K), in units of their size."""

    def entries_per_row(self) -> int:
        """Return the number of entries that `of_rows` stores for each row."""


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", a, b)


class DenseMatrix(NamedTuple):
    r"""The full covariance of a matrix (K, K) and a bias.

    With blocks :math:`C_{ab}` of the parameters of classes a and b, :math:`V_{ab}=f^\mathsf
    TC_{ab}f` is linear in the products :math:`f_if_j`: one matrix product for all rows.
    """

    by_products: FloatArray  # (products i ≤ j of features, pairs a ≤ b of classes)
    n_classes: int

    @classmethod
    def from_covariance(cls, covariance: FloatArray, n_classes: int) -> DenseMatrix:
        """Return the structure of a covariance of parameters (K, K+1), flattened, the bias last."""
        n_features = n_classes + 1
        blocks = covariance.reshape(n_classes, n_features, n_classes, n_features)
        a, b = np.triu_indices(n_classes)
        i, j = np.triu_indices(n_features)
        pairs = blocks[a, :, b, :]  # (pairs, features, features)
        by_products = (pairs[:, i, j] + pairs[:, j, i]).T
        by_products[i == j] *= 0.5
        return cls(np.ascontiguousarray(by_products), n_classes)

    def entries_per_row(self) -> int:
        """Return the number of entries that `of_rows` stores for each row."""
        return 3 * len(self.by_products) + self.n_classes**2

    def of_rows(self, scores: FloatArray) -> LogitCovariances:
        """Return the covariances of the logits of the rows."""
        n_classes = self.n_classes
        features = np.column_stack([scores, np.ones(len(scores))])
        i, j = np.triu_indices(n_classes + 1)
        products = features[:, i] * features[:, j]
        return _TrianglesOfRows(products @ self.by_products, n_classes)


@dataclass(frozen=True)
class _TrianglesOfRows(LogitCovariances):
    """The covariances of `DenseMatrix`: the upper triangle of each row's, as a list."""

    pairs: FloatArray  # (n, K(K+1)/2)
    n_classes: int

    def full(self) -> FloatArray:
        """Return the covariances as (n, K, K)."""
        n_classes = self.n_classes
        position = np.empty((n_classes, n_classes), dtype=np.intp)
        a, b = np.triu_indices(n_classes)
        position[a, b] = position[b, a] = np.arange(len(a))
        return self.pairs[:, position.ravel()].reshape(-1, n_classes, n_classes)

    def diagonal(self) -> FloatArray:
        return np.einsum("nkk->nk", self.full())

    def times(self, vectors: FloatArray) -> FloatArray:
        return np.einsum("nab,nb->na", self.full(), vectors)

    def log_odds(self, logits: FloatArray, along: FloatArray) -> LogOdds:
        """Return log-odds and variances, compiled: numpy calls on small matrices take longer."""
        from dubito.calibration._kernels.softmax_covariance_compiled import (  # noqa: PLC0415 - loads numba
            write_log_odds,
        )

        out = LogOdds(*(np.empty(logits.shape) for _ in range(3)))
        arrays = (np.ascontiguousarray(array) for array in (self.pairs, logits, along))
        write_log_odds(*arrays, (out.value, out.variance, out.along))
        return out


class DenseDiagonal(NamedTuple):
    """The full covariance of a slope and a bias of each class."""

    slope: FloatArray  # (K, K)
    both: FloatArray  # (K, K): covariance of slopes and biases
    bias: FloatArray  # (K, K)

    @classmethod
    def from_covariance(cls, covariance: FloatArray, n_classes: int) -> DenseDiagonal:
        """Return the structure of a covariance of K slopes and K biases, slopes first."""
        slopes, biases = slice(n_classes), slice(n_classes, None)
        parts = (slopes, slopes), (slopes, biases), (biases, biases)
        return cls(*(np.ascontiguousarray(covariance[part]) for part in parts))

    def entries_per_row(self) -> int:
        """Return the number of entries that `of_rows` stores for each row."""
        return 4 * len(self.slope)

    def of_rows(self, scores: FloatArray) -> LogitCovariances:
        """Return the covariances of the logits of the rows."""
        return _ScaledByScores(self, scores)


@dataclass(frozen=True)
class _ScaledByScores(LogitCovariances):
    """The covariances of `DenseDiagonal`: its parts, with the scores that multiply slopes."""

    parts: DenseDiagonal
    scores: FloatArray

    def diagonal(self) -> FloatArray:
        slope, both, bias = (np.diag(part) for part in self.parts)
        return (slope * self.scores + 2 * both) * self.scores + bias

    def times(self, vectors: FloatArray) -> FloatArray:
        slope, both, bias = self.parts
        scaled = vectors * self.scores
        by_slope = scaled @ slope + vectors @ both.T
        return self.scores * by_slope + scaled @ both + vectors @ bias


class ClassBlocks(NamedTuple):
    r"""Covariance of slope and bias of each class, with classes independent but for the mean slope.

    It is block diagonal minus :math:`vv^\mathsf T`, because the mean slope is fixed.
    """

    slope: FloatArray  # (K,)
    both: FloatArray
    bias: FloatArray
    fixed_slope: FloatArray  # v
    fixed_bias: FloatArray

    def entries_per_row(self) -> int:
        """Return the number of entries that `of_rows` stores for each row."""
        return 2 * len(self.slope)

    def of_rows(self, scores: FloatArray) -> LogitCovariances:
        """Return the covariances of the logits of the rows."""
        variances = (self.slope * scores + 2 * self.both) * scores + self.bias
        return _ClassBlocksOfRows(variances, self.fixed_slope * scores + self.fixed_bias)


@dataclass(frozen=True)
class _ClassBlocksOfRows(LogitCovariances):
    """The covariances of `ClassBlocks`: a diagonal, less the square of the fixed mean slope."""

    variances: FloatArray  # (n, K), variances of independent classes
    fixed: FloatArray  # (n, K), derivatives of the logits along v

    def diagonal(self) -> FloatArray:
        return self.variances - self.fixed**2

    def times(self, vectors: FloatArray) -> FloatArray:
        return self.variances * vectors - _dot(self.fixed, vectors)[:, None] * self.fixed


class KroneckerMatrix(NamedTuple):
    r"""Covariance :math:`(A\otimes B+\lambda I)^{-1}` of a matrix and a bias, plus `blocks`.

    It is diagonal in the eigenvectors of A and B.
    """

    variances: FloatArray  # (K+1, K): [i, j] along right eigenvector i and left eigenvector j
    left: FloatArray  # (K, K)
    right: FloatArray  # (K+1, K+1)
    blocks: ClassBlocks

    def entries_per_row(self) -> int:
        """Return the number of entries that `of_rows` stores for each row."""
        return 6 * len(self.left)

    def of_rows(self, scores: FloatArray) -> LogitCovariances:
        """Return the covariances of the logits of the rows."""
        rotated = scores @ self.right[:-1]
        rotated += self.right[-1]
        return _KroneckerOfRows(
            (rotated**2) @ self.variances, self.left, self.blocks.of_rows(scores)
        )


@dataclass(frozen=True)
class _KroneckerOfRows(LogitCovariances):
    """The covariances of `KroneckerMatrix`: diagonal in its left eigenvectors, plus blocks."""

    variances: FloatArray  # (n, K), in the left eigenvectors
    left: FloatArray
    blocks: LogitCovariances

    def diagonal(self) -> FloatArray:
        return self.variances @ (self.left**2).T + self.blocks.diagonal()

    def times(self, vectors: FloatArray) -> FloatArray:
        rotated = (vectors @ self.left) * self.variances
        return rotated @ self.left.T + self.blocks.times(vectors)
