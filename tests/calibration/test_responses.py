"""What a classifier's scores are: known from its class, also inside other models."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from dubito import ConformalClassifier
from dubito.calibration import (
    CalibratedClassifier,
    CalibrationInputError,
    EvidentialFusion,
    EvidentialJointCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration.responses import LOWEST, class_scores, known_response
from dubito.calibration.scores import binary_log_odds, class_log_odds, likely_floor, log_scores
from dubito.metrics import aurc

X, y = load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(0, 0.3, X.shape)
LABELS = np.arange(3)


class Boosted(ClassifierMixin, BaseEstimator):
    """Stands in for LightGBM's and XGBoost's classifiers, which are not installed: logits 2x."""

    objective = "multiclass"

    def fit(self, X, y):
        self.model_ = LogisticRegression(max_iter=500).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def _logits(self, X):
        return 2 * self.model_.decision_function(X)

    def predict_proba(self, X):
        logits = self._logits(X)
        two = np.column_stack([0 * logits, logits]) if logits.ndim == 1 else logits
        return softmax(two, axis=1)


class LGBMClassifier(Boosted):
    def predict(self, X, raw_score=False):
        return self._logits(X) if raw_score else self.classes_[self.predict_proba(X).argmax(1)]


class XGBClassifier(Boosted):
    def predict(self, X, *, output_margin=False):
        return self._logits(X) if output_margin else self.classes_[self.predict_proba(X).argmax(1)]


GRID = {"C": [0.1, 1.0]}


@pytest.mark.parametrize(
    ("estimator", "way", "kind"),
    [
        (LogisticRegression(), "decision_function", "logits"),
        (LogisticRegressionCV(), "decision_function", "logits"),
        (LogisticRegression(solver="liblinear"), "decision_function", "margin"),
        (HistGradientBoostingClassifier(), "decision_function", "logits"),
        (GradientBoostingClassifier(), "decision_function", "logits"),
        (GradientBoostingClassifier(loss="exponential"), "decision_function", "margin"),
        (LinearDiscriminantAnalysis(), "decision_function", "logits"),
        (QuadraticDiscriminantAnalysis(), "predict_log_proba", "log_proba"),
        (GaussianNB(), "predict_log_proba", "log_proba"),
        (MultinomialNB(), "predict_log_proba", "log_proba"),
        (MLPClassifier(), "predict_log_proba", "log_proba"),
        (SVC(), "pairwise_margins", "margin"),
        (NuSVC(), "pairwise_margins", "margin"),
        (LGBMClassifier(), "raw_score", "logits"),
        (XGBClassifier(), "output_margin", "logits"),
        (make_pipeline(StandardScaler(), SVC()), "pairwise_margins", "margin"),
        (FrozenEstimator(LogisticRegression()), "decision_function", "logits"),
        (GridSearchCV(LogisticRegression(), GRID), "decision_function", "logits"),
        (RandomizedSearchCV(make_pipeline(GaussianNB()), {}), "predict_log_proba", "log_proba"),
        (make_pipeline(GridSearchCV(SVC(), [GRID])), "pairwise_margins", "margin"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else value,
)
def test_scores_are_known_from_the_class(estimator, way, kind):
    assert known_response(estimator) == (way, kind)


def test_others_are_not_known():
    several = GridSearchCV(make_pipeline(SVC()), {"svc": [SVC(), LogisticRegression()]})
    for estimator in (LinearSVC(), RandomForestClassifier(), several):
        assert known_response(estimator) is None
    assert known_response(OneVsRestClassifier(LogisticRegression())) is None

    class Own(GaussianNB):
        def predict_proba(self, X):
            return 0.5 * super().predict_proba(X) + 0.5 / len(self.classes_)

    class Renamed(GaussianNB):
        pass

    assert known_response(Own()) is None
    assert known_response(Renamed()) == known_response(GaussianNB())
    several.fit(X, y)
    assert known_response(several) is None  # a copy of it may end in the other model
    assert known_response(FrozenEstimator(several)) is not None


def nearest_rivals():
    """Return the least margin of each class over another, pair by pair."""
    margins = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    scores = np.full((len(X), 3), np.inf)
    for column, (i, j) in enumerate(combinations(range(3), 2)):
        scores[:, i] = np.minimum(scores[:, i], margins[:, column])
        scores[:, j] = np.minimum(scores[:, j], -margins[:, column])
    return scores


@pytest.mark.parametrize("options", [{}, {"decision_function_shape": "ovo"}, {"break_ties": True}])
def test_support_vector_machines_are_read_by_pairs_of_classes(options):
    model = SVC(**options).fit(X, y)
    expected = nearest_rivals()
    for reader in (model, FrozenEstimator(model), make_pipeline(model)):
        ours = class_scores(reader, X, source="pairwise_margins", classes=LABELS)
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    assert model.decision_function_shape == options.get("decision_function_shape", "ovr")
    # One class beats all others where its score is positive: no two can, and votes agree.
    positive = expected > 0
    assert positive.sum(axis=1).max() == 1
    best = positive.any(axis=1)
    votes = SVC().fit(X, y).decision_function(X)
    np.testing.assert_array_equal(expected[best].argmax(1), votes[best].argmax(1))


def test_a_pipeline_in_a_search_is_read_by_its_last_step():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0]}).fit(X, y)
    scaled = StandardScaler().fit(X)
    model = SVC().fit(scaled.transform(X), y)
    ours = class_scores(search, X, source="pairwise_margins", classes=LABELS)
    plain = class_scores(model, scaled.transform(X), source="pairwise_margins", classes=LABELS)
    np.testing.assert_allclose(ours, plain, atol=1e-12)


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier])
def test_boosted_trees_of_other_libraries(kind):
    clf = CalibratedClassifier(make_pipeline(StandardScaler(), kind()), IsotonicCalibrator(), cv=3)
    clf.fit(X, y)
    assert clf.response_method_ == known_response(kind()).source
    assert clf.calibrated_classifiers_[0].calibrator.input == "logits"
    pipeline = clf.calibrated_classifiers_[0].estimator
    logits = pipeline[-1]._logits(pipeline[0].transform(X))
    np.testing.assert_allclose(
        clf.predict_proba(X),
        clf.calibrated_classifiers_[0].calibrator.predict_proba(logits),
        atol=1e-12,
    )
    two = CalibratedClassifier(kind(), cv=3).fit(X[:100], y[:100])
    assert two.predict_proba(X).shape == (150, 2)
    one_each = kind()
    one_each.objective = "multiclassova"
    assert known_response(one_each).kind == "margin"


def test_one_against_rest_maps_read_log_odds_of_logits():
    logits = np.random.default_rng(1).normal(0, 3, (50, 4))
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(
        class_log_odds(logits, "logits", 0.0), np.log(p) - np.log1p(-p), atol=1e-9
    )
    clf = CalibratedClassifier(LogisticRegression(), IsotonicCalibrator()).fit(X, y)
    assert clf.calibrated_classifiers_[0].calibrator.input == "logits"
    for linear in (VectorCalibrator(), MatrixCalibrator()):  # stay one more linear layer
        clf = CalibratedClassifier(LogisticRegression(), linear).fit(X, y)
        assert clf.calibrated_classifiers_[0].calibrator.input == "margin"
        assert hasattr(clf, "affine_logits")
    said = CalibratedClassifier(LogisticRegression(), MatrixCalibrator(input="logits")).fit(X, y)
    assert said.calibrated_classifiers_[0].calibrator.input == "logits"


def test_log_probabilities_are_probabilities_with_a_lower_floor():
    rng = np.random.default_rng(2)
    log_proba = log_softmax(rng.normal(0, 5, (60, 4)), axis=1)
    proba, floor = np.exp(log_proba), 1e-3
    np.testing.assert_allclose(
        log_scores(log_proba, "log_proba", floor, normalised=True),
        log_scores(proba, "proba", floor, normalised=True),
        atol=1e-12,
    )
    two = log_softmax(rng.normal(0, 5, (60, 2)), axis=1)
    np.testing.assert_allclose(
        binary_log_odds(two, "log_proba", floor),
        binary_log_odds(np.exp(two), "proba", floor),
        atol=1e-12,
    )
    raised = np.maximum(log_proba, np.log(floor))
    np.testing.assert_allclose(
        class_log_odds(log_proba, "log_proba", floor),
        [[row[k] - logsumexp(np.delete(row, k)) for k in range(4)] for row in raised],
        atol=1e-12,
    )
    for bad, message in ((np.zeros((5, 3)), "sum to 3, not to 1"), (np.zeros(5), "one column")):
        with pytest.raises(CalibrationInputError, match=message):
            IsotonicCalibrator(input="log_proba").fit(bad, [0, 1, 0, 1, 0])


def test_the_floor_keeps_outliers_out_and_information_in():
    rng = np.random.default_rng(3)
    n = 600
    logits = rng.normal(0, 1, (n, 3))
    labels = np.argmax(logits + rng.gumbel(size=(n, 3)), axis=1)
    overconfident = log_softmax(60 * logits, axis=1)  # far below what probabilities can hold
    assert overconfident.min() < -100
    weight = np.ones(n)
    floor = likely_floor(overconfident, labels, weight)
    assert overconfident.min() < np.log(floor) < -140
    spoilt = overconfident.copy()
    spoilt[:6] = log_softmax(1e6 * rng.normal(size=(6, 3)), axis=1)
    floor = likely_floor(spoilt, labels, weight)
    assert -300 < np.log(floor) < np.log(1e-16)
    assert likely_floor(log_softmax(logits, axis=1), labels, weight) == pytest.approx(1e-16)
    twice = likely_floor(spoilt, labels, 2 * weight)
    doubled = likely_floor(np.vstack([spoilt] * 2), np.tile(labels, 2), np.ones(2 * n))
    assert twice == doubled
    exact = TemperatureCalibrator(input="log_proba").fit(spoilt, labels)
    rounded = TemperatureCalibrator(input="proba").fit(np.exp(spoilt), labels)
    losses = [
        log_loss(labels, model.predict_proba(scores))
        for model, scores in ((exact, spoilt), (rounded, np.exp(spoilt)))
    ]
    assert losses[0] < losses[1] - 0.015


@pytest.mark.parametrize("model", [GaussianNB(), QuadraticDiscriminantAnalysis()])
def test_exact_logarithms_reach_the_calibrator(model):
    for labels in (y, y[:100]):
        rows = X[: len(labels)]
        clf = CalibratedClassifier(model, cv=3).fit(rows, labels)
        assert clf.response_method_ == "predict_log_proba"
        assert clf.calibrated_classifiers_[0].calibrator.input == "log_proba"
        scores = clf.calibrated_classifiers_[0].estimator.predict_log_proba(rows)
        np.testing.assert_array_equal(
            clf.predict_proba(rows), clf.calibrated_classifiers_[0].calibrator.predict_proba(scores)
        )
    said = CalibratedClassifier(model, TemperatureCalibrator(input="proba"), cv=3).fit(X, y)
    assert said.response_method_ == "predict_proba"


def test_logarithms_of_zero_and_of_classes_not_seen():
    network = MLPClassifier((4,), max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        network.fit(X, y)
    network.coefs_[-1] *= 1e5  # sure of everything
    scores = class_scores(network, X, source="predict_log_proba", classes=LABELS)
    assert np.isfinite(scores).all()
    assert scores.min() == LOWEST
    two = GaussianNB().fit(X[:100], y[:100])
    scores = class_scores(two, X, source="predict_log_proba", classes=LABELS)
    assert (scores[:, 2] == LOWEST).all()
    three = SVC().fit(X, y)
    scores = class_scores(three, X, source="pairwise_margins", classes=np.arange(-1, 3))
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1:].min(axis=1))
    with pytest.raises(ValueError, match="gives no scores"):
        class_scores(two, X, source="fit", classes=LABELS)


def test_fusion_and_conformal_sets_read_alike():
    members = [("svm", SVC()), ("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    fusion = EvidentialFusion(members, cv=3).fit(X, y)
    assert [m.response_method_ for m in fusion.members_] == [
        "pairwise_margins",
        "predict_log_proba",
        "decision_function",
    ]
    assert [m.calibrated_classifiers_[0].calibrator.input for m in fusion.members_] == [
        "margin",
        "log_proba",
        "logits",
    ]
    assert fusion.score(X, y) > 0.9
    conformal = ConformalClassifier(SVC(), cv=3).fit(X, y)
    assert conformal.nonconformity_.source == "pairwise_margins"
    assert conformal.predict_set(X, coverage=0.9).sum(axis=1).mean() < 1.3
    joint = CalibratedClassifier(GaussianNB(), EvidentialJointCalibrator(), cv=3).fit(X, y)
    assert joint.calibrated_classifiers_[0].calibrator.floor_.shape == (1,)


def test_digits_by_a_support_vector_machine():
    data, labels = load_digits(return_X_y=True)
    few, rest, few_labels, rest_labels = train_test_split(
        data, labels, train_size=0.5, stratify=labels, random_state=0
    )
    clf = CalibratedClassifier(SVC(), MatrixCalibrator()).fit(few, few_labels)
    proba = clf.predict_proba(rest)
    assert log_loss(rest_labels, proba) < 0.07
    assert aurc(rest_labels, proba.argmax(axis=1), proba.max(axis=1)) < 0.0007
    votes = CalibratedClassifier(SVC(), MatrixCalibrator(), response_method="decision_function")
    assert log_loss(rest_labels, votes.fit(few, few_labels).predict_proba(rest)) > 0.1
