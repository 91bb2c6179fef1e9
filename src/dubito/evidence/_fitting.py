"""Fitting the model that evidence is read from, with weights where it takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dubito._rows import warn_unweighted
from dubito._sklearn import BaseSearchCV

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray


def fitted(estimator: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> Any:
    """Return a fitted copy, or the frozen one as it is."""
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator.estimator)
        return estimator.estimator
    if weight is None:
        return clone(estimator).fit(X, y)
    last = estimator
    while isinstance(last, Pipeline | BaseSearchCV):
        last = last.steps[-1][1] if isinstance(last, Pipeline) else last.estimator
    if not has_fit_parameter(last, "sample_weight"):
        warn_unweighted(last, "the means of the features")
    return clone(estimator).fit(X, y, **dict.fromkeys(_weight_parameters(estimator), weight))


def _weight_parameters(estimator: Any) -> list[str]:
    """Return the names by which `fit` takes weights: of a pipeline, those of its steps."""
    if isinstance(estimator, Pipeline):
        return [
            f"{step}__{name}" for step, part in estimator.steps for name in _weight_parameters(part)
        ]
    if isinstance(estimator, BaseSearchCV):
        return _weight_parameters(estimator.estimator)
    return ["sample_weight"] if has_fit_parameter(estimator, "sample_weight") else []


def mean_features(phi: Any, weight: FloatArray | None) -> FloatArray:
    """Return the mean of each feature."""
    share = np.full(phi.shape[0], 1.0) if weight is None else weight
    return np.asarray(share @ phi, dtype=np.float64).ravel() / share.sum()
