"""Any classifier at the nodes: a clone of it for each, and one more for each fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from dubito._rows import warn_unweighted
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._checks import FloatArray, IntArray
    from dubito.dichotomies._leaf_rows import LeafRows
    from dubito.dichotomies.tree import DichotomyTree

#: Probabilities of a node below this are raised to it: a path through a zero would stay zero.
_LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class EstimatorNodes:
    """A fitted classifier for each node, with classes 0 (left) and 1 (right)."""

    estimators: list[Any]

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side of every node, or margins, (n, nodes)."""
        out = np.empty((X.shape[0], len(self.estimators)))
        for node, estimator in enumerate(self.estimators):
            out[:, node] = log_odds(estimator, X)
        return out


def log_odds(estimator: Any, X: Any) -> FloatArray:
    """Return the log-odds of class 1; the margin where a classifier has no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64).ravel()
    if _is_naive_bayes(estimator):
        # Its probabilities round to 0 and 1 long before its log-odds lose a digit.
        joint = estimator.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0]
    proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    left, right = np.maximum(proba.T, _LEAST)
    return np.log(right) - np.log(left)


def _is_naive_bayes(estimator: Any) -> bool:
    return hasattr(estimator, "predict_joint_log_proba")


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

    estimators: list[Any] = [None] * tree.n_nodes
    begins = spans.packed()
    cross = np.empty(begins[-1] if n_folds else 0)
    for task, group in zip(tasks, done, strict=True):
        for node, (fitted, scores) in zip(task, group, strict=True):
            estimators[node] = fitted
            if n_folds:
                cross[begins[node] : begins[node + 1]] = scores
    return EstimatorNodes(estimators), cross


def _fit_group(
    X: Any,
    weight: FloatArray,
    first: IntArray,
    middle: IntArray,
    last: IntArray,
    seeds: IntArray,
    task: tuple[IntArray, Any, bool, int],
) -> list[tuple[Any, FloatArray]]:
    """Fit some nodes; return each model with its out-of-fold log-odds."""
    nodes, estimator, weighted, n_folds = task
    done = []
    for node in nodes:
        rows = slice(int(first[node]), int(last[node]))
        side = (np.arange(rows.start, rows.stop) >= middle[node]).astype(np.int64)
        given = weight[rows] if weighted else None
        seed = int(seeds[node])
        fitted = _fit_one(estimator, X[rows], side, given, seed)
        scores = _cross_fit(estimator, X[rows], side, given, seed, rows.start, n_folds)
        done.append((fitted, scores))
    return done


def _cross_fit(
    estimator: Any,
    X: Any,
    side: IntArray,
    weight: FloatArray | None,
    seed: int,
    first: int,
    n_folds: int,
) -> FloatArray:
    """Return log-odds of a node's rows out of fold; nan where a side has a single row."""
    scores = np.full(len(side) if n_folds else 0, np.nan)
    if not n_folds or min(np.bincount(side, minlength=2)) < 2:
        return scores
    fold = (first + np.arange(len(side))) % n_folds
    for held_out in range(n_folds):
        test = fold == held_out
        if not test.any():
            continue
        train = ~test
        given = None if weight is None else weight[train]
        fitted = _fit_one(estimator, X[train], side[train], given, seed)
        scores[test] = log_odds(fitted, X[test])
    return scores


def _fit_one(estimator: Any, X: Any, side: IntArray, weight: FloatArray | None, seed: int) -> Any:
    """Fit a clone, with a seed of its own where the estimator leaves it open."""
    model = clone(estimator)
    open_seeds = {
        name: seed
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    }
    model.set_params(**open_seeds)
    return model.fit(X, side) if weight is None else model.fit(X, side, sample_weight=weight)
