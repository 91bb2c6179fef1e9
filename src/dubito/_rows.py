"""Reading the rows that meta-estimators are fitted on."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets

from dubito._checks import FloatArray, check_sample_weight
from dubito._labels import as_labels
from dubito._sklearn import check_y

if TYPE_CHECKING:
    import numpy.typing as npt


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, npt.NDArray[Any], FloatArray | None]:
    """Return rows that can be picked, their labels, and their weights if there are any."""
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


def warn_unweighted(estimator: Any, instead: str) -> None:
    """Say that an estimator cannot take the weights of the rows, and what they are used for."""
    warnings.warn(
        f"{type(estimator).__name__}.fit takes no sample_weight, so the weights are used for "
        f"{instead} alone.",
        UserWarning,
        stacklevel=frames_to_the_user(),
    )


def frames_to_the_user() -> int:
    """Return the stack level of whoever called this library, or scikit-learn's wrapper of it."""
    frame, depth = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").startswith(("dubito.", "sklearn.")):
        frame, depth = frame.f_back, depth + 1
    return depth
