"""The tag `has_bounds`, and models inside searches and pipelines."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from dubito import calibration
from dubito.belief import Bounds
from dubito.calibration import CalibratedClassifier, EvidentialFusion
from dubito.calibration.base import BaseCalibrator
from dubito.conformal import ConformalClassifier, NoveltyAwareClassifier
from dubito.decision.rejection import STRATEGIES
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.metrics import evaluate
from dubito.pipeline import CautiousPipeline, RejectClassifier, make_cautious_pipeline
from dubito.plots import ErrorRejectDisplay
from dubito.report import collect

X, Y = load_iris(return_X_y=True)

CALIBRATORS = [
    kind
    for kind in (getattr(calibration, name) for name in calibration.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseCalibrator)
]


def has_bounds(model):
    """Return the tag; scikit-learn's own models do not have it."""
    return getattr(get_tags(model), "has_bounds", False)


@pytest.mark.parametrize(
    "model",
    [
        *(kind() for kind in CALIBRATORS),
        CalibratedClassifier(GaussianNB()),
        ConformalClassifier(GaussianNB()),
        EvidentialClassifier(LogisticRegression()),
        EvidentialFusion([("a", GaussianNB()), ("b", LogisticRegression())]),
        ImpreciseGaussianDiscriminant(),
        NestedDichotomyClassifier(),
        NestedDichotomyEnsemble(),
        NoveltyAwareClassifier(GaussianNB()),
        RejectClassifier(CalibratedClassifier(GaussianNB())),
        FrozenEstimator(CalibratedClassifier(GaussianNB())),
        make_cautious_pipeline(StandardScaler(), ImpreciseGaussianDiscriminant()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_with_bounds_have_the_tag(model):
    assert has_bounds(model)
    assert hasattr(model, "predict_bounds")


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        RejectClassifier(GaussianNB()),
        FrozenEstimator(GaussianNB()),
        NestedDichotomyClassifier(internal=None),
        make_cautious_pipeline(StandardScaler(), GaussianNB()),
        GridSearchCV(ImpreciseGaussianDiscriminant(), {"c": [1]}),
        Pipeline([("model", ImpreciseGaussianDiscriminant())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_without_bounds_do_not_have_the_tag(model):
    assert not has_bounds(model)
    assert not hasattr(model, "predict_bounds")


def test_a_model_without_tags_has_bounds_if_it_has_the_method():
    class Plain:
        classes_ = np.arange(3)

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    class WithBounds(Plain):
        def predict_bounds(self, X):
            return Bounds(np.full((len(X), 3), 0.2), np.full((len(X), 3), 0.6))

    assert "mean_width" not in evaluate(Plain(), X, Y)
    assert evaluate(WithBounds(), X, Y)["mean_width"].value == pytest.approx(0.4)


def wrapped(model):
    """A model inside a plain pipeline, a search, and a search inside a pipeline."""
    scaler = StandardScaler()
    return [
        make_pipeline(scaler, model),
        GridSearchCV(make_pipeline(scaler, model), {"standardscaler__with_mean": [True]}, cv=2),
        make_pipeline(scaler, GridSearchCV(model, {"box": [model.box]}, cv=2)),
    ]


@pytest.mark.parametrize("number", range(3))
def test_bounds_are_found_inside_pipelines_and_searches(number):
    model = wrapped(ImpreciseGaussianDiscriminant(c=2))[number].fit(X, Y)
    scaler = StandardScaler().fit(X)
    by_hand = ImpreciseGaussianDiscriminant(c=2).fit(scaler.transform(X), Y)
    bounds = by_hand.predict_bounds(scaler.transform(X))
    sets = by_hand.predict_set(scaler.transform(X))
    assert evaluate(model, X, Y)["mean_set_size"].value == pytest.approx(sets.sum(axis=1).mean())
    assert evaluate(model, X, Y)["mean_width"].value == pytest.approx(bounds.width.mean())
    collected = collect(model, X, Y)
    assert collected["has_bounds"] == [True]
    display = ErrorRejectDisplay.from_estimator(model, X, Y)
    assert set(display.curves) == set(STRATEGIES)


def test_the_last_step_of_a_cautious_pipeline_may_be_a_search():
    search = GridSearchCV(ImpreciseGaussianDiscriminant(), {"c": [1, 2]}, cv=2)
    model = CautiousPipeline([("scale", StandardScaler()), ("search", search)])
    assert not has_bounds(model)  # not fitted: which estimator it will be is unknown
    model.fit(X, Y)
    assert has_bounds(model)
    inner, rows = model["search"].best_estimator_, model["scale"].transform(X)
    np.testing.assert_array_equal(model.predict_set(X), inner.predict_set(rows))
