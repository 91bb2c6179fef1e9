"""External calibration: one calibrator for the probabilities of the whole tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dubito.calibration import VectorCalibrator
from dubito.calibration._base import BaseCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray


#: The least log-probability that is calibrated.
_LEAST = float(np.log(1e-16))


def read_external(external: Any) -> BaseCalibrator | None:
    """Return the calibrator that `external` names; refuse what is none."""
    if external is None or isinstance(external, BaseCalibrator):
        return external
    if isinstance(external, str) and external == "vector":
        return VectorCalibrator(input="logits")
    hint = ""
    if isinstance(external, type) and issubclass(external, BaseCalibrator):
        hint = f" Pass an instance: {external.__name__}()."
    raise ValueError(
        "The 'external' parameter must be None, 'vector' or a calibrator of dubito.calibration. "
        f"Got {external!r} instead.{hint}"
    )


def fit_external(
    calibrator: BaseCalibrator,
    log_proba: FloatArray,
    labels: npt.NDArray[Any],
    weight: FloatArray,
    classes: npt.NDArray[Any],
) -> BaseCalibrator:
    """Fit a clone on the log-probabilities of rows that the tree has not seen.

    It is told all classes: those without a row among them keep their column.
    """
    fitted = clone(calibrator)
    if fitted.classes is None:
        fitted.set_params(classes=classes)
    return fitted.fit(as_scores(fitted, log_proba), labels, sample_weight=weight)


def as_scores(calibrator: BaseCalibrator, log_proba: FloatArray) -> FloatArray:
    """Return log-probabilities as the calibrator reads scores: two classes have one column.

    They are cut where probabilities round to zero: naive Bayes is sure by thousands of nats, and a
    few such rows that are wrong would leave nothing of the others.
    """
    log_proba = np.maximum(log_proba, _LEAST)
    if calibrator.input == "proba":
        proba = np.exp(log_proba)
        return proba if log_proba.shape[1] > 2 else proba[:, 1]
    if log_proba.shape[1] > 2:
        return log_proba
    return log_proba[:, 1] - log_proba[:, 0]
