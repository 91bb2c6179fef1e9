"""Predictions of a fitted tree for a chunk of rows: scores of nodes, their calibration, paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from dubito._validation import level_of_each
from dubito.belief.bounds import including
from dubito.dichotomies._kernels.leaf_order import in_leaf_order
from dubito.dichotomies._kernels.tree_paths import (
    class_bounds,
    class_proba,
    log_class_proba,
    maximal_classes,
)
from dubito.dichotomies._logistic_nodes import DenseLinearNodes
from dubito.dichotomies._node_calibration import fit_node_maps
from dubito.dichotomies._node_maps import IdentityMaps
from dubito.dichotomies._node_models import ClippedNodes, clipped, fit_nodes

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.dichotomies._node_maps import NodeMaps
    from dubito.dichotomies._node_models import NodeModels
    from dubito.dichotomies._training_rows import ClassRows
    from dubito.dichotomies.tree import DichotomyTree

#: Fraction of the nodes that a best-first search may visit; beyond it, scoring all is faster.
_VISITED_FRACTION = 1 / 8


@dataclass(frozen=True)
class TreeModel:
    """A fitted tree: node models, their calibration maps, and the paths from nodes to classes.

    ``order`` is the column of each leaf; ``left``, ``right`` and ``depth`` are those of the
    `DichotomyTree`.
    """

    nodes: NodeModels
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
        """Return the calibrated log-odds of the right side of each node, (n, nodes)."""
        return self._clipped(self.maps.log_odds(self.nodes.scores(X)))

    def _clipped(self, log_odds: FloatArray) -> FloatArray:
        """Return calibrated log-odds, clipped if the nodes are naive Bayes."""
        return clipped(log_odds) if isinstance(self.nodes, ClippedNodes) else log_odds

    def log_proba(self, X: Any) -> FloatArray:
        """Return log-probabilities (n, K): sums along paths (Leathart et al. 2019, eq. 6)."""
        return log_class_proba(self._log_odds(X), *self._paths)

    def proba(self, X: Any) -> FloatArray:
        """Return probabilities (n, K): products along paths (Leathart et al. 2019, eq. 3)."""
        return class_proba(self._log_odds(X), *self._paths)

    def bounds(self, X: Any, level: float | None) -> FloatArray:
        """Return lower and upper probabilities, (n, 2, K)."""
        return np.stack(class_bounds(*self._node_bounds(X, level), *self._paths), axis=1)

    def maximal(self, X: Any, level: float | None) -> BoolArray:
        """Return the classes that no other dominates, (n, K)."""
        return maximal_classes(*self._node_bounds(X, level), *self._paths)

    def _node_bounds(self, X: Any, level: float | None) -> tuple[FloatArray, FloatArray]:
        r"""Return bounds of the right side of each node, each (n, nodes).

        At a level those of each node have the level :math:`1-(1-\text{level})/d`, d the number of
        nodes on the longest path: all bounds on a path are then valid together at the
        level (Bonferroni). They are widened to contain the estimate.
        """
        scores = self.nodes.scores(X)
        if level is None:
            return self.maps.bounds(scores)
        node_level = level_of_each(level, max(self.depth, 1))
        proba = expit(self._clipped(self.maps.log_odds(scores)))
        return including(proba, self.maps.level_bounds(scores, node_level))

    def search_top(self, X: Any, k: int) -> tuple[IntArray, FloatArray, BoolArray] | None:
        """Return columns and log-probabilities of the k best classes, and the rows they hold for.

        None if every node must be scored. A best-first search visits few nodes for most rows; it
        gives up rows whose probability is spread over many classes: scoring all nodes is faster.
        """
        nodes, affine = self.nodes, self.maps.affine
        max_visits = int(len(self.order) * _VISITED_FRACTION)
        if not isinstance(nodes, DenseLinearNodes) or affine is None or max_visits <= 4 * k:
            return None
        from dubito.dichotomies._kernels.top_classes_compiled import best_first_of_rows  # noqa: PLC0415 - loads numba

        shape = nodes.intercept.shape
        best, columns = np.zeros((len(X), k)), np.zeros((len(X), k), dtype=np.int64)
        done = best_first_of_rows(
            np.ascontiguousarray(X - nodes.shift, dtype=nodes.coef.dtype),
            (nodes.coef, nodes.intercept, *(np.broadcast_to(a, shape).copy() for a in affine)),
            self._paths,
            max_visits,
            best,
            columns,
        )
        return columns, best, done


def fit_tree_model(
    tree: DichotomyTree,
    rows: ClassRows,
    estimator: Any,
    internal: BaseCalibrator | None,
    *,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> TreeModel:
    """Return the tree with its nodes fitted, and calibrated if `internal` is not None."""
    columns = {label: column for column, label in enumerate(rows.classes.tolist())}
    order = np.array([columns[label] for label in tree.leaves.tolist()])
    leaf = np.argsort(order)
    leaf_rows = in_leaf_order(rows.X, leaf[rows.codes], rows.weight, len(order), rng)
    nodes, out_of_fold = fit_nodes(
        estimator,
        leaf_rows,
        tree,
        weighted=rows.weighted,
        internal=internal,
        n_folds=n_folds,
        n_jobs=n_jobs,
        rng=rng,
    )
    spans = leaf_rows.spans(tree)
    maps = fit_node_maps(
        internal,
        out_of_fold,
        spans.packed_start(),
        spans.n_left,
        weight=leaf_rows.weight,
        weight_start=spans.start,
        n_jobs=n_jobs,
    )
    return TreeModel(nodes, maps, tree.left, tree.right, order, tree.depth)
