"""Nonconformity scores: how badly each class fits a row, by what a model says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from dubito._checks import NotSupportedError, counted
from dubito._labels import label_columns
from dubito.conformal._contours import largest_other

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray

SCORES = ("margin", "probability", "cumulative", "plausibility")

#: What a model may be asked for.
_RESPONSES = ("predict_log_proba", "predict_proba", "decision_function", "predict_bounds")

#: Decimals of cumulative sums of probabilities that are no rounding.
_DECIMALS = 12


def margin(logits: FloatArray) -> FloatArray:
    r"""Return :math:`a_k=\max_{l\ne k}u_l-u_k` of logits, log-probabilities or decision values."""
    return largest_other(logits) - logits


def cumulative(proba: FloatArray, fraction: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`a_k=\sum_{l:p_l>p_k}p_l+u\,p_k` (Romano, Sesia and Candès 2020).

    `fraction` (n,) is u of each row: uniform numbers, or None for their mean, u = 1/2. With u = 1 a
    label that the model is sure of scores as badly as those it excludes: sets held 3.9 digits of
    10 where they hold 1.0 with u = 1/2 (logistic regression, coverage 0.95).
    """
    order = np.argsort(-proba, axis=1, kind="stable")
    falling = np.take_along_axis(proba, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    # Equal probabilities have the same sum before them: that before the first of them.
    is_first = np.ones_like(falling, dtype=bool)
    is_first[:, 1:] = falling[:, 1:] < falling[:, :-1]
    first = np.maximum.accumulate(np.where(is_first, np.arange(proba.shape[1]), 0), axis=1)
    before = np.take_along_axis(before, first, axis=1)
    summed = before + (0.5 if fraction is None else fraction[:, None]) * falling
    scores = np.empty_like(summed)
    np.put_along_axis(scores, order, summed, axis=1)
    return np.round(scores, _DECIMALS)  # sums of the same terms in another order are ties


class ScoreReader(NamedTuple):
    """A nonconformity score, and the method of a model that it is computed from."""

    score: str
    response: str

    def scores(
        self, model: Any, X: Any, classes: npt.NDArray[Any], fraction: FloatArray | None
    ) -> FloatArray:
        """Return the scores (n, K) of rows, by a fitted model."""
        table = class_table(model, X, self.response, classes)
        if self.score == "margin":
            return margin(_log(table) if self.response == "predict_proba" else table)
        if self.score == "cumulative":
            return cumulative(table, fraction)
        return 1 - table  # of probabilities or plausibilities


def choose_response(estimator: Any, score: str, wanted: str) -> str:
    """Return the method of the estimator that a score is computed from."""
    name = type(estimator).__name__
    if score == "plausibility":
        if not hasattr(estimator, "predict_bounds"):
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
    response = has[0] if wanted == "auto" else wanted
    if response not in has:
        raise TypeError(f'{name} has no {response}; it has {has[0]}: say response_method="auto".')
    if score != "margin" and response != "predict_proba":
        raise NotSupportedError(
            f'score="{score}" is computed from probabilities, and {name} gives decision values. '
            'Use score="margin", or calibrate it first: CalibratedClassifier(estimator).'
        )
    if (
        score == "margin"
        and response == "predict_proba"
        and hasattr(estimator, "predict_log_proba")
    ):
        return "predict_log_proba"  # some models know it where the probability underflows
    return response


def class_table(model: Any, X: Any, method: str, classes: npt.NDArray[Any]) -> FloatArray:
    """Return what a model says of each class (n, K), columns as in `classes`.

    A class that the model has not seen gets probability 0, and the logit minus infinity.
    """
    if method not in _RESPONSES:  # a model file may name anything
        raise ValueError(f"{method!r} is no method to predict by.")
    with np.errstate(divide="ignore"):  # logarithms of 0
        said = getattr(model, method)(X)
    table = np.asarray(said.upper if method == "predict_bounds" else said, dtype=np.float64)
    known = np.asarray(model.classes_)
    if method == "decision_function":
        _refuse_pairwise(model)
        if len(known) == 2 and table.size == len(table):  # one column, for the second class
            table = np.column_stack([-0.5 * table.ravel(), 0.5 * table.ravel()])
    if table.shape[1] != len(known):
        raise ValueError(
            f"{type(model).__name__}.{method} gives {counted(table.shape[1], 'column')} for "
            f"{counted(len(known), 'class')}; one for each class is needed."
        )
    if np.isnan(table).any():
        raise ValueError(f"{type(model).__name__}.{method} gives nan, which has no rank.")
    if np.array_equal(known, classes):
        return table
    absent = -np.inf if method in ("decision_function", "predict_log_proba") else 0.0
    full = np.full((len(table), len(classes)), absent)
    full[:, label_columns(known, len(classes), classes)] = table
    return full


def _log(proba: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(proba)


def _refuse_pairwise(model: Any) -> None:
    """Refuse scores of pairs of classes, which three classes would not tell by their number."""
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    last = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    if getattr(last, "decision_function_shape", "ovr") == "ovo" and len(model.classes_) > 2:
        raise NotSupportedError(
            f"{type(last).__name__} gives a score for each pair of classes; one for each class is "
            'needed: decision_function_shape="ovr".'
        )
