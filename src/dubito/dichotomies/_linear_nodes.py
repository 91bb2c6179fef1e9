"""Nodes that are linear in the features: their weights, and the log-odds they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import scipy.sparse as sp

    from dubito._typing import FloatArray

#: Rows in a product with dense weights. Always as many, the last filled up with zeros: a product of
#: another shape may add in another order, and a row would depend on its company.
_ROWS = 32


@dataclass(frozen=True)
class DenseLinearNodes:
    """Dense weights: log-odds are ``(x - shift) @ coef.T + intercept``."""

    coef: FloatArray
    intercept: FloatArray
    shift: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the log-odds of the right side of every node, (n, nodes)."""
        out = np.empty((len(X), len(self.intercept)))
        block = np.zeros((_ROWS, len(self.shift)), self.coef.dtype)
        weights = self.coef.T
        for rows in _blocks(len(X)):
            n = rows.stop - rows.start
            block[:n] = X[rows] - self.shift
            block[n:] = 0.0
            out[rows] = (block @ weights)[:n]
        out += self.intercept
        return out


@dataclass(frozen=True)
class SparseLinearNodes:
    """Weights of the columns present at each node, kept by column: ``coef`` is (p, nodes), CSR."""

    coef: sp.csr_array
    intercept: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side of every node, (n, nodes)."""
        from dubito.dichotomies._kernels.sparse_scores_compiled import sparse_scores  # noqa: PLC0415 - slow

        out = np.empty((X.shape[0], len(self.intercept)))
        coef = self.coef
        sparse_scores(
            X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, self.intercept, out
        )
        return out


def _blocks(n: int) -> Iterator[slice]:
    for first in range(0, n, _ROWS):
        yield slice(first, min(first + _ROWS, n))
