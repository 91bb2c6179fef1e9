"""The imprecise discriminant among scikit-learn's tools: checks, copies, frames, searches."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import validation
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.metrics import u80, u80_scorer

from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


# Some checks draw more features than a class has rows.
@pytest.mark.filterwarnings("ignore::dubito.discriminant.SingularCovarianceWarning")
@parametrize_with_checks(
    [
        *(published(covariance_type=kind) for kind in KINDS),
        published(c="auto"),
        published(covariance_type="full", box="scaled", shrinkage="auto", prior_imprecision=1.0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=[*KINDS, "auto"])
def fitted(request):
    tuned = request.param == "auto"
    model = published(
        covariance_type="full" if tuned else request.param, c="auto" if tuned else 2.0
    )
    return model.fit(X, NAMES[Y])


def test_it_can_be_kept(fitted):
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own
    np.testing.assert_array_equal(
        again.predict_set(X, "maximality"), fitted.predict_set(X, "maximality")
    )
    np.testing.assert_array_equal(again.critical_c(X), fitted.critical_c(X))
    np.testing.assert_array_equal(again.predict_bounds(X).lower, fitted.predict_bounds(X).lower)


def test_copies_have_parameters_and_nothing_learnt(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not any(name.endswith("_") for name in vars(copy))
    assert copy.set_params(c=3.5).get_params()["c"] == 3.5
    assert copy.fit(X, Y).c_ == 3.5


def test_predicting_changes_nothing_learnt(fitted):
    before = pickle.dumps(fitted)
    fitted.predict_set(X, "maximality")
    fitted.critical_c(X[:5])
    fitted.predict_bounds(X[:5])
    assert pickle.dumps(fitted) == before


def test_names_of_classes(fitted):
    np.testing.assert_array_equal(fitted.classes_, NAMES)
    assert set(fitted.predict(X)) == set(NAMES)
    assert fitted.score(X, NAMES[Y]) > 0.85
    assert u80(NAMES[Y], fitted.predict_set(X, "maximality"), classes=fitted.classes_) > 0.85
    path = fitted.c_path(X, NAMES[Y], [0.0, 1.0])
    np.testing.assert_allclose(path.coverage[0], fitted.score(X, NAMES[Y]))
    whole = clone(fitted).fit(X, Y)
    np.testing.assert_array_equal(
        whole.predict_set(X, "maximality"), fitted.predict_set(X, "maximality")
    )


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames(library):
    columns = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = library.DataFrame(dict(zip(columns, X.T, strict=True)))
    labels = library.Series(NAMES[Y].tolist())
    plain = published(covariance_type="full").fit(X, NAMES[Y])
    model = published(covariance_type="full").fit(frame, labels)
    assert list(model.feature_names_in_) == columns
    np.testing.assert_array_equal(model.classes_, plain.classes_)
    np.testing.assert_array_equal(
        model.predict_set(frame, "maximality"), plain.predict_set(X, "maximality")
    )
    np.testing.assert_array_equal(
        model.predict_set(frame[:1], "maximality"), plain.predict_set(X[:1], "maximality")
    )
    np.testing.assert_allclose(model.critical_c(frame), plain.critical_c(X))
    np.testing.assert_allclose(
        model.c_path(frame, labels, [0.5]).u65, plain.c_path(X, NAMES[Y], [0.5]).u65
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict_set(frame[columns[::-1]], "maximality")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict_set(X, "maximality")


def test_priors_by_name():
    listed = published(priors=[0.2, 0.5, 0.3]).fit(X, NAMES[Y])
    named = dict(zip(NAMES[::-1], [0.3, 0.5, 0.2], strict=True))
    for priors in (named, pd.Series(named)):
        model = published(priors=priors).fit(X, NAMES[Y])
        np.testing.assert_array_equal(model.priors_, listed.priors_)
        np.testing.assert_array_equal(
            model.predict_set(X, "maximality"), listed.predict_set(X, "maximality")
        )


def test_searches_and_cross_validation():
    search = GridSearchCV(
        published(),
        {"c": [0.0, 1.0, 2.0], "covariance_type": KINDS},
        scoring=u80_scorer,
        cv=3,
    ).fit(X, Y)
    assert search.best_score_ > 0.97
    scores = cross_val_score(published(c="auto"), X, Y, scoring=u80_scorer)
    assert scores.min() > 0.9
    pipeline = make_pipeline(StandardScaler(), published()).fit(X, Y)
    raw = published().fit(X, Y)
    np.testing.assert_allclose(pipeline.predict_proba(X), raw.predict_proba(X), atol=1e-9)


def test_one_row_at_a_time(fitted):
    for i in (0, 70, 149):
        np.testing.assert_array_equal(
            fitted.predict_set(X[[i]], "maximality")[0], fitted.predict_set(X, "maximality")[i]
        )
        np.testing.assert_allclose(fitted.critical_c(X[[i]])[0], fitted.critical_c(X)[i])
        assert fitted.predict(X[[i]]).shape == (1,)


@pytest.mark.parametrize("c", [0.75, "auto"])
def test_rows_are_checked_once(c, monkeypatch):
    checked = []
    original = validation.check_array  # which `validate_data` calls

    def counted(array, *args, **options):
        if np.ndim(array) == 2:
            checked.append(array)
        return original(array, *args, **options)

    monkeypatch.setattr(validation, "check_array", counted)
    model = published(c=c, box="scaled").fit(X, Y)
    assert len(checked) == 1
    for call in (
        model.predict,
        model.predict_proba,
        model.predict_log_proba,
        model.predict_bounds,
        model.predict_set,
        lambda rows: model.predict_set(rows, rule="maximality"),
        lambda rows: model.predict_set(rows, rule="maximality", loss=1 - np.eye(3)),
        model.critical_c,
        model.log_density_bounds,
        lambda rows: model.c_path(rows, Y[:5]),
    ):
        checked.clear()
        call(X[:5])
        assert len(checked) == 1
