"""Conformal classifiers among scikit-learn's tools: checks, copies, tables, searches."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.conformal import ConformalClassifier
from dubito.metrics import coverage_scorer, u80_scorer
from dubito.pipeline import CautiousPipeline

X, NUMBERS = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]


# Some checks draw classes of fewer rows than there are folds.
@pytest.mark.filterwarnings("ignore:The least populated class")
@parametrize_with_checks(
    [
        ConformalClassifier(LogisticRegression()),
        ConformalClassifier(GaussianNB(), class_conditional=True, cv=3),
        ConformalClassifier(LogisticRegression(), cv="full"),
        ConformalClassifier(LogisticRegression(), score="cumulative", cv=0.4, random_state=0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=[3, 0.3, "full"])
def fitted(request):
    return ConformalClassifier(GaussianNB(), cv=request.param, random_state=0).fit(X, Y)


def test_it_can_be_kept_and_copied(fitted):
    before = pickle.dumps(fitted)
    again = pickle.loads(before)  # noqa: S301 - our own
    np.testing.assert_array_equal(again.predict_contour(X[::9]), fitted.predict_contour(X[::9]))
    assert pickle.dumps(fitted) == before
    copy = clone(fitted)
    assert repr(copy) == repr(fitted)
    assert copy.get_params()["score"] == "margin"
    assert not any(name.endswith("_") for name in vars(copy))


def test_the_score_is_a_parameter_and_a_method():
    clf = ConformalClassifier(GaussianNB(), score="probability").fit(X, Y)
    assert clf.score(X, Y) == GaussianNB().fit(X, Y).score(X, Y)
    assert clf.nonconformity_.score == "probability"
    assert clf.set_params(score="cumulative").get_params()["score"] == "cumulative"
    assert "score='cumulative'" in repr(clf)
    assert cross_val_score(clf, X, Y).min() > 0.8
    search = GridSearchCV(clf, {"score": ["margin", "probability"]}, scoring=u80_scorer).fit(X, Y)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames(library):
    columns = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = library.DataFrame(dict(zip(columns, X.T, strict=True)))
    labels = library.Series(Y.tolist())
    for cv in (3, "full"):
        plain = ConformalClassifier(GaussianNB(), cv=cv).fit(X[::3], Y[::3])
        clf = ConformalClassifier(GaussianNB(), cv=cv).fit(frame[::3], labels[::3])
        assert list(clf.feature_names_in_) == columns
        new = frame[1:6]
        np.testing.assert_allclose(clf.predict_contour(new), plain.predict_contour(X[1:6]))
        np.testing.assert_array_equal(clf.predict_set(new), plain.predict_set(X[1:6]))


def test_sparse_rows():
    counts = np.random.default_rng(0).poisson(1 + 3.0 * (NUMBERS[:, None] == np.arange(6) // 2))
    for cv in (3, "full"):
        dense = ConformalClassifier(MultinomialNB(), cv=cv).fit(counts, Y)
        packed = ConformalClassifier(MultinomialNB(), cv=cv).fit(sparse.csr_array(counts), Y)
        new = sparse.csr_array(counts[:7])
        np.testing.assert_allclose(packed.predict_contour(new), dense.predict_contour(counts[:7]))


def test_one_row_at_a_time(fitted):
    for i in (0, 70, 149):
        row = fitted.predict_contour(X[[i]])
        np.testing.assert_array_equal(row, fitted.predict_contour(X[[i, 5]])[:1])
        assert fitted.predict_set(X[[i]]).shape == (1, 3)
        assert len(fitted.predict_mass(X[[i]])) == 1


def test_jobs_change_nothing():
    for cv in (3, "full"):
        one = ConformalClassifier(GaussianNB(), cv=cv).fit(X, Y)
        with parallel_config("threading"):
            two = ConformalClassifier(GaussianNB(), cv=cv, n_jobs=2).fit(X, Y)
        with parallel_config("threading"):
            again = two.predict_contour(X[:5])
        np.testing.assert_array_equal(one.predict_contour(X[:5]), again)


def test_pipelines_and_scorers():
    inside = ConformalClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y)
    outside = CautiousPipeline(
        [("scale", StandardScaler()), ("model", ConformalClassifier(LogisticRegression()))]
    ).fit(X, Y)
    assert outside.predict_contour(X[:3]).shape == inside.predict_contour(X[:3]).shape
    assert outside.predict_set(X, coverage=0.95).any(axis=1).all()
    assert cross_val_score(inside, X, Y, scoring=coverage_scorer).mean() > 0.85


def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1000), 4)
    rows = rng.normal(size=(1000, 5))[y] + 0.1 * rng.normal(size=(4000, 5))
    clf = ConformalClassifier(LinearDiscriminantAnalysis(), cv=2).fit(rows, y)
    sets = clf.predict_set(rows[::8], coverage=0.95)
    assert sets.shape == (500, 1000)
    assert sets[np.arange(500), y[::8]].mean() > 0.9
    assert sets.sum(axis=1).mean() < 20
    assert len(clf.predict_mass(rows[:3])) == 3
