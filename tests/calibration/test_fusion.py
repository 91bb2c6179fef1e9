"""EvidentialFusion: what holds for every method."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.calibration import CalibratedClassifier, EvidentialFusion

X, y = load_wine(return_X_y=True)


@pytest.fixture(params=["joint", "independent"])
def fused(request):
    return partial(EvidentialFusion, method=request.param)


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression())


def members():
    return [("bayes", GaussianNB(), slice(0, 4)), ("logistic", logistic(), [9, 10, 11])]


def test_members_are_calibrated_alone_too(fused):
    fusion = fused(members(), cv=3).fit(X, y)
    for member, columns in zip(fusion.members_, fusion.columns_, strict=True):
        assert isinstance(member, CalibratedClassifier)
        assert member.predict_bounds(X[:, columns]).lower.shape == (len(X), 3)
    kappa = fusion.conflict(X)
    assert ((kappa >= 0) & (kappa <= 1)).all()
    assert fusion.predict_set(X).any(axis=1).all()
    np.testing.assert_allclose(np.exp(fusion.predict_log_proba(X)), fusion.predict_proba(X))


def test_methods_before_the_fit_raise_not_fitted_error(fused):
    for method in ("predict", "predict_proba", "predict_bounds", "conflict"):
        with pytest.raises(NotFittedError):
            getattr(fused(members()), method)(X)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("cv", [3, "disjoint"])
def test_tables_of_all_kinds(fused, kind, cv):
    two = y < 2
    words = np.array(["barbera", "grignolino"])[y[two]]
    pair = [("a", LogisticRegression(), slice(0, 3)), ("b", LinearSVC(), [9, 10, 11])]
    features = StandardScaler().fit_transform(X)[two]
    fusion = fused(pair, cv=cv, random_state=0).fit(kind(features), words)
    plain = fused(pair, cv=cv, random_state=0).fit(features, words)
    np.testing.assert_allclose(
        fusion.predict_proba(kind(features)), plain.predict_proba(features), rtol=1e-6
    )
    assert fusion.score(kind(features), words) > 0.85


def test_parallel_jobs_change_nothing(fused):
    one = fused(members(), cv=3).fit(X, y).predict_proba(X)
    two = fused(members(), cv=3, n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)


def test_members_that_take_no_weights_are_named(fused):
    weight = np.resize([0.5, 1.0, 2.0], len(y))
    pair = [("near", KNeighborsClassifier()), ("bayes", GaussianNB())]
    with pytest.warns(UserWarning, match=r"KNeighborsClassifier\.fit takes no") as caught:
        fusion = fused(pair, cv=3).fit(X, y, sample_weight=weight)
    assert [warning.filename for warning in caught] == [__file__]
    plain = fused(pair, cv=3).fit(X, y)
    assert not np.allclose(fusion.predict_proba(X), plain.predict_proba(X))


def test_rows_of_weight_zero_are_as_good_as_absent(fused):
    weight = np.ones(len(y))
    weight[::7] = 0
    kept = weight > 0
    folds = list(StratifiedKFold(3).split(X, y))
    number = np.cumsum(kept) - 1
    fewer = [tuple(number[part[kept[part]]] for part in fold) for fold in folds]
    zero = fused(members()[:1], cv=folds).fit(X, y, sample_weight=weight)
    absent = fused(members()[:1], cv=fewer).fit(X[kept], y[kept])
    np.testing.assert_allclose(zero.predict_proba(X), absent.predict_proba(X), atol=1e-9)


def test_labels_of_one_class_are_refused(fused):
    with pytest.raises(ValueError, match="two classes; y has 50 rows and shows one class"):
        fused(members()).fit(X[:50], y[:50])


def test_frozen_members_may_have_different_classes(fused):
    some = y != 2
    first = FrozenEstimator(logistic().fit(X[some], y[some]))
    second = FrozenEstimator(logistic().fit(X, y))
    fusion = fused([("some", first), ("all", second)]).fit(X, y)
    assert fusion.classes_.tolist() == [0, 1, 2]
    assert fusion.score(X, y) > 0.6


def test_a_calibrated_frozen_member_may_have_more_classes_than_y(fused):
    known = CalibratedClassifier(FrozenEstimator(logistic().fit(X, y)))
    for absent in (0, 2):
        rows = y != absent
        fusion = fused([("known", known), ("bayes", GaussianNB())])
        fusion.fit(X[rows], y[rows])
        assert fusion.classes_.tolist() == [0, 1, 2]
        assert fusion.predict_proba(X).shape == (len(X), 3)


def test_members_and_y_must_have_the_same_labels(fused):
    words = np.array(["a", "b", "c"])[y]
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match="member 'a' knows the labels"):
        fused([("a", frozen), ("b", GaussianNB())]).fit(X, words)


def test_folds_from_a_generator_serve_every_member(fused):
    folds = StratifiedKFold(3).split(X, y)
    listed = fused(members(), cv=list(StratifiedKFold(3).split(X, y))).fit(X, y)
    once = fused(members(), cv=folds).fit(X, y)
    np.testing.assert_array_equal(once.predict_proba(X), listed.predict_proba(X))


def test_one_column_may_be_a_number_or_a_name(fused):
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    by_name = fused([("a", GaussianNB(), "c6")]).fit(frame, y).predict_proba(frame)
    by_number = fused([("a", GaussianNB(), 6)]).fit(X.tolist(), y)
    np.testing.assert_allclose(by_name, by_number.predict_proba(X.tolist()))


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], "at least one"),
        ([("a",)], "list of"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "not unique"),
        ([("a__b", GaussianNB())], "must not contain __"),
    ],
)
def test_bad_members_are_refused(fused, estimators, message):
    with pytest.raises(ValueError, match=message):
        fused(estimators).fit(X, y)


def test_parameters_of_members_are_reached_by_name(fused):
    fusion = fused([("tree", DecisionTreeClassifier()), ("bayes", GaussianNB(), [0, 1])])
    fusion.set_params(tree__max_depth=2, bayes=GaussianNB(var_smoothing=1e-6))
    assert fusion.get_params()["tree__max_depth"] == 2
    assert fusion.estimators[1][2] == [0, 1]
    assert clone(fusion).get_params()["bayes__var_smoothing"] == 1e-6
    search = GridSearchCV(fusion, {"tree__max_depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["tree__max_depth"] in (1, 3)


def test_columns_by_name(fused):
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    by_name = fused([("a", GaussianNB(), ["c0", "c9"]), ("b", logistic(), ["c11", "c12"])]).fit(
        frame, y
    )
    by_number = fused([("a", GaussianNB(), [0, 9]), ("b", logistic(), [11, 12])]).fit(X, y)
    np.testing.assert_allclose(by_name.predict_proba(frame), by_number.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        by_name.predict(frame[frame.columns[::-1]])


@parametrize_with_checks(
    [
        EvidentialFusion([("a", LogisticRegression()), ("b", GaussianNB())], cv=3),
        EvidentialFusion(
            [("a", LogisticRegression()), ("b", GaussianNB())], method="independent", cv=3
        ),
        EvidentialFusion(
            [("a", LogisticRegression())], method="independent", cv=3, rule="dempster"
        ),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
