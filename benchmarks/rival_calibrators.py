"""Calibrators of other libraries, each as a function of a fitted model, rows and labels.

Installed by the extra `bench`: probmetrics, venn-abers, netcal; scikit-learn is there anyway.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

try:
    from netcal.scaling import LogisticCalibration, TemperatureScaling
    from probmetrics.calibrators import get_calibrator
    from venn_abers import VennAbersCalibrator
except ImportError as error:  # as other rivals: no comparison without them
    print(f"{error}; the comparison of calibrators needs the extra: pip install '.[bench]'")
    raise SystemExit(0) from None

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    #: Fitted model, rows and labels 0..K-1 to calibrate on, rows to predict.
    Rival = Callable[[Any, Array, npt.NDArray[np.intp], Array], Array]


def probabilities(model: Any, X: Array) -> Array:
    """Return probabilities, for libraries that need them; of other scores the softmax."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


def scikit_learn(method: str) -> Rival:
    """Return `CalibratedClassifierCV` around the frozen model: all rows calibrate."""

    def rival(model: Any, X: Array, y: Any, X_test: Array) -> Array:
        # One fold of all rows: the model is not trained again, and more folds reject small classes.
        every = np.arange(len(y))
        clf = CalibratedClassifierCV(
            FrozenEstimator(model), method=method, cv=[(every, every)], ensemble=False
        )
        return np.asarray(clf.fit(X, y).predict_proba(X_test))

    return rival


def probmetrics(method: str) -> Rival:
    """Return a calibrator of probmetrics by its name there."""

    def rival(model: Any, X: Array, y: Any, X_test: Array) -> Array:
        # Its logarithms must be finite.
        given, queried = (np.clip(probabilities(model, rows), 1e-30, 1) for rows in (X, X_test))
        with contextlib.redirect_stdout(io.StringIO()):
            return np.asarray(get_calibrator(method).fit(given, y).predict_proba(queried), float)

    return rival


def netcal(kind: Callable[[], Any]) -> Rival:
    """Return a calibrator of netcal; two classes are one column there."""

    def rival(model: Any, X: Array, y: Any, X_test: Array) -> Array:
        given, queried = probabilities(model, X), probabilities(model, X_test)
        if given.shape[1] == 2:
            given, queried = given[:, 1], queried[:, 1]
        result = np.asarray(kind().fit(given, y).transform(queried), float)
        return result if result.ndim == 2 else np.column_stack([1 - result, result])

    return rival


def venn_abers(model: Any, X: Array, y: Any, X_test: Array) -> Array:
    """Return probabilities of venn-abers, its one-against-one for more than two classes."""
    given, queried = probabilities(model, X), probabilities(model, X_test)
    return np.asarray(VennAbersCalibrator().predict_proba(p_cal=given, y_cal=y, p_test=queried))


RIVALS: dict[str, Rival] = {
    "scikit-learn sigmoid": scikit_learn("sigmoid"),
    "scikit-learn isotonic": scikit_learn("isotonic"),
    "scikit-learn temperature": scikit_learn("temperature"),
    "probmetrics logistic": probmetrics("logistic"),
    "probmetrics logistic-mix": probmetrics("logistic-mix"),
    "probmetrics svs": probmetrics("svs"),
    "probmetrics ts-mix": probmetrics("ts-mix"),
    "netcal temperature": netcal(TemperatureScaling),
    "netcal logistic": netcal(LogisticCalibration),
    "venn-abers": venn_abers,
}


def run_rival(name: str, model: Any, X: Array, y: Any, X_test: Array) -> Array:
    """Return the probabilities of one rival, without its warnings and output."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return RIVALS[name](model, X, y, X_test)
