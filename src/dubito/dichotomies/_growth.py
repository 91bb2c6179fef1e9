"""From what `structure` names to a tree over the classes there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dubito._wording import name_some
from dubito.dichotomies._leaf_rows import LeafRows
from dubito.dichotomies._node_fits import fit_nodes
from dubito.dichotomies._structures import (
    centroid_pair_split,
    class_balanced_split,
    class_centroids,
    clustered_tree,
    data_balanced_split,
    grow_tree,
    half_of_features,
    random_pair_split,
    random_split,
)
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies._class_rows import ClassRows

STRUCTURES = (
    "auto", "clustered", "clustered_half", "centroid_pair", "random_pair", "random",
    "class_balanced", "data_balanced",
)  # fmt: skip

#: Trees that are pooled part up to so many classes by pairs of centroids, more by clusters.
#: Chosen on simulated classes: pairs were ahead with 60 and 100, level with 200, behind with 500.
_MOST_PAIRED = 200

#: Rows that a model of a random pair judges at a time.
_ROWS = 8192


def structure_of_several(structure: Any, n_classes: int) -> Any:
    """Return the structure of trees that are pooled: "auto" is one that makes them differ."""
    if not (isinstance(structure, str) and structure == "auto"):
        return structure
    return "centroid_pair" if n_classes <= _MOST_PAIRED else "clustered_half"


def make_tree(structure: Any, data: ClassRows, estimator: Any, rng: Generator) -> DichotomyTree:
    """Return the tree that `structure` names, or that it is."""
    if isinstance(structure, DichotomyTree | tuple | list):
        return _given_tree(structure, data.classes)
    if structure in {"auto", "clustered", "clustered_half", "centroid_pair"}:
        return _tree_by_centroids(structure, data, rng)
    if structure == "random_pair":
        return grow_tree(data.classes, random_pair_split(rng, _Judge(data, estimator, rng).decide))
    if structure == "data_balanced":
        totals: FloatArray = np.bincount(data.codes, data.weight).astype(np.float64)
        return grow_tree(data.classes, data_balanced_split(rng, totals))
    splits = {"random": random_split, "class_balanced": class_balanced_split}
    return grow_tree(data.classes, splits[structure](rng))


def _tree_by_centroids(structure: str, data: ClassRows, rng: Generator) -> DichotomyTree:
    """Return a tree that parts classes by where their centroids lie."""
    with np.errstate(over="ignore", invalid="ignore"):  # node models refuse such features
        centroids = class_centroids(data.X, data.codes, data.weight, len(data.classes))
    if structure == "centroid_pair":
        return grow_tree(data.classes, centroid_pair_split(rng, centroids))
    if structure == "clustered_half":
        return clustered_tree(data.classes, half_of_features(centroids, rng), rng)
    # The best of three tries took single trees of 1,000 dense classes from accuracy 0.927 to 0.938;
    # ten made trees of few classes alike. For texts of 5,000 classes three tries changed nothing
    # but the time.
    n_starts = 1 if sp.issparse(centroids) else 3
    return clustered_tree(data.classes, centroids, rng, n_starts=n_starts)


def _given_tree(structure: Any, classes: npt.NDArray[Any]) -> DichotomyTree:
    """Return a tree that was given, without the leaves that have no rows."""
    given = structure
    if not isinstance(given, DichotomyTree):
        given = DichotomyTree.from_nested(structure)
    leaves = set(given.leaves.tolist())
    homeless = [label for label in classes.tolist() if label not in leaves]
    if homeless:
        shown = name_some(homeless, rest=", ...")
        raise ValueError(
            f"structure has no leaf for {shown}: {len(homeless)} of the {len(classes)} classes of "
            "y. A tree that is given needs a leaf for every class; leaves without rows do no harm."
        )
    if len(leaves) == len(classes):
        return given
    return given.restrict(classes)


class _Judge:
    """Tells which of two classes the rows of others are nearer to, by the model of the nodes."""

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
        judged = np.concatenate([self._rows[other] for other in others])
        vote = np.empty(len(judged))
        for begin in range(0, len(judged), _ROWS):
            part = judged[begin : begin + _ROWS]
            vote[begin : begin + _ROWS] = np.sign(model.scores(data.X[part])[:, 0])
        votes = np.bincount(data.codes[judged], vote * data.weight[judged], len(data.classes))
        return votes[others] > 0
