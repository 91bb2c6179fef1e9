"""What a classifier is asked for, and what its answer is: margins, logits or (log-)probabilities.

Known from the class of the model, also inside pipelines, searches and frozen estimators; never
guessed from values:

==============================================  ====================  =========
model                                           asked by              kind
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

Neither LightGBM nor XGBoost is imported: a model is one of theirs by the name of its class and the
parameter of its `predict`.
"""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from dubito._checks import FloatArray, counted
from dubito._sklearn import BaseSearchCV

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

#: Methods that a user may name.
METHODS = ("decision_function", "predict_proba", "predict_log_proba")

#: Ways to ask that only some models have, chosen for them.
PAIRWISE, RAW_SCORE, OUTPUT_MARGIN = "pairwise_margins", "raw_score", "output_margin"

WAYS = (*METHODS, PAIRWISE, RAW_SCORE, OUTPUT_MARGIN)

#: The logarithm of the least positive number: log-probabilities are taken no lower.
LOWEST = float(np.log(np.finfo(np.float64).smallest_subnormal))

#: Softmax models whose `decision_function` are logits.
_SOFTMAX = {
    *("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis"),
    *("HistGradientBoostingClassifier", "GradientBoostingClassifier"),
}
#: Models whose `predict_log_proba` is right where probabilities round to 0, by library.
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

#: How far a classifier's probabilities may be from summing to 1: GaussianNB's are off by 1e-5.
_ROUNDING = 1e-3


class Response(NamedTuple):
    """How a classifier is asked, one of `WAYS`, and what its answers are."""

    way: str
    kind: str


def known_response(estimator: Any) -> Response | None:
    """Return the best way to ask a classifier whose class is known, None for any other."""
    model = _model_inside(estimator)
    if model is None:
        return None
    for kind in type(model).__mro__:
        response = _response_of_class(kind, model)
        if response is not None:
            return response if _answers_as(model, kind) else None
    return None


def _response_of_class(kind: type, model: Any) -> Response | None:
    """Return how models of a class are best asked, None where the class is not known."""
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if library == "sklearn" and name in _SOFTMAX:
        return Response("decision_function", "margin" if _gives_margins(model) else "logits")
    if library == "sklearn" and name in _SUPPORT_VECTORS:
        return Response(PAIRWISE, "margin")
    if name in _EXACT_LOGARITHMS.get(library, ()):
        return Response("predict_log_proba", "log_proba")
    way = _BOOSTED.get(name, "")
    if way and way in inspect.signature(model.predict).parameters:
        return Response(way, "margin" if _gives_margins(model) else "logits")
    return None


def _answers_as(model: Any, kind: type) -> bool:
    """Say whether the class of a model leaves the methods of a class it inherits from as they are.

    What a subclass says of its own may be anything.
    """
    own = type(model).__mro__[: type(model).__mro__.index(kind)]
    return not any(method in vars(one) for one in own for method in (*METHODS, "predict"))


def kind_of(estimator: Any, method: str) -> str:
    """Return what a method of a classifier gives."""
    if method == "decision_function":
        known = known_response(estimator)
        return known.kind if known is not None and known.way == method else "margin"
    return "proba" if method == "predict_proba" else "log_proba"


def _gives_margins(model: Any) -> bool:
    """Say whether outputs are no logits: each class against the rest, or half of the log-odds."""
    said = {getattr(model, name, None) for name in ("solver", "multi_class", "objective", "loss")}
    others = {"liblinear", "ovr", "multiclassova", "multiclass_ova", "ova", "exponential"}
    return not others.isdisjoint(one for one in said if isinstance(one, str))


def _model_inside(estimator: Any, *, frozen: bool = False) -> Any:
    """Return the classifier that a composite ends in; None where fitting decides which."""
    if isinstance(estimator, FrozenEstimator):
        return _model_inside(estimator.estimator, frozen=True)
    if isinstance(estimator, Pipeline):
        return _model_inside(estimator.steps[-1][1], frozen=frozen)
    if not isinstance(estimator, BaseSearchCV):
        return estimator
    if frozen and hasattr(estimator, "best_estimator_"):
        return _model_inside(estimator.best_estimator_, frozen=True)
    # Copies fitted to other rows may find other models, and all of them must be asked alike.
    return None if _searches_models(estimator) else _model_inside(estimator.estimator)


def _searches_models(search: BaseSearchCV) -> bool:
    """Say whether a search tries several models, and not one with several settings."""
    given = getattr(search, "param_grid", getattr(search, "param_distributions", {}))
    grids = given if isinstance(given, list | tuple) else [given]
    tried: Iterable[Any] = (values for grid in grids for values in dict(grid).values())
    return any(hasattr(value, "fit") for values in tried for value in _listed(values))


def _listed(values: Any) -> list[Any]:
    """Return the values a search tries, none where it draws them from a distribution."""
    return [] if hasattr(values, "rvs") or isinstance(values, str) else list(values)


def class_scores(
    estimator: Any,
    X: Any,
    *,
    way: str,
    classes: npt.NDArray[Any],
    absent: float | None = None,
) -> FloatArray:
    """Return scores (n, 1) for two margins' classes, (n, K) otherwise, columns as in `classes`.

    `absent` is the score of a class that the estimator has not seen; None: probability 0, or the
    lowest margin of the row.
    """
    table = _ask(estimator, X, way)
    known = np.asarray(estimator.classes_)
    if table.ndim == 1 or (table.shape[1] == 1 and len(known) == 2):
        table = table.reshape(-1, 1)
        if len(classes) == 2:
            return table
        table = np.hstack([-0.5 * table, 0.5 * table])
    if table.shape[1] != len(known):
        raise ValueError(
            f"{type(estimator).__name__}.{way} gives {counted(table.shape[1], 'column')} for "
            f"{counted(len(known), 'class')}; one for each class is needed."
        )
    if np.array_equal(known, classes):
        return table
    if absent is None:
        lowest = {"predict_proba": 0.0, "predict_log_proba": LOWEST}
        unseen = lowest.get(way, table.min(axis=1, keepdims=True))
    else:
        unseen = absent
    full = np.broadcast_to(unseen, (len(table), len(classes))).copy()
    full[:, _columns_of(estimator, known, classes)] = table
    return full


def _columns_of(estimator: Any, known: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Any:
    strange = np.setdiff1d(known, classes)
    if len(strange):
        raise ValueError(
            f"{type(estimator).__name__} knows the label {strange[0]!r}, which is none of "
            f"{', '.join(map(repr, classes.tolist()))}."
        )
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, known, sorter=order)]


def _ask(estimator: Any, X: Any, way: str) -> FloatArray:
    """Return what a fitted classifier answers, columns as in its own `classes_`."""
    if way not in WAYS:  # a model file may name anything
        raise ValueError(f"{way!r} is no way to ask a classifier; those are {', '.join(WAYS)}.")
    if way == PAIRWISE:
        return _nearest_rivals(*_last_model(estimator, X))
    if way in (RAW_SCORE, OUTPUT_MARGIN):
        model, X = _last_model(estimator, X)
        return np.asarray(model.predict(X, **{way: True}), dtype=np.float64)
    if way == "decision_function":
        _refuse_pairwise(estimator)
    with np.errstate(divide="ignore"):  # logarithms of 0
        table = np.asarray(getattr(estimator, way)(X), dtype=np.float64)
    if way == "predict_proba":
        return _whole(table)
    if way == "predict_log_proba":
        return np.maximum(table, _least_logarithm(estimator))
    return table


def _last_model(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted model that a composite ends in, and the rows as they reach it."""
    if isinstance(estimator, FrozenEstimator):
        return _last_model(estimator.estimator, X)
    if isinstance(estimator, BaseSearchCV):
        return _last_model(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        before = estimator[:-1]
        return _last_model(estimator.steps[-1][1], before.transform(X) if len(before) else X)
    return estimator, X


def _nearest_rivals(model: Any, X: Any) -> FloatArray:
    r"""Return :math:`s_k=\min_{j\ne k}d_{kj}`, d the margins of a support vector machine's pairs.

    A class is as likely as its comparison with its nearest rival says. The `decision_function` of
    scikit-learn counts the comparisons that a class wins, which says little: on digits the log loss
    after matrix scaling is 0.158 of those and 0.066 of these. Of other functions of the margins
    their sum had 0.094 and coupled probabilities :math:`1/(1+\sum_j e^{-ad_{kj}})` 0.070 to 0.086.
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
    """Refuse scores of pairs of classes, which three classes would not tell by their number."""
    model = _model_inside(estimator)
    if getattr(model, "decision_function_shape", "ovr") == "ovo" and len(estimator.classes_) > 2:
        raise ValueError(
            f"{type(model).__name__}.decision_function gives a score for each pair of classes; one "
            'for each class is needed: response_method="auto".'
        )


def _least_logarithm(estimator: Any) -> float:
    """Return where logarithms of probabilities end: of 1 - p, at the rounding of p."""
    of_two = type(_model_inside(estimator)).__name__ == "MLPClassifier"
    return float(np.log(1e-16)) if of_two and len(estimator.classes_) == 2 else LOWEST


def _whole(proba: FloatArray) -> FloatArray:
    """Mend rows that sum to 1 but for rounding: far out some classifiers lose a few digits."""
    total = proba.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1)
    return np.where((off > 1e-9) & (off < _ROUNDING), proba / total, proba)
