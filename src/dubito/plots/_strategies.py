"""Decisions of the strategies of `reject` and their confidence (Minary et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._labels import as_labels, label_columns
from dubito._models import has_bounds, inner_model_and_rows
from dubito._validation import TIE, check_choice, check_rows_match, drop_zero_weights
from dubito.belief import Bounds, MassBatch, MassFunction
from dubito.decision.rejection import CHOICES, STRATEGIES, confidence_of
from dubito.decision.risk import as_belief, n_classes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray
    from dubito.decision.risk import Belief


class PredictedRows(NamedTuple):
    """Rows of positive weight: columns of the true classes, predictions and sample weights."""

    true_column: IntArray
    belief: Bounds | MassBatch
    proba: FloatArray
    weight: FloatArray


def read_predictions(
    y_true: npt.ArrayLike,
    belief: Belief,
    y_proba: npt.ArrayLike | None,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> PredictedRows:
    """Return checked predictions, with labels matched to columns."""
    checked = as_belief(belief)
    probabilities = Bounds.precise(checked.pignistic() if y_proba is None else y_proba).upper
    n_classes = n_classes_of(checked)
    check_rows_match("y_proba", len(probabilities), "belief", len(checked))
    if probabilities.shape[1] != n_classes:
        raise ValueError(
            f"y_proba has {probabilities.shape[1]} columns but belief has {n_classes} classes; "
            "they must name the same classes in the same order."
        )
    weight, labels, rows = drop_zero_weights(
        sample_weight, y_true=as_labels(y_true, "y_true"), belief=np.arange(len(checked))
    )
    names: Any = classes
    if names is None and isinstance(checked, MassBatch):
        names = checked.frame
    return PredictedRows(
        label_columns(labels, n_classes, names), checked[rows], probabilities[rows], weight
    )


def decide(rows: PredictedRows, strategy: str) -> tuple[IntArray, FloatArray]:
    """Return the columns that a strategy chooses, and its confidence in them."""
    belief = rows.proba if strategy == "probabilistic" else rows.belief
    return CHOICES[strategy](belief), confidence_of(belief, strategy)


def predictions_of(estimator: Any, X: Any) -> tuple[Belief, npt.ArrayLike | None]:
    """Return bounds and probabilities of a classifier; without bounds, probabilities and None."""
    estimator, X = inner_model_and_rows(estimator, X)
    if not hasattr(estimator, "classes_"):
        raise TypeError(
            f"{type(estimator).__name__} has no classes_, which name the columns of its "
            "predictions. Pass a fitted classifier, or its predictions to from_predictions."
        )
    proba = estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else None
    if has_bounds(estimator):
        return estimator.predict_bounds(X), proba
    if proba is None:
        raise TypeError(
            f"{type(estimator).__name__} has neither predict_bounds nor predict_proba. Calibrate "
            "its scores: dubito.calibration.CalibratedClassifier gives both."
        )
    return proba, None


def check_strategies(
    strategies: Iterable[str] | None, belief: Belief, y_proba: npt.ArrayLike | None
) -> tuple[str, ...]:
    """Return the given strategies; by default those that may differ.

    Precise probabilities make all strategies equal; without `y_proba` the last two are equal.
    """
    bounded = isinstance(belief, Bounds | MassBatch | MassFunction)
    if strategies is None:
        precise = not bounded or (isinstance(belief, Bounds) and (belief.width <= TIE).all())
        if precise:
            return ("probabilistic",)
        return tuple(s for s in STRATEGIES if s != "probabilistic" or y_proba is not None)
    given = (strategies,) if isinstance(strategies, str) else tuple(strategies)
    if not given:
        raise ValueError(f"strategies must name at least one of {', '.join(STRATEGIES)}.")
    for strategy in given:
        check_choice(strategy, "strategies", STRATEGIES)
        if strategy in {"optimistic", "pessimistic"} and not bounded:
            raise ValueError(
                f"the {strategy} strategy needs bounds; here are probabilities alone, for which "
                "all strategies are the same. Leave strategies out, or use a classifier with "
                "predict_bounds."
            )
    return given
