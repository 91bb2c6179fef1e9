"""The models of all nodes of a tree, fitted by the fastest method that a classifier has.

Logistic regression and naive Bayes are fitted at all nodes by `_logistic_nodes` and `_naive_bayes`.
Of any other classifier a clone is fitted at each node, and one more for each fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from dubito._meta_estimators import weight_parameters
from dubito._numerics.log_odds import floored_log_odds, probability_floor
from dubito.dichotomies._logistic_nodes import fit_logistic_nodes, plain_logistic
from dubito.dichotomies._naive_bayes import fit_naive_bayes_nodes, is_plain_naive_bayes
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.dichotomies._kernels.leaf_order import LeafRows
    from dubito.dichotomies.tree import DichotomyTree

#: Smallest probability of a side of a node, so that no class gets probability 0.
_LEAST_FLOOR = 1e-16

#: Log-odds of naive Bayes are clipped to this range.
_LARGEST_LOG_ODDS = -float(np.log(_LEAST_FLOOR))


class NodeModels(Protocol):
    """Models of all nodes."""

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side of every node, (n, nodes), nodes in preorder."""


def has_probabilities(estimator: Any) -> bool:
    """Return whether a classifier gives probabilities, not margins only."""
    return hasattr(estimator, "predict_proba")


def check_node_model(estimator: Any, internal: BaseCalibrator | None) -> None:
    """Raise unless nodes with this classifier can be trained and have probabilities."""
    if isinstance(estimator, FrozenEstimator):
        raise TypeError(
            f"estimator is trained at every node of the tree; {estimator!r} is frozen and cannot "
            "be. Give the classifier without FrozenEstimator; to calibrate a fitted one, use "
            "CalibratedClassifier."
        )
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


def fit_nodes(
    estimator: Any,
    rows: LeafRows,
    tree: DichotomyTree,
    *,
    weighted: bool,
    internal: BaseCalibrator | None,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> tuple[NodeModels, FloatArray]:
    """Return the fitted nodes of a tree, and out-of-fold log-odds for their calibration.

    The log-odds are packed node by node, each in the order of its rows; there are none if
    `internal` is None.
    """
    n_folds = 0 if internal is None else n_folds
    logistic = plain_logistic(estimator)
    if logistic is not None:
        return fit_logistic_nodes(rows, tree, logistic, n_folds=n_folds, n_jobs=n_jobs)
    if not is_plain_naive_bayes(estimator):
        return _fit_estimator_nodes(
            rows, tree, estimator, weighted=weighted, n_folds=n_folds, n_jobs=n_jobs, rng=rng
        )
    model, out_of_fold = fit_naive_bayes_nodes(
        rows, tree, estimator, weighted=weighted, n_folds=n_folds
    )
    nodes = ClippedNodes(model, before_calibration=internal is not None and not internal.uses_ranks)
    return nodes, clipped(out_of_fold) if nodes.before_calibration else out_of_fold


@dataclass(frozen=True)
class ClippedNodes:
    """Naive Bayes nodes, whose log-odds are clipped after calibration or also before it.

    Correlated features are counted as if independent, so that log-odds reach millions. They are
    clipped where ``predict_proba`` of scikit-learn rounds to 0: no class is impossible. A map that
    depends on the size of the scores would be dominated by a few log-odds of millions on the wrong
    side, so they are clipped before it. Maps that depend on their order are better without.
    """

    model: NodeModels
    before_calibration: bool

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, nodes)."""
        scores = self.model.scores(X)
        return clipped(scores) if self.before_calibration else scores


def clipped(log_odds: FloatArray) -> FloatArray:
    """Return log-odds clipped to those of the probabilities 1e-16 and 1 - 1e-16."""
    return np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)


class FittedNode(NamedTuple):
    """A classifier of two classes, 0 (left) and 1 (right), and the floor of its probabilities."""

    estimator: Any
    floor: float

    def log_odds(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, or the margin if there are no probabilities."""
        if not has_probabilities(self.estimator):
            return np.asarray(self.estimator.decision_function(X), dtype=np.float64).ravel()
        proba = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        return floored_log_odds(proba[:, 1], proba[:, 0], self.floor)


@dataclass(frozen=True)
class EstimatorNodes:
    """A fitted classifier for each node."""

    fitted: list[FittedNode]

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side of every node, or margins, (n, nodes)."""
        out = np.empty((X.shape[0], len(self.fitted)))
        for column, node in enumerate(self.fitted):
            out[:, column] = node.log_odds(X)
        return out


def _fit_estimator_nodes(
    rows: LeafRows,
    tree: DichotomyTree,
    estimator: Any,
    *,
    weighted: bool,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> tuple[EstimatorNodes, FloatArray]:
    """Return a fitted clone for each node, and packed out-of-fold log-odds if there are folds."""
    weight = rows.weight if weighted else None
    parameters = weight_parameters(estimator, weight, instead="calibration and the tree")
    spans = rows.spans(tree)
    seeds = rng.integers(np.iinfo(np.int32).max, size=tree.n_nodes)
    tasks = plan_tasks(spans.sizes.astype(np.float64), count_tasks(n_jobs))
    shared = (rows.gather(), rows.weight, *spans, seeds)
    common = (estimator, parameters, n_folds)
    done = run_tasks(_fit_task, shared, [(task, *common) for task in tasks], n_jobs=n_jobs)

    nodes: list[Any] = [None] * tree.n_nodes
    start = spans.packed_start()
    out_of_fold = np.empty(start[-1] if n_folds else 0)
    for task, group in zip(tasks, done, strict=True):
        for node, (fitted, scores) in zip(task, group, strict=True):
            nodes[node] = fitted
            if n_folds:
                out_of_fold[start[node] : start[node + 1]] = scores
    return EstimatorNodes(nodes), out_of_fold


def _fit_task(  # noqa: PLR0917 - shared arrays come one by one
    X: Any,
    weight: FloatArray,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    seeds: IntArray,
    task: tuple[IntArray, Any, tuple[str, ...], int],
) -> list[tuple[FittedNode, FloatArray]]:
    """Return the fitted models of some nodes, each with its out-of-fold log-odds."""
    nodes, estimator, parameters, n_folds = task
    done = []
    for node in nodes:
        node_start, node_stop = int(start[node]), int(stop[node])
        # Some classifiers split their rows without shuffling; leaf order is sorted by class.
        rows = node_start + np.random.default_rng(seeds[node]).permutation(node_stop - node_start)
        unfitted = UnfittedNode(
            estimator=estimator,
            X=X[rows],
            side=(rows >= split[node]).astype(np.int64),
            weight=weight[rows],
            weight_parameters=parameters,
            seed=int(seeds[node]),
        )
        all_rows = np.ones(len(rows), dtype=bool)
        scores = np.full(len(rows) if n_folds else 0, np.nan)
        if n_folds:
            scores[rows - node_start] = _cross_fit(unfitted, rows % n_folds, n_folds)
        done.append((unfitted.fit(all_rows), scores))
    return done


@dataclass(frozen=True, kw_only=True)
class UnfittedNode:
    """The rows of a node, and the classifier to fit to them."""

    estimator: Any
    X: Any
    side: IntArray
    weight: FloatArray
    weight_parameters: tuple[str, ...]
    seed: int

    def fit(self, chosen: BoolArray) -> FittedNode:
        """Return a clone fitted to some rows, seeded where its random_state is None."""
        model = clone(self.estimator)
        missing_seeds = {
            name: self.seed
            for name, value in model.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        }
        model.set_params(**missing_seeds)
        X, side = self.X[chosen], self.side[chosen]
        model.fit(X, side, **dict.fromkeys(self.weight_parameters, self.weight[chosen]))
        return FittedNode(model, _floor(model, X))


def _floor(model: Any, X: Any) -> float:
    """Return the probability to which smaller ones of a model are raised.

    If it gives 0 or 1 for a training row, half of its smallest positive probability, between 1e-16
    and 0.01, as in the calibrators; otherwise 1e-16.
    """
    if not has_probabilities(model):
        return _LEAST_FLOOR
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    return probability_floor(proba) if (proba == 0).any() else _LEAST_FLOOR


def _cross_fit(node: UnfittedNode, fold: IntArray, n_folds: int) -> FloatArray:
    """Return out-of-fold log-odds of a node's rows; nan if a side has a single row."""
    scores = np.full(len(fold), np.nan)
    if min(np.bincount(node.side, minlength=2)) < 2:
        return scores
    for held_out_fold in range(n_folds):
        test = fold == held_out_fold
        if test.any():
            scores[test] = node.fit(~test).log_odds(node.X[test])
    return scores
