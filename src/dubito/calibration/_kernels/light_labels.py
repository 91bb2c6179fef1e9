"""Labels whose likelihood has light targets, and sums of those targets over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.targets import mixed_targets

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray


@dataclass(frozen=True)
class LightLabels:
    """Labels with sample weights; of the target of each row, a fraction is spread over all classes.

    These are light targets (`dubito._numerics.targets`) of any number of pseudo-observations.
    """

    y: IntArray
    weight: FloatArray
    pseudo_fraction: float

    def take(self, rows: IntArray) -> LightLabels:
        """Return some of the rows."""
        return LightLabels(self.y[rows], self.weight[rows], self.pseudo_fraction)

    def target_sums(self, n_classes: int) -> FloatArray:
        """Return the sum over rows of the targets of each class, (K,)."""
        counts = np.bincount(self.y, self.weight, n_classes)
        return mixed_targets(counts, self.weight.sum(), self.pseudo_fraction, n_classes)

    def own_score_sums(self, u: FloatArray) -> FloatArray:
        """Return the sum over rows of the target of each class times its own score, (K,)."""
        n_classes = u.shape[1]
        own = np.bincount(self.y, self.weight * u[np.arange(len(u)), self.y], n_classes)
        return mixed_targets(own, self.weight @ u, self.pseudo_fraction, n_classes)

    def score_sums(self, u: FloatArray) -> FloatArray:
        """Return the sum over rows of the target of each class times all scores, (K, K)."""
        n_classes = u.shape[1]
        order = np.argsort(self.y, kind="stable")
        own = np.zeros((n_classes, n_classes))
        for rows in np.split(order, np.flatnonzero(np.diff(self.y[order])) + 1):
            own[self.y[rows[0]]] = self.weight[rows] @ u[rows]
        return mixed_targets(own, own.sum(axis=0), self.pseudo_fraction, n_classes)
