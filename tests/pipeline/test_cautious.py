"""A pipeline with the methods of its last step."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dubito.dichotomies import NestedDichotomyClassifier
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.metrics import u80_scorer
from dubito.pipeline import CautiousPipeline, make_cautious_pipeline

X, Y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[Y]


def prepared_by_hand(model):
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), clone(model).fit(scaler.transform(X), NAMES)


def pipeline_of(model):
    return CautiousPipeline([("scale", StandardScaler()), ("model", model)])


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (ImpreciseGaussianDiscriminant(c=2), ["predict_set", "critical_c", "predict_proba"]),
        (EvidentialClassifier(LogisticRegression()), ["predict_set", "conflict", "ignorance"]),
    ],
)
def test_results_are_those_of_the_last_step(model, methods):
    rows, by_hand = prepared_by_hand(model)
    pipeline = pipeline_of(model).fit(X, NAMES)
    for method in methods:
        got, wanted = getattr(pipeline, method)(X), getattr(by_hand, method)(rows)
        np.testing.assert_array_equal(got, wanted)
    bounds, wanted_bounds = pipeline.predict_bounds(X), by_hand.predict_bounds(rows)
    np.testing.assert_array_equal(bounds.lower, wanted_bounds.lower)
    np.testing.assert_array_equal(bounds.upper, wanted_bounds.upper)


def test_masses_and_explanations_are_those_of_the_last_step():
    rows, by_hand = prepared_by_hand(EvidentialClassifier(LogisticRegression()))
    pipeline = pipeline_of(EvidentialClassifier(LogisticRegression())).fit(X, NAMES)
    np.testing.assert_array_equal(pipeline.predict_mass(X).mass, by_hand.predict_mass(rows).mass)
    assert pipeline.explain(X[:1]).text() == by_hand.explain(rows[:1]).text()


def test_options_of_the_last_step_are_passed_on():
    tree = pipeline_of(NestedDichotomyClassifier(random_state=0)).fit(X, NAMES)
    labels, proba = tree.predict_topk(X[:5], 2, return_proba=True)
    np.testing.assert_array_equal(labels[:, 0], tree.predict(X[:5]))
    np.testing.assert_array_equal(proba[:, 0], tree.predict_proba(X[:5]).max(axis=1))
    box = pipeline_of(ImpreciseGaussianDiscriminant(c=2)).fit(X, NAMES)
    strict = box.predict_set(X, rule="maximality", loss=1 - np.eye(3))
    np.testing.assert_array_equal(strict, box.predict_set(X))


def test_methods_that_the_last_step_does_not_have_are_absent_with_the_reason():
    model = pipeline_of(LogisticRegression()).fit(X, NAMES)
    with pytest.raises(AttributeError, match="'CautiousPipeline' has no attribute") as error:
        model.predict_bounds(X)
    assert "'LogisticRegression' object has no attribute" in str(error.value.__cause__)
    assert not hasattr(model, "critical_c")
    tree = pipeline_of(NestedDichotomyClassifier(internal=None, random_state=0)).fit(X, NAMES)
    with pytest.raises(AttributeError, match="predict_bounds") as error:
        tree.predict_bounds(X)
    assert "internal" in str(error.value.__cause__.__cause__)


def test_a_model_alone_and_columns_of_text():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 2], "place": np.where(X[:, 0] > 5.8, "here", "there")})
    prepare = make_column_transformer((StandardScaler(), ["size"]), (OneHotEncoder(), ["place"]))
    steps = [("prepare", prepare), ("model", ImpreciseGaussianDiscriminant(c=1))]
    model = CautiousPipeline(steps).fit(frame, NAMES)
    assert model.predict_set(frame.iloc[:1]).tolist() == [[True, False, False]]
    alone = CautiousPipeline([("model", ImpreciseGaussianDiscriminant(c=1))]).fit(X, NAMES)
    by_hand = ImpreciseGaussianDiscriminant(c=1).fit(X, NAMES)
    np.testing.assert_array_equal(alone.predict_set(X), by_hand.predict_set(X))


def test_not_fitted():
    with pytest.raises(NotFittedError):
        pipeline_of(ImpreciseGaussianDiscriminant()).predict_set(X)


def test_searches_scorers_and_slices():
    pipeline = pipeline_of(ImpreciseGaussianDiscriminant(c=1))
    search = GridSearchCV(pipeline, {"model__c": [0.5, 4]}, scoring=u80_scorer).fit(X, NAMES)
    plain = Pipeline([("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=1))])
    np.testing.assert_array_equal(
        cross_val_score(pipeline, X, NAMES, scoring=u80_scorer),
        cross_val_score(plain, X, NAMES, scoring=u80_scorer),
    )
    assert search.best_estimator_.predict_set(X).shape == (150, 3)
    assert isinstance(clone(pipeline)[:-1], CautiousPipeline)


def test_make_cautious_pipeline_names_the_steps():
    made = make_cautious_pipeline(StandardScaler(), ImpreciseGaussianDiscriminant(c=2))
    assert isinstance(made, CautiousPipeline)
    assert list(made.named_steps) == ["standardscaler", "imprecisegaussiandiscriminant"]
    named = pipeline_of(ImpreciseGaussianDiscriminant(c=2)).fit(X, NAMES)
    np.testing.assert_array_equal(made.fit(X, NAMES).predict_set(X), named.predict_set(X))
    assert make_cautious_pipeline(StandardScaler(), LogisticRegression(), verbose=True).verbose
