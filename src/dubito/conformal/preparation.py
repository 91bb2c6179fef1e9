"""The transformers in front of a classifier, whose output a novelty detector gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    import numpy.typing as npt

#: Attributes in which meta-estimators store the model that they wrap, fitted ones first.
_WRAPPED_MODEL_ATTRIBUTES = (
    "best_estimator_",
    "estimator_",
    "calibrated_classifiers_",
    "estimator",
)


def preparation_of(model: Any) -> Pipeline | None:
    """Return a pipeline of the transformers in front of the last step, or None without any.

    Those of a `FrozenEstimator` are frozen; the caller clones and fits the others.
    """
    transformers = _transformers(model, frozen=False)
    return make_pipeline(*transformers) if transformers else None


def _transformers(model: Any, *, frozen: bool) -> list[Any]:
    """Return the transformers in front of the last step; fitted ones are frozen if `frozen`."""
    if isinstance(model, FrozenEstimator):
        return _transformers(model.estimator, frozen=True)
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps[:-1] if step not in {None, "passthrough"}]
        if frozen:
            steps = [FrozenEstimator(step) if _is_fitted(step) else step for step in steps]
        return [*steps, *_transformers(model.steps[-1][1], frozen=frozen)]
    inner = _wrapped_model(model)
    return [] if inner is None else _transformers(inner, frozen=frozen)


def _wrapped_model(model: Any) -> Any:
    """Return the model that a meta-estimator wraps, or None."""
    for name in _WRAPPED_MODEL_ATTRIBUTES:
        inner = getattr(model, name, None)
        if isinstance(inner, list) and inner:  # one for each fold, all with the same transformers
            inner = inner[0].estimator
        if hasattr(inner, "fit"):
            return inner
    return None


def _is_fitted(step: Any) -> bool:
    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True


def fit_preparation(unfitted: Any, X: Any, y: npt.NDArray[Any] | None) -> tuple[Any, Any]:
    """Return the transformers fitted to rows, and their output for these rows."""
    if unfitted is None:
        return None, X
    preparation = clone(unfitted)
    return preparation, preparation.fit_transform(X, y)


def prepared(preparation: Any, X: Any) -> Any:
    """Return the output of fitted transformers for rows, or the rows where there are none."""
    return X if preparation is None else preparation.transform(X)
