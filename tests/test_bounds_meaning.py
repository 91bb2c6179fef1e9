"""What bounds mean is found inside wrappers, pipelines and searches."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito import (
    CalibratedClassifier,
    ConformalClassifier,
    ImpreciseGaussianDiscriminant,
    NoveltyAwareClassifier,
    RejectClassifier,
)
from dubito._bounds_meaning import bounds_meaning
from dubito.pipeline import make_cautious_pipeline

X, Y = load_iris(return_X_y=True)
MODELS = {
    "belief": CalibratedClassifier(LogisticRegression(max_iter=500)),
    "venn_abers": CalibratedClassifier(LogisticRegression(max_iter=500), "venn-abers"),
    "box": ImpreciseGaussianDiscriminant(),
    "conformal": ConformalClassifier(LogisticRegression(max_iter=500)),
}
AROUND = {
    "nothing": lambda model: model,
    "novelty": NoveltyAwareClassifier,
    "reject": RejectClassifier,
    "frozen": lambda model: FrozenEstimator(model.fit(X, Y)),
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "cautious pipeline": lambda model: make_cautious_pipeline(StandardScaler(), model),
    "search": lambda model: GridSearchCV(model, {}, scoring=lambda *_: 0.0),
    "novelty of a pipeline": lambda model: NoveltyAwareClassifier(
        make_cautious_pipeline(StandardScaler(), model)
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", MODELS)
def test_the_kind_of_bounds_is_that_of_the_model_inside(kind, around):
    model = AROUND[around](MODELS[kind])
    if around != "frozen":
        model = model.fit(X, Y)
    assert bounds_meaning(model).kind == kind
    assert bounds_meaning(model, 0.9).kind == "level"
