"""What estimators share that fit others, or on folds: rows, labels, sample weights, copies."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from dubito._compat import BaseSearchCV, check_y
from dubito._labels import as_labels
from dubito._validation import check_sample_weight, n_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

    Fold = tuple[IntArray, IntArray]  # training and test rows


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, npt.NDArray[Any], FloatArray | None]:
    """Return indexable rows, their checked labels, and their sample weights or None."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    labels = as_labels(check_y(y, estimator=estimator), "y")
    check_classification_targets(labels)
    X, labels = indexable(X, labels)
    if sample_weight is None:
        return X, labels, None
    return X, labels, check_sample_weight(sample_weight, len(labels))


def read_unlabelled_rows(X: Any, sample_weight: Any) -> tuple[Any, FloatArray | None]:
    """Return indexable rows, and their checked sample weights or None."""
    (X,) = indexable(X)
    return X, None if sample_weight is None else check_sample_weight(sample_weight, n_rows(X))


def refuse_prefit(cv: Any) -> None:
    """Raise an error for scikit-learn's former way to pass a fitted classifier."""
    if isinstance(cv, str) and cv == "prefit":
        raise ValueError(
            'cv="prefit" is not supported: pass a fitted classifier as '
            "FrozenEstimator(model), from sklearn.frozen; then all rows calibrate it."
        )


def has_weight(rows: Any, weight: FloatArray | None) -> BoolArray:
    """Return a mask of the rows of positive sample weight; `rows` are X or y."""
    return np.ones(n_rows(rows), dtype=bool) if weight is None else weight > 0


def cv_folds(cv: Any, X: Any, y: npt.NDArray[Any] | None, weight: FloatArray | None) -> list[Fold]:
    """Return training and test row numbers of each fold, without rows of sample weight 0."""
    return folds_with_weight(check_cv(cv, y, classifier=True).split(X, y), X, weight)


def folds_with_weight(folds: Iterable[Fold], X: Any, weight: FloatArray | None) -> list[Fold]:
    """Return folds without rows of sample weight 0."""
    positive = has_weight(X, weight)
    rows = np.arange(len(positive))  # a user's folds may be masks or lists
    numbers = [(rows[np.asarray(train)], rows[np.asarray(test)]) for train, test in folds]
    return [(train[positive[train]], test[positive[test]]) for train, test in numbers]


def refuse_one_class(
    model: Any, y: npt.NDArray[Any], weight: FloatArray | None = None, *, name: str = "y"
) -> None:
    """Raise an error unless rows of positive sample weight show at least two classes."""
    if len(np.unique(y[has_weight(y, weight)])) < 2:
        raise ValueError(
            f"{type(model).__name__} needs rows of at least two classes; {name} has "
            f"{len(y)} rows and shows {'one class' if len(y) else 'no class'}."
        )


def weight_parameters(
    estimator: Any, weight: FloatArray | None, *, instead: str | None
) -> tuple[str, ...]:
    """Return the parameters of an estimator's `fit` that take sample weights.

    Those of a pipeline are parameters of its steps, ``step__sample_weight``. If the estimator, or
    the last step of a pipeline, takes no weights, none are passed, and a warning states that they
    are used for `instead` alone, or ignored. A frozen estimator is not expected to take any.
    """
    if weight is None or (isinstance(estimator, FrozenEstimator) and instead is not None):
        return ()
    last = estimator
    while isinstance(last, Pipeline | BaseSearchCV):
        last = last.steps[-1][1] if isinstance(last, Pipeline) else last.estimator
    if not has_fit_parameter(last, "sample_weight"):
        warn_unweighted(last, instead)
        return ()
    if get_config()["enable_metadata_routing"]:
        return ("sample_weight",)  # scikit-learn passes it on to the steps that request it
    return _parameters_of_steps(estimator)


def _parameters_of_steps(estimator: Any) -> tuple[str, ...]:
    """Return the parameters for sample weights of an estimator, or of all steps of a pipeline."""
    if isinstance(estimator, Pipeline):
        return tuple(
            f"{name}__{parameter}"
            for name, step in estimator.steps
            for parameter in _parameters_of_steps(step)
        )
    if isinstance(estimator, BaseSearchCV):
        return _parameters_of_steps(estimator.estimator)
    return ("sample_weight",) if has_fit_parameter(estimator, "sample_weight") else ()


def fitted_copy(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    parameters: tuple[str, ...],
) -> Any:
    """Return a fitted copy of an estimator; `parameters` are those of `weight_parameters`."""
    return clone(estimator).fit(X, y, **dict.fromkeys(parameters, weight))


def copy_feature_names(model: Any, estimator: Any) -> None:
    """Set the number and names of features of a meta-estimator to those of its fitted estimator."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(model).pop(name, None)  # of an earlier fit
        if hasattr(estimator, name):
            setattr(model, name, getattr(estimator, name))


def warn_unweighted(estimator: Any, instead: str | None) -> None:
    """Warn that an estimator takes no sample weights, and what they are used for."""
    use = "ignored" if instead is None else f"used for {instead} alone"
    warnings.warn(
        f"{type(estimator).__name__}.fit takes no sample_weight, so the weights are {use}.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def user_stacklevel() -> int:
    """Return the stack level of the first caller outside dubito and scikit-learn."""
    frame, depth = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").startswith(("dubito.", "sklearn.")):
        frame, depth = frame.f_back, depth + 1
    return depth
