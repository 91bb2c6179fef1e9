"""A pipeline that passes questions on: the same answers, the same refusals."""

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
from dubito.pipeline import CautiousPipeline

X, Y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[Y]


def prepared_by_hand(model):
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), clone(model).fit(scaler.transform(X), NAMES)


def pipeline_of(model):
    return CautiousPipeline([("scale", StandardScaler()), ("model", model)])


def arrays_of(answer):
    return [np.asarray(part) for part in (answer if isinstance(answer, tuple) else [answer])]


@pytest.mark.parametrize(
    ("model", "questions"),
    [
        (ImpreciseGaussianDiscriminant(c=2), ["predict_set", "critical_c", "predict_proba"]),
        (EvidentialClassifier(LogisticRegression()), ["predict_set", "conflict", "ignorance"]),
    ],
)
def test_answers_are_those_of_the_last_step(model, questions):
    rows, by_hand = prepared_by_hand(model)
    pipeline = pipeline_of(model).fit(X, NAMES)
    for question in questions:
        got, wanted = getattr(pipeline, question)(X), getattr(by_hand, question)(rows)
        np.testing.assert_array_equal(got, wanted)
    bounds, wanted_bounds = pipeline.predict_bounds(X), by_hand.predict_bounds(rows)
    np.testing.assert_array_equal(bounds.lower, wanted_bounds.lower)
    np.testing.assert_array_equal(bounds.upper, wanted_bounds.upper)


def test_masses_and_explanations_come_through():
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


def test_what_the_last_step_lacks_is_lacking_with_its_own_words():
    model = pipeline_of(LogisticRegression()).fit(X, NAMES)
    with pytest.raises(AttributeError, match="'LogisticRegression' object has no attribute"):
        model.predict_bounds(X)
    assert not hasattr(model, "critical_c")
    tree = pipeline_of(NestedDichotomyClassifier(internal=None, random_state=0)).fit(X, NAMES)
    with pytest.raises(AttributeError, match="internal"):
        tree.predict_bounds(X)


def test_a_model_alone_and_columns_of_words():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 2], "place": np.where(X[:, 0] > 5.8, "here", "there")})
    prepare = make_column_transformer((StandardScaler(), ["size"]), (OneHotEncoder(), ["place"]))
    steps = [("prepare", prepare), ("model", ImpreciseGaussianDiscriminant(c=1))]
    model = CautiousPipeline(steps).fit(frame, NAMES)
    assert model.predict_set(frame.iloc[:1]).tolist() == [[True, False, False]]
    alone = CautiousPipeline([("model", ImpreciseGaussianDiscriminant(c=1))]).fit(X, NAMES)
    by_hand = ImpreciseGaussianDiscriminant(c=1).fit(X, NAMES)
    np.testing.assert_array_equal(alone.predict_set(X), by_hand.predict_set(X))


def test_before_fit_it_says_so():
    with pytest.raises(NotFittedError):
        pipeline_of(ImpreciseGaussianDiscriminant()).predict_set(X)


def test_searches_scorers_and_slices_take_it():
    pipeline = pipeline_of(ImpreciseGaussianDiscriminant(c=1))
    search = GridSearchCV(pipeline, {"model__c": [0.5, 4]}, scoring=u80_scorer).fit(X, NAMES)
    plain = Pipeline([("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=1))])
    np.testing.assert_array_equal(
        cross_val_score(pipeline, X, NAMES, scoring=u80_scorer),
        cross_val_score(plain, X, NAMES, scoring=u80_scorer),
    )
    assert search.best_estimator_.predict_set(X).shape == (150, 3)
    assert isinstance(clone(pipeline)[:-1], CautiousPipeline)
