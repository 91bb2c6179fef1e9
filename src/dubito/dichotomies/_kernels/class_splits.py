"""Random splits of sets of classes, and the tree that they grow.

Classes are numbers 0..K-1; the classes of a node are an array of them. What the data do not
determine is drawn at random, so that no tree depends on the names of the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from dubito._typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.random import Generator

#: Splits the classes of a node, at least two, into two groups of at least one.
Split: TypeAlias = Callable[[IntArray], tuple[IntArray, IntArray]]
#: Called with a first, a second and other classes; returns which others are with the second.
Decide: TypeAlias = Callable[[int, int, IntArray], BoolArray]


def grow_tree(n_classes: int, split: Split) -> tuple[IntArray, IntArray]:
    """Return the classes as leaves from left to right, and the number on the left of each node.

    The classes are split, then each group, down to single classes; nodes are in preorder.

    >>> grow_tree(3, lambda classes: (classes[:1], classes[1:]))
    (array([0, 1, 2]), array([1, 1]))
    """
    order: list[int] = []
    left_sizes: list[int] = []
    waiting = [np.arange(n_classes)]
    while waiting:
        classes = waiting.pop()
        if len(classes) == 1:
            order.append(int(classes[0]))
            continue
        left, right = split(classes)
        left_sizes.append(len(left))
        waiting += [right, left]
    return np.array(order, dtype=np.intp), np.array(left_sizes, dtype=np.intp)


def random_split(rng: Generator) -> Split:
    """Return a function that draws any split equally often (Frank and Kramer 2004)."""

    def split(classes: IntArray) -> tuple[IntArray, IntArray]:
        on_left = np.zeros(len(classes), dtype=bool)
        while on_left.all() or not on_left.any():
            on_left = rng.random(len(classes)) < 0.5
        return classes[on_left], classes[~on_left]

    return split


def class_balanced_split(rng: Generator) -> Split:
    """Return a function that draws random halves of the classes (Dong, Frank and Kramer 2005)."""

    def split(classes: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(classes)
        half = (len(classes) + 1) // 2
        return shuffled[:half], shuffled[half:]

    return split


def data_balanced_split(rng: Generator, class_weight: FloatArray) -> Split:
    """Return a function that draws random classes with half of the rows (Dong et al. 2005).

    The left side is the shortest prefix of a random order with at least half of the rows, but never
    all classes. `class_weight` (K,) is the number of rows of each class, or their sample weight.
    """

    def split(classes: IntArray) -> tuple[IntArray, IntArray]:
        shuffled = rng.permutation(classes)
        cumulated = np.cumsum(class_weight[shuffled])
        n_left = int(np.searchsorted(cumulated, cumulated[-1] / 2)) + 1
        n_left = min(n_left, len(classes) - 1)
        return shuffled[:n_left], shuffled[n_left:]

    return split


def random_pair_split(rng: Generator, decide: Decide) -> Split:
    """Return a function that splits by a model of two random classes (Leathart et al. 2016).

    `decide` fits the model, and returns on which side of it each other class has most of its rows.
    """

    def split(classes: IntArray) -> tuple[IntArray, IntArray]:
        first, second, *_ = shuffled = rng.permutation(classes)
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

    def split(classes: IntArray) -> tuple[IntArray, IntArray]:
        first, second, *_ = shuffled = rng.permutation(classes)
        others = shuffled[2:]
        nearer = _nearer_second(centroids, int(first), int(second), others)
        # Missing features, where node models allow them, make distances nan.
        ties = np.flatnonzero((nearer == 0) | ~np.isfinite(nearer))
        nearer[ties] = rng.random(len(ties)) - 0.5
        left, right = others[nearer <= 0], others[nearer > 0]
        return np.append(first, left), np.append(second, right)

    return split


def _nearer_second(centroids: Any, first: int, second: int, others: IntArray) -> FloatArray:
    """Return (x - (a + b)/2)'(b - a) for each other class: positive where x is nearer to b.

    x are the centroids of the others, a and b those of the first and the second class.
    """
    if sp.issparse(centroids):  # (a + b)'(b - a) is 0, except for classes without entries
        return np.asarray(
            (centroids[others] @ (centroids[[second]] - centroids[[first]]).T).toarray()
        ).ravel()
    middle = (centroids[first] + centroids[second]) / 2
    return (centroids[others] - middle) @ (centroids[second] - centroids[first])
