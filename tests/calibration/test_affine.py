"""Calibrators that are one linear layer: `affine_logits`."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dubito import calibration
from dubito.calibration import (
    CalibratedClassifier,
    CalibrationInputError,
    EvidentialLogisticCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.testing.calibrators import draw_scores

AFFINE = [PlattCalibrator, TemperatureCalibrator, VectorCalibrator, MatrixCalibrator]
WORDS = np.array(["ash", "beech", "cedar", "dogwood", "elm"])


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def assert_same_logits(ours, proba, scores):
    """Compare up to a constant of the row, relative to the terms that are added up."""
    size = np.abs(scores).max() / np.ptp(scores)
    expected = centred(np.log(proba))
    np.testing.assert_allclose(centred(ours), expected, atol=1e-12 * size * np.abs(expected).max())


def layer(calibrator, scores):
    matrix, offset = calibrator.affine_logits()
    return scores.reshape(len(scores), -1) @ matrix.T + offset


def test_only_these_calibrators_are_affine():
    kinds = [getattr(calibration, name) for name in calibration.__all__]
    assert {kind for kind in kinds if hasattr(kind, "affine_logits")} == {
        *AFFINE,
        CalibratedClassifier,
    }


@pytest.mark.parametrize("kind", AFFINE)
@pytest.mark.parametrize("input", ["margin", "logits"])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (3e5, 0.0), (2e-6, 1e-6)])
def test_two_classes_with_one_score(kind, input, scale, shift):
    scores, y = draw_scores(80, 2)
    scores = scale * scores + shift
    calibrator = kind(input=input).fit(scores, WORDS[y])
    matrix, offset = calibrator.affine_logits()
    assert matrix.shape == (1, 1)
    assert offset.shape == (1,)
    logit = layer(calibrator, scores)
    proba = calibrator.predict_proba(scores)
    assert_same_logits(np.hstack([-logit / 2, logit / 2]), proba, scores)
    np.testing.assert_allclose(expit(logit[:, 0]), proba[:, 1], rtol=1e-10)
    assert np.ptp(proba) > 0.5


@pytest.mark.parametrize("kind", AFFINE)
@pytest.mark.parametrize("input", ["margin", "logits"])
def test_two_classes_with_two_scores(kind, input):
    margin, y = draw_scores(80, 2)
    scores = np.column_stack([0.3 * margin, 1.3 * margin]) + 0.2
    calibrator = kind(input=input).fit(scores, y)
    matrix, offset = calibrator.affine_logits()
    assert matrix.shape == (2, 2)
    assert offset.shape == (2,)
    assert_same_logits(layer(calibrator, scores), calibrator.predict_proba(scores), scores)


@pytest.mark.parametrize("kind", AFFINE[1:])
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("scale", [1.0, 3e5, 2e-6])
def test_more_classes_are_a_softmax(kind, n_classes, scale):
    scores, y = draw_scores(400, n_classes)
    scores = scale * (scores + 0.5)
    calibrator = kind().fit(scores, WORDS[y])
    matrix, offset = calibrator.affine_logits()
    assert matrix.shape == (n_classes, n_classes)
    assert offset.shape == (n_classes,)
    proba = calibrator.predict_proba(scores)
    assert_same_logits(layer(calibrator, scores), proba, scores)
    np.testing.assert_allclose(softmax(layer(calibrator, scores), axis=1), proba, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_platt_of_more_classes_normalises_sigmoids(n_classes):
    scores, y = draw_scores(400, n_classes)
    calibrator = PlattCalibrator().fit(scores, y)
    logits = layer(calibrator, scores)
    proba = calibrator.predict_proba(scores)
    events = expit(logits)
    plain = events / events.sum(axis=1, keepdims=True)
    base = (np.bincount(y) + 1) / (400 + n_classes)
    np.testing.assert_allclose((400 * plain + base) / 401, proba, rtol=1e-12)
    np.testing.assert_array_equal(logits.argmax(axis=1), proba.argmax(axis=1))
    assert np.abs(softmax(logits, axis=1) - proba).max() > 0.01


def test_a_temperature_of_logits_does_not_see_their_sum():
    scores, y = draw_scores(200, 3)
    calibrator = TemperatureCalibrator(input="logits").fit(scores, y)
    assert_same_logits(layer(calibrator, scores), calibrator.predict_proba(scores), scores)


@pytest.mark.parametrize("kind", AFFINE)
def test_what_is_returned_is_not_the_calibrators_own(kind):
    scores, y = draw_scores(60, 3)
    calibrator = kind().fit(scores, y)
    before = calibrator.predict_proba(scores)
    for array in calibrator.affine_logits():
        array[...] = 7.0
    np.testing.assert_array_equal(calibrator.predict_proba(scores), before)


@pytest.mark.parametrize("kind", AFFINE)
def test_logarithms_come_first(kind):
    scores, y = draw_scores(60, 3)
    calibrator = kind(input="proba", floor=1e-300).fit(softmax(scores, axis=1), y)
    if kind is TemperatureCalibrator:  # any logits of the probabilities will do
        matrix, offset = calibrator.affine_logits()
        logits = scores @ matrix.T + offset
        proba = calibrator.predict_proba(softmax(scores, axis=1))
        np.testing.assert_allclose(softmax(logits, axis=1), proba, rtol=1e-10)
    else:
        with pytest.raises(CalibrationInputError, match=r"logarithm.*input=\"margin\""):
            calibrator.affine_logits()
        calibrator = kind(input="logits").fit(scores, y)
        with pytest.raises(CalibrationInputError, match="logits of 3 classes are normalised"):
            calibrator.affine_logits()
    with pytest.raises(NotFittedError):
        kind().affine_logits()


BINARY, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)


@pytest.mark.parametrize("kind", AFFINE)
@pytest.mark.parametrize(("X", "y"), [BINARY, WINE], ids=["2", "3"])
@pytest.mark.parametrize("model", [LinearSVC(), RidgeClassifier()], ids=["svm", "ridge"])
def test_a_linear_classifier_stays_linear(kind, X, y, model):
    X = StandardScaler().fit_transform(X)
    classifier = CalibratedClassifier(model, kind(), cv=3).fit(X, WORDS[y])
    estimator, matrix, offset = classifier.affine_logits()
    assert estimator is classifier.calibrated_classifiers_[0].estimator
    coef = matrix @ np.atleast_2d(estimator.coef_)
    intercept = matrix @ np.atleast_1d(estimator.intercept_) + offset
    logits = X @ coef.T + intercept
    if len(logits.T) == 1:
        np.testing.assert_allclose(expit(logits[:, 0]), classifier.predict_proba(X)[:, 1])
    elif kind is not PlattCalibrator:
        np.testing.assert_allclose(softmax(logits, axis=1), classifier.predict_proba(X), atol=1e-12)
    else:
        np.testing.assert_array_equal(
            classifier.classes_[logits.argmax(axis=1)], classifier.predict(X)
        )


def test_a_classifier_is_affine_where_its_calibrator_is():
    X, y = WINE
    svm = CalibratedClassifier(RidgeClassifier(), TemperatureCalibrator(), cv=3)
    assert hasattr(svm, "affine_logits")
    with pytest.raises(NotFittedError):
        svm.affine_logits()
    frozen = FrozenEstimator(RidgeClassifier().fit(X, y))
    once = clone(svm).set_params(estimator=frozen, ensemble=True).fit(X, y)
    assert once.affine_logits()[0] is frozen

    some = FrozenEstimator(RidgeClassifier().fit(X[y < 2], y[y < 2]))
    calibrator = TemperatureCalibrator()
    for other in (
        clone(svm).set_params(ensemble=True),
        clone(svm).set_params(estimator=GaussianNB(), calibrator=VectorCalibrator()),
        clone(svm).set_params(calibrator=IsotonicCalibrator()),
        clone(svm).set_params(calibrator=EvidentialLogisticCalibrator()),
    ):
        assert not hasattr(other.fit(X, y), "affine_logits")
    scores = RidgeClassifier().fit(X, y).decision_function(X)
    assert not hasattr(CalibratedClassifier(None, calibrator).fit(scores, y), "affine_logits")
    # A class that the estimator has not seen gets scores that are not linear.
    wider = CalibratedClassifier(some, calibrator)._fit(X, y, None, classes=np.arange(3))
    assert not hasattr(wider, "affine_logits")
