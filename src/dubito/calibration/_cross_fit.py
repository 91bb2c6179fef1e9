"""Held-out scores: what classifiers say of rows they were not trained on.

A plan is what one classifier has to do: its jobs train copies of it and score rows, and the copy of
the last job is the one to be used for new rows. Plans of several classifiers are carried out
together, so that all their jobs can run at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from dubito._responses import class_scores
from dubito._rows import warn_unweighted
from dubito._sklearn import pick

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray, IntArray
    from dubito._responses import Response

    Rows = IntArray | slice
    Fold = tuple[IntArray, IntArray]


class Source(NamedTuple):
    """A classifier, the features it reads, what it is asked for, and its weights of the rows."""

    estimator: Any
    X: Any
    response: Response
    weight: FloatArray | None


class Job(NamedTuple):
    """Rows to train a copy on (None: it is fitted already), and rows to score (None: none)."""

    source: Source
    train: Rows | None
    test: Rows | None


class Scored(NamedTuple):
    """A fitted classifier, and scores of the rows that its plan holds out."""

    model: Any
    scores: FloatArray


def source_of(estimator: Any, X: Any, response: Response, weight: FloatArray | None) -> Source:
    """Return a classifier with what it needs; a warning where it cannot take the weights."""
    if weight is None or isinstance(estimator, FrozenEstimator):
        return Source(estimator, X, response, None)
    if not has_fit_parameter(estimator, "sample_weight"):
        warn_unweighted(estimator, "the calibration")
        weight = None
    return Source(estimator, X, response, weight)


def cross_fit_plan(source: Source, folds: list[Fold], every: Rows) -> list[Job]:
    """Score each fold by a copy trained on the others; the copy to use is trained on every row."""
    return [*(Job(source, train, test) for train, test in folds), Job(source, every, None)]


def carry_out(
    plans: list[list[Job]], y: npt.NDArray[Any], *, classes: npt.NDArray[Any], n_jobs: int | None
) -> list[Scored]:
    """Do all jobs of all plans; the scores of a plan are in the order of its jobs."""
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
        results.append(Scored(parts[-1][0], np.concatenate(scores)))
    return results


def _fit_and_score(
    job: Job, y: npt.NDArray[Any], classes: npt.NDArray[Any], *, keep: bool
) -> tuple[Any, FloatArray | None]:
    """Return the fitted copy, if it is to be kept, and the scores asked for."""
    estimator, X, response, weight = job.source
    if job.train is not None:
        passed = {} if weight is None else {"sample_weight": weight[job.train]}
        estimator = clone(estimator).fit(_rows_of(X, job.train), y[job.train], **passed)
    scores = None
    if job.test is not None:
        scores = class_scores(estimator, _rows_of(X, job.test), way=response.way, classes=classes)
    return (estimator if keep else None), scores


def _rows_of(X: Any, rows: Rows) -> Any:
    """Pick rows; all of them are X itself, of whatever type."""
    return X if isinstance(rows, slice) else pick(X, rows)


def folds_of(cv: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> list[Fold]:
    """Return the folds of all rows, of which those that count are left."""
    folds = list(check_cv(cv, y, classifier=True).split(X, y))
    if not folds:
        raise ValueError("cv gives no folds; at least one is needed to calibrate on.")
    return counted_folds(folds, y, weight)


def counted_folds(
    folds: Iterable[Fold], y: npt.NDArray[Any], weight: FloatArray | None
) -> list[Fold]:
    """Leave out the rows of weight 0."""
    counts = counted_rows(y, weight)
    return [(train[counts[train]], test[counts[test]]) for train, test in folds]


def held_out(folds: list[Fold]) -> IntArray:
    """Return the rows that folds hold out, in their order."""
    return np.concatenate([test for _, test in folds])


def every_row(y: npt.NDArray[Any], weight: FloatArray | None) -> Rows:
    """Return all rows that count."""
    counts = counted_rows(y, weight)
    return slice(None) if counts.all() else np.flatnonzero(counts)


def counted_rows(y: npt.NDArray[Any], weight: FloatArray | None) -> BoolArray:
    """Mark the rows that count: a row of weight 0 is as good as absent."""
    return np.ones(len(y), dtype=bool) if weight is None else weight > 0


def weight_of(weight: FloatArray | None, rows: Rows) -> FloatArray | None:
    """Return the weights of some rows, if there are any."""
    return None if weight is None else weight[rows]


def refuse_one_class(name: str, y: npt.NDArray[Any], weight: FloatArray | None) -> None:
    """Refuse to train where there is nothing to tell apart."""
    if len(np.unique(y[counted_rows(y, weight)])) < 2:
        raise ValueError(
            f"{name} needs rows of at least two classes; y has "
            f"{len(y)} rows and shows {'one class' if len(y) else 'no class'}."
        )
