"""Sample weights reach the estimator that is wrapped, also the steps of a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito import (
    CalibratedClassifier,
    ConformalClassifier,
    EvidentialClassifier,
    EvidentialFusion,
    NestedDichotomyClassifier,
    NoveltyAwareClassifier,
    RejectClassifier,
)

X, Y = load_iris(return_X_y=True)
WEIGHT = np.resize([1.0, 4.0, 0.5], len(Y))

#: A wrapper of an estimator, and its copy that is fitted on all rows.
WRAPPERS = {
    "calibrated": (CalibratedClassifier, lambda model: model.calibrated_classifiers_[0].estimator),
    "conformal": (ConformalClassifier, lambda model: model.estimator_),
    "evidential": (EvidentialClassifier, lambda model: model.estimator_),
    "novelty": (NoveltyAwareClassifier, lambda model: model.estimator_),
    "reject": (RejectClassifier, lambda model: model.estimator_),
    "fusion": (
        lambda estimator: EvidentialFusion([("a", estimator), ("b", estimator)]),
        lambda model: model.members_[0].calibrated_classifiers_[0].estimator,
    ),
    "masses": (
        lambda estimator: EvidentialFusion(
            [("a", EvidentialClassifier(estimator))], method="masses"
        ),
        lambda model: model.members_[0].estimator_,
    ),
}


def scaled(last):
    return make_pipeline(StandardScaler(), last)


@pytest.mark.parametrize("name", WRAPPERS)
def test_steps_of_a_pipeline_get_weights(name):
    wrapper, inner = WRAPPERS[name]
    fitted = inner(wrapper(scaled(LogisticRegression())).fit(X, Y, sample_weight=WEIGHT))
    np.testing.assert_allclose(fitted[0].mean_, np.average(X, axis=0, weights=WEIGHT))
    alone = LogisticRegression().fit(fitted[0].transform(X), Y, WEIGHT)
    np.testing.assert_allclose(fitted[1].coef_, alone.coef_)


@pytest.mark.parametrize(
    "name", [name for name in WRAPPERS if name not in {"evidential", "masses"}]
)
def test_no_step_gets_weights_that_the_last_one_does_not_take(name):
    wrapper, inner = WRAPPERS[name]
    with pytest.warns(UserWarning, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        model = wrapper(scaled(KNeighborsClassifier())).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(inner(model)[0].mean_, X.mean(axis=0))


def test_metadata_routing_is_left_to_scikit_learn():
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        last = LogisticRegression().set_fit_request(sample_weight=True)
        model = CalibratedClassifier(make_pipeline(scaler, last))
        fitted = model.fit(X, Y, sample_weight=WEIGHT).calibrated_classifiers_[0].estimator
    np.testing.assert_allclose(fitted[0].mean_, X.mean(axis=0))
    alone = LogisticRegression().fit(fitted[0].transform(X), Y, WEIGHT)
    np.testing.assert_allclose(fitted[1].coef_, alone.coef_)


def test_weights_reach_pipelines_at_tree_nodes():
    nested = NestedDichotomyClassifier(
        scaled(LogisticRegression()), structure="class_balanced", internal=None, random_state=0
    )
    doubled = np.concatenate([np.arange(len(Y)), np.flatnonzero(Y == 1)])
    weight = np.where(Y == 1, 2.0, 1.0)
    weighted = nested.fit(X, Y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(
        weighted, nested.fit(X[doubled], Y[doubled]).predict_proba(X), atol=1e-3
    )
