"""Fitting the model that evidence is read from, with weights where it takes them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from dubito._checks import FloatArray, NotSupportedError, check_sample_weight
from dubito._labels import as_labels
from dubito._rows import fitted_copy, frames_to_the_user
from dubito._sklearn import pick
from dubito.evidence.errors import OneVsRestWarning

if TYPE_CHECKING:
    import numpy.typing as npt
    from sklearn.frozen import FrozenEstimator

#: Probabilities of networks in single precision differ by less from those in double.
_ROUNDING = 1e-3


def frozen(estimator: FrozenEstimator, y: Any) -> Any:
    """Return the model inside, unless y, where it is given, has labels of another kind."""
    model = estimator.estimator
    check_is_fitted(model)
    if y is not None:
        labels, known = set(as_labels(y, "y").tolist()), set(model.classes_.tolist())
        if labels and not labels & known:
            raise ValueError(
                f"the frozen model knows none of the labels of y, as {next(iter(labels))!r}; it "
                f"knows {', '.join(repr(label) for label in model.classes_.tolist()[:5])}. A "
                "frozen model needs no y."
            )
    return model


def read_unlabelled_rows(X: Any, sample_weight: Any) -> tuple[Any, FloatArray | None]:
    """Return rows that can be picked, and their weights if there are any."""
    (X,) = indexable(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return X, None if sample_weight is None else check_sample_weight(sample_weight, n)


def fitted(estimator: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> Any:
    """Return a fitted copy."""
    return fitted_copy(estimator, X, y, weight, instead="the means of the features")


def mean_features(phi: Any, weight: FloatArray | None) -> FloatArray:
    """Return the mean of each feature."""
    share = np.full(phi.shape[0], 1.0) if weight is None else weight
    return np.asarray(share @ phi, dtype=np.float64).ravel() / share.sum()


def warn_of_other_probabilities(model: Any, X: Any, proba: FloatArray) -> None:
    """Compare probabilities of the first rows with the model's own, and say where they differ."""
    own = model.predict_proba(pick(X, np.arange(len(proba))))
    difference = np.abs(own - proba).max(initial=0.0)
    if difference > _ROUNDING:
        first = np.take_along_axis(own, proba.argmax(axis=1)[:, None], axis=1)[:, 0]
        if proba.shape[1] == 2 or (first < own.max(axis=1) - _ROUNDING).any():
            raise NotSupportedError(
                f"the last layer of {type(model).__name__} as it was read gives probabilities that "
                f"differ from its own by up to {difference:.2g}: it does more with its outputs "
                "than is known here. Pass coefficients and means to EvidenceModel."
            )
        warnings.warn(
            f"the probabilities of {type(model).__name__} are no softmax of its outputs, which "
            "each tell one class from the rest. Those of its evidence are, and differ by up to "
            f"{difference:.2g} on the first rows; the most probable class is the same. Models with "
            "a softmax, as LogisticRegression or VectorCalibrator and TemperatureCalibrator in a "
            "CalibratedClassifier, show no such difference.",
            OneVsRestWarning,
            stacklevel=frames_to_the_user(),
        )
