"""The transformers in front of a classifier, wherever a pipeline stands within it."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

#: Where meta-estimators keep the model inside: fitted, if there is one, before the one passed.
_INSIDE = ("best_estimator_", "estimator_", "pairs_", "calibrated_classifiers_", "estimator")


def preparation_of(model: Any) -> Pipeline | None:
    """Return a pipeline of the transformers in front of the last step, or None without any.

    Those of a `FrozenEstimator` are frozen; all others are to be cloned and fitted.
    """
    transformers = _transformers(model, frozen=False)
    return make_pipeline(*transformers) if transformers else None


def _transformers(model: Any, *, frozen: bool) -> list[Any]:
    if isinstance(model, FrozenEstimator):
        return _transformers(model.estimator, frozen=True)
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps[:-1] if step not in {None, "passthrough"}]
        if frozen:
            steps = [FrozenEstimator(step) if _is_fitted(step) else step for step in steps]
        return [*steps, *_transformers(model.steps[-1][1], frozen=frozen)]
    inner = _model_inside(model)
    return [] if inner is None else _transformers(inner, frozen=frozen)


def _model_inside(model: Any) -> Any:
    """Return the model that a meta-estimator holds, or None."""
    for name in _INSIDE:
        held = getattr(model, name, None)
        if isinstance(held, list) and held:  # one for each fold: the first stands for all
            held = held[0].estimator
        if hasattr(held, "fit"):
            return held
    return None


def _is_fitted(step: Any) -> bool:
    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True
