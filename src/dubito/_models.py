"""What a model predicts: bounds and their kind, log-probabilities; the model inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


def has_bounds(model: Any) -> bool:
    """Return whether ``model.predict_bounds`` gives lower and upper probabilities.

    For dubito's estimators this is the tag ``has_bounds``, set by `dubito.base.CautiousMixin`; for
    models without the tag, whether the method exists.
    """
    tags = model.__sklearn_tags__() if hasattr(model, "__sklearn_tags__") else None
    return getattr(tags, "has_bounds", hasattr(model, "predict_bounds"))


def inner_model(model: Any) -> Any:
    """Return the outermost model with bounds or sets of its own inside searches and pipelines.

    scikit-learn's fitted searches and pipelines do not have `predict_bounds` and `predict_set` of
    their model. Where no model has these methods, the last one is returned.
    """
    for outer in _composites(model):
        model = _inside(outer)
    return model


def inner_model_and_rows(model: Any, X: Any) -> tuple[Any, Any]:
    """Return `inner_model`, and the rows as it receives them from the pipelines around it."""
    for outer in _composites(model):
        if hasattr(outer, "steps") and len(outer.steps) > 1:
            X = outer[:-1].transform(X)
    return inner_model(model), X


def last_model(model: Any) -> Any:
    """Return the last model inside fitted searches and pipelines, whatever methods they have."""
    while (inside := _inside(model)) is not model:
        model = inside
    return model


def bounds_kind(model: Any) -> str:
    """Return what the bounds of a model are, as in `BoundsMeaning.kind`; "belief" by default."""
    return getattr(inner_model(model), "_bounds_kind", "belief")


def is_conformal(model: Any) -> bool:
    """Return whether a model has label sets with a chosen coverage."""
    return hasattr(model, "predict_contour")


def is_novelty_aware(model: Any) -> bool:
    """Return whether a model measures how familiar a row is."""
    return hasattr(model, "familiarity")


def log_proba(model: Any, X: Any) -> Any:
    """Return a model's log-probabilities, or the logarithms of its probabilities."""
    if hasattr(model, "predict_log_proba"):
        return model.predict_log_proba(X)
    with np.errstate(divide="ignore"):
        return np.log(model.predict_proba(X))


def _composites(model: Any) -> Iterator[Any]:
    """Yield the searches and pipelines around a model, from the outside in."""
    while not (has_bounds(model) or hasattr(model, "predict_set")):
        inside = _inside(model)
        if inside is model:
            return
        yield model
        model = inside


def _inside(model: Any) -> Any:
    """Return the best estimator of a fitted search, the last step of a pipeline, or the model."""
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_
    return model.steps[-1][1] if hasattr(model, "steps") else model
