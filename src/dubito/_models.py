"""Whether a model has bounds, and the model inside searches and pipelines."""

from __future__ import annotations

from typing import Any


def has_bounds(model: Any) -> bool:
    """Return whether ``model.predict_bounds`` gives lower and upper probabilities.

    It is the tag ``has_bounds`` of dubito's estimators, which `dubito.base.CautiousMixin` sets. A
    model of another library, without the tag, has bounds if it has the method.
    """
    tags = model.__sklearn_tags__() if hasattr(model, "__sklearn_tags__") else None
    return getattr(tags, "has_bounds", hasattr(model, "predict_bounds"))


def final_estimator(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model inside fitted searches and pipelines, and the rows as it receives them.

    scikit-learn's searches and pipelines hide `predict_bounds` and `predict_set` of their model. A
    model with these methods is returned as it is.
    """
    while not (has_bounds(model) or hasattr(model, "predict_set")):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model[-1]
        else:
            break
    return model, X
