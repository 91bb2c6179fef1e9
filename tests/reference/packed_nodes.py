"""Packed nodes of a tree, the input of calibration maps, and one calibrator for each node.

The only tests of modules that are neither public nor kernels, besides those of tasks: maps are
compared for scores that no classifier gives, such as nan, infinite ones, and nodes without rows in
common.
"""

import numpy as np
from sklearn.base import clone

from dubito.dichotomies._calibrators import as_internal
from dubito.dichotomies._node_calibration import fit_node_maps
from dubito.dichotomies._node_maps import NodeMaps

QUERIES = np.array([-1e4, -30.0, -4.0, -2.0, -0.5, -0.25, 0.0, 0.3, 1.0, 3.5, 30.0, 1e4])


class Packed:
    """Nodes as the classifier passes them to calibration maps: rows of all nodes concatenated."""

    def __init__(self, nodes):
        sides = [[np.array(side, dtype=float).reshape(-1, 2) for side in node] for node in nodes]
        self.nodes = [np.concatenate(pair) for pair in sides]
        self.n_left = np.array([len(left) for left, _ in sides], dtype=np.intp)
        self.start = np.cumsum([0, *map(len, self.nodes)])
        self.weight_start = self.start[:-1]
        rows = np.concatenate([np.empty((0, 2)), *self.nodes])
        self.out_of_fold, self.weight = 0.5 * rows[:, 0], rows[:, 1]

    def fit(self, internal, **options):
        options |= {"weight": self.weight, "weight_start": self.weight_start}
        calibrator = as_internal(internal)
        return fit_node_maps(calibrator, self.out_of_fold, self.start, self.n_left, **options)

    def by_hand(self, calibrator):
        """Return one fitted calibrator for each node."""
        return [
            clone(calibrator).set_params(classes=[0, 1]).fit(*self.of_node(t)) for t in self.all
        ]

    @property
    def all(self):
        return range(len(self.nodes))

    def of_node(self, t):
        part = slice(self.start[t], self.start[t + 1])
        event = np.arange(self.start[t + 1] - self.start[t]) >= self.n_left[t]
        return self.out_of_fold[part], event.astype(int), self.weight[part]

    @property
    def queries(self):
        return np.repeat(QUERIES[:, None], len(self.nodes), axis=1)


def has_bounds(maps):
    """Return whether lower and upper probabilities of the maps differ."""
    return type(maps).level_bounds is not NodeMaps.level_bounds


def gaussian_nodes(sizes, seed=0, gap=2.0):
    """Return nodes of normal scores, with `sizes` rows on each side."""
    rng = np.random.default_rng(seed)
    return Packed(
        [
            [
                np.column_stack([2 * rng.normal(mean, 1.5, size), np.ones(size)])
                for mean in (-gap, gap)
            ]
            for size in sizes
        ]
    )
