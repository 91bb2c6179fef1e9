"""What a classifier says of each row, as scores with one column for every class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from dubito._checks import FloatArray, counted
from dubito.calibration.errors import CalibrationInputError
from dubito.calibration.evidential_joint import EvidentialJointCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.calibration._base import BaseCalibrator

RESPONSES = ("decision_function", "predict_proba")

#: How far a classifier's probabilities may be from summing to 1: GaussianNB's are off by 1e-5.
_ROUNDING = 1e-3


def choose_response(estimator: Any, input: str, wanted: str) -> str:
    """Return the method to ask for scores: the one wanted, or the one that fits the calibrator.

    Left to choose, probabilities are asked for when the calibrator reads probabilities, and
    margins otherwise, where the estimator has them: squashing and unsquashing loses digits.
    """
    has = [method for method in RESPONSES if hasattr(estimator, method)]
    name = type(estimator).__name__
    if not has:
        raise TypeError(
            f"{name} has neither decision_function nor predict_proba, so it gives no scores to "
            "calibrate. Use a classifier that has one of them."
        )
    if wanted == "auto":
        return "predict_proba" if input == "proba" and "predict_proba" in has else has[0]
    if wanted not in has:
        raise TypeError(f'{name} has no {wanted}; it has {has[0]}: say response_method="auto".')
    if wanted == "decision_function" and input == "proba":
        raise ValueError(
            'response_method="decision_function" gives margins, but the calibrator reads '
            'input="proba". Leave its input at "margin", or use response_method="predict_proba".'
        )
    return wanted


def input_of(calibrator: BaseCalibrator) -> str:
    """Return what the calibrator takes the scores of a single classifier for."""
    if isinstance(calibrator, EvidentialJointCalibrator):
        return calibrator._inputs(1)[0]
    return calibrator.input


def as_read_by(calibrator: BaseCalibrator, scores: FloatArray) -> FloatArray:
    """Return scores of a single classifier in the shape that the calibrator reads."""
    return scores[:, None, :] if isinstance(calibrator, EvidentialJointCalibrator) else scores


def class_scores(estimator: Any, X: Any, *, method: str, classes: npt.NDArray[Any]) -> FloatArray:
    """Return scores (n, 1) for two margins' classes, (n, K) otherwise, columns as in `classes`.

    A class the estimator has not seen gets probability 0, or the lowest margin of the row.
    """
    if method == "decision_function" and len(classes) > 2:
        _refuse_pairwise(estimator)
    raw = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    if method == "predict_proba":
        raw = _whole(raw)
    n_seen = len(estimator.classes_)
    if raw.ndim == 1:
        if len(classes) == 2:
            return raw[:, None]
        raw = np.column_stack([-0.5 * raw, 0.5 * raw])
    if raw.shape[1] != n_seen:
        raise CalibrationInputError(
            f"{type(estimator).__name__}.{method} gives {counted(raw.shape[1], 'column')} for "
            f"{counted(n_seen, 'class')}; one for each class is needed."
        )
    if n_seen == len(classes):
        return raw
    strange = np.setdiff1d(estimator.classes_, classes)
    if len(strange):
        raise CalibrationInputError(
            f"{type(estimator).__name__} knows the label {strange[0]!r}, which is none of "
            f"{', '.join(map(repr, classes.tolist()))}."
        )
    seen = np.searchsorted(classes, estimator.classes_)
    absent = 0.0 if method == "predict_proba" else raw.min(axis=1, keepdims=True)
    full = np.broadcast_to(absent, (len(raw), len(classes))).copy()
    full[:, seen] = raw
    return full


def _whole(proba: FloatArray) -> FloatArray:
    """Mend rows that sum to 1 but for rounding: far out some classifiers lose a few digits."""
    total = proba.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1)
    return np.where((off > 1e-9) & (off < _ROUNDING), proba / total, proba)


def _refuse_pairwise(estimator: Any) -> None:
    """Refuse scores of pairs of classes, which three classes would not tell by their number."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    last = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    if getattr(last, "decision_function_shape", "ovr") == "ovo":
        raise CalibrationInputError(
            f"{type(last).__name__} gives a score for each pair of classes; one for each class is "
            'needed: decision_function_shape="ovr".'
        )
