"""Any classifier at the nodes: a clone of it for each, and one more for each fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from dubito._numerics.log_odds import probability_floor
from dubito._rows import warn_unweighted
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies._leaf_rows import LeafRows
    from dubito.dichotomies.tree import DichotomyTree

#: Probabilities of a node below this are raised to it: a path through a zero would stay zero.
LEAST = 1e-16


class FittedNode(NamedTuple):
    """A classifier of two classes, 0 (left) and 1 (right), and the least probability believed."""

    estimator: Any
    floor: float

    def log_odds(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side; the margin where there are no probabilities."""
        if not has_probabilities(self.estimator):
            return np.asarray(self.estimator.decision_function(X), dtype=np.float64).ravel()
        proba = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        left, right = np.maximum(proba.T, self.floor)
        return np.log(right) - np.log(left)


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


def has_probabilities(estimator: Any) -> bool:
    """Say whether a classifier gives probabilities, and not margins alone."""
    return hasattr(estimator, "predict_proba")


def fit_estimator_nodes(
    rows: LeafRows,
    tree: DichotomyTree,
    estimator: Any,
    *,
    weighted: bool,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> tuple[EstimatorNodes, FloatArray]:
    """Fit a clone for each node, and its folds; as `fit_logistic_nodes`."""
    if weighted and not has_fit_parameter(estimator, "sample_weight"):
        warn_unweighted(estimator, "calibration and the tree")
        weighted = False
    spans = rows.spans(tree)
    seeds = rng.integers(np.iinfo(np.int32).max, size=tree.n_nodes)
    tasks = plan_tasks(spans.sizes.astype(np.float64), count_tasks(n_jobs))
    shared = (rows.gather(), rows.weight, *spans, seeds)
    common = (estimator, weighted, n_folds)
    done = run_tasks(_fit_group, shared, [(task, *common) for task in tasks], n_jobs=n_jobs)

    nodes: list[Any] = [None] * tree.n_nodes
    begins = spans.packed()
    cross = np.empty(begins[-1] if n_folds else 0)
    for task, group in zip(tasks, done, strict=True):
        for node, (fitted, scores) in zip(task, group, strict=True):
            nodes[node] = fitted
            if n_folds:
                cross[begins[node] : begins[node + 1]] = scores
    return EstimatorNodes(nodes), cross


def _fit_group(  # noqa: PLR0917 - shared arrays come one by one
    X: Any,
    weight: FloatArray,
    first: IntArray,
    middle: IntArray,
    last: IntArray,
    seeds: IntArray,
    task: tuple[IntArray, Any, bool, int],
) -> list[tuple[FittedNode, FloatArray]]:
    """Fit some nodes; return each model with its out-of-fold log-odds."""
    nodes, estimator, weighted, n_folds = task
    done = []
    for node in nodes:
        begin, end = int(first[node]), int(last[node])
        # Some classifiers split their rows without shuffling: sorted by class, folds would differ.
        rows = begin + np.random.default_rng(seeds[node]).permutation(end - begin)
        part = NodeTask(
            estimator=estimator,
            X=X[rows],
            side=(rows >= middle[node]).astype(np.int64),
            weight=weight[rows] if weighted else None,
            seed=int(seeds[node]),
        )
        everything = np.ones(len(rows), dtype=bool)
        scores = np.full(len(rows) if n_folds else 0, np.nan)
        if n_folds:
            scores[rows - begin] = _cross_fit(part, rows % n_folds, n_folds)
        done.append((part.fit(everything), scores))
    return done


@dataclass(frozen=True, kw_only=True)
class NodeTask:
    """The rows of a node, and what is to be fitted to them."""

    estimator: Any
    X: Any
    side: IntArray
    weight: FloatArray | None
    seed: int

    def fit(self, chosen: BoolArray) -> FittedNode:
        """Fit a clone to some rows, with a seed of its own where the estimator leaves it open."""
        model = clone(self.estimator)
        open_seeds = {
            name: self.seed
            for name, value in model.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        }
        model.set_params(**open_seeds)
        X, side = self.X[chosen], self.side[chosen]
        if self.weight is None:
            model.fit(X, side)
        else:
            model.fit(X, side, sample_weight=self.weight[chosen])
        return FittedNode(model, _floor(model, X))


def _floor(model: Any, X: Any) -> float:
    """Return the least probability to believe of a model: one that is sure of its rows is not.

    Where it gives 0 or 1 to a row it was fitted on, that is half of the least other one, within
    1e-16 and 0.01, as in the calibrators.
    """
    if not has_probabilities(model):
        return LEAST
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    return probability_floor(proba) if (proba == 0).any() else LEAST


def _cross_fit(task: NodeTask, fold: IntArray, n_folds: int) -> FloatArray:
    """Return log-odds of a node's rows out of fold; nan where a side has a single row."""
    scores = np.full(len(fold), np.nan)
    if min(np.bincount(task.side, minlength=2)) < 2:
        return scores
    for held_out in range(n_folds):
        test = fold == held_out
        if test.any():
            scores[test] = task.fit(~test).log_odds(task.X[test])
    return scores
