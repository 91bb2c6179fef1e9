"""Scorers as scikit-learn uses them."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito import metrics
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.metrics import coverage, mean_set_size, u65, u65_scorer, u80

SCORERS = {name: getattr(metrics, name) for name in metrics.__all__ if name.endswith("_scorer")}


class NearMeans(ClassifierMixin, BaseEstimator):
    """Keeps every class whose mean is nearly as near as the nearest."""

    def __init__(self, slack=0.0):
        self.slack = slack

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean() for label in self.classes_])
        return self

    def predict_set(self, X):
        distance = np.abs(X - self.means_)
        return distance <= distance.min(axis=1, keepdims=True) + self.slack

    def predict(self, X):
        return self.classes_[np.abs(X - self.means_).argmin(axis=1)]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(["low", "mid", "high"], 30)
    X = np.repeat([0.0, 1.0, 2.0], 30)[:, None] + rng.normal(scale=0.4, size=(90, 1))
    return X, y


def test_a_scorer_is_its_metric(data):
    X, y = data
    model = NearMeans(0.3).fit(X, y)
    sets, weight = model.predict_set(X), np.arange(90)
    known = {"classes": model.classes_}
    assert metrics.u65_scorer(model, X, y) == u65(y, sets, **known)
    assert metrics.u80_scorer(model, X, y) == u80(y, sets, **known)
    assert metrics.coverage_scorer(model, X, y) == coverage(y, sets, **known)
    by_class = metrics.class_coverage(y, sets, **known)
    assert metrics.worst_class_coverage_scorer(model, X, y) == by_class.min()
    by_size = metrics.coverage_by_size(y, sets, **known)
    assert metrics.worst_size_coverage_scorer(model, X, y) == by_size.coverage.min()
    assert metrics.neg_mean_set_size_scorer(model, X, y) == -mean_set_size(sets)
    assert metrics.discounted_accuracy_scorer(model, X, y) < metrics.u65_scorer(model, X, y)
    weighted = metrics.u80_scorer(model, X, y, sample_weight=weight)
    assert weighted == u80(y, sets, sample_weight=weight, **known)
    size = metrics.neg_mean_set_size_scorer(model, X, y, sample_weight=weight)
    assert size == -mean_set_size(sets, sample_weight=weight)


def test_a_fold_without_some_class_is_no_trouble(data):
    X, y = data
    model = NearMeans(0.3).fit(X, y)
    only = y == "mid"
    expected = coverage(y[only], model.predict_set(X[only]), classes=model.classes_)
    assert metrics.coverage_scorer(model, X[only], y[only]) == expected


@pytest.mark.parametrize("name", SCORERS)
def test_cross_validation(name, data):
    scores = cross_val_score(NearMeans(), *data, scoring=SCORERS[name], cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


def test_single_labels_score_their_accuracy(data):
    accuracy = cross_val_score(NearMeans(), *data, cv=3)
    np.testing.assert_allclose(
        cross_val_score(NearMeans(), *data, cv=3, scoring=metrics.u80_scorer), accuracy
    )


def test_a_label_that_was_never_seen_is_in_no_set():
    X, y = np.array([[0.0], [1.0], [0.1], [5.0]]), np.array(["a", "b", "a", "c"])
    model = NearMeans().fit(X[:2], y[:2])
    assert metrics.coverage_scorer(model, X, y) == 0.75
    assert metrics.u80_scorer(model, X, y) == 0.75


def test_search_finds_the_rewarded_caution(data):
    grid = {"slack": [0.0, 0.2, 10.0]}
    search = GridSearchCV(NearMeans(), grid, scoring=SCORERS, refit="u80_scorer", cv=3).fit(*data)
    assert search.best_params_ == {"slack": 0.2}
    coverages = search.cv_results_["mean_test_coverage_scorer"]
    assert coverages[-1] == 1
    assert list(coverages) == sorted(coverages)
    assert search.cv_results_["mean_test_neg_mean_set_size_scorer"][-1] == -3
    single = GridSearchCV(NearMeans(), grid, scoring=metrics.u80_scorer, cv=3).fit(*data)
    assert single.best_params_ == search.best_params_
    assert clone(single).scoring == metrics.u80_scorer


def test_cross_validate_takes_several(data):
    result = cross_validate(NearMeans(), *data, scoring=SCORERS, cv=3)
    assert {f"test_{name}" for name in SCORERS} <= set(result)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_print_and_pickle(name):
    scorer = SCORERS[name]
    assert repr(scorer) == name
    assert pickle.loads(pickle.dumps(scorer)) == scorer  # noqa: S301


def test_an_estimator_without_sets_is_refused(data):
    model = LogisticRegression().fit(*data)
    with pytest.raises(TypeError, match=r"u65_scorer .* predict_set; LogisticRegression has none"):
        metrics.u65_scorer(model, *data)


class Weighed(NearMeans):
    """Takes weights in fit, so that routing has somewhere to send them."""

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002
        return super().fit(X, y)


def test_metadata_routing_carries_the_weights(data):
    X, y = data
    weight = np.where(y == "mid", 5.0, 1.0)
    with config_context(enable_metadata_routing=True):
        model = Weighed(0.3).set_fit_request(sample_weight=True)
        options = {"cv": 3, "params": {"sample_weight": weight}}
        scorer = metrics.u80_scorer.set_score_request(sample_weight=True)
        weighted = cross_val_score(model, X, y, scoring=scorer, **options)
        ignoring = metrics.u80_scorer.set_score_request(sample_weight=False)
        plain = cross_val_score(model, X, y, scoring=ignoring, **options)
        with pytest.raises(ValueError, match="set_score_request"):
            cross_val_score(model, X, y, scoring=metrics.u80_scorer, **options)
    np.testing.assert_allclose(
        plain, cross_val_score(Weighed(0.3), X, y, scoring=metrics.u80_scorer, cv=3)
    )
    assert (weighted != plain).any()


def test_an_estimator_without_classes_is_an_error():
    class Nameless:
        def predict_set(self, X):
            return np.ones((len(X), 2), dtype=bool)

    with pytest.raises(TypeError, match="needs the estimator's classes_"):
        metrics.u80_scorer(Nameless(), [[0]], [0])


def test_scorers_reach_through_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    own = ImpreciseGaussianDiscriminant(c=2.0)
    scaled = StandardScaler().fit_transform(X)
    expected = u65_scorer(own.fit(scaled, y), scaled, y)
    pipeline = make_pipeline(StandardScaler(), ImpreciseGaussianDiscriminant(c=2.0))
    assert u65_scorer(pipeline.fit(X, y), X, y) == expected
    search = GridSearchCV(
        pipeline, {"imprecisegaussiandiscriminant__c": [2.0]}, scoring=u65_scorer, cv=3
    ).fit(X, y)
    assert search.score(X, y) == expected
    assert u65_scorer(make_pipeline(own.fit(X, y)), X, y) == u65_scorer(own, X, y)
