"""Nonconformity scores: how badly each class fits a row, from the output of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._models import has_bounds
from dubito._numerics.log_odds import two_class_scores
from dubito._numerics.sums_of_others import maxima_of_others
from dubito._validation import NotSupportedError
from dubito.calibration.responses import (
    RESPONSE_METHODS,
    class_scores,
    known_response,
    with_all_classes,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray

SCORES = ("margin", "probability", "cumulative", "plausibility")

#: Decimals of cumulative sums of probabilities: with more, equal sums may differ.
_DECIMALS = 12


def margin(logits: FloatArray) -> FloatArray:
    r"""Return :math:`a_k=\max_{l\ne k}z_l-z_k` of logits, log-probabilities or the like, z."""
    return maxima_of_others(logits) - logits


def cumulative(proba: FloatArray, uniform: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`a_k=\sum_{l:p_l>p_k}p_l+u\,p_k` (Romano, Sesia and Candès 2020).

    `uniform` (n,) is u of each row: uniform numbers, or None for their mean, u = 1/2. With u = 1 a
    label of probability near 1 scores as badly as those of probability near 0: on digits, sets held
    3.9 of 10 classes on average, and 1.0 with u = 1/2 (logistic regression, coverage 0.95).
    """
    order = np.argsort(-proba, axis=1, kind="stable")
    descending = np.take_along_axis(proba, order, axis=1)
    before = np.cumsum(descending, axis=1) - descending
    # Equal probabilities have the same sum before them: that before the first of them.
    is_first = np.ones_like(descending, dtype=bool)
    is_first[:, 1:] = descending[:, 1:] < descending[:, :-1]
    first = np.maximum.accumulate(np.where(is_first, np.arange(proba.shape[1]), 0), axis=1)
    before = np.take_along_axis(before, first, axis=1)
    summed = before + (0.5 if uniform is None else uniform[:, None]) * descending
    scores = np.empty_like(summed)
    np.put_along_axis(scores, order, summed, axis=1)
    return np.round(scores, _DECIMALS)  # sums of the same terms in another order must tie


class NonconformityScore(NamedTuple):
    """A nonconformity score, and the source of the model's output that it is computed from.

    ``randomized``: whether u of `cumulative` is drawn at random.
    """

    score: str
    source: str
    randomized: bool

    def scores(
        self, model: Any, X: Any, classes: npt.NDArray[Any], uniform: FloatArray | None
    ) -> FloatArray:
        """Return the nonconformity scores (n, K) of rows, by a fitted model."""
        table = class_table(model, X, self.source, classes)
        if self.score == "margin":
            return margin(_log(table) if self.source == "predict_proba" else table)
        if self.score == "cumulative":
            return cumulative(table, uniform)
        return 1 - table  # the table has probabilities or plausibilities


def choose_source(estimator: Any, score: str, response_method: str) -> str:
    """Return what a nonconformity score is computed from: "predict_bounds", or a source of scores.

    Sources are listed in `dubito.calibration.responses.SOURCES`.
    """
    name = type(estimator).__name__
    if score == "plausibility":
        if not has_bounds(estimator):
            raise NotSupportedError(
                f'score="plausibility" reads the upper bounds of predict_bounds, which {name} does '
                "not have. Use a model of dubito, as CalibratedClassifier, or another score."
            )
        return "predict_bounds"
    has = [m for m in ("predict_proba", "decision_function") if hasattr(estimator, m)]
    if not has:
        raise TypeError(
            f"{name} has neither predict_proba nor decision_function, so its classes cannot be "
            "ranked. Use a classifier that has one of them."
        )
    listed = known_response(estimator) if response_method == "auto" and score == "margin" else None
    if listed is not None and (
        listed.source not in RESPONSE_METHODS or hasattr(estimator, listed.source)
    ):
        # Differences of logits equal those of log-probabilities, without rounding near 0.
        return listed.source
    source = has[0] if response_method == "auto" else response_method
    if source not in has:
        raise TypeError(f'{name} has no {source}; it has {has[0]}: say response_method="auto".')
    if score != "margin" and source != "predict_proba":
        raise NotSupportedError(
            f'score="{score}" is computed from probabilities, and {name} gives decision values. '
            'Use score="margin", or calibrate it first: CalibratedClassifier(estimator).'
        )
    if score == "margin" and source == "predict_proba" and hasattr(estimator, "predict_log_proba"):
        return "predict_log_proba"  # exact in some models where the probability underflows
    return source


def class_table(model: Any, X: Any, source: str, classes: npt.NDArray[Any]) -> FloatArray:
    """Return the output of a model for each class, (n, K), columns as in `classes`.

    A class that the model was not fitted on has probability 0 and logit minus infinity.
    """
    if source == "predict_bounds":
        upper = np.asarray(model.predict_bounds(X).upper, dtype=np.float64)
        table = with_all_classes(upper, model, classes, fill=0.0)
    else:
        absent = 0.0 if source == "predict_proba" else -np.inf
        table = class_scores(model, X, source=source, classes=classes, absent=absent)
    if np.isnan(table).any():
        raise ValueError(f"{type(model).__name__}.{source} gives nan, which has no rank.")
    if table.shape[1] == 1:  # decision values of the second of two classes
        table = two_class_scores(table)
    return table


def _log(proba: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(proba)
