"""Class centroids: standardised where features are dense, of unit length where they are sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import FloatArray, IntArray

#: Number of entries of dense rows that are copied at a time.
_CHUNK_ENTRIES = 2**17


def class_centroids(X: Any, column: IntArray, weight: FloatArray, n_classes: int) -> Any:
    """Return the class centroids, (K, p): standardised, or of unit length if X is sparse.

    Dense features are centred, and divided by their standard deviation over all rows. Centroids of
    sparse features stay sparse; that of a class without entries is 0.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, p)
        The rows, finite.
    column : ndarray of int, shape (n,)
        The class of each row.
    weight : ndarray of shape (n,)
        The sample weights; a row of weight 0 is ignored.
    n_classes : int
        K; each class has a row of positive weight.

    Returns
    -------
    ndarray or CSR of shape (K, p)
    """
    total = np.bincount(column, weight, n_classes)
    fraction = weight / total[column]  # each row's part of the weight of its class
    if sp.issparse(X):
        return _sparse_centroids(X, column, fraction, n_classes)
    return _dense_centroids(X, column, fraction, total / total.sum())


def _sparse_centroids(X: Any, column: IntArray, fraction: FloatArray, n_classes: int) -> Any:
    """Return class means of unit length; that of a class without entries is 0."""
    n = X.shape[0]
    gather = sp.csr_matrix((fraction, (column, np.arange(n))), shape=(n_classes, n))
    centroids = (gather @ X).tocsr()
    squares = np.add.reduceat(np.append(centroids.data**2, 0.0), centroids.indptr[:-1])
    length = np.sqrt(np.where(np.diff(centroids.indptr) > 0, squares, 1.0))
    length[length == 0] = 1.0
    centroids.data /= np.repeat(length, np.diff(centroids.indptr))
    return centroids


def _dense_centroids(
    X: npt.NDArray[Any], column: IntArray, fraction: FloatArray, class_fraction: FloatArray
) -> FloatArray:
    """Return standardised class means, computed block by block: blocks are copied to float64."""
    centroids = np.zeros((len(class_fraction), X.shape[1]))
    order = np.argsort(column, kind="stable")
    blocks = np.array_split(order, max(1, X.size // _CHUNK_ENTRIES))
    middle = sum((fraction * class_fraction[column])[rows] @ X[rows] for rows in blocks)
    variance = np.zeros(X.shape[1])
    for rows in blocks:
        shifted = X[rows] - middle
        part = fraction[rows, None] * shifted
        first = np.flatnonzero(np.diff(column[rows], prepend=-1))
        centroids[column[rows[first]]] += np.add.reduceat(part, first)
        variance += class_fraction[column[rows]] @ (part * shifted)
    spread = np.sqrt(variance)
    # The spread of a constant feature is rounding error.
    constant = spread <= len(X) * np.finfo(np.float64).eps * np.abs(middle)
    centroids[:, constant] = 0.0
    return centroids / np.where(constant, 1.0, spread)


def half_of_features(centroids: Any, rng: Generator) -> Any:
    """Return the centroids in a random half of the features, at least one."""
    p = centroids.shape[1]
    return centroids[:, np.sort(rng.permutation(p)[: max(p // 2, 1)])]
