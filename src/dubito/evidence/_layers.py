"""The last linear layer of a scikit-learn classifier, and the features that enter it.

`read_layer` has one function per class of model. A composite (pipeline, search, calibrator) has the
layer of the model inside, with the steps before or after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.validation import validate_data

from dubito._compat import BaseSearchCV
from dubito._validation import NotSupportedError
from dubito._wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray

#: Linear models whose outputs are log-odds, or logits of a softmax.
_LOGISTIC = (LogisticRegression, LogisticRegressionCV, LinearDiscriminantAnalysis)

#: Linear models whose outputs are margins: log-odds once a sigmoid or softmax is fitted to them.
_MARGINS = (LinearSVC, Perceptron, RidgeClassifier, RidgeClassifierCV, SGDClassifier)

_ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identity": lambda x: x,
    "logistic": expit,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
}


@dataclass(frozen=True)
class LastLayer:
    """The last linear layer of a fitted model, and the steps from a row to its features."""

    coef: FloatArray
    intercept: FloatArray
    model: Any
    transformer: Any = None
    hidden: tuple[tuple[FloatArray, FloatArray], ...] = ()

    @property
    def is_hidden(self) -> bool:
        """Whether the features are outputs of hidden layers of a network."""
        return len(self.hidden) > 0

    def features(self, X: Any) -> Any:
        """Return the features that enter the layer, dense or sparse."""
        if self.transformer is not None:
            X = self.transformer.transform(X)
        features = validate_data(self.model, X, accept_sparse="csr", reset=False)
        for weights, bias in self.hidden:
            features = _ACTIVATIONS[self.model.activation](features @ weights + bias)
        return features

    def check_outputs(self, n_classes: int) -> None:
        """Raise an error unless there is an output per class; a training fold may lack a class."""
        n_outputs = len(self.coef)
        if n_outputs != n_classes and (n_outputs, n_classes) != (1, 2):
            raise ValueError(
                f"the model has {counted(n_classes, 'class')} and {counted(n_outputs, 'output')} "
                "in its last layer, so one cannot say which is for which. Fit it on rows of all "
                "classes, at least two; in cross-validation each fold must have all of them."
            )

    def names(self, inputs: list[str]) -> list[str]:
        """Return names of the features, given those of the input columns."""
        n_features = self.coef.shape[1]
        if self.is_hidden:
            return [f"hidden {j}" for j in range(n_features)]
        if self.transformer is None:
            return inputs
        try:
            return [str(name) for name in self.transformer.get_feature_names_out(inputs)]
        except (AttributeError, TypeError, ValueError):  # a transformer without feature names
            return [f"feature {j}" for j in range(n_features)]

    def after(self, transformer: Any) -> Self:
        """Return the layer with a transformer before it."""
        if self.transformer is not None:
            transformer = Pipeline([("first", transformer), ("then", self.transformer)])
        return replace(self, transformer=transformer)

    def scaled(self, matrix: FloatArray, offset: FloatArray) -> Self:
        """Return the layer followed by an affine map of its outputs."""
        if len(self.coef) == 1 and len(matrix) == 2:
            # The output of the layer is the log-odds z: logits (-z/2, z/2) of two classes.
            halves, difference = np.array([[-0.5], [0.5]]), np.array([[-1.0, 1.0]])
            matrix, offset = difference @ matrix @ halves, difference @ offset
        return replace(self, coef=matrix @ self.coef, intercept=matrix @ self.intercept + offset)


def refuse_unreadable(estimator: Any) -> None:
    """Raise an error for a model, fitted or not, that has no last linear layer to read."""
    calibrated = False
    while (inner := _nested_model(estimator)) is not None:
        if _calibrates(estimator):
            _refuse_calibrator(estimator, inner)
            calibrated = True
        estimator = inner
    _refuse_model(estimator, calibrated=calibrated)


def _nested_model(estimator: Any) -> Any:
    """Return the model that a composite ends in, None if the estimator is not a composite."""
    if isinstance(estimator, Pipeline):
        return estimator.steps[-1][1]
    if isinstance(estimator, BaseSearchCV):
        if estimator.refit is False:
            raise NotSupportedError(
                f"{type(estimator).__name__}(refit=False) leaves no fitted model to read. Use "
                "refit=True."
            )
        return getattr(estimator, "best_estimator_", estimator.estimator)
    has_nested = isinstance(estimator, FrozenEstimator) or _calibrates(estimator)
    return estimator.estimator if has_nested else None


def _calibrates(estimator: Any) -> bool:
    # Recognised by a method: dubito.evidence does not import dubito.calibration.
    is_dubito = hasattr(type(estimator), "affine_logits") and hasattr(estimator, "estimator")
    return is_dubito or isinstance(estimator, CalibratedClassifierCV)


def _refuse_calibrator(estimator: Any, inner: Any) -> None:
    """Raise an error for a calibrated classifier that is not linear in its model's outputs."""
    if hasattr(estimator, "classes_"):
        _refuse_pairs(estimator)
    if not hasattr(inner, "decision_function") and not _is_scaled_network(estimator, inner):
        refuse_unreadable(inner)  # raises the more specific error, if there is one
        raise NotSupportedError(
            f"{type(estimator).__name__} calibrates the probabilities of {_shown(inner)}, which "
            "has no decision_function, and so does not see its last layer. A network can be "
            "calibrated by temperature scaling; otherwise pass "
            f"{type(inner).__name__} itself."
        )
    if isinstance(estimator, CalibratedClassifierCV):
        if estimator.method == "isotonic":
            raise NotSupportedError(
                'CalibratedClassifierCV(method="isotonic") is not linear in the margins. Use '
                'method="temperature" or, for two classes, method="sigmoid".'
            )
    elif not hasattr(estimator, "affine_logits"):
        raise NotSupportedError(
            f"{type(estimator).__name__} is not one linear layer: its calibrator is not linear in "
            "the margins, or several are averaged. Use ensemble=False, and temperature, vector or "
            "matrix scaling of margins, or PlattCalibrator for two classes. Its own predict_bounds "
            "needs no EvidentialClassifier."
        )


def _is_scaled_network(estimator: Any, inner: Any) -> bool:
    """Return whether the calibrator multiplies the log-probabilities of a network by a number."""
    while (nested := _nested_model(inner)) is not None and not _calibrates(inner):
        inner = nested
    if isinstance(estimator, CalibratedClassifierCV):
        return isinstance(inner, MLPClassifier) and estimator.method == "temperature"
    return isinstance(inner, MLPClassifier) and getattr(
        estimator.calibrator, "ignores_shifts", False
    )


def _refuse_model(estimator: Any, *, calibrated: bool) -> None:
    """Raise an error for a model without a linear layer, or whose outputs are no log-odds."""
    is_log_loss = isinstance(estimator, SGDClassifier) and estimator.loss == "log_loss"
    if is_log_loss or isinstance(estimator, (*_LOGISTIC, MLPClassifier)):
        return
    if isinstance(estimator, type):
        raise TypeError(f"pass a model, not its class: {estimator.__name__}().")
    is_linear_svc = isinstance(estimator, SVC | NuSVC) and estimator.kernel == "linear"
    if not is_linear_svc and not isinstance(estimator, _MARGINS):
        raise NotSupportedError(
            f"EvidentialClassifier reads the last linear layer of a model; {_shown(estimator)} has "
            "none. Use CalibratedClassifier with an evidential calibrator instead; a linear layer "
            "of another library goes into EvidenceModel(coef, intercept, mean)."
        )
    if not calibrated:
        raise NotSupportedError(
            f"the outputs of {_shown(estimator)} are margins, not log-odds, so they are no weights "
            "of evidence. Calibrate them first: EvidentialClassifier(CalibratedClassifier("
            f"{_shown(estimator)}, VectorCalibrator()))."
        )


def _shown(estimator: Any) -> str:
    """Return the name of a model with its kernel or loss, if it has one."""
    name = type(estimator).__name__
    for parameter in ("kernel", "loss"):
        if isinstance(getattr(estimator, parameter, None), str):
            return f"{name}({parameter}={getattr(estimator, parameter)!r})"
    return f"{name}()"


def read_last_layer(estimator: Any) -> LastLayer:
    """Return the last linear layer of a fitted model that `refuse_unreadable` accepts."""
    layer = read_layer(estimator)
    inner = estimator
    while isinstance(inner, Pipeline | FrozenEstimator | BaseSearchCV):
        inner = _nested_model(inner)
    if len(layer.coef) == 1 and getattr(inner, "multi_class", "") == "multinomial":
        return layer.scaled(2 * np.eye(1), np.zeros(1))  # older scikit-learn: logits (-z, z)
    return layer


@singledispatch
def read_layer(estimator: Any) -> LastLayer:
    """Return the last linear layer of a fitted model; its outputs are the `decision_function`."""
    if not _calibrates(estimator):
        return _linear(estimator)
    _refuse_calibrator(estimator, estimator.estimator)
    model, matrix, offset = estimator.affine_logits()
    return read_layer(model).scaled(matrix, offset)


def _linear(estimator: Any) -> LastLayer:
    coef = estimator.coef_
    coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef).astype(np.float64)
    intercept = np.broadcast_to(np.ravel(estimator.intercept_), len(coef))
    return LastLayer(coef, np.asarray(intercept, dtype=np.float64), estimator)


@read_layer.register(SVC)
@read_layer.register(NuSVC)
def _support_vectors(estimator: Any) -> LastLayer:
    _refuse_pairs(estimator)
    return _linear(estimator)


def _refuse_pairs(fitted: Any) -> None:
    """Raise an error for a one-vs-one SVM of more than two classes, alone or calibrated."""
    model = fitted
    while (nested := _nested_model(model)) is not None:
        model = nested
    n_classes = len(fitted.classes_)
    if isinstance(model, SVC | NuSVC) and n_classes > 2:
        raise NotSupportedError(
            f"{_shown(model)} has one output for each pair of its {n_classes} classes. Use "
            "LinearSVC, which has one for each class."
        )


@read_layer.register(MLPClassifier)
def _network(estimator: MLPClassifier) -> LastLayer:
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise NotSupportedError(
            f"this MLPClassifier has {estimator.n_outputs_} labels that do not exclude each other; "
            "evidence is about one class of several. Fit one network for each label."
        )
    # Copies: partial_fit may change the network in place.
    layers = [
        (weights.copy(), bias.copy())
        for weights, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True)
    ]
    weights, bias = (part.astype(np.float64) for part in layers[-1])
    return LastLayer(weights.T, bias, estimator, hidden=tuple(layers[:-1]))


@read_layer.register(FrozenEstimator)
def _frozen(estimator: FrozenEstimator) -> LastLayer:
    return read_layer(estimator.estimator)


@read_layer.register(BaseSearchCV)
def _search(estimator: BaseSearchCV) -> LastLayer:
    return read_layer(estimator.best_estimator_)


@read_layer.register(Pipeline)
def _pipeline(estimator: Pipeline) -> LastLayer:
    layer = read_layer(estimator[-1])
    return layer.after(estimator[:-1]) if len(estimator) > 1 else layer


@read_layer.register(CalibratedClassifierCV)
def _calibrated(estimator: CalibratedClassifierCV) -> LastLayer:
    fitted = estimator.calibrated_classifiers_
    if len(fitted) > 1:
        raise NotSupportedError(
            f"CalibratedClassifierCV averages {len(fitted)} models, which is no linear layer. Use "
            "CalibratedClassifierCV(ensemble=False)."
        )
    _refuse_calibrator(estimator, fitted[0].estimator)
    layer = read_layer(fitted[0].estimator)
    maps = fitted[0].calibrators
    if estimator.method == "temperature":
        n_outputs = len(layer.coef)
        # scikit-learn scales the logits (-z, z) of a margin z, or log-probabilities.
        twice = n_outputs == 1 and hasattr(fitted[0].estimator, "decision_function")
        inverse = maps[0].beta_ * (2 if twice else 1)
        return layer.scaled(inverse * np.eye(n_outputs), np.zeros(n_outputs))
    return layer.scaled(np.diag([-m.a_ for m in maps]), np.array([-m.b_ for m in maps]))
