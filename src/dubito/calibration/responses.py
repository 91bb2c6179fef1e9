"""The scores of a classifier: the method that returns them, and their kind.

The kind (margins, logits, probabilities or their logarithms) is determined by the class of the
model, also inside pipelines, searches and frozen estimators, never by the values:

==============================================  ====================  =========
model                                           source                kind
==============================================  ====================  =========
logistic regression, boosting, LDA of           `decision_function`   logits
scikit-learn
LightGBM                                        `predict`, raw_score  logits
XGBoost                                         `predict`,            logits
                                                output_margin
naive Bayes, QDA, networks of scikit-learn;     `predict_log_proba`   log_proba
nested dichotomies, discriminants and
evidential classifiers of dubito
`SVC`, `NuSVC`                                  pairwise margins      margin
others with `decision_function`                 `decision_function`   margin
others                                          `predict_proba`       proba
==============================================  ====================  =========

LightGBM and XGBoost are not imported: their models are recognised by the name of the class and the
parameter of `predict`.
"""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from dubito._compat import BaseSearchCV
from dubito._numerics.log_odds import two_class_scores
from dubito._wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._typing import FloatArray

#: Methods of a classifier that return scores, among which a user may choose.
RESPONSE_METHODS = ("decision_function", "predict_proba", "predict_log_proba")

#: Other sources of scores, which only some models have.
PAIRWISE, RAW_SCORE, OUTPUT_MARGIN = "pairwise_margins", "raw_score", "output_margin"

SOURCES = (*RESPONSE_METHODS, PAIRWISE, RAW_SCORE, OUTPUT_MARGIN)

#: The logarithm of the smallest positive number, the lower limit of log-probabilities.
LOWEST = float(np.log(np.finfo(np.float64).smallest_subnormal))

#: Classes of scikit-learn whose `decision_function` are the logits of a softmax.
_SOFTMAX = {
    *("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis"),
    *("HistGradientBoostingClassifier", "GradientBoostingClassifier"),
}
#: Models whose `predict_log_proba` is exact where probabilities round to 0, by library.
_EXACT_LOGARITHMS = {
    "sklearn": {
        *("GaussianNB", "MultinomialNB", "BernoulliNB", "ComplementNB", "CategoricalNB"),
        *("QuadraticDiscriminantAnalysis", "MLPClassifier"),
    },
    "dubito": {
        *("NestedDichotomyClassifier", "NestedDichotomyEnsemble"),
        *("EvidentialClassifier", "ImpreciseGaussianDiscriminant"),
    },
}
_SUPPORT_VECTORS = {"SVC", "NuSVC"}
_BOOSTED = {"LGBMClassifier": RAW_SCORE, "XGBClassifier": OUTPUT_MARGIN}

#: A sum of probabilities that differs from 1 by less than this differs by rounding; those of
#: GaussianNB differ by 1e-5.
_SUM_ROUNDING = 1e-3


class Response(NamedTuple):
    """The source of a classifier's scores, one of `SOURCES`, and their kind."""

    source: str
    kind: str


def known_response(estimator: Any) -> Response | None:
    """Return the most precise scores of a classifier whose class is listed here, or None."""
    model = _model_of_composite(estimator)
    if model is None:
        return None
    for base in type(model).__mro__:
        response = _response_of_class(base, model)
        if response is not None:
            return response if _keeps_methods(model, base) else None
    return None


def _response_of_class(base: type, model: Any) -> Response | None:
    """Return the most precise scores of models of a class, None if the class is not listed."""
    library, name = base.__module__.partition(".")[0], base.__name__
    if library == "sklearn" and name in _SOFTMAX:
        return Response("decision_function", "margin" if _gives_margins(model) else "logits")
    if library == "sklearn" and name in _SUPPORT_VECTORS:
        return Response(PAIRWISE, "margin")
    if name in _EXACT_LOGARITHMS.get(library, ()):
        return Response("predict_log_proba", "log_proba")
    source = _BOOSTED.get(name, "")
    if source and source in inspect.signature(model.predict).parameters:
        return Response(source, "margin" if _gives_margins(model) else "logits")
    return None


def _keeps_methods(model: Any, base: type) -> bool:
    """Return whether a model inherits its methods from `base` without overriding them.

    Scores of an overriding subclass may be of any kind.
    """
    derived = type(model).__mro__[: type(model).__mro__.index(base)]
    return not any(
        method in vars(one) for one in derived for method in (*RESPONSE_METHODS, "predict")
    )


def kind_of(estimator: Any, method: str) -> str:
    """Return the kind of the scores that a method of a classifier returns."""
    if method == "decision_function":
        listed = known_response(estimator)
        return listed.kind if listed is not None and listed.source == method else "margin"
    return "proba" if method == "predict_proba" else "log_proba"


def choose_response(estimator: Any, input: str, wanted: str, *, n_classes: int) -> Response:
    """Return the source of the scores that a calibrator gets, and their kind.

    Parameters
    ----------
    estimator : classifier
        Fitted or not.
    input : str
        The calibrator's `input`. With "margin", the default, the estimator determines the kind.
    wanted : str
        "auto", or a method of the estimator.
    n_classes : int
    """
    available = [method for method in RESPONSE_METHODS if hasattr(estimator, method)]
    name = type(estimator).__name__
    if not set(available) - {"predict_log_proba"}:
        raise TypeError(
            f"{name} has neither decision_function nor predict_proba, so it gives no scores to "
            "calibrate. Use a classifier that has one of them."
        )
    if wanted == "auto":
        return _best_response(estimator, input, available, n_classes)
    if wanted not in available:
        raise TypeError(
            f'{name} has no {wanted}; it has {available[0]}: say response_method="auto".'
        )
    if wanted == "decision_function" and input in ("proba", "log_proba"):
        raise ValueError(
            f'response_method="decision_function" gives margins, but the calibrator reads '
            f'input="{input}". Leave its input at "margin", or use response_method="predict_proba".'
        )
    return Response(wanted, _interpreted(kind_of(estimator, wanted), input))


def _best_response(estimator: Any, input: str, available: list[str], n_classes: int) -> Response:
    """Return the most precise scores, or those that the calibrator's `input` names."""
    for kind, method in (("proba", "predict_proba"), ("log_proba", "predict_log_proba")):
        if input == kind and method in available:
            return Response(method, kind)
    listed = known_response(estimator)
    if listed is None or (listed.source in RESPONSE_METHODS and listed.source not in available):
        method = available[0]
        return Response(method, _interpreted(kind_of(estimator, method), input))
    source = listed.source
    if source == PAIRWISE and n_classes == 2:
        source = "decision_function"
    return Response(source, _interpreted(listed.kind, input))


def _interpreted(kind: str, input: str) -> str:
    """Return the kind of scores: `input` for margins; "logits" may replace "log_proba"."""
    if kind == "margin":
        return input
    return input if kind == "log_proba" and input == "logits" else kind


def _gives_margins(model: Any) -> bool:
    """Return whether outputs are no logits: one-against-rest scores, or half of the log-odds."""
    settings = {
        getattr(model, name, None) for name in ("solver", "multi_class", "objective", "loss")
    }
    others = {"liblinear", "ovr", "multiclassova", "multiclass_ova", "ova", "exponential"}
    return not others.isdisjoint(one for one in settings if isinstance(one, str))


def _model_of_composite(estimator: Any, *, frozen: bool = False) -> Any:
    """Return the last model of a composite, fitted or not; None where fitting selects it."""
    if isinstance(estimator, FrozenEstimator):
        return _model_of_composite(estimator.estimator, frozen=True)
    if isinstance(estimator, Pipeline):
        return _model_of_composite(estimator.steps[-1][1], frozen=frozen)
    if not isinstance(estimator, BaseSearchCV):
        return estimator
    if frozen and hasattr(estimator, "best_estimator_"):
        return _model_of_composite(estimator.best_estimator_, frozen=True)
    # Copies fitted on other rows may select other models, but must have the same kind of scores.
    return None if _searches_models(estimator) else _model_of_composite(estimator.estimator)


def _searches_models(search: BaseSearchCV) -> bool:
    """Return whether a search compares several models, and not one with several settings."""
    given = getattr(search, "param_grid", getattr(search, "param_distributions", {}))
    grids = given if isinstance(given, list | tuple) else [given]
    candidates: Iterable[Any] = (values for grid in grids for values in dict(grid).values())
    return any(hasattr(value, "fit") for values in candidates for value in _listed(values))


def _listed(values: Any) -> list[Any]:
    """Return the values listed for a parameter of a search; none for a distribution."""
    return [] if hasattr(values, "rvs") or isinstance(values, str) else list(values)


def class_scores(
    estimator: Any,
    X: Any,
    *,
    source: str,
    classes: npt.NDArray[Any],
    absent: float | None = None,
) -> FloatArray:
    """Return scores with columns as in `classes`: (n, 1) for margins of two classes, else (n, K).

    `absent` is the score of a class that is not in the estimator's `classes_`; by default
    probability 0, or the lowest margin of the row.
    """
    table = _scores_by_own_classes(estimator, X, source)
    own_classes = np.asarray(estimator.classes_)
    if table.ndim == 1 or (table.shape[1] == 1 and len(own_classes) == 2):
        table = table.reshape(-1, 1)
        if len(classes) == 2:
            return table
        table = two_class_scores(table)
    if table.shape[1] != len(own_classes):
        raise ValueError(
            f"{type(estimator).__name__}.{source} gives {counted(table.shape[1], 'column')} for "
            f"{counted(len(own_classes), 'class')}; one for each class is needed."
        )
    lowest = {"predict_proba": 0.0, "predict_log_proba": LOWEST}
    fill = lowest.get(source) if absent is None else absent
    return with_all_classes(table, estimator, classes, fill=fill)


def with_all_classes(
    table: FloatArray, estimator: Any, classes: npt.NDArray[Any], *, fill: float | None
) -> FloatArray:
    """Return a table by the estimator's classes with columns as in `classes`.

    Classes that the estimator was not fitted on get `fill`, or the lowest value of the row.
    """
    own_classes = np.asarray(estimator.classes_)
    if np.array_equal(own_classes, classes):
        return table
    filled = table.min(axis=1, keepdims=True) if fill is None else fill
    full = np.broadcast_to(filled, (len(table), len(classes))).copy()
    full[:, _columns_of(estimator, own_classes, classes)] = table
    return full


def _columns_of(estimator: Any, own_classes: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Any:
    """Return the index in `classes` of each of the estimator's own classes."""
    strange = np.setdiff1d(own_classes, classes)
    if len(strange):
        raise ValueError(
            f"{type(estimator).__name__} knows the label {strange[0]!r}, which is none of "
            f"{', '.join(map(repr, classes.tolist()))}."
        )
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, own_classes, sorter=order)]


def _scores_by_own_classes(estimator: Any, X: Any, source: str) -> FloatArray:
    """Return the scores of a fitted classifier, columns as in its own `classes_`."""
    if source not in SOURCES:  # a model file may name anything
        raise ValueError(f"{source!r} gives no scores; the sources are {', '.join(SOURCES)}.")
    if source == PAIRWISE:
        return _nearest_rivals(*_unfrozen_model_and_rows(estimator, X))
    if source in (RAW_SCORE, OUTPUT_MARGIN):
        model, X = _unfrozen_model_and_rows(estimator, X)
        return np.asarray(model.predict(X, **{source: True}), dtype=np.float64)
    if source == "decision_function":
        _refuse_pairwise(estimator)
    with np.errstate(divide="ignore"):  # logarithms of 0
        table = np.asarray(getattr(estimator, source)(X), dtype=np.float64)
    if source == "predict_proba":
        return _normalised(table)
    if source == "predict_log_proba":
        return np.maximum(table, _least_logarithm(estimator))
    return table


def _unfrozen_model_and_rows(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the last model of a fitted composite, not frozen, and the rows as it receives them."""
    if isinstance(estimator, FrozenEstimator):
        return _unfrozen_model_and_rows(estimator.estimator, X)
    if isinstance(estimator, BaseSearchCV):
        return _unfrozen_model_and_rows(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        return _unfrozen_model_and_rows(estimator.steps[-1][1], X)
    return estimator, X


def _nearest_rivals(model: Any, X: Any) -> FloatArray:
    r"""Return :math:`s_k=\min_{j\ne k}d_{kj}`, d the pairwise margins of a support vector machine.

    The score of a class is its margin over the closest other class. The `decision_function` of
    scikit-learn counts the pairs that a class wins, which is less informative: on digits the log
    loss after matrix scaling is 0.158 for the counts and 0.066 for these margins. Among other
    functions of the margins, their sum had 0.094 and coupled probabilities :math:`1/(1+\sum_j
    e^{-ad_{kj}})` 0.070 to 0.086.
    """
    paired = copy.copy(model)
    paired.decision_function_shape = "ovo"
    margins = np.asarray(paired.decision_function(X), dtype=np.float64)
    if margins.ndim == 1:
        return margins
    n_classes = len(model.classes_)
    nearest = np.full((len(margins), n_classes), np.inf)
    pairs = zip(*np.triu_indices(n_classes, 1), strict=True)
    for column, (first, second) in enumerate(pairs):
        margin = margins[:, column]  # positive for the first of the two
        np.minimum(nearest[:, first], margin, out=nearest[:, first])
        np.minimum(nearest[:, second], -margin, out=nearest[:, second])
    return nearest


def _refuse_pairwise(estimator: Any) -> None:
    """Raise an error for scores of pairs of classes; of three classes there are three pairs too."""
    model = _model_of_composite(estimator)
    if getattr(model, "decision_function_shape", "ovr") == "ovo" and len(estimator.classes_) > 2:
        raise ValueError(
            f"{type(model).__name__}.decision_function gives a score for each pair of classes; one "
            'for each class is needed: response_method="auto".'
        )


def _least_logarithm(estimator: Any) -> float:
    """Return the lower limit of log-probabilities; higher where the model computes log(1 - p)."""
    is_mlp = type(_model_of_composite(estimator)).__name__ == "MLPClassifier"
    return float(np.log(1e-16)) if is_mlp and len(estimator.classes_) == 2 else LOWEST


def _normalised(proba: FloatArray) -> FloatArray:
    """Return probabilities with rounding errors of the row sums removed."""
    total = proba.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1)
    return np.where((off > 1e-9) & (off < _SUM_ROUNDING), proba / total, proba)
