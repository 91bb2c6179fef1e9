"""How classes are parted: at random, in halves, by a random pair, or by where they lie (P4).

No structure depends on the names of the labels: what is not said by the data is drawn at random.
Classes are numbers 0..K-1, members of a node an array of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dubito._typing import BoolArray, FloatArray, IntArray
from dubito.dichotomies._kernels.balanced_means import balanced_tree
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    from numpy.random import Generator

#: Parts the members of a node, at least two, in two groups of at least one.
Split: TypeAlias = Callable[[IntArray], tuple[IntArray, IntArray]]
#: Tells which of the other classes are on the side of the second of two: (first, second, others).
Decide: TypeAlias = Callable[[int, int, IntArray], BoolArray]

#: Entries of dense rows that are copied at a time.
_BLOCK = 1 << 17


def grow_tree(classes: npt.NDArray[Any], split: Split) -> DichotomyTree:
    """Return the tree that comes of splitting the classes, and then each part.

    >>> grow_tree(np.array(["a", "b", "c"]), lambda members: (members[:1], members[1:])).to_nested()
    ('a', ('b', 'c'))
    """
    order: list[int] = []
    left_sizes: list[int] = []
    waiting = [np.arange(len(classes))]
    while waiting:
        members = waiting.pop()
        if len(members) == 1:
            order.append(int(members[0]))
            continue
        left, right = split(members)
        left_sizes.append(len(left))
        waiting += [right, left]
    return DichotomyTree(classes[order], left_sizes)


def random_split(rng: Generator) -> Split:
    """Every split in two is as likely as any other (P4; Frank and Kramer, 2004)."""

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        on_left = np.zeros(len(members), dtype=bool)
        while on_left.all() or not on_left.any():
            on_left = rng.random(len(members)) < 0.5
        return members[on_left], members[~on_left]

    return split


def class_balanced_split(rng: Generator) -> Split:
    """Random halves of the classes (Dong, Frank and Kramer, 2005)."""

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(members)
        half = (len(members) + 1) // 2
        return shuffled[:half], shuffled[half:]

    return split


def data_balanced_split(rng: Generator, class_weight: FloatArray) -> Split:
    """Classes in random order go left until half of the rows are there (Dong et al., 2005).

    `class_weight` (K,) holds the number of rows of each class, or their weight.
    """

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(members)
        gone = np.cumsum(class_weight[shuffled])
        n_left = int(np.searchsorted(gone, gone[-1] / 2)) + 1
        n_left = min(n_left, len(members) - 1)
        return shuffled[:n_left], shuffled[n_left:]

    return split


def random_pair_split(rng: Generator, decide: Decide) -> Split:
    """Two classes at random gather the others by a model that tells the two apart.

    A class is on the side where most of its rows are (Leathart, Pfahringer and Frank, 2016):
    `decide` fits the model and tells.
    """

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        first, second, *_ = shuffled = rng.permutation(members)
        others = shuffled[2:]
        with_second = np.zeros(len(others), dtype=bool)
        if len(others):
            with_second = np.asarray(decide(int(first), int(second), others))
        left, right = others[~with_second], others[with_second]
        return np.append(first, left), np.append(second, right)

    return split


def centroid_pair_split(rng: Generator, centroids: Any) -> Split:
    """Two classes at random gather the others, each to the nearer of their two centroids.

    Splits as different as those of a random pair, and as good, without a model to fit for each;
    a class as near to one as to the other goes either way by chance.
    """

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        first, second, *_ = shuffled = rng.permutation(members)
        others = shuffled[2:]
        nearer = _nearer_second(centroids, int(first), int(second), others)
        # Features that are missing, where nodes allow that, leave nothing to compare.
        ties = np.flatnonzero((nearer == 0) | ~np.isfinite(nearer))
        nearer[ties] = rng.random(len(ties)) - 0.5
        left, right = others[nearer <= 0], others[nearer > 0]
        return np.append(first, left), np.append(second, right)

    return split


def _nearer_second(centroids: Any, first: int, second: int, others: IntArray) -> FloatArray:
    """Return (x - (a + b)/2)'(b - a), x the centroids of others, a and b those of a pair."""
    if sp.issparse(centroids):  # of unit length, or empty
        return np.asarray(
            (centroids[others] @ (centroids[[second]] - centroids[[first]]).T).toarray()
        ).ravel()
    middle = (centroids[first] + centroids[second]) / 2
    return (centroids[others] - middle) @ (centroids[second] - centroids[first])


def half_of_features(centroids: Any, rng: Generator) -> Any:
    """Return the centroids in a random half of the features, at least one."""
    p = centroids.shape[1]
    return centroids[:, np.sort(rng.permutation(p)[: max(p // 2, 1)])]


def clustered_tree(
    classes: npt.NDArray[Any], centroids: Any, rng: Generator, *, n_starts: int = 1
) -> DichotomyTree:
    """Return the tree of balanced 2-means on the centroids (K, p) of the classes."""
    order, left_sizes = balanced_tree(centroids, rng, n_starts=n_starts)
    return DichotomyTree(classes[order], left_sizes)


def class_centroids(X: Any, column: IntArray, weight: FloatArray, n_classes: int) -> Any:
    """Return where the classes lie, (K, p), in units in which distances can be compared.

    Dense features are taken in units of their standard deviation over all rows; rows of the
    result for sparse ones have unit length (none where a class has no entries), and stay sparse.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, p)
        The rows, finite.
    column : ndarray of int, shape (n,)
        The class of each row.
    weight : ndarray of shape (n,)
        The weights of the rows; a row of weight 0 says nothing.
    n_classes : int
        K, of which each has a row that counts.

    Returns
    -------
    ndarray or CSR of shape (K, p)
    """
    total = np.bincount(column, weight, n_classes)
    share = weight / total[column]
    if sp.issparse(X):
        return _sparse_centroids(X, column, share, n_classes)
    return _dense_centroids(X, column, share, total / total.sum())


def _sparse_centroids(X: Any, column: IntArray, share: FloatArray, n_classes: int) -> Any:
    n = X.shape[0]
    gather = sp.csr_matrix((share, (column, np.arange(n))), shape=(n_classes, n))
    centroids = (gather @ X).tocsr()
    squares = np.add.reduceat(np.append(centroids.data**2, 0.0), centroids.indptr[:-1])
    length = np.sqrt(np.where(np.diff(centroids.indptr) > 0, squares, 1.0))
    length[length == 0] = 1.0
    centroids.data /= np.repeat(length, np.diff(centroids.indptr))
    return centroids


def _dense_centroids(
    X: npt.NDArray[Any], column: IntArray, share: FloatArray, class_share: FloatArray
) -> FloatArray:
    """Return centred and scaled means, in blocks of rows: their copies are float64."""
    centroids = np.zeros((len(class_share), X.shape[1]))
    order = np.argsort(column, kind="stable")
    blocks = np.array_split(order, max(1, X.size // _BLOCK))
    middle = sum((share * class_share[column])[rows] @ X[rows] for rows in blocks)
    variance = np.zeros(X.shape[1])
    for rows in blocks:
        shifted = X[rows] - middle
        part = share[rows, None] * shifted
        first = np.flatnonzero(np.diff(column[rows], prepend=-1))
        centroids[column[rows[first]]] += np.add.reduceat(part, first)
        variance += class_share[column[rows]] @ (part * shifted)
    spread = np.sqrt(variance)
    # What is left of a constant feature is rounding, and no unit of anything.
    constant = spread <= len(X) * np.finfo(np.float64).eps * np.abs(middle)
    centroids[:, constant] = 0.0
    return centroids / np.where(constant, 1.0, spread)
