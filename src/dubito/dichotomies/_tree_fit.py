"""From rows and a tree over their classes to a fitted tree: nodes, and their maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.dichotomies._estimator_nodes import has_probabilities
from dubito.dichotomies._leaf_rows import in_leaf_order
from dubito.dichotomies._node_fits import fit_nodes
from dubito.dichotomies._node_maps import fit_node_maps
from dubito.dichotomies._tree_model import TreeModel

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito.calibration.base import BaseCalibrator
    from dubito.dichotomies._class_rows import ClassRows
    from dubito.dichotomies.tree import DichotomyTree


def check_node_model(estimator: Any, internal: BaseCalibrator | None) -> None:
    """Refuse a classifier that gives nothing to make probabilities of."""
    if estimator is None or has_probabilities(estimator):
        return
    if not hasattr(estimator, "decision_function"):
        raise ValueError(
            f"estimator must be a classifier with predict_proba or decision_function; got "
            f"{estimator!r}, which has neither."
        )
    if internal is None:
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, and its margins are no "
            'log-odds; use internal="platt" to make probabilities of them.'
        )


def fit_tree_model(
    tree: DichotomyTree,
    data: ClassRows,
    estimator: Any,
    internal: BaseCalibrator | None,
    *,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> TreeModel:
    """Fit the nodes, and their maps where they are to be calibrated."""
    columns = {label: column for column, label in enumerate(data.classes.tolist())}
    order = np.array([columns[label] for label in tree.leaves.tolist()])
    place = np.argsort(order)
    rows = in_leaf_order(data.X, place[data.codes], data.weight, len(order), rng)
    nodes, cross = fit_nodes(
        estimator,
        rows,
        tree,
        weighted=data.weighted,
        internal=internal,
        n_folds=n_folds,
        n_jobs=n_jobs,
        rng=rng,
    )
    spans = rows.spans(tree)
    maps = fit_node_maps(
        internal,
        cross,
        spans.packed(),
        spans.n_left,
        weight=rows.weight,
        first=spans.first,
        n_jobs=n_jobs,
    )
    return TreeModel(nodes, maps, tree.left, tree.right, order, tree.depth)
