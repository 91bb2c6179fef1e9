"""The estimator and the calibrator of a `CalibratedClassifier`, and what they offer together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._wording import counted
from dubito.calibration.by_name import named_calibrator
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.calibration.base import BaseCalibrator
    from dubito.calibration.classifier import CalibratedClassifier


class FittedPair(NamedTuple):
    """A fitted estimator, or None where X are scores, and the calibrator of its scores."""

    estimator: Any
    calibrator: BaseCalibrator


def check_scores(
    X: Any, y: npt.NDArray[Any], calibrator: BaseCalibrator, classes: npt.NDArray[Any] | None
) -> None:
    """Raise if X, given without an estimator, cannot be scores: other columns than labels."""
    if calibrator._reads_members:
        return  # one column for each classifier, of any number
    n_columns = 1 if np.ndim(X) == 1 else np.shape(X)[1]
    n_labels = len(np.unique(y))
    if classes is None and calibrator.classes is None and max(n_columns, 2) != n_labels:
        raise CalibrationInputError(
            f"without an estimator X holds the scores, one column for each class; it has "
            f"{counted(n_columns, 'column')} and y shows {counted(n_labels, 'label')}. Pass the "
            "estimator, or name the columns by the calibrator's classes=."
        )


def has_mass(classifier: CalibratedClassifier) -> bool:
    """Return whether the calibrator has masses."""
    if hasattr(classifier, "calibrated_classifiers_"):
        return hasattr(classifier.calibrated_classifiers_[0].calibrator, "predict_mass")
    return hasattr(named_calibrator(classifier.calibrator), "predict_mass")


def can_explain(classifier: CalibratedClassifier) -> bool:
    """Return whether a single estimator gives the scores and has `explain`."""
    if classifier.ensemble:
        return False
    fitted = getattr(classifier, "calibrated_classifiers_", None)
    return hasattr(fitted[0].estimator if fitted else classifier.estimator, "explain")


def is_affine(classifier: CalibratedClassifier) -> bool:
    """Return whether the calibrator is a linear layer on the estimator's decision function."""
    if not hasattr(classifier, "calibrated_classifiers_"):
        return hasattr(named_calibrator(classifier.calibrator), "affine_logits")
    estimator, calibrator = classifier.calibrated_classifiers_[0]
    # A calibrator that ignores shifts of a row gives the same for logits as for log-probabilities.
    ignores_shifts = getattr(calibrator, "ignores_shifts", False)
    return (
        len(classifier.calibrated_classifiers_) == 1
        and estimator is not None
        and (classifier.response_method_ == "decision_function" or ignores_shifts)
        and len(estimator.classes_) == len(classifier.classes_)  # otherwise columns were added
        and hasattr(calibrator, "affine_logits")
        and not calibrator._not_affine()
    )
