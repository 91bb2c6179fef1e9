"""Members calibrated alone, combined as independent evidence."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.belief import MassBatch, TotalConflictError, conflict, dempster
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    TemperatureCalibrator,
)
from dubito.calibration._kernels.dempster_on_singletons import dempster_bounds
from dubito.testing import strategies

X, y = load_wine(return_X_y=True)
TRAIN, REST = np.arange(0, 178, 2), np.arange(1, 178, 2)
independent = partial(EvidentialFusion, method="independent")


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression())


def members():
    return [("bayes", GaussianNB(), slice(0, 4)), ("logistic", logistic(), [9, 10, 11])]


def combine(batches):
    bounds = [batch.bounds() for batch in batches]
    with np.errstate(divide="ignore"):
        log_a = sum(np.log(b.upper) for b in bounds)
        log_d = sum(np.log(b.width) for b in bounds)
    return dempster_bounds(log_a, log_d, len(batches))


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
    combined = dempster_bounds(log_a, log_a - 1, 100)
    assert combined.proba[0, 3] == 1
    assert combined.upper[0, 3] == 1
    assert combined.lower[0, 3] > 0


@pytest.mark.parametrize("rule", ["contour", "dempster", "cautious"])
@pytest.mark.parametrize("cv", [None, "disjoint"])
def test_two_halves_of_the_features_beat_each_alone(rule, cv):
    fusion = independent(members(), rule=rule, discount=0.05, cv=cv, random_state=0)
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
    by_contour = independent(pair, calibrator=calibrator).fit(data, labels)
    by_mass = independent(pair, calibrator=calibrator, rule="dempster").fit(data, labels)
    ours, theirs = by_contour.predict_bounds(data), by_mass.predict_bounds(data)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-9)
    np.testing.assert_allclose(by_contour.conflict(data), by_mass.conflict(data), atol=1e-9)


def test_contour_and_dempster_agree_on_the_contour():
    by_mass = independent(members(), rule="dempster").fit(X, y)
    calibrator = EvidentialMultinomialCalibrator(coupling="inverse_cdf", targets="light")
    by_contour = independent(members(), calibrator=calibrator).fit(X, y)
    contour = by_mass.predict_bounds(X).upper
    np.testing.assert_allclose(
        by_contour.predict_proba(X), contour / contour.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_members_may_be_frozen_calibrated_or_bare_scores():
    fitted = logistic().fit(X[TRAIN], y[TRAIN])
    scores = fitted.decision_function(X)
    frozen = independent([("a", FrozenEstimator(fitted))]).fit(X[REST], y[REST])
    bare = independent([("a", None)]).fit(scores[REST], y[REST])
    alone = CalibratedClassifier(FrozenEstimator(fitted), EvidentialMultinomialCalibrator())
    alone.fit(X[REST], y[REST])
    one = independent([("a", alone)]).fit(X[REST], y[REST])
    upper = alone.predict_bounds(X).upper
    expected = upper / upper.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(frozen.predict_proba(X), expected)
    np.testing.assert_allclose(bare.predict_proba(scores), expected)
    np.testing.assert_allclose(one.predict_proba(X), expected)


def test_disjoint_parts_have_no_row_in_common():
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            seen.append({tuple(row) for row in X})
            return super().fit(X, y)

    independent([(f"m{i}", Spy()) for i in range(3)], cv="disjoint", random_state=1).fit(X, y)
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert 0.4 * len(X) < sum(map(len, seen)) < 0.6 * len(X)


def test_total_conflict_has_a_name():
    scores = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    fusion = independent(
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


def test_the_cautious_rule_needs_a_discount():
    with pytest.raises(ValueError, match=r"discount=0\.05"):
        independent(members(), rule="cautious").fit(X, y)


def test_discounted_members_have_wider_bounds():
    pair = [("a", GaussianNB(), slice(0, 4)), ("b", logistic(), [9, 10, 11])]
    plain = independent(pair).fit(X, y)
    doubted = independent(pair, discount=0.3).fit(X, y)
    assert (doubted.conflict(X) < plain.conflict(X)).all()
    assert doubted.predict_bounds(X).width.mean() > plain.predict_bounds(X).width.mean()
    by_mass = independent(pair, discount=0.3, rule="dempster").fit(X, y).predict_bounds(X)
    paper = EvidentialMultinomialCalibrator(coupling="inverse_cdf", targets="light")
    outer = independent(pair, discount=0.3, calibrator=paper).fit(X, y).predict_bounds(X)
    assert (outer.lower <= by_mass.lower + 1e-6).all()
    assert (outer.upper >= by_mass.upper - 1e-6).all()


def test_masses_that_do_not_exist_are_refused():
    fusion = independent(members(), rule="dempster", calibrator=EvidentialMultinomialCalibrator())
    with pytest.raises(TypeError, match=r"member 'bayes'.*coupling=\"inverse_cdf\""):
        fusion.fit(X, y)


def test_a_calibrator_of_all_members_is_refused():
    with pytest.raises(TypeError, match='Use method="joint"'):
        independent(members(), calibrator=EvidentialJointCalibrator()).fit(X, y)
    own = CalibratedClassifier(logistic(), EvidentialJointCalibrator())
    assert independent([("own", own), ("bayes", GaussianNB())]).fit(X, y).score(X, y) > 0.9


def test_there_is_no_calibrator_for_all():
    assert not hasattr(independent(members()).fit(X, y), "calibrator_")
