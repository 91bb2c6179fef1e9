"""Models fitted on some rows, and the scores of others by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from dubito._labels import label_columns
from dubito._rows import warn_unweighted
from dubito._sklearn import pick

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray
    from dubito.conformal._scores import ScoreReader

    Parts = list[tuple[IntArray, IntArray]]


class TrainingRows(NamedTuple):
    """Rows, their labels, and their weights, if there are any, which the estimator may take."""

    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray | None
    weighs: bool  # whether the estimator's fit takes weights

    def picked(self, rows: IntArray) -> TrainingRows:
        """Return some of the rows."""
        if len(rows) == len(self.y) and (rows == np.arange(len(rows))).all():
            return self
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(pick(self.X, rows), self.y[rows], weight, self.weighs)

    def fitted(self, estimator: Any) -> Any:
        """Return a copy of the estimator, fitted on these rows."""
        options = {"sample_weight": self.weight} if self.weighs else {}
        return clone(estimator).fit(self.X, self.y, **options)

    def with_row(self, row: Any, label: Any) -> TrainingRows:
        """Return the rows and one more, with a label and the largest weight of the others."""
        weight = self.weight
        if weight is not None:
            weight = np.append(weight, weight.max())
        y = np.concatenate([self.y, np.asarray([label])])
        return TrainingRows(_joined(self.X, row), y, weight, self.weighs)


def training_rows(
    estimator: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None, *, frozen: bool
) -> TrainingRows:
    """Return rows to fit on; a warning where the estimator cannot take their weights."""
    weighs = weight is not None and not frozen and has_fit_parameter(estimator, "sample_weight")
    if weight is not None and not frozen and not weighs:
        warn_unweighted(estimator, "the p-values")
    return TrainingRows(X, y, weight, weighs)


def parts_of(cv: Any, rows: TrainingRows, seed: int) -> Parts:
    """Return rows to fit on and rows to score, for each fold; rows of weight 0 are left out."""
    if isinstance(cv, float):
        cv = ShuffleSplit(1, test_size=cv, random_state=seed)
    parts = list(check_cv(cv, rows.y, classifier=True).split(rows.X, rows.y))
    if rows.weight is not None:
        counts = rows.weight > 0
        parts = [(train[counts[train]], test[counts[test]]) for train, test in parts]
    parts = [(np.asarray(train), np.asarray(test)) for train, test in parts if len(test)]
    if not parts:
        raise ValueError("cv holds no rows out; some are needed to calibrate on.")
    return parts


def naming_classes(estimator: Any, classes: npt.NDArray[Any]) -> Any:
    """Return the estimator, told all classes if it is a calibrator: a fold may lack some."""
    if estimator.get_params(deep=False).get("classes", "absent") is None:
        return clone(estimator).set_params(classes=classes)
    return estimator


def fit_parts(estimator: Any, rows: TrainingRows, parts: Parts, n_jobs: int | None) -> list[Any]:
    """Return a copy of the estimator for each fold, fitted without the rows to be scored."""
    return list(
        Parallel(n_jobs=n_jobs)(delayed(_fit_rows)(estimator, rows, train) for train, _ in parts)
    )


def _fit_rows(estimator: Any, rows: TrainingRows, train: IntArray) -> Any:
    return rows.picked(train).fitted(estimator)


def own_scores(
    reader: ScoreReader,
    model: Any,
    rows: TrainingRows,
    classes: npt.NDArray[Any],
    fraction: FloatArray | None,
) -> tuple[FloatArray, IntArray]:
    """Return the score of each row's own label, and the column of that label."""
    columns = label_columns(rows.y, len(classes), classes)
    scores = reader.scores(model, rows.X, classes, fraction)
    return scores[np.arange(len(columns)), columns], columns


def _joined(X: Any, row: Any) -> Any:
    """Return rows and one more: arrays, sparse matrices and data frames."""
    if hasattr(X, "iloc"):
        import pandas as pd  # noqa: PLC0415 - whoever has such a table has it

        return pd.concat([X, row])
    if hasattr(X, "vstack"):
        return X.vstack(row)
    if hasattr(X, "tocsr"):
        from scipy import sparse  # noqa: PLC0415

        return sparse.vstack([X, row], format="csr")
    return np.concatenate([np.asarray(X), np.asarray(row)])
