"""Tree structures: random and balanced splits, splits by random pairs of classes, clustering.

Leathart et al. 2019 use random splits. No structure depends on the names of the labels: what the
data do not determine is drawn at random. Classes are numbers 0..K-1, and the members of a node an
array of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dubito._typing import BoolArray, FloatArray, IntArray
from dubito._wording import name_some
from dubito.dichotomies._kernels.balanced_means import balanced_tree
from dubito.dichotomies._node_models import fit_nodes
from dubito.dichotomies._training_rows import LeafRows
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito.dichotomies._training_rows import ClassRows

STRUCTURES = (
    "auto", "clustered", "clustered_half", "centroid_pair", "random_pair", "random",
    "class_balanced", "data_balanced",
)  # fmt: skip

#: Splits the members of a node, at least two, into two groups of at least one.
Split: TypeAlias = Callable[[IntArray], tuple[IntArray, IntArray]]
#: Returns which of the other classes are on the side of the second: (first, second, others).
Decide: TypeAlias = Callable[[int, int, IntArray], BoolArray]

#: Number of entries of dense rows that are copied at a time.
_BLOCK = 1 << 17
#: Number of rows that the model of a random pair scores at a time.
_ROWS = 8192

#: The trees of an ensemble are "centroid_pair" up to this number of classes, "clustered_half"
#: beyond. Chosen on simulated classes: pairs were better with 60 and 100 classes, equal with 200,
#: worse with 500.
_MOST_PAIRED = 200


def structure_of_ensemble(structure: Any, n_classes: int) -> Any:
    """Return the structure of the trees of an ensemble: "auto" is one that makes them differ."""
    if not (isinstance(structure, str) and structure == "auto"):
        return structure
    return "centroid_pair" if n_classes <= _MOST_PAIRED else "clustered_half"


def make_tree(structure: Any, data: ClassRows, estimator: Any, rng: Generator) -> DichotomyTree:
    """Return the tree over the classes of the data that `structure` names, or that it is."""
    if isinstance(structure, DichotomyTree | tuple | list):
        return _given_tree(structure, data.classes)
    if structure in {"auto", "clustered", "clustered_half", "centroid_pair"}:
        return _tree_by_centroids(structure, data, rng)
    if structure == "random_pair":
        decide = _PairModel(data, estimator, rng).decide
        return grow_tree(data.classes, random_pair_split(rng, decide))
    if structure == "data_balanced":
        totals: FloatArray = np.bincount(data.codes, data.weight).astype(np.float64)
        return grow_tree(data.classes, data_balanced_split(rng, totals))
    splits = {"random": random_split, "class_balanced": class_balanced_split}
    return grow_tree(data.classes, splits[structure](rng))


def _tree_by_centroids(structure: str, data: ClassRows, rng: Generator) -> DichotomyTree:
    """Return a tree that splits classes by their centroids."""
    with np.errstate(over="ignore", invalid="ignore"):  # node models raise for such features
        centroids = class_centroids(data.X, data.codes, data.weight, len(data.classes))
    if structure == "centroid_pair":
        return grow_tree(data.classes, centroid_pair_split(rng, centroids))
    if structure == "clustered_half":
        return clustered_tree(data.classes, half_of_features(centroids, rng), rng)
    # Three starts in place of one raised the accuracy of single trees of 1,000 dense classes from
    # 0.927 to 0.938; ten gave the same trees for few classes. For texts of 5,000 classes three
    # starts changed the time only.
    n_starts = 1 if sp.issparse(centroids) else 3
    return clustered_tree(data.classes, centroids, rng, n_starts=n_starts)


def _given_tree(structure: Any, classes: npt.NDArray[Any]) -> DichotomyTree:
    """Return the user's tree without the leaves that have no rows."""
    given = structure
    if not isinstance(given, DichotomyTree):
        given = DichotomyTree.from_nested(structure)
    leaves = set(given.leaves.tolist())
    missing = [label for label in classes.tolist() if label not in leaves]
    if missing:
        shown = name_some(missing, rest=", ...")
        raise ValueError(
            f"structure has no leaf for {shown}: {len(missing)} of the {len(classes)} classes of "
            "y. A tree that is given needs a leaf for every class; leaves without rows do no harm."
        )
    if len(leaves) == len(classes):
        return given
    return given.restrict(classes)


class _PairModel:
    """Assigns classes to one of two others by a model of the nodes fitted to those two."""

    def __init__(self, data: ClassRows, estimator: Any, rng: Generator) -> None:
        self._data, self._estimator, self._rng = data, estimator, rng
        counted = np.flatnonzero(data.weight)
        by_class = counted[np.argsort(data.codes[counted], kind="stable")]
        sizes = np.bincount(data.codes[counted], minlength=len(data.classes))
        self._rows = np.split(by_class, np.cumsum(sizes)[:-1])
        self._pair = DichotomyTree.from_nested((0, 1))

    def decide(self, first: int, second: int, others: IntArray) -> BoolArray:
        """Return which of the others have most of their rows on the side of the second."""
        data = self._data
        index = np.concatenate([self._rows[first], self._rows[second]])
        offset = np.array([0, len(self._rows[first]), len(index)])
        rows = LeafRows(data.X, index, data.weight[index], offset)
        model, _ = fit_nodes(
            self._estimator, rows, self._pair,
            weighted=data.weighted, internal=None, n_folds=0, n_jobs=1, rng=self._rng,
        )  # fmt: skip
        scored = np.concatenate([self._rows[other] for other in others])
        vote = np.empty(len(scored))
        for begin in range(0, len(scored), _ROWS):
            part = scored[begin : begin + _ROWS]
            vote[begin : begin + _ROWS] = np.sign(model.scores(data.X[part])[:, 0])
        votes = np.bincount(data.codes[scored], vote * data.weight[scored], len(data.classes))
        return votes[others] > 0


def grow_tree(classes: npt.NDArray[Any], split: Split) -> DichotomyTree:
    """Return the tree made by splitting the classes, then each part.

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
    """Return a function that draws any split equally often (Frank and Kramer 2004)."""

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        on_left = np.zeros(len(members), dtype=bool)
        while on_left.all() or not on_left.any():
            on_left = rng.random(len(members)) < 0.5
        return members[on_left], members[~on_left]

    return split


def class_balanced_split(rng: Generator) -> Split:
    """Return a function that draws random halves of the classes (Dong, Frank and Kramer 2005)."""

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(members)
        half = (len(members) + 1) // 2
        return shuffled[:half], shuffled[half:]

    return split


def data_balanced_split(rng: Generator, class_weight: FloatArray) -> Split:
    """Return a function that draws random classes with half of the rows (Dong et al. 2005).

    Classes in random order go left until half of the rows are there. `class_weight` (K,) is the
    number of rows of each class, or their total sample weight.
    """

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(members)
        gone = np.cumsum(class_weight[shuffled])
        n_left = int(np.searchsorted(gone, gone[-1] / 2)) + 1
        n_left = min(n_left, len(members) - 1)
        return shuffled[:n_left], shuffled[n_left:]

    return split


def random_pair_split(rng: Generator, decide: Decide) -> Split:
    """Return a function that splits by a model of two random classes (Leathart et al. 2016).

    A class is on the side where most of its rows are: `decide` fits the model and decides.
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
    """Return a function that splits by the nearer of the centroids of two random classes.

    Splits are as varied and as good as those of `random_pair_split`, without a model for each. A
    class at equal distance from both is assigned at random.
    """

    def split(members: IntArray) -> tuple[IntArray, IntArray]:
        first, second, *_ = shuffled = rng.permutation(members)
        others = shuffled[2:]
        nearer = _nearer_second(centroids, int(first), int(second), others)
        # Missing features, where node models allow them, make distances nan.
        ties = np.flatnonzero((nearer == 0) | ~np.isfinite(nearer))
        nearer[ties] = rng.random(len(ties)) - 0.5
        left, right = others[nearer <= 0], others[nearer > 0]
        return np.append(first, left), np.append(second, right)

    return split


def _nearer_second(centroids: Any, first: int, second: int, others: IntArray) -> FloatArray:
    """Return (x - (a + b)/2)'(b - a), x the centroids of the others, a and b those of the pair."""
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
    """Return the class centroids, (K, p), scaled so that distances can be compared.

    Dense features are standardised by their standard deviation over all rows; centroids of sparse
    features are normalised to unit length (unless a class has no entries) and stay sparse.

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
    fraction = weight / total[column]  # of its class that a row is
    if sp.issparse(X):
        return _sparse_centroids(X, column, fraction, n_classes)
    return _dense_centroids(X, column, fraction, total / total.sum())


def _sparse_centroids(X: Any, column: IntArray, fraction: FloatArray, n_classes: int) -> Any:
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
    """Return standardised class means, computed in blocks because float64 copies are made."""
    centroids = np.zeros((len(class_fraction), X.shape[1]))
    order = np.argsort(column, kind="stable")
    blocks = np.array_split(order, max(1, X.size // _BLOCK))
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
