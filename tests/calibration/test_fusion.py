"""Several classifiers, one answer."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito._kernels.contours import combine_contours
from dubito.belief import MassBatch, TotalConflictError, conflict, dempster
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    TemperatureCalibrator,
)
from dubito.testing import strategies

X, y = load_wine(return_X_y=True)
TRAIN, REST = np.arange(0, 178, 2), np.arange(1, 178, 2)


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression())


def members():
    return [("bayes", GaussianNB(), slice(0, 4)), ("logistic", logistic(), [9, 10, 11])]


def combine(batches):
    bounds = [batch.bounds() for batch in batches]
    with np.errstate(divide="ignore"):
        log_a = sum(np.log(b.upper) for b in bounds)
        log_d = sum(np.log(b.width) for b in bounds)
    return combine_contours(log_a, log_d, len(batches))


@given(st.data())
def test_contours_enclose_dempsters_rule(data):
    k = data.draw(st.integers(2, 5))
    batches = [data.draw(strategies.mass_batches(n_classes=k, rows=3)) for _ in range(3)]
    combined = combine(batches)
    kappa = np.asarray(conflict(*batches))
    fine = kappa < 1 - 1e-6
    assert (combined.conflict >= kappa - 1e-9).all()
    if not fine.any():
        return
    exact = dempster(*(batch[np.flatnonzero(fine)] for batch in batches)).bounds()
    assert (combined.lower[fine] <= exact.lower + 1e-9).all()
    assert (combined.upper[fine] >= exact.upper - 1e-9).all()
    product = np.prod([b.bounds().upper for b in batches], axis=0)[fine]
    np.testing.assert_allclose(
        combined.proba[fine], product / product.sum(axis=1, keepdims=True), atol=1e-9
    )
    if k == 2:
        np.testing.assert_allclose(combined.lower[fine], exact.lower, atol=1e-9)
        np.testing.assert_allclose(combined.upper[fine], exact.upper, atol=1e-9)
        np.testing.assert_allclose(combined.conflict, kappa, atol=1e-9)


def test_probabilities_multiply():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=(3, 20))
    combined = combine([MassBatch.from_proba(range(4), p) for p in proba])
    product = proba.prod(axis=0)
    expected = product / product.sum(axis=1, keepdims=True)
    for values in (combined.proba, combined.lower, combined.upper):
        np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(combined.conflict, 1 - product.sum(axis=1), atol=1e-12)


@given(strategies.mass_batches(n_classes=4, rows=3))
def test_one_source_is_left_as_it_is(batch):
    combined, bounds = combine([batch]), batch.bounds()
    np.testing.assert_allclose(combined.upper, bounds.upper, atol=1e-12)
    assert (combined.lower <= bounds.lower + 1e-12).all()
    np.testing.assert_allclose(combined.conflict, 0, atol=1e-12)


def test_many_sources_of_many_classes_do_not_underflow():
    log_a = np.full((1, 1000), -5000.0)
    log_a[0, 3] = -4000.0
    combined = combine_contours(log_a, log_a - 1, 100)
    assert combined.proba[0, 3] == 1
    assert combined.upper[0, 3] == 1
    assert combined.lower[0, 3] > 0


@pytest.mark.parametrize("rule", ["contour", "dempster", "cautious"])
@pytest.mark.parametrize("cv", [None, "disjoint"])
def test_two_halves_of_the_features_beat_each_alone(rule, cv):
    fusion = EvidentialFusion(members(), rule=rule, discount=0.05, cv=cv, random_state=0)
    fusion.fit(X[TRAIN], y[TRAIN])
    bounds, proba = fusion.predict_bounds(X[REST]), fusion.predict_proba(X[REST])
    assert (bounds.lower <= proba + 1e-9).all()
    assert (proba <= bounds.upper + 1e-9).all()
    alone = [
        m.score(X[REST][:, c], y[REST])
        for m, c in zip(fusion.members_, fusion.columns_, strict=True)
    ]
    # The cautious rule takes the members for copies of one another: it need not gain.
    floor = 0.6 if rule == "cautious" else max(alone) - 0.02
    assert fusion.score(X[REST], y[REST]) >= floor
    kappa = fusion.conflict(X[REST])
    assert ((kappa >= 0) & (kappa <= 1)).all()
    assert fusion.predict_set(X[REST]).any(axis=1).all()
    assert hasattr(fusion, "predict_mass") == (rule != "contour")


def test_two_classes_by_contour_equal_dempsters_rule():
    data, labels = load_breast_cancer(return_X_y=True)
    pair = [("bayes", GaussianNB(), slice(0, 10)), ("logistic", logistic(), slice(10, 30))]
    calibrator = EvidentialLogisticCalibrator()
    by_contour = EvidentialFusion(pair, calibrator=calibrator).fit(data, labels)
    by_mass = EvidentialFusion(pair, calibrator=calibrator, rule="dempster").fit(data, labels)
    ours, theirs = by_contour.predict_bounds(data), by_mass.predict_bounds(data)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-9)
    np.testing.assert_allclose(by_contour.conflict(data), by_mass.conflict(data), atol=1e-9)


def test_contour_and_dempster_agree_on_the_contour():
    by_mass = EvidentialFusion(members(), rule="dempster").fit(X, y)
    calibrator = EvidentialMultinomialCalibrator(coupling="inverse_cdf", targets="light")
    by_contour = EvidentialFusion(members(), calibrator=calibrator).fit(X, y)
    contour = by_mass.predict_bounds(X).upper
    np.testing.assert_allclose(
        by_contour.predict_proba(X), contour / contour.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_members_may_be_frozen_calibrated_or_bare_scores():
    fitted = logistic().fit(X[TRAIN], y[TRAIN])
    scores = fitted.decision_function(X)
    frozen = EvidentialFusion([("a", FrozenEstimator(fitted))]).fit(X[REST], y[REST])
    bare = EvidentialFusion([("a", None)]).fit(scores[REST], y[REST])
    alone = CalibratedClassifier(FrozenEstimator(fitted)).fit(X[REST], y[REST])
    one = EvidentialFusion([("a", alone)]).fit(X[REST], y[REST])
    upper = alone.predict_bounds(X).upper
    expected = upper / upper.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(frozen.predict_proba(X), expected)
    np.testing.assert_allclose(bare.predict_proba(scores), expected)
    np.testing.assert_allclose(one.predict_proba(X), expected)


def test_frozen_members_may_know_different_classes():
    some = y != 2
    first = FrozenEstimator(logistic().fit(X[some], y[some]))
    second = FrozenEstimator(logistic().fit(X, y))
    fusion = EvidentialFusion([("some", first), ("all", second)]).fit(X, y)
    assert fusion.classes_.tolist() == [0, 1, 2]
    assert fusion.score(X, y) > 0.6


def test_a_calibrated_frozen_member_may_know_more_classes_than_y():
    known = CalibratedClassifier(FrozenEstimator(logistic().fit(X, y)))
    for absent in (0, 2):
        rows = y != absent
        fusion = EvidentialFusion([("known", known), ("bayes", GaussianNB())])
        fusion.fit(X[rows], y[rows])
        assert fusion.classes_.tolist() == [0, 1, 2]
        assert fusion.predict_proba(X).shape == (len(X), 3)


def test_members_and_y_must_speak_of_the_same_labels():
    words = np.array(["a", "b", "c"])[y]
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match="member 'a' knows the labels"):
        EvidentialFusion([("a", frozen), ("b", GaussianNB())]).fit(X, words)


def test_folds_from_a_generator_serve_every_member():
    folds = StratifiedKFold(3).split(X, y)
    listed = EvidentialFusion(members(), cv=list(StratifiedKFold(3).split(X, y))).fit(X, y)
    once = EvidentialFusion(members(), cv=folds).fit(X, y)
    np.testing.assert_array_equal(once.predict_proba(X), listed.predict_proba(X))


def test_one_column_may_be_a_number_or_a_name():
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    by_name = EvidentialFusion([("a", GaussianNB(), "c6")]).fit(frame, y).predict_proba(frame)
    by_number = EvidentialFusion([("a", GaussianNB(), 6)]).fit(X.tolist(), y)
    np.testing.assert_allclose(by_name, by_number.predict_proba(X.tolist()))


def test_disjoint_parts_share_no_row():
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            seen.append({tuple(row) for row in X})
            return super().fit(X, y)

    EvidentialFusion([(f"m{i}", Spy()) for i in range(3)], cv="disjoint", random_state=1).fit(X, y)
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert 0.4 * len(X) < sum(map(len, seen)) < 0.6 * len(X)


def test_total_conflict_has_a_name():
    scores = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    fusion = EvidentialFusion(
        [("a", None, slice(0, 3)), ("b", None, slice(3, 6))],
        calibrator=TemperatureCalibrator(),
    ).fit(np.random.default_rng(0).normal(size=(30, 6)), np.arange(30) % 3)

    class Sure:
        def __init__(self, k):
            self.k = k

        def predict_bounds(self, X):
            return MassBatch.from_proba(range(3), np.eye(3)[[self.k] * len(X)]).bounds()

    fusion.members_ = [Sure(0), Sure(1)]
    assert fusion.conflict(scores).tolist() == [1.0]
    with pytest.raises(TotalConflictError, match="row 0"):
        fusion.predict_proba(scores)


def test_the_cautious_rule_needs_some_doubt():
    with pytest.raises(ValueError, match=r"discount=0\.05"):
        EvidentialFusion(members(), rule="cautious").fit(X, y)


def test_discounted_members_say_less():
    pair = [("a", GaussianNB(), slice(0, 4)), ("b", logistic(), [9, 10, 11])]
    plain = EvidentialFusion(pair).fit(X, y)
    doubted = EvidentialFusion(pair, discount=0.3).fit(X, y)
    assert (doubted.conflict(X) < plain.conflict(X)).all()
    assert doubted.predict_bounds(X).width.mean() > plain.predict_bounds(X).width.mean()
    by_mass = EvidentialFusion(pair, discount=0.3, rule="dempster").fit(X, y).predict_bounds(X)
    paper = EvidentialMultinomialCalibrator(coupling="inverse_cdf", targets="light")
    outer = EvidentialFusion(pair, discount=0.3, calibrator=paper).fit(X, y).predict_bounds(X)
    assert (outer.lower <= by_mass.lower + 1e-6).all()
    assert (outer.upper >= by_mass.upper - 1e-6).all()


def test_masses_that_do_not_exist_are_refused():
    fusion = EvidentialFusion(
        members(), rule="dempster", calibrator=EvidentialMultinomialCalibrator()
    )
    with pytest.raises(TypeError, match=r"member 'bayes'.*coupling=\"inverse_cdf\""):
        fusion.fit(X, y)


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], "at least one"),
        ([("a",)], "list of"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "not unique"),
        ([("a__b", GaussianNB())], "must not contain __"),
    ],
)
def test_bad_members_are_refused(estimators, message):
    with pytest.raises(ValueError, match=message):
        EvidentialFusion(estimators).fit(X, y)


def test_parameters_of_members_are_reached_by_name():
    fusion = EvidentialFusion([("tree", DecisionTreeClassifier()), ("bayes", GaussianNB(), [0, 1])])
    fusion.set_params(tree__max_depth=2, bayes=GaussianNB(var_smoothing=1e-6))
    assert fusion.get_params()["tree__max_depth"] == 2
    assert fusion.estimators[1][2] == [0, 1]
    assert clone(fusion).get_params()["bayes__var_smoothing"] == 1e-6
    search = GridSearchCV(fusion, {"tree__max_depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["tree__max_depth"] in (1, 3)


def test_columns_by_name():
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    by_name = EvidentialFusion(
        [("a", GaussianNB(), ["c0", "c9"]), ("b", logistic(), ["c11", "c12"])]
    ).fit(frame, y)
    by_number = EvidentialFusion([("a", GaussianNB(), [0, 9]), ("b", logistic(), [11, 12])]).fit(
        X, y
    )
    np.testing.assert_allclose(by_name.predict_proba(frame), by_number.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        by_name.predict(frame[frame.columns[::-1]])


@parametrize_with_checks(
    [
        EvidentialFusion([("a", LogisticRegression()), ("b", GaussianNB())], cv=3),
        EvidentialFusion([("a", LogisticRegression())], cv=3, rule="dempster"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
