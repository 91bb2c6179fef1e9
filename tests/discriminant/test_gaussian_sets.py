"""Set-valued predictions: maximality with any loss and priors, other rules, limited searches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from dubito.decision import interval_dominance
from dubito.discriminant import UnsettledWarning

from reference.discriminant import ImpreciseGaussians, draw_between, draw_classes
from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
ZERO_ONE = 1 - np.eye(3)
LOSSES = {
    "0/1": ZERO_ONE,
    "reject": np.vstack([ZERO_ONE, np.full(3, 0.3)]),
    "fewer acts than classes": [[0.0, 2.0, 5.0], [1.0, 0.5, 0.0]],
    "asymmetric": [[0.0, 1.0, 9.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0]],
    "pairs": np.vstack([ZERO_ONE, 0.35 + 0.65 * np.eye(3)]),
    "gains": [[-3.0, 0.5, 0.0], [0.0, -1.0, 0.0], [0.2, 0.0, -7.0], [-0.5, -0.5, -0.5]],
    "equal acts": [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.0, 1.0, 2.0]],
}
PRIORS = {
    "frequencies": {},
    "given": {"priors": [0.6, 0.3, 0.1]},
    "Dirichlet": {"prior_imprecision": 5.0},
    "intervals": {"priors": [[0.1, 0.5], [0.2, 0.3], [0.3, 0.5]]},
    "vacuous": {"priors": [[0.0, 1.0]] * 3},
    "unreachable": {"priors": [[0.5, 0.9], [0.3, 0.9], [0.1, 0.4]]},
}


def problem(seed, n_features=4, counts=(6, 9, 12), **options):
    """Return a fitted model, its reference and rows between its classes."""
    rng = np.random.default_rng([seed, n_features])
    X, y = draw_classes(rng, n_features, counts, condition=1e4 if seed % 3 == 1 else 10)
    options = {"box": "scaled", "c": 1.5, **options}
    model = published(**options).fit(X, y)
    return model, ImpreciseGaussians(X, y, **options), draw_between(rng, X, y, 25)


@pytest.mark.parametrize("priors", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_maximal_acts_equal_enumeration(kind, priors):
    model, reference, rows = problem(KINDS.index(kind), covariance_type=kind, **PRIORS[priors])
    sizes = set()
    for loss in LOSSES.values():
        sets = model.predict_set(rows, "maximality", loss=loss)
        np.testing.assert_array_equal(sets, [reference.maximal(x, loss) for x in rows])
        assert sets.any(axis=1).all()
        sizes |= set(sets.sum(axis=1))
    assert len(sizes) > 1


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(1, 5), st.integers(0, 999))
def test_random_losses_and_priors(n_classes, n_acts, seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(n_classes))
    width = rng.random(n_classes)
    options = {
        "priors": np.column_stack([prior * width, prior + (1 - prior) * 0.2 * width]),
        "covariance_type": KINDS[seed % 4],
        "c": 3.0 * rng.random(),
        "covariance_imprecision": float(seed % 3),
    }
    model, reference, rows = problem(seed, 3, rng.integers(5, 12, size=n_classes), **options)
    loss = rng.normal(size=(n_acts, n_classes))
    np.testing.assert_array_equal(
        model.predict_set(rows[:5], "maximality", loss=loss),
        [reference.maximal(x, loss) for x in rows[:5]],
    )
    np.testing.assert_array_equal(
        model.predict_set(rows[:5], "maximality"), [reference.maximal(x) for x in rows[:5]]
    )


def test_rules():
    model, _, rows = problem(0, covariance_type="full")
    sets = model.predict_set(rows, "maximality")
    np.testing.assert_array_equal(sets, model.predict_set(rows, rule="maximality"))
    np.testing.assert_array_equal(sets, model.predict_set(rows, "maximality", loss=ZERO_ONE))
    np.testing.assert_array_equal(
        model.predict_set(rows, rule="interval_dominance"),
        interval_dominance(model.predict_bounds(rows)),
    )
    loss = LOSSES["reject"]
    np.testing.assert_array_equal(
        model.predict_set(rows, rule="interval_dominance", loss=loss),
        interval_dominance(model.predict_bounds(rows), loss=loss),
    )
    top = model.predict_set(rows, rule=lambda bounds: bounds.upper > 0.3)
    np.testing.assert_array_equal(top, model.predict_bounds(rows).upper > 0.3)
    assert model.predict_set(rows, rule="e_admissibility").any(axis=1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_maximality_is_sharper_than_rules_on_bounds_and_holds_the_most_probable(kind):
    smaller = 0
    for seed in range(4):
        model, _, rows = problem(seed, covariance_type=kind, prior_imprecision=1.0)
        sets, coarse = (
            model.predict_set(rows, "maximality"),
            model.predict_set(rows, "interval_dominance"),
        )
        assert (sets <= coarse).all()
        smaller += (sets.sum(axis=1) < coarse.sum(axis=1)).sum()
        best = model.predict_proba(rows).argmax(axis=1)
        assert sets[np.arange(len(rows)), best].all()
    assert smaller > 0


def test_identical_classes_stay_together():
    rng = np.random.default_rng(3)
    X, y = draw_classes(rng, 3, [8, 11])
    twins, labels = np.vstack([X, X[y == 0]]), np.r_[y, np.full(8, 2)]
    for kind in KINDS:
        for c in (0.0, 0.01, 2.0):
            model = published(covariance_type=kind, c=c).fit(twins, labels)
            rows = np.vstack([draw_between(rng, twins, labels, 20), 1e3 * X])
            sets = model.predict_set(rows, "maximality")
            np.testing.assert_array_equal(sets[:, 0], sets[:, 2])
            assert sets.any(axis=1).all()
            critical = model.critical_c(rows)
            np.testing.assert_array_equal(critical[:, 0] == 0, critical[:, 2] == 0)
            np.testing.assert_allclose(critical[:, 0], critical[:, 2], rtol=1e-9, atol=1e-12)


def test_a_row_between_mirrored_classes_is_of_both():
    X = np.array([[-3.0, 0.0], [-1.0, 0.0], [-2.0, 1.0], [-2.0, -1.0]])
    for kind in KINDS:
        model = published(covariance_type=kind, c=0.0)
        model.fit(np.vstack([X, -X]), np.repeat([0, 1], 4))
        sizes = model.predict_set([[0.0, 0.4], [-1e-3, 0.0]], "maximality").sum(axis=1)
        np.testing.assert_array_equal(sizes, [2, 1])
        np.testing.assert_array_equal(model.critical_c([[0.0, 0.4]]), 0)


def test_much_imprecision_leaves_all_classes():
    for kind in KINDS:
        model, _, rows = problem(1, covariance_type=kind, c=1e6)
        assert model.predict_set(rows, "maximality").all()
        bounds = model.predict_bounds(rows)
        np.testing.assert_allclose(bounds.lower, 0, atol=1e-12)
        np.testing.assert_allclose(bounds.upper, 1, atol=1e-12)


def test_a_class_without_prior_is_never_chosen():
    rng = np.random.default_rng(4)
    X, y = draw_classes(rng, 3, [8, 11, 9])
    model = published(priors=[0.5, 0.5, 0.0], c=3.0).fit(X, y)
    sets, bounds = model.predict_set(X, "maximality"), model.predict_bounds(X)
    assert not sets[:, 2].any()
    np.testing.assert_array_equal(bounds.upper[:, 2], 0)
    assert np.isinf(model.critical_c(X)[:, 2]).all()
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0)


def hard(seed):
    """Return classes of as many features as can still be enumerated, and rows between them."""
    rng = np.random.default_rng(seed)
    X, y = draw_classes(rng, 12, (14, 16, 18))
    return X, y, draw_between(rng, X, y, 15)


# Boxes as wide as the classes: some searches must branch.
WIDE = {"covariance_type": "full", "box": "scaled", "c": 6.0}


def unsettled(ask, *arguments, **options):
    """Predict by a model whose searches are unsettled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        return ask(*arguments, **options)


def test_an_unsettled_search_errs_on_the_safe_side():
    loss, cut = LOSSES["reject"], 0
    for seed in range(6):
        X, y, rows = hard(seed)
        exact = published(**WIDE).fit(X, y)
        short = clone(exact).set_params(max_subproblems=1).fit(X, y)
        sets = exact.predict_set(rows, "maximality")
        reference = ImpreciseGaussians(X, y, **WIDE)
        np.testing.assert_array_equal(sets, [reference.maximal(x) for x in rows])
        assert (unsettled(short.predict_set, rows) >= sets).all()
        acts = exact.predict_set(rows, "maximality", loss=loss)
        assert (unsettled(short.predict_set, rows, loss=loss) >= acts).all()
        lower = exact.log_density_bounds(rows).lower
        outer = unsettled(short.log_density_bounds, rows).lower
        assert (outer <= lower + 1e-12 * np.abs(lower)).all()
        entries = unsettled(short.critical_c, rows)
        assert (entries <= exact.critical_c(rows) * (1 + 1e-9)).all()
        assert exact.n_unsettled_ == 0
        cut += short.n_unsettled_
    assert cut > 0


def test_a_class_just_out_of_reach_is_kept_by_an_unsettled_search():
    kept = []
    for seed in range(3):
        X, y, rows = hard(seed)
        critical = published(**WIDE).fit(X, y).critical_c(rows)
        for i, k in np.argwhere(critical > 6)[:6]:
            exact = published(**{**WIDE, "c": critical[i, k] * (1 - 1e-6)})
            short = clone(exact).set_params(max_subproblems=1).fit(X, y)
            assert not exact.fit(X, y).predict_set(rows[[i]], "maximality")[0, k]
            kept.append(unsettled(short.predict_set, rows[[i]])[0, k])
            assert short.n_unsettled_ >= kept[-1]
    assert sum(kept) > 5


def test_an_unsettled_search_is_counted_and_warned_of_once():
    X, y, rows = hard(0)
    model = published(**WIDE, max_subproblems=1).fit(X, y)
    assert model.n_unsettled_ == 0
    with pytest.warns(UnsettledWarning, match="max_subproblems") as caught:
        model.log_density_bounds(rows)
    assert len(caught) == 1
    first = model.n_unsettled_
    assert 0 < first <= rows.shape[0] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsettledWarning)
        model.log_density_bounds(rows)
    assert model.n_unsettled_ == 2 * first
    assert model.fit(X, y).n_unsettled_ == 0
