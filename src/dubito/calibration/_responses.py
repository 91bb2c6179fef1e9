"""Which scores of a classifier a calibrator is given, and what it takes them for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dubito._responses import METHODS, PAIRWISE, Response, kind_of, known_response
from dubito.calibration._shrinkage import ShrunkenCalibrator
from dubito.calibration.evidential_joint import EvidentialJointCalibrator

if TYPE_CHECKING:
    from dubito._checks import FloatArray
    from dubito.calibration._base import BaseCalibrator

RESPONSES = METHODS


def choose_response(estimator: Any, input: str, wanted: str, *, n_classes: int) -> Response:
    """Return how to ask for scores, and what they are.

    Parameters
    ----------
    estimator : classifier
        Fitted or not.
    input : str
        What the calibrator takes scores for. "margin", the default, leaves it to the estimator.
    wanted : str
        "auto", or a method of the estimator.
    n_classes : int
    """
    has = [method for method in METHODS if hasattr(estimator, method)]
    name = type(estimator).__name__
    if not set(has) - {"predict_log_proba"}:
        raise TypeError(
            f"{name} has neither decision_function nor predict_proba, so it gives no scores to "
            "calibrate. Use a classifier that has one of them."
        )
    if wanted == "auto":
        return _best_response(estimator, input, has, n_classes)
    if wanted not in has:
        raise TypeError(f'{name} has no {wanted}; it has {has[0]}: say response_method="auto".')
    if wanted == "decision_function" and input in ("proba", "log_proba"):
        raise ValueError(
            f'response_method="decision_function" gives margins, but the calibrator reads '
            f'input="{input}". Leave its input at "margin", or use response_method="predict_proba".'
        )
    return Response(wanted, _taken_for(kind_of(estimator, wanted), input))


def _best_response(estimator: Any, input: str, has: list[str], n_classes: int) -> Response:
    """Return the way to ask that loses nothing, or the one that gives what the calibrator reads."""
    for kind, method in (("proba", "predict_proba"), ("log_proba", "predict_log_proba")):
        if input == kind and method in has:
            return Response(method, kind)
    known = known_response(estimator)
    if known is None or (known.way in METHODS and known.way not in has):
        method = has[0]
        return Response(method, _taken_for(kind_of(estimator, method), input))
    way = "decision_function" if known.way == PAIRWISE and n_classes == 2 else known.way
    return Response(way, _taken_for(known.kind, input))


def _taken_for(kind: str, input: str) -> str:
    """Return what scores are: margins may be said to be something else, probabilities not."""
    if kind == "margin":
        return input
    return input if kind == "log_proba" and input == "logits" else kind


def input_of(calibrator: BaseCalibrator) -> str:
    """Return what the calibrator takes the scores of a single classifier for."""
    if isinstance(calibrator, EvidentialJointCalibrator):
        return calibrator._inputs(1)[0]
    return calibrator.input


def input_for(calibrator: BaseCalibrator, kind: str) -> str:
    """Return the input to set: vector and matrix scaling take logits as they are.

    So they stay one more linear layer. Normalised logits differ by a constant in each row; on
    digits they serve as well (matrix scaling of logistic regression: log loss 0.142, and 0.141 of
    those as they are; of boosting 0.194 and 0.191).
    """
    raw = kind == "logits" and isinstance(calibrator, ShrunkenCalibrator)
    return "margin" if raw and input_of(calibrator) == "margin" else kind


def as_read_by(calibrator: BaseCalibrator, scores: FloatArray) -> FloatArray:
    """Return scores of a single classifier in the shape that the calibrator reads."""
    return scores[:, None, :] if isinstance(calibrator, EvidentialJointCalibrator) else scores
