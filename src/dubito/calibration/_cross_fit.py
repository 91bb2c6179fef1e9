"""Held-out scores: scores of rows that the classifier was not trained on.

The plan of a classifier is a list of jobs, each of which trains a copy of it or scores rows; the
copy of the last job predicts new rows. Plans of several classifiers are carried out together, so
that all their jobs can run in parallel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from dubito._compat import pick
from dubito._meta_estimators import cv_folds, fitted_copy, has_weight, weight_parameters
from dubito.calibration.responses import class_scores

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._meta_estimators import Fold
    from dubito._typing import FloatArray, IntArray
    from dubito.calibration.responses import Response

    Rows = IntArray | slice


class ScoredClassifier(NamedTuple):
    """A classifier, its features, the scores it gives, and the sample weights of its fit."""

    estimator: Any
    X: Any
    response: Response
    weight: FloatArray | None
    weight_parameters: tuple[str, ...]


class Job(NamedTuple):
    """Rows to train a copy on (None: it is fitted already), and rows to score (None: none)."""

    classifier: ScoredClassifier
    train: Rows | None
    test: Rows | None


class HeldOutScores(NamedTuple):
    """A fitted classifier, and the scores of the rows that its plan holds out."""

    model: Any
    scores: FloatArray


def scored_classifier(
    estimator: Any, X: Any, response: Response, weight: FloatArray | None
) -> ScoredClassifier:
    """Return a classifier with its data; warn if its fit takes no sample weights."""
    parameters = weight_parameters(estimator, weight, instead="the calibration")
    return ScoredClassifier(estimator, X, response, weight if parameters else None, parameters)


def cross_fit_plan(classifier: ScoredClassifier, folds: list[Fold], every: Rows) -> list[Job]:
    """Return a plan: a copy for each fold, trained on the others, and one trained on every row."""
    return [*(Job(classifier, train, test) for train, test in folds), Job(classifier, every, None)]


def run_plans(
    plans: list[list[Job]], y: npt.NDArray[Any], *, classes: npt.NDArray[Any], n_jobs: int | None
) -> list[HeldOutScores]:
    """Return the result of each plan; its scores are in the order of the jobs."""
    work = delayed(_fit_and_score)
    done = iter(
        Parallel(n_jobs=n_jobs)(
            work(job, y, classes, keep=job is plan[-1]) for plan in plans for job in plan
        )
    )
    results = []
    for plan in plans:
        parts = [next(done) for _ in plan]
        scores = [part for _, part in parts if part is not None]
        results.append(HeldOutScores(parts[-1][0], np.concatenate(scores)))
    return results


def _fit_and_score(
    job: Job, y: npt.NDArray[Any], classes: npt.NDArray[Any], *, keep: bool
) -> tuple[Any, FloatArray | None]:
    """Return the fitted copy, or None unless `keep`, and the scores of the job's rows."""
    estimator, X, response, weight, parameters = job.classifier
    if job.train is not None:
        estimator = fitted_copy(
            estimator,
            _rows_of(X, job.train),
            y[job.train],
            weight_of(weight, job.train),
            parameters,
        )
    scores = None
    if job.test is not None:
        scores = class_scores(
            estimator, _rows_of(X, job.test), source=response.source, classes=classes
        )
    return (estimator if keep else None), scores


def _rows_of(X: Any, rows: Rows) -> Any:
    """Return some rows of X; for all rows X itself, of any type."""
    return X if isinstance(rows, slice) else pick(X, rows)


def folds_of(cv: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> list[Fold]:
    """Return the folds of `cv_folds`; raise if there are none."""
    folds = cv_folds(cv, X, y, weight)
    if not folds:
        raise ValueError("cv gives no folds; at least one is needed to calibrate on.")
    return folds


def held_out_indices(folds: list[Fold]) -> IntArray:
    """Return the indices of the test rows of all folds, in their order."""
    return np.concatenate([test for _, test in folds])


def rows_with_weight(y: npt.NDArray[Any], weight: FloatArray | None) -> Rows:
    """Return the indices of the rows of positive weight, or a slice of all rows."""
    positive = has_weight(y, weight)
    return slice(None) if positive.all() else np.flatnonzero(positive)


def weight_of(weight: FloatArray | None, rows: Rows) -> FloatArray | None:
    """Return the sample weights of some rows, or None."""
    return None if weight is None else weight[rows]
