"""The calibrators that `internal` and `external` name, and the fit of the external one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dubito._calibrator_names import CALIBRATORS
from dubito.calibration import EvidentialMultinomialCalibrator, PlattCalibrator
from dubito.calibration.base import BaseCalibrator
from dubito.calibration.by_name import named_calibrator
from dubito.dichotomies._logistic_nodes import plain_logistic
from dubito.dichotomies._node_models import has_probabilities

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.dichotomies._kernels.holdout import Holdout
    from dubito.dichotomies._training_rows import ClassRows

#: Names of calibrators: "auto" has its own meaning here, and a joint one takes several classifiers.
_NAMES = CALIBRATORS.keys() - {"auto", "evidential-joint"}
_LISTED = ", ".join(map(repr, sorted(_NAMES)))

#: Floor of the log-probabilities given to an external calibrator that the user chose.
_LOG_FLOOR = float(np.log(1e-16))


class Calibrators(NamedTuple):
    """Calibrators of the nodes and of the whole tree, None where there is none.

    ``both_auto``: both parameters are "auto". The external calibrator is then omitted if rows are
    too few, and it is fitted to the rows that `hold_out(rows, "auto", rng)` chooses.
    """

    internal: BaseCalibrator | None
    external: BaseCalibrator | None
    both_auto: bool = False

    @property
    def give_bounds(self) -> bool:
        """Whether the calibrated tree has lower and upper probabilities."""
        if self.external is not None:
            return True
        return self.internal is not None and self.internal.evidential


def is_auto(value: Any) -> bool:
    """Return whether a parameter is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def as_calibrators(internal: Any, external: Any, estimator: Any) -> Calibrators:
    """Return the calibrators that `internal` and `external` of a tree specify, or raise.

    If both are "auto", both are chosen. If one is named, even None, the other is omitted: each of
    the schemes that Leathart et al. 2019 compare in tables 4 and 5 is then named by one parameter.
    """
    if is_auto(internal) and is_auto(external):
        # Sigmoids improve small nodes, where even penalised logistic regression is miscalibrated,
        # and need no rows of their own.
        return Calibrators(PlattCalibrator(), default_external(), both_auto=True)
    if is_auto(internal):
        # Margins are not log-odds: without a sigmoid there are no probabilities at all.
        needed = estimator is not None and not has_probabilities(estimator)
        internal = "platt" if needed and external is not None else None
    if is_auto(external):
        external = None
    return Calibrators(as_internal(internal), as_external(external))


def as_internal(internal: Any) -> BaseCalibrator | None:
    """Return the calibrator of nodes that `internal` names or is, None for None; raise for others.

    Examples
    --------
    >>> from dubito.dichotomies._calibrators import as_internal
    >>> as_internal("isotonic")
    IsotonicCalibrator()
    """
    if internal is None:
        return None
    if isinstance(internal, BaseCalibrator):
        internal._validate_params()  # where all nodes are fitted at once, its `fit` is not called
        return internal
    if isinstance(internal, str) and internal in _NAMES:
        return named_calibrator(internal)
    raise ValueError(
        f"The 'internal' parameter must be 'auto', None, one of {_LISTED}, or a calibrator of "
        f"dubito.calibration for two classes. Got {internal!r} instead.{_instance_hint(internal)}"
    )


def as_external(external: Any) -> BaseCalibrator | None:
    """Return the external calibrator that `external` names or is; raise for other values."""
    if external is None or isinstance(external, BaseCalibrator):
        return external
    if isinstance(external, str) and external in _NAMES:
        return named_calibrator(external).set_params(input="logits")
    raise ValueError(
        f"The 'external' parameter must be 'auto', None, one of {_LISTED}, or a calibrator of "
        f"dubito.calibration. Got {external!r} instead.{_instance_hint(external)}"
    )


def _instance_hint(value: Any) -> str:
    """Return a hint to pass an instance, if the value is a class of calibrators."""
    if isinstance(value, type) and issubclass(value, BaseCalibrator):
        return f" Pass an instance: {value.__name__}()."
    return ""


def default_external() -> BaseCalibrator:
    """Return the default calibrator of the log-probabilities of a tree or an ensemble: one slope.

    A single parameter is well estimated from 100 rows for any number of classes, and so are its
    bounds.
    """
    return EvidentialMultinomialCalibrator(input="logits")


def default_internal_of_ensemble(estimator: Any) -> BaseCalibrator | None:
    """Return the default calibrator of nodes of the trees of an ensemble.

    The slope of the ensemble corrects the shrinkage of penalised logistic nodes in a third of the
    time; other nodes are calibrated one by one.
    """
    return None if plain_logistic(estimator) is not None else PlattCalibrator()


class HeldOutRows(NamedTuple):
    """Labels and sample weights of rows that a model was not fitted to, and all its classes."""

    labels: npt.NDArray[Any]
    weight: FloatArray
    classes: npt.NDArray[Any]


def held_out_rows(rows: ClassRows, holdout: Holdout) -> HeldOutRows:
    """Return the held-out rows of all parts, one part after the other."""
    index = np.concatenate([np.flatnonzero(part) for part in holdout.parts])
    return HeldOutRows(rows.classes[rows.codes[index]], rows.weight[index], rows.classes)


def fit_external(
    calibrator: BaseCalibrator, log_proba: FloatArray, held_out: HeldOutRows, *, floored: bool
) -> BaseCalibrator:
    """Return a clone fitted to the log-probabilities of held-out rows.

    Its classes are all those of the model: those without a held-out row keep their column.
    `floored` is that of `as_calibrator_input`.
    """
    fitted = clone(calibrator)
    if fitted.classes is None:
        fitted.set_params(classes=held_out.classes)
    scores = as_calibrator_input(fitted, log_proba, floored=floored)
    return fitted.fit(scores, held_out.labels, sample_weight=held_out.weight)


def best_external(
    calibrator: BaseCalibrator, candidates: list[FloatArray], held_out: HeldOutRows
) -> tuple[int, BaseCalibrator]:
    """Return the index of the best of several models after calibration, and its calibrator.

    The best has the smallest log loss on the held-out rows; `candidates` are the log-probabilities
    that each model gives them.
    """
    fitted = [
        fit_external(calibrator, log_proba, held_out, floored=False) for log_proba in candidates
    ]
    losses = [
        _log_loss(
            one.predict_log_proba(as_calibrator_input(one, log_proba, floored=False)), held_out
        )
        for one, log_proba in zip(fitted, candidates, strict=True)
    ]
    best = int(np.argmin(losses))
    return best, fitted[best]


def _log_loss(log_proba: FloatArray, held_out: HeldOutRows) -> float:
    columns = np.searchsorted(held_out.classes, held_out.labels)
    return -float(held_out.weight @ log_proba[np.arange(len(columns)), columns])


def as_calibrator_input(
    calibrator: BaseCalibrator, log_proba: FloatArray, *, floored: bool
) -> FloatArray:
    """Return log-probabilities in the form of the calibrator's scores: one column for two classes.

    With `floored` they are at least log(1e-16). The log-odds of naive Bayes reach thousands, and a
    few such rows with another label would dominate the fit. By default nodes are calibrated
    first, and no floor is needed.
    """
    if floored:
        log_proba = np.maximum(log_proba, _LOG_FLOOR)
    if calibrator.input == "proba":
        proba = np.exp(log_proba)
        return proba if log_proba.shape[1] > 2 else proba[:, 1]
    if log_proba.shape[1] > 2:
        return log_proba
    return log_proba[:, 1] - log_proba[:, 0]
