"""Members with mass functions of their own, combined as they are."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.belief import (
    cautious,
    condition,
    conflict,
    dempster,
    discount,
    plausibility_transform,
)
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialJointCalibrator,
    EvidentialMultinomialCalibrator,
    TemperatureCalibrator,
    _fusion_masses,
)
from dubito.evidence import EvidentialClassifier

X, y = load_wine(return_X_y=True)
WORDS = np.array(["barolo", "grignolino", "barbera"])
RULES = {"contour": dempster, "dempster": dempster, "cautious": cautious}
fused = partial(EvidentialFusion, method="masses")


def evidential(**options):
    return EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression(**options)))


def members():
    return [("few", evidential(), slice(0, 4)), ("others", evidential(C=0.1), [9, 10, 11])]


def calibrated():
    calibrator = EvidentialMultinomialCalibrator(coupling="inverse_cdf", targets="smoothed")
    return CalibratedClassifier(GaussianNB(), calibrator, cv=3)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_classifiers_combine_as_their_masses_do(rule):
    fusion = fused(members(), rule=rule).fit(X, WORDS[y])
    masses = [
        evidential().fit(X[:, :4], WORDS[y]).predict_mass(X[:, :4]),
        evidential(C=0.1).fit(X[:, 9:12], WORDS[y]).predict_mass(X[:, 9:12]),
    ]
    expected, ours = RULES[rule](*masses).bounds(), fusion.predict_bounds(X)
    lower = np.minimum(expected.lower, fusion.predict_proba(X))
    np.testing.assert_allclose(ours.lower, lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, expected.upper, atol=1e-9)
    np.testing.assert_allclose(fusion.conflict(X), conflict(*masses), atol=1e-9)
    assert set(fusion.predict(X)) == set(WORDS)
    assert fusion.predict_set(X).any(axis=1).all()
    assert (fusion.predict_proba(X) <= ours.upper + 1e-12).all()


def test_dempsters_rule_multiplies_probabilities():
    fusion = fused(members()).fit(X, y)
    each = [m.predict_proba(X[:, c]) for m, c in zip(fusion.members_, fusion.columns_, strict=True)]
    product = each[0] * each[1]
    np.testing.assert_allclose(
        fusion.predict_proba(X), product / product.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert fusion.score(X, y) > max(
        m.score(X[:, c], y) for m, c in zip(fusion.members_, fusion.columns_, strict=True)
    )


@pytest.mark.parametrize("data", [load_breast_cancer, load_wine, load_digits])
def test_a_copied_member(data):
    rows, labels = data(return_X_y=True)
    rows, labels = rows[::4], labels[::4]
    alone = evidential().fit(rows, labels)
    own = alone.predict_bounds(rows)
    for rule in RULES:
        one = fused([("a", evidential())], rule=rule).fit(rows, labels)
        np.testing.assert_allclose(one.predict_bounds(rows).lower, own.lower, rtol=1e-9)
        np.testing.assert_allclose(one.predict_proba(rows), alone.predict_proba(rows), rtol=1e-9)
        np.testing.assert_allclose(one.conflict(rows), 0, atol=1e-12)
    pair = [("a", evidential()), ("b", evidential())]
    once = fused(pair, rule="cautious").fit(rows, labels).predict_bounds(rows)
    np.testing.assert_allclose(once.lower, own.lower, rtol=1e-9)
    np.testing.assert_allclose(once.upper, own.upper, rtol=1e-9)
    twice = fused(pair, rule="dempster").fit(rows, labels).predict_bounds(rows)
    assert twice.width.mean() < 0.9 * own.width.mean()


@pytest.mark.parametrize("rule", ["dempster", "cautious"])
def test_discounted_members_are_combined_set_by_set(rule):
    fusion = fused(members(), rule=rule, discount=0.1).fit(X, y)
    doubted = [
        discount(m.predict_mass(X[:, c]), 0.1)
        for m, c in zip(fusion.members_, fusion.columns_, strict=True)
    ]
    expected = RULES[rule](*doubted)
    np.testing.assert_allclose(fusion.predict_mass(X).mass, expected.mass, atol=1e-12)
    np.testing.assert_allclose(fusion.predict_bounds(X).upper, expected.bounds().upper)
    np.testing.assert_allclose(fusion.predict_proba(X), plausibility_transform(expected))
    np.testing.assert_allclose(fusion.conflict(X), conflict(*doubted), atol=1e-12)
    loose = fused(members(), discount=0.1).fit(X, y)
    assert not hasattr(loose, "predict_mass")
    if rule == "dempster":
        bounds = loose.predict_bounds(X)
        assert (bounds.lower <= expected.bounds().lower + 1e-9).all()
        assert (bounds.upper >= expected.bounds().upper - 1e-9).all()
        np.testing.assert_allclose(loose.predict_proba(X), fusion.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_members_of_other_kinds_join_in(rule):
    pair = [("evidence", evidential(), slice(0, 4)), ("bayes", calibrated(), [9, 10, 11])]
    options = {"discount": 0.05} if rule == "cautious" else {}
    fusion = fused(pair, rule=rule, **options).fit(X, y)
    masses = [
        discount(m.predict_mass(X[:, c]), options.get("discount", 0))
        for m, c in zip(fusion.members_, fusion.columns_, strict=True)
    ]
    combined = RULES[rule](*masses)
    bounds, expected = fusion.predict_bounds(X), combined.bounds()
    assert (bounds.lower <= expected.lower + 1e-4).all()  # masses are integrated less closely
    assert (bounds.upper >= expected.upper - 1e-4).all()
    if rule != "contour":
        lower = np.minimum(expected.lower, plausibility_transform(combined))
        np.testing.assert_allclose(bounds.lower, lower, atol=1e-9)
    np.testing.assert_allclose(fusion.predict_proba(X), plausibility_transform(combined), atol=1e-3)
    assert fusion.score(X, y) > 0.9
    assert hasattr(fusion, "predict_mass") == (rule != "contour")


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_member_leaves_open_what_it_has_not_seen(rule):
    some = y != 1
    knows_two = FrozenEstimator(evidential().fit(X[some], WORDS[y[some]]))
    fusion = fused([("two", knows_two)], rule=rule).fit(X, WORDS[y])
    assert fusion.classes_.tolist() == sorted(WORDS)
    own, bounds = knows_two.predict_bounds(X), fusion.predict_bounds(X)
    seen = np.searchsorted(fusion.classes_, knows_two.classes_)
    unseen = fusion.classes_.tolist().index("grignolino")
    np.testing.assert_allclose(bounds.upper[:, unseen], 1, rtol=1e-12)
    np.testing.assert_allclose(bounds.upper[:, seen], own.upper, atol=1e-9)
    np.testing.assert_allclose(bounds.lower, 0, atol=1e-9)
    if rule != "contour":
        within = condition(fusion.predict_mass(X), knows_two.classes_.tolist()).bounds()
        np.testing.assert_allclose(within.lower[:, seen], own.lower, atol=1e-9)

    both = fused([("two", knows_two), ("all", evidential(C=0.1))], rule=rule).fit(X, WORDS[y])
    assert both.score(X, WORDS[y]) > 0.9


def test_a_frozen_model_within_a_member_may_have_more_classes_than_y():
    inner = FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    some = y != 2
    fusion = fused([("all", EvidentialClassifier(inner)), ("two", evidential())])
    fusion.fit(X[some], y[some])
    assert fusion.classes_.tolist() == [0, 1, 2]
    assert fusion.score(X, y) > 0.9
    with pytest.raises(ValueError, match="frozen model knows none of the labels of y"):
        fusion.fit(X[some], WORDS[y[some]])


def test_fitted_members_are_left_as_they_are():
    model = evidential().fit(X[::2], y[::2])
    before = model.predict_proba(X)
    fusion = fused([("a", FrozenEstimator(model)), ("b", evidential())]).fit(X, y)
    assert fusion.members_[0].estimator is model
    np.testing.assert_array_equal(model.predict_proba(X), before)
    np.testing.assert_array_equal(
        fusion.members_[1].predict_proba(X), evidential().fit(X, y).predict_proba(X)
    )


def test_weights_reach_the_members():
    weight = np.resize([0.0, 1.0, 2.0], len(y))
    fusion = fused(members()).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    for member, columns, (_, model, _) in zip(
        fusion.members_, fusion.columns_, members(), strict=True
    ):
        kept = weight > 0
        alone = model.fit(X[kept][:, columns], y[kept], weight[kept])
        np.testing.assert_allclose(
            member.predict_proba(X[:, columns]), alone.predict_proba(X[:, columns]), rtol=1e-12
        )
    plain = fused([("a", EvidentialClassifier(LogisticRegression(tol=1e-8, max_iter=10_000)), [0])])
    np.testing.assert_allclose(
        clone(plain).fit(X, y, sample_weight=weight).predict_bounds(X).lower,
        clone(plain).fit(X[rows], y[rows]).predict_bounds(X).lower,
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", [pd.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
def test_tables_of_all_kinds(kind):
    pair = [
        ("a", EvidentialClassifier(LogisticRegression()), slice(0, 3)),
        ("b", EvidentialClassifier(LogisticRegression()), [9, 10, 11]),
    ]
    features = StandardScaler().fit_transform(X)
    for options in ({}, {"rule": "cautious", "discount": 0.1}):
        fusion = fused(pair, **options).fit(kind(features), y)
        plain = fused(pair, **options).fit(features, y)
        np.testing.assert_allclose(
            fusion.predict_bounds(kind(features)).lower,
            plain.predict_bounds(features).lower,
            rtol=1e-6,
            atol=1e-12,
        )


def test_parallel_jobs_change_nothing():
    one = fused(members()).fit(X, y).predict_proba(X)
    two = fused(members(), n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)


def test_rows_come_in_parts(monkeypatch):
    fusion = fused(members(), rule="dempster", discount=0.1).fit(X, y)
    whole = fusion.predict_bounds(X), fusion.predict_proba(X), fusion.conflict(X)
    monkeypatch.setattr(_fusion_masses, "_CHUNK_ENTRIES", 7 * 2**3)
    np.testing.assert_allclose(fusion.predict_bounds(X).lower, whole[0].lower, rtol=1e-12)
    np.testing.assert_allclose(fusion.predict_proba(X), whole[1], rtol=1e-12)
    np.testing.assert_allclose(fusion.conflict(X), whole[2], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrator": TemperatureCalibrator()}, "calibrates nothing, but calibrator=Temp"),
        ({"calibrator": EvidentialJointCalibrator()}, "calibrates nothing, but calibrator=Evid"),
        ({"cv": 5}, r"cv=5 was given\. Leave it out, or use method=\"independent\""),
        ({"cv": "disjoint"}, "cv='disjoint' was given"),
    ],
)
def test_nothing_is_calibrated(options, message):
    with pytest.raises(ValueError, match=message):
        fused(members(), **options).fit(X, y)


def test_members_without_masses_are_refused():
    for model in (GaussianNB(), None, FrozenEstimator(GaussianNB().fit(X, y))):
        with pytest.raises(TypeError, match=r"member 'b', .*EvidentialClassifier"):
            fused([("a", evidential()), ("b", model)]).fit(X, y)
    no_masses = CalibratedClassifier(GaussianNB(), EvidentialMultinomialCalibrator())
    with pytest.raises(TypeError, match="member 'b'"):
        fused([("a", evidential()), ("b", no_masses)]).fit(X, y)


def test_labels_of_one_class_are_refused():
    with pytest.raises(ValueError, match="two classes; y has 50 rows and shows one class"):
        fused(members()).fit(X[:50], y[:50])


def test_the_cautious_rule_needs_masses_on_the_whole_frame():
    rows = np.vstack([X[:5], X[:5]])
    fusion = fused([("a", calibrated()), ("b", evidential())], rule="cautious").fit(X, y)
    with pytest.raises(ValueError, match="Discount it"):
        fusion.predict_proba(rows)


def test_methods_take_turns():
    fusion = fused(members()).fit(X, y)
    assert not hasattr(fusion, "calibrator_")
    assert hasattr(fusion, "predict_mass")
    fusion.set_params(method="independent").fit(X, y)
    assert all(isinstance(member, CalibratedClassifier) for member in fusion.members_)
    assert not hasattr(fusion, "predict_mass")
    grid = {"rule": ["dempster", "cautious"], "few__estimator__logisticregression__C": [0.1, 1.0]}
    search = GridSearchCV(fused(members()), grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_fusions_may_be_members():
    inner = fused(members(), rule="dempster")
    nested = fused([("two", inner), ("last", evidential(), [5, 6])], rule="dempster").fit(X, y)
    flat = fused([*members(), ("last", evidential(), [5, 6])], rule="dempster").fit(X, y)
    np.testing.assert_allclose(
        nested.predict_bounds(X).lower, flat.predict_bounds(X).lower, atol=1e-9
    )


PAIR = [("weak", 0.1), ("strong", 10.0)]


@parametrize_with_checks(
    [
        fused([("a", EvidentialClassifier(LogisticRegression())), ("b", calibrated())]),
        fused(
            [(name, EvidentialClassifier(LogisticRegression(C=C))) for name, C in PAIR],
            rule="cautious",
        ),
    ],
    expected_failed_checks=lambda _: dict.fromkeys(
        (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
        "the check sets cv, which this method refuses; weights are tested above",
    ),
)
def test_scikit_learn(estimator, check):
    check(estimator)
