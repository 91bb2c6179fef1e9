"""Any classifier, calibrated."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito.calibration import (
    CalibratedClassifier,
    CalibrationInputError,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)
from dubito.calibration.responses import class_scores

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
TRAIN, REST = np.arange(0, 150, 2), np.arange(1, 150, 2)


def binary():
    data, labels = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(data), labels


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        SVC(),
        RidgeClassifier(),
        GaussianNB(),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier(estimator):
    clf = CalibratedClassifier(estimator).fit(X[TRAIN], y[TRAIN])
    proba, bounds = clf.predict_proba(X[REST]), clf.predict_bounds(X[REST])
    assert clf.score(X[REST], y[REST]) > 0.85
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()
    assert clf.predict_set(X[REST], rule="maximality", loss=1 - np.eye(3)).any(axis=1).all()


def test_one_calibrator_is_fitted_to_the_scores_of_all_folds():
    svm, calibrator = LinearSVC(), TemperatureCalibrator()
    cv = StratifiedKFold(4)
    clf = CalibratedClassifier(svm, calibrator, cv=cv).fit(X, y)
    scores = cross_val_predict(svm, X, y, cv=cv, method="decision_function")
    by_hand = TemperatureCalibrator().fit(scores, y)
    assert clf.calibrated_classifiers_[0].calibrator.slope_ == pytest.approx(
        by_hand.slope_, rel=1e-9
    )
    np.testing.assert_allclose(
        clf.predict_proba(X), by_hand.predict_proba(LinearSVC().fit(X, y).decision_function(X))
    )


def test_an_ensemble_averages_its_folds():
    clf = CalibratedClassifier(LinearSVC(), cv=3, ensemble=True).fit(X, y)
    assert len(clf.calibrated_classifiers_) == 3
    parts = [c.predict_bounds(e.decision_function(X)) for e, c in clf.calibrated_classifiers_]
    np.testing.assert_allclose(clf.predict_bounds(X).lower, np.mean([b.lower for b in parts], 0))
    np.testing.assert_allclose(clf.predict_bounds(X).upper, np.mean([b.upper for b in parts], 0))


def test_folds_may_overlap_or_leave_rows_out():
    clf = CalibratedClassifier(LinearSVC(), cv=ShuffleSplit(2, random_state=0)).fit(X, y)
    assert clf.score(X, y) > 0.9


def test_a_frozen_model_is_left_as_it_is_and_all_rows_calibrate():
    model = LinearSVC().fit(X[TRAIN], y[TRAIN])
    frozen = CalibratedClassifier(FrozenEstimator(model), PlattCalibrator()).fit(X[REST], y[REST])
    bare = PlattCalibrator().fit(model.decision_function(X[REST]), y[REST])
    assert frozen.calibrated_classifiers_[0].estimator.estimator is model
    np.testing.assert_array_equal(
        frozen.predict_proba(X), bare.predict_proba(model.decision_function(X))
    )
    few = REST[y[REST] != 1]
    assert CalibratedClassifier(FrozenEstimator(model)).fit(X[few], y[few]).classes_.size == 3
    with pytest.raises(ValueError, match="labels that classes does not list: 5, 6"):
        CalibratedClassifier(FrozenEstimator(model)).fit(X[REST], y[REST] + 5)


def test_bare_scores_need_no_estimator():
    scores = LinearSVC().fit(X[TRAIN], y[TRAIN]).decision_function(X[REST])
    clf = CalibratedClassifier(None, EvidentialMultinomialCalibrator()).fit(scores, y[REST])
    two = CalibratedClassifier().fit(scores[:, 0], y[REST] == 0)
    assert two.predict_proba(scores[:2, 0]).shape == (2, 2)
    plain = EvidentialMultinomialCalibrator().fit(scores, y[REST])
    np.testing.assert_array_equal(clf.predict_proba(scores), plain.predict_proba(scores))
    assert clf.n_features_in_ == 3


@pytest.mark.parametrize("model", [LinearSVC(), GaussianNB()], ids=["margin", "proba"])
@pytest.mark.parametrize("ensemble", [False, True])
def test_one_classifier_may_be_calibrated_by_a_joint_calibrator(model, ensemble):
    data, labels = binary()
    options = {"cv": 3, "ensemble": ensemble}
    joint = CalibratedClassifier(model, EvidentialJointCalibrator(), **options).fit(data, labels)
    plain = CalibratedClassifier(model, EvidentialLogisticCalibrator(), **options)
    plain.fit(data, labels)
    np.testing.assert_allclose(joint.predict_proba(data), plain.predict_proba(data), atol=1e-6)
    ours, theirs = joint.predict_bounds(data), plain.predict_bounds(data)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-6)
    three = CalibratedClassifier(model, EvidentialJointCalibrator(), **options).fit(X, y)
    assert three.calibrated_classifiers_[0].calibrator.n_features_in_ == 1
    assert three.score(X, y) > 0.9


def test_bare_scores_of_several_classifiers():
    data, labels = binary()
    models = LinearSVC(), LogisticRegression(), RidgeClassifier()
    scores = np.column_stack([m.fit(data, labels).decision_function(data) for m in models])
    clf = CalibratedClassifier(None, EvidentialJointCalibrator()).fit(scores, labels)
    plain = EvidentialJointCalibrator().fit(scores, labels)
    np.testing.assert_array_equal(clf.predict_proba(scores), plain.predict_proba(scores))
    two = CalibratedClassifier(LinearSVC(), EvidentialJointCalibrator(input=["proba", "margin"]))
    with pytest.raises(ValueError, match="one for each of the 1 classifier"):
        two.fit(data, labels)


@pytest.mark.parametrize(
    "kind",
    [EvidentialLogisticCalibrator, EvidentialBinningCalibrator, EvidentialIsotonicCalibrator],
)
@pytest.mark.parametrize("ensemble", [False, True])
def test_two_classes_have_masses(kind, ensemble):
    data, labels = binary()
    clf = CalibratedClassifier(LinearSVC(), kind(), cv=3, ensemble=ensemble).fit(data, labels)
    bounds, masses = clf.predict_bounds(data), clf.predict_mass(data).bounds()
    np.testing.assert_allclose(masses.lower, bounds.lower, atol=1e-9)
    np.testing.assert_allclose(masses.upper, bounds.upper, atol=1e-9)


def test_a_forest_that_is_often_certain():
    data, labels = make_classification(3000, 20, n_informative=5, weights=[0.95], random_state=0)
    forest = RandomForestClassifier(50, random_state=0)
    few, many = data[:1500], labels[:1500]
    sigmoid = CalibratedClassifierCV(forest, cv=3).fit(few, many).predict_proba(data[1500:])
    for calibrator in (PlattCalibrator(), EvidentialLogisticCalibrator()):
        ours = CalibratedClassifier(forest, calibrator, cv=3).fit(few, many)
        loss = log_loss(labels[1500:], ours.predict_proba(data[1500:]))
        assert loss < 1.1 * log_loss(labels[1500:], sigmoid)


def test_the_default_calibrates_many_classes():
    data, labels = load_digits(return_X_y=True)
    clf = CalibratedClassifier(GaussianNB(var_smoothing=1e-3), cv=3).fit(data[:900], labels[:900])
    bounds = clf.predict_bounds(data[900:])
    best = bounds.upper.argmax(axis=1)
    rate = (clf.classes_[best] == labels[900:]).mean()
    rows = np.arange(len(best))
    assert bounds.lower[rows, best].mean() - 0.05 < rate < bounds.upper[rows, best].mean() + 0.05


def test_masses_are_absent_where_they_are_not_defined():
    assert not hasattr(CalibratedClassifier(LinearSVC()).fit(X, y), "predict_mass")
    coupled = EvidentialMultinomialCalibrator(coupling="inverse_cdf")
    assert CalibratedClassifier(LinearSVC(), coupled).fit(X, y).predict_mass(X[:2]).is_dense


def test_which_response_of_the_estimator_is_used():
    proba = EvidentialMultinomialCalibrator(input="proba")
    asked = {
        "decision_function": CalibratedClassifier(LinearSVC()),
        "predict_proba": CalibratedClassifier(KNeighborsClassifier()),
    }
    for method, clf in asked.items():
        assert clf.fit(X, y).response_method_ == method
    both = CalibratedClassifier(LogisticRegression(), proba).fit(X, y)
    assert both.response_method_ == "predict_proba"
    given = CalibratedClassifier(LogisticRegression(), response_method="predict_proba").fit(X, y)
    assert given.calibrated_classifiers_[0].calibrator.input == "proba"
    assert given.calibrator == "auto"


def test_missing_responses_are_refused():
    class Mute(GaussianNB):
        predict_proba = property()

    proba = EvidentialMultinomialCalibrator(input="proba")
    refused = [
        (CalibratedClassifier(Mute()), "neither decision_function nor predict_proba"),
        (CalibratedClassifier(SVC(), response_method="predict_proba"), "SVC has no predict_proba"),
        (CalibratedClassifier(SVC(), proba, response_method="decision_function"), "gives margins"),
    ]
    for clf, message in refused:
        with pytest.raises((TypeError, ValueError), match=message):
            clf.fit(X, y)
    for pairwise in (SVC(decision_function_shape="ovo"), make_pipeline(StandardScaler(), SVC())):
        pairwise.set_params(**{k: "ovo" for k in pairwise.get_params() if k.endswith("on_shape")})
        with pytest.raises(ValueError, match="for each pair of classes"):
            CalibratedClassifier(pairwise, response_method="decision_function").fit(X, y)
    with pytest.raises(CalibrationInputError, match="4 columns and y shows 3 labels"):
        CalibratedClassifier().fit(X, y)
    with pytest.raises(NotFittedError):
        CalibratedClassifier(FrozenEstimator(GaussianNB())).fit(X, y)
    with pytest.raises(ValueError, match="no label in row 1"):
        CalibratedClassifier(SVC()).fit(X[:3], np.array(["a", None, "b"], dtype=object))
    with pytest.raises(ValueError, match="two classes; y has 50 rows and shows one class"):
        CalibratedClassifier(SVC()).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="'calibrator' parameter of CalibratedClassifier"):
        CalibratedClassifier(SVC(), "sigmoidal").fit(X, y)


@pytest.mark.parametrize("estimator", [LinearSVC(), GaussianNB()], ids=["margin", "proba"])
@pytest.mark.parametrize("ensemble", [False, True])
def test_a_class_missing_from_a_fold(estimator, ensemble):
    rows = np.r_[0:100, 100:101]
    folds = [(np.r_[0:40, 50:90], np.r_[40:50, 90:101]), (np.r_[0:101], np.r_[0:20, 60:80])]
    clf = CalibratedClassifier(estimator, cv=folds, ensemble=ensemble).fit(X[rows], y[rows])
    assert clf.predict_proba(X).shape == (150, 3)
    assert np.isfinite(clf.predict_bounds(X).upper).all()


def test_scores_of_classes_not_seen():
    two = LinearSVC().fit(X[:100], y[:100])
    margins = class_scores(two, X, source="decision_function", classes=np.arange(3))
    np.testing.assert_allclose(margins[:, 1] - margins[:, 0], two.decision_function(X))
    np.testing.assert_allclose(margins[:, 2], margins.min(axis=1))
    proba = class_scores(
        GaussianNB().fit(X[:100], y[:100]), X, source="predict_proba", classes=np.arange(3)
    )
    assert (proba[:, 2] == 0).all()


def test_weights_reach_estimator_and_calibrator():
    weight = np.resize([0.5, 1.0, 2.0], len(y))
    weighted = CalibratedClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    plain = CalibratedClassifier(LogisticRegression()).fit(X, y)
    assert not np.allclose(
        weighted.calibrated_classifiers_[0].estimator.coef_,
        plain.calibrated_classifiers_[0].estimator.coef_,
    )
    assert (
        weighted.calibrated_classifiers_[0].calibrator.slope_
        != plain.calibrated_classifiers_[0].calibrator.slope_
    )
    with pytest.warns(UserWarning, match="KNeighborsClassifier.fit takes no") as caught:
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weight)
    assert [warning.filename for warning in caught] == [__file__]


def test_frames_strings_and_sparse_matrices():
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), LinearSVC())
    clf = CalibratedClassifier(pipeline).fit(frame, pd.Series(words))
    assert clf.feature_names_in_.tolist() == list("abcd")
    assert set(clf.predict(frame)) == set(words)
    assert CalibratedClassifier(LinearSVC()).fit(sparse.csr_matrix(X), words).score(X, words) > 0.9


def test_unknown_calibrators_are_answered_with_sorted_names():
    X, y = load_iris(return_X_y=True)
    names = """'auto', 'beta', 'bins', 'evidential-bins', 'evidential-isotonic', 'evidential-joint',
        'evidential-logistic', 'evidential-multinomial', 'isotonic', 'matrix', 'platt',
        'temperature', 'vector', 'venn-abers'"""
    with pytest.raises(ValueError, match=re.escape(" ".join(names.split()))):
        CalibratedClassifier(GaussianNB(), "isotone").fit(X, y)


@pytest.mark.parametrize("ensemble", [False, True])
def test_logarithms_are_those_of_the_probabilities(ensemble):
    X, y = load_iris(return_X_y=True)
    clf = CalibratedClassifier(GaussianNB(), "temperature", ensemble=ensemble).fit(X, y)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), clf.predict_proba(X), rtol=1e-9)
