"""Training rows in the order of a tree's leaves, so that the rows of every node are consecutive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree


class Spans(NamedTuple):
    """Positions of the rows of each node in leaf order: start, start of its right side, and stop.

    `DichotomyTree` has positions of leaves under the same names.
    """

    start: IntArray
    split: IntArray
    stop: IntArray

    @property
    def n_left(self) -> IntArray:
        """Number of rows on the left of each node."""
        return self.split - self.start

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each node."""
        return self.stop - self.start

    @property
    def has_single_row(self) -> BoolArray:
        """Whether a side of the node has a single row: held out, it would leave the side empty."""
        return np.minimum(self.n_left, self.sizes - self.n_left) < 2

    def packed_start(self) -> IntArray:
        """Return the start of each node, and the end, if the rows of all nodes are concatenated."""
        return np.concatenate([[0], np.cumsum(self.sizes)])


def node_spans(leaf_start: IntArray, tree: DichotomyTree) -> Spans:
    """Return the positions of the rows of each node; those of leaf j start at ``leaf_start[j]``."""
    return Spans(leaf_start[tree.start], leaf_start[tree.split], leaf_start[tree.stop])


@dataclass(frozen=True)
class LeafRows:
    """Rows in the order of a tree's leaves.

    Those of leaf j are the rows ``index[leaf_start[j]:leaf_start[j + 1]]`` of `source`, which is
    not copied. The sample weights are in leaf order.
    """

    source: Any
    index: IntArray
    weight: FloatArray
    leaf_start: IntArray

    def gather(self) -> Any:
        """Return the features in leaf order, a copy."""
        return self.source[self.index]

    def spans(self, tree: DichotomyTree) -> Spans:
        """Return the positions of the rows of each node."""
        return node_spans(self.leaf_start, tree)


def in_leaf_order(
    source: Any, leaf: IntArray, weight: FloatArray, n_leaves: int, rng: Generator
) -> LeafRows:
    """Return the rows of positive weight ordered by their leaf, and at random within a leaf.

    Folds take every k-th row of this order. If rows were not shuffled, folds would differ
    systematically for a source that is sorted.
    """
    shuffled = rng.permutation(np.flatnonzero(weight))
    index = shuffled[np.argsort(leaf[shuffled], kind="stable")]
    leaf_start = np.concatenate([[0], np.cumsum(np.bincount(leaf[index], minlength=n_leaves))])
    return LeafRows(source, index, weight[index], leaf_start)
