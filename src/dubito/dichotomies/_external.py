"""External calibration: one calibrator for the probabilities of the whole tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dubito.calibration import VectorCalibrator
from dubito.calibration.base import BaseCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.dichotomies._class_rows import ClassRows
    from dubito.dichotomies._holdout import Aside


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
        "The 'external' parameter must be 'auto', None, 'vector' or a calibrator of "
        f"dubito.calibration. Got {external!r} instead.{hint}"
    )


class Held(NamedTuple):
    """Rows that a model has not seen: their labels and weights, and all classes there are."""

    labels: npt.NDArray[Any]
    weight: FloatArray
    classes: npt.NDArray[Any]


def held_rows(rows: ClassRows, aside: Aside) -> Held:
    """Return the rows of all parts, one part after the other."""
    held = np.concatenate([np.flatnonzero(part) for part in aside.parts])
    return Held(rows.classes[rows.codes[held]], rows.weight[held], rows.classes)


def fit_external(
    calibrator: BaseCalibrator, log_proba: FloatArray, held: Held, *, cut: bool
) -> BaseCalibrator:
    """Fit a clone on the log-probabilities of rows that the model behind them has not seen.

    It is told all classes: those without a row among them keep their column. `cut` is as in
    `as_scores`.
    """
    fitted = clone(calibrator)
    if fitted.classes is None:
        fitted.set_params(classes=held.classes)
    scores = as_scores(fitted, log_proba, cut=cut)
    return fitted.fit(scores, held.labels, sample_weight=held.weight)


def best_external(
    calibrator: BaseCalibrator, variants: list[FloatArray], held: Held
) -> tuple[int, BaseCalibrator]:
    """Return which of several models is best once it is calibrated, and its calibrator.

    That is the one with the least log loss of the rows held out; `variants` are the models'
    log-probabilities of them.
    """
    fitted = [fit_external(calibrator, log_proba, held, cut=False) for log_proba in variants]
    losses = [
        _log_loss(one.predict_log_proba(as_scores(one, log_proba, cut=False)), held)
        for one, log_proba in zip(fitted, variants, strict=True)
    ]
    best = int(np.argmin(losses))
    return best, fitted[best]


def _log_loss(log_proba: FloatArray, held: Held) -> float:
    columns = np.searchsorted(held.classes, held.labels)
    return -float(held.weight @ log_proba[np.arange(len(columns)), columns])


def as_scores(calibrator: BaseCalibrator, log_proba: FloatArray, *, cut: bool) -> FloatArray:
    """Return log-probabilities as the calibrator reads scores: two classes have one column.

    With `cut` they are cut where probabilities round to zero: naive Bayes is sure by thousands of
    nats, and a few such rows that are wrong would leave nothing of the others. The nodes that the
    default comes after are calibrated, and need none.
    """
    if cut:
        log_proba = np.maximum(log_proba, _LEAST)
    if calibrator.input == "proba":
        proba = np.exp(log_proba)
        return proba if log_proba.shape[1] > 2 else proba[:, 1]
    if log_proba.shape[1] > 2:
        return log_proba
    return log_proba[:, 1] - log_proba[:, 0]
