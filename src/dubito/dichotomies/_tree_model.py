"""A fitted tree: rows in, probabilities, bounds and sets of classes out, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit

from dubito._validation import level_of_each
from dubito.dichotomies._kernels.tree_paths import (
    class_bounds,
    class_proba,
    log_class_proba,
    maximal_classes,
)
from dubito.dichotomies._parallel import run_tasks
from dubito.dichotomies._platt_maps import IdentityMaps

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies._node_fits import NodeModel
    from dubito.dichotomies._node_maps import NodeMaps

#: Log-odds that are held at once: 32 MiB of them.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class TreeModel:
    """Node models with their calibration maps, and the paths from nodes to classes.

    ``order`` holds the column of each leaf; ``left``, ``right`` and ``depth`` are the tree's.
    """

    nodes: NodeModel
    maps: NodeMaps
    left: IntArray
    right: IntArray
    order: IntArray
    depth: int

    @property
    def _paths(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.left, self.right, self.order

    def without_maps(self) -> TreeModel:
        """Return the same nodes, uncalibrated."""
        return replace(self, maps=IdentityMaps())

    def _log_odds(self, X: Any) -> FloatArray:
        return self._kept(self.maps.log_odds(self.nodes.scores(X)))

    def _kept(self, odds: FloatArray) -> FloatArray:
        largest = getattr(self.nodes, "largest", None)
        return odds if largest is None else np.clip(odds, -largest, largest)

    def log_proba(self, X: Any) -> FloatArray:
        """Return log-probabilities (n, K)."""
        return log_class_proba(self._log_odds(X), *self._paths)

    def proba(self, X: Any) -> FloatArray:
        """Return probabilities (n, K)."""
        return class_proba(self._log_odds(X), *self._paths)

    def bounds(self, X: Any, level: float | None) -> FloatArray:
        """Return lower and upper probabilities, (n, 2, K)."""
        return np.stack(class_bounds(*self._node_bounds(X, level), *self._paths), axis=1)

    def maximal(self, X: Any, level: float | None) -> BoolArray:
        """Return the classes that no other dominates, (n, K)."""
        return maximal_classes(*self._node_bounds(X, level), *self._paths)

    def _node_bounds(self, X: Any, level: float | None) -> tuple[FloatArray, FloatArray]:
        r"""Return bounds of the right side of each node, each (n, nodes).

        At a level they hold its probability with :math:`1-(1-\text{level})/d`, d the number of
        nodes on the longest path: a path has all its nodes' probabilities in their bounds at the
        level (Bonferroni). They are widened to hold the estimate.
        """
        scores = self.nodes.scores(X)
        if level is None:
            return self.maps.bounds(scores)
        of_node = level_of_each(level, max(self.depth, 1))
        lower, upper = self.maps.level_bounds(scores, of_node)
        proba = expit(self._kept(self.maps.log_odds(scores)))
        return np.minimum(lower, proba), np.maximum(upper, proba)


def over_rows(
    function: Callable[[Any], npt.NDArray[Any]], X: Any, n_classes: int, n_jobs: int | None
) -> npt.NDArray[Any]:
    """Return `function` of all rows, which treats each by itself, computed some at a time."""
    n = X.shape[0]
    step = max(_CHUNK // n_classes, 1)
    slices = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    if len(slices) == 1:
        return function(X)
    if effective_n_jobs(n_jobs) > 1:
        parts = iter(run_tasks(_part, (X, function), slices, n_jobs=n_jobs))
    else:
        parts = (function(X[rows]) for rows in slices)
    first = next(parts)
    out = np.empty((n, *first.shape[1:]), first.dtype)
    out[slices[0]] = first
    for rows, part in zip(slices[1:], parts, strict=True):
        out[rows] = part
    return out


def _part(X: Any, function: Callable[[Any], npt.NDArray[Any]], rows: slice) -> npt.NDArray[Any]:
    return function(X[rows])
