"""What all estimators with bounds share: `predict`, `predict_set` and the tag `has_bounds`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Tags

from dubito._validation import NotSupportedError
from dubito.decision.risk import loss_in_class_order
from dubito.decision.rules import choose_set

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray
    from dubito.decision.rules import SetRule


@dataclass(slots=True)
class CautiousTags(Tags):
    """scikit-learn's tags, and whether the estimator has lower and upper probabilities."""

    has_bounds: bool = False


def add_bounds_tag(tags: Tags, has_bounds: bool) -> CautiousTags:
    """Return the tags with `has_bounds`, which `dubito._models.has_bounds` reads."""
    plain = {field.name: getattr(tags, field.name) for field in fields(Tags)}
    return CautiousTags(**plain, has_bounds=has_bounds)


def named_loss(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a rule; the rows and columns of a loss with names are in class order."""
    if options.get("loss") is None:
        return options
    return {**options, "loss": loss_in_class_order(options["loss"], model.classes_.tolist())}


def coverage_error(model: Any, wrapped: str = "ConformalClassifier(model)") -> NotSupportedError:
    """Return the error for a coverage requested from a model without conformal p-values."""
    return NotSupportedError(
        f"coverage= needs conformal p-values, which {type(model).__name__} has not. Wrap it, as in "
        f"{wrapped}, or choose the set by rule=."
    )


class MethodAndParameter:
    """A method whose name is also that of a parameter, as ``score`` of a conformal classifier.

    The attribute is always the method; the value of the parameter is in the ``__dict__`` of the
    instance, where `get_params` of such a class must read it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., Any]:
        return self._function if model is None else MethodType(self._function, model)

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)[self._name] = value


class CautiousMixin:
    """Prediction from `predict_proba` and `predict_bounds`: labels, log-probabilities and sets."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n,)
        """
        proba = self.predict_proba(X)  # type: ignore[attr-defined]
        return self.classes_[np.argmax(proba, axis=1)]  # type: ignore[attr-defined]

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))  # type: ignore[attr-defined]

    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the classes that remain possible, by a rule on the bounds.

        The sets have no guaranteed coverage; those of `dubito.conformal.ConformalClassifier` have.

        Parameters
        ----------
        X : array-like
            As for `predict_bounds`.
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` by name ("interval_dominance", "maximality",
            "e_admissibility", "weak_dominance", "set_utility") or a function of the bounds.
        level : float, optional
            The confidence level of the bounds, as in `predict_bounds`. It is not that of the set.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Never an empty row; columns as in ``classes_``. With a ``loss`` of other acts than
            naming a class: (n, acts).
        """
        if "coverage" in options:
            raise coverage_error(self)
        bounds = self.predict_bounds(X, level=level)  # type: ignore[attr-defined]
        return choose_set(bounds, rule, **named_loss(self, options))

    def __sklearn_tags__(self) -> CautiousTags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        return add_bounds_tag(tags, hasattr(self, "predict_bounds"))
