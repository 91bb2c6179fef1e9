"""Tree structures by name: which classes a node separates from which.

Leathart et al. 2019 use random splits. No structure depends on the names of the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dubito._numerics.row_subsets import row_chunks
from dubito._wording import name_some
from dubito.dichotomies._kernels.balanced_means import balanced_tree
from dubito.dichotomies._kernels.class_centroids import class_centroids, half_of_features
from dubito.dichotomies._kernels.class_splits import (
    centroid_pair_split,
    class_balanced_split,
    data_balanced_split,
    grow_tree,
    random_pair_split,
    random_split,
)
from dubito.dichotomies._kernels.leaf_order import LeafRows
from dubito.dichotomies._node_models import fit_nodes
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies._kernels.class_splits import Split
    from dubito.dichotomies._training_rows import ClassRows

STRUCTURES = (
    "auto", "clustered", "clustered_half", "centroid_pair", "random_pair", "random",
    "class_balanced", "data_balanced",
)  # fmt: skip

#: Number of rows that the model of two random classes scores at a time.
_CHUNK_ROWS = 8192

#: The trees of an ensemble are "centroid_pair" up to this number of classes, "clustered_half"
#: beyond. Chosen on simulated classes: pairs were better with 60 and 100 classes, equal with 200,
#: worse with 500.
_MAX_PAIRED = 200


def structure_of_ensemble(structure: Any, n_classes: int) -> Any:
    """Return the structure of the trees of an ensemble: for "auto" one that makes trees differ."""
    if not (isinstance(structure, str) and structure == "auto"):
        return structure
    return "centroid_pair" if n_classes <= _MAX_PAIRED else "clustered_half"


def make_tree(structure: Any, rows: ClassRows, estimator: Any, rng: Generator) -> DichotomyTree:
    """Return the tree that `structure` names or is, over the classes of the rows."""
    if isinstance(structure, DichotomyTree | tuple | list):
        return _given_tree(structure, rows.classes)
    if structure in {"auto", "clustered", "clustered_half"}:
        order, left_sizes = _clustered(structure, rows, rng)
    else:
        split = _random_split(structure, rows, estimator, rng)
        order, left_sizes = grow_tree(len(rows.classes), split)
    return DichotomyTree(rows.classes[order], left_sizes)


def _clustered(structure: str, rows: ClassRows, rng: Generator) -> tuple[IntArray, IntArray]:
    """Return leaves and sizes of left sides of the tree by balanced 2-means on class centroids."""
    centroids = _centroids(rows)
    if structure == "clustered_half":
        return balanced_tree(half_of_features(centroids, rng), rng)
    # Three starts instead of one raised the accuracy of single trees of 1,000 dense classes from
    # 0.927 to 0.938; ten gave the same trees for few classes. For texts of 5,000 classes three
    # starts changed the time only.
    return balanced_tree(centroids, rng, n_starts=1 if sp.issparse(centroids) else 3)


def _random_split(structure: str, rows: ClassRows, estimator: Any, rng: Generator) -> Split:
    """Return the function that splits the classes of a node."""
    match structure:
        case "centroid_pair":
            return centroid_pair_split(rng, _centroids(rows))
        case "random_pair":
            return random_pair_split(rng, _PairModel(rows, estimator, rng).decide)
        case "data_balanced":
            totals: FloatArray = np.bincount(rows.codes, rows.weight).astype(np.float64)
            return data_balanced_split(rng, totals)
        case "class_balanced":
            return class_balanced_split(rng)
    return random_split(rng)


def _centroids(rows: ClassRows) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):  # node models raise for such features
        return class_centroids(rows.X, rows.codes, rows.weight, len(rows.classes))


def _given_tree(structure: Any, classes: npt.NDArray[Any]) -> DichotomyTree:
    """Return the user's tree without the leaves that have no rows."""
    given = (
        structure if isinstance(structure, DichotomyTree) else DichotomyTree.from_nested(structure)
    )
    leaves = set(given.leaves.tolist())
    missing = [label for label in classes.tolist() if label not in leaves]
    if missing:
        shown = name_some(missing, rest=", ...")
        raise ValueError(
            f"structure has no leaf for {shown}: {len(missing)} of the {len(classes)} classes of "
            "y. A tree that is given needs a leaf for every class; leaves without rows do no harm."
        )
    return given if len(leaves) == len(classes) else given.restrict(classes)


class _PairModel:
    """Assigns classes to one of two classes, by a node model fitted to the rows of the two."""

    def __init__(self, rows: ClassRows, estimator: Any, rng: Generator) -> None:
        self._rows, self._estimator, self._rng = rows, estimator, rng
        counted = np.flatnonzero(rows.weight)
        by_class = counted[np.argsort(rows.codes[counted], kind="stable")]
        sizes = np.bincount(rows.codes[counted], minlength=len(rows.classes))
        self._index_of_class = np.split(by_class, np.cumsum(sizes)[:-1])
        self._tree_of_two = DichotomyTree.from_nested((0, 1))

    def decide(self, first: int, second: int, others: IntArray) -> BoolArray:
        """Return which of the others have most of their rows on the side of the second."""
        rows = self._rows
        index = np.concatenate([self._index_of_class[first], self._index_of_class[second]])
        leaf_start = np.array([0, len(self._index_of_class[first]), len(index)])
        leaf_rows = LeafRows(rows.X, index, rows.weight[index], leaf_start)
        model, _ = fit_nodes(
            self._estimator, leaf_rows, self._tree_of_two,
            weighted=rows.weighted, internal=None, n_folds=0, n_jobs=1, rng=self._rng,
        )  # fmt: skip
        scored = np.concatenate([self._index_of_class[other] for other in others])
        vote = np.empty(len(scored))
        for chunk in row_chunks(len(scored), 1, _CHUNK_ROWS):
            vote[chunk] = np.sign(model.scores(rows.X[scored[chunk]])[:, 0])
        votes = np.bincount(rows.codes[scored], vote * rows.weight[scored], len(rows.classes))
        return votes[others] > 0
