"""Steps of `EvidentialClassifier.fit`: the frozen model, means of features, a check."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dubito._compat import pick
from dubito._labels import as_labels
from dubito._meta_estimators import user_stacklevel
from dubito._validation import NotSupportedError
from dubito._wording import name_some
from dubito.evidence.errors import OneVsRestWarning

if TYPE_CHECKING:
    from sklearn.frozen import FrozenEstimator

    from dubito._typing import FloatArray

#: Probabilities that differ by no more are equal up to rounding. Rounding errors of networks in
#: single precision are smaller than this.
_PROBA_TOLERANCE = 1e-3


def unfreeze(estimator: FrozenEstimator, y: Any) -> Any:
    """Return the fitted model that is frozen; raise an error if it has none of the labels y."""
    model = estimator.estimator
    check_is_fitted(model)
    if y is not None:
        labels, known = set(as_labels(y, "y").tolist()), set(model.classes_.tolist())
        if labels and not labels & known:
            raise ValueError(
                f"the frozen model knows none of the labels of y, as {next(iter(labels))!r}; it "
                f"knows {name_some(model.classes_.tolist(), rest='')}. A "
                "frozen model needs no y."
            )
    return model


def mean_features(phi: Any, weight: FloatArray | None) -> FloatArray:
    """Return the mean of each feature, weighted by the sample weights, if any."""
    weight = np.full(phi.shape[0], 1.0) if weight is None else weight
    return np.asarray(weight @ phi, dtype=np.float64).ravel() / weight.sum()


def warn_of_other_probabilities(model: Any, X: Any, proba: FloatArray) -> None:
    """Warn if `proba`, of the first rows, differs from the model's own probabilities.

    One-vs-rest outputs cause such differences. They cause none of two classes, and leave the most
    probable class the same; where this is not so the last layer was misread, which is an error.
    """
    own = model.predict_proba(pick(X, np.arange(len(proba))))
    difference = np.abs(own - proba).max(initial=0.0)
    if difference > _PROBA_TOLERANCE:
        own_at_top = np.take_along_axis(own, proba.argmax(axis=1)[:, None], axis=1)[:, 0]
        if proba.shape[1] == 2 or (own_at_top < own.max(axis=1) - _PROBA_TOLERANCE).any():
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
            stacklevel=user_stacklevel(),
        )
