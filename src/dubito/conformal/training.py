"""Training rows, their folds, and copies of the estimator fitted on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit
from sklearn.utils.parallel import Parallel, delayed

from dubito._compat import pick
from dubito._labels import label_columns
from dubito._meta_estimators import cv_folds, fitted_copy, weight_parameters

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._meta_estimators import Fold
    from dubito._typing import FloatArray, IntArray
    from dubito.conformal.scores import NonconformityScore


class TrainingRows(NamedTuple):
    """Rows with labels and optional sample weights."""

    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray | None
    weight_parameters: tuple[str, ...]  # those of the estimator's fit

    def picked(self, rows: IntArray) -> TrainingRows:
        """Return some of the rows."""
        if len(rows) == len(self.y) and (rows == np.arange(len(rows))).all():
            return self
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(pick(self.X, rows), self.y[rows], weight, self.weight_parameters)

    def fitted(self, estimator: Any) -> Any:
        """Return a copy of the estimator, fitted on these rows."""
        return fitted_copy(estimator, self.X, self.y, self.weight, self.weight_parameters)

    def with_row(self, row: Any, label: Any) -> TrainingRows:
        """Return the rows and one more, with a label and the largest of the sample weights."""
        weight = self.weight
        if weight is not None:
            weight = np.append(weight, weight.max())
        y = np.concatenate([self.y, np.asarray([label])])
        return TrainingRows(_joined(self.X, row), y, weight, self.weight_parameters)


def training_rows(
    estimator: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None
) -> TrainingRows:
    """Return rows to fit on; warn where the estimator takes no sample weights."""
    parameters = weight_parameters(estimator, weight, instead="the p-values")
    return TrainingRows(X, y, weight, parameters)


def calibration_folds(cv: Any, rows: TrainingRows, seed: int) -> list[Fold]:
    """Return the folds of `cv_folds` that have test rows; a fraction `cv` is held out at random."""
    if isinstance(cv, float):
        cv = ShuffleSplit(1, test_size=cv, random_state=seed)
    folds = [fold for fold in cv_folds(cv, rows.X, rows.y, rows.weight) if len(fold[1])]
    if not folds:
        raise ValueError("cv holds no rows out; some are needed to calibrate on.")
    return folds


def with_classes(estimator: Any, classes: npt.NDArray[Any]) -> Any:
    """Return the estimator with its parameter `classes` set, because folds may lack classes."""
    if estimator.get_params(deep=False).get("classes", "absent") is None:
        return clone(estimator).set_params(classes=classes)
    return estimator


def fit_folds(
    estimator: Any, rows: TrainingRows, folds: list[Fold], n_jobs: int | None
) -> list[Any]:
    """Return a copy of the estimator for each fold, fitted without the fold's test rows."""
    return list(
        Parallel(n_jobs=n_jobs)(delayed(_fit_rows)(estimator, rows, train) for train, _ in folds)
    )


def _fit_rows(estimator: Any, rows: TrainingRows, train: IntArray) -> Any:
    return rows.picked(train).fitted(estimator)


def true_label_scores(
    nonconformity: NonconformityScore,
    model: Any,
    rows: TrainingRows,
    classes: npt.NDArray[Any],
    uniform: FloatArray | None,
) -> tuple[FloatArray, IntArray]:
    """Return the score of each row's true label, and the column of that label."""
    columns = label_columns(rows.y, len(classes), classes)
    scores = nonconformity.scores(model, rows.X, classes, uniform)
    return scores[np.arange(len(columns)), columns], columns


def _joined(X: Any, row: Any) -> Any:
    """Return rows with one more below: arrays, sparse matrices or data frames."""
    if hasattr(X, "iloc"):
        import pandas as pd  # noqa: PLC0415 - an extra

        return pd.concat([X, row])
    if hasattr(X, "vstack"):
        return X.vstack(row)
    if hasattr(X, "tocsr"):
        from scipy import sparse  # noqa: PLC0415 - slow to import

        return sparse.vstack([X, row], format="csr")
    return np.concatenate([np.asarray(X), np.asarray(row)])
