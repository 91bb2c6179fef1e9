"""Methods of the model inside a pipeline or a wrapper, beyond `predict_proba`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._models import inner_model, inner_model_and_rows

if TYPE_CHECKING:
    from collections.abc import Callable


def inner_method(name: str, returns: str) -> Any:
    """Return a method that calls the method `name` of the model inside; absent if it has none."""

    def method(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        check_is_fitted(self)
        model, rows = inner_model_and_rows(*self._inner_estimator_and_rows(X))
        return getattr(model, name)(rows, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return {returns}, as the model inside does; its own options follow X."
    # `getattr`, not `hasattr`: the error of the model says why there is no such method.
    return available_if(lambda outer: getattr(inner_model(outer._inner_estimator()), name))(method)


class InnerMethodsMixin:
    """Methods of the model inside.

    Subclasses have `_inner_estimator()`, which returns the model inside, fitted or not, and
    `_inner_estimator_and_rows(X)`, which returns the fitted one and the rows as it receives them.
    """

    if TYPE_CHECKING:
        _inner_estimator: Callable[[], Any]

    predict_mass = inner_method("predict_mass", "a mass function for each row")
    predict_contour = inner_method("predict_contour", "the p-value of each class")
    familiarity = inner_method("familiarity", "how familiar each row is: a p-value")
    predict_topk = inner_method("predict_topk", "the k most probable classes, best first")
    critical_c = inner_method("critical_c", "the imprecision at which each class is possible")
    conflict = inner_method("conflict", "how far pieces of evidence, or members, contradict")
    ignorance = inner_method("ignorance", "how far evidence is lacking")
    explain = inner_method("explain", "the evidence behind each prediction")

    @property
    def rate(self) -> float:
        """Familiarity below which a novelty-aware model inside counts a row as unfamiliar."""
        return float(inner_model(self._inner_estimator()).rate)
