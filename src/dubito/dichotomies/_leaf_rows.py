"""Rows in the order of a tree's leaves: the rows of every node are then neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree


class Spans(NamedTuple):
    """Where the rows of each node begin, where its right side begins, and where they end."""

    first: IntArray
    middle: IntArray
    last: IntArray

    @property
    def n_left(self) -> IntArray:
        """Rows on the left of each node."""
        return self.middle - self.first

    @property
    def sizes(self) -> IntArray:
        """Rows of each node."""
        return self.last - self.first

    def packed(self) -> IntArray:
        """Return where each node begins when rows of all nodes are written one after the other."""
        return np.concatenate([[0], np.cumsum(self.sizes)])


@dataclass(frozen=True)
class LeafRows:
    """Rows by leaf: those of leaf j are ``index[offset[j]:offset[j + 1]]`` of the source.

    The source stays where it is; a model takes what it needs of it, in this order, once.
    """

    source: Any
    index: IntArray
    weight: FloatArray
    offset: IntArray

    def gather(self) -> Any:
        """Return the features in leaf order, a copy."""
        return self.source[self.index]

    def spans(self, tree: DichotomyTree) -> Spans:
        """Return where the rows of each node are."""
        return Spans(self.offset[tree.start], self.offset[tree.split], self.offset[tree.stop])


def in_leaf_order(
    source: Any, place: IntArray, weight: FloatArray, n_leaves: int, rng: Generator
) -> LeafRows:
    """Order rows that have weight by the place of their leaf, and within a leaf at random.

    The random order makes folds of every so many rows; a source sorted by something else than its
    class would else have folds that differ.
    """
    shuffled = rng.permutation(np.flatnonzero(weight))
    index = shuffled[np.argsort(place[shuffled], kind="stable")]
    offset = np.concatenate([[0], np.cumsum(np.bincount(place[index], minlength=n_leaves))])
    return LeafRows(source, index, weight[index], offset)
