"""What must hold whatever the data: limits, orders, units, weights, nesting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

from reference.discriminant import draw_between, draw_classes, scikit_learn_divisor
from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
BOXES = ["raw", "scaled", "standard_error"]


def draw(seed=0, n_features=5, counts=(9, 12, 20)):
    rng = np.random.default_rng([seed, n_features])
    X, y = draw_classes(rng, n_features, counts, condition=100)
    return X, y, draw_between(rng, X, y, 30)


def answers(model, rows):
    """Return all predictions of a model for some rows and classes."""
    posterior = model.predict_bounds(rows)
    return [
        posterior.lower,
        posterior.upper,
        model.predict_proba(rows),
        model.critical_c(rows),
        model.predict_set(rows, "maximality").astype(float),
    ]


def assert_same(ours, theirs, rtol=1e-7):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)


def assert_precise(model, theirs, rows):
    """c = 0: bounds are the posteriors, and sets are of one class."""
    proba = theirs.predict_proba(rows)
    bounds = model.predict_bounds(rows)
    for ours in (model.predict_proba(rows), bounds.lower, bounds.upper):
        np.testing.assert_allclose(ours, proba, rtol=1e-8, atol=1e-13)
    np.testing.assert_array_equal(model.predict(rows), theirs.predict(rows))
    np.testing.assert_array_equal(
        model.predict_set(rows, "maximality"), theirs.predict(rows)[:, None] == model.classes_
    )


RIVALS = {
    "tied": LinearDiscriminantAnalysis(solver="svd"),
    "full": QuadraticDiscriminantAnalysis(),
}


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("kind", RIVALS)
def test_without_imprecision_it_is_scikit_learns(kind, load):
    X, y = load(return_X_y=True)
    for priors in (None, [0.2, 0.5, 0.3]):
        model = published(
            covariance_type=kind, c=0.0, priors=priors, divisor=scikit_learn_divisor()
        )
        theirs = clone(RIVALS[kind]).set_params(priors=priors).fit(X, y)
        assert_precise(model.fit(X, y), theirs, X)
        np.testing.assert_allclose(
            model.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-8, atol=1e-8
        )


@settings(max_examples=25)
@given(
    st.sampled_from(["tied", "full"]), st.integers(1, 12), st.integers(2, 5), st.integers(0, 999)
)
def test_without_imprecision_it_is_scikit_learns_on_random_data(kind, p, n_classes, seed):
    rng = np.random.default_rng(seed)
    X, y = draw_classes(rng, p, rng.integers(p + 2, 2 * p + 9, size=n_classes), condition=100)
    model = published(covariance_type=kind, c=0.0, divisor=scikit_learn_divisor()).fit(X, y)
    assert_precise(model, clone(RIVALS[kind]).fit(X, y), draw_between(rng, X, y, 20))


@pytest.mark.parametrize("kind", RIVALS)
def test_far_away_the_choice_is_still_scikit_learns(kind):
    X, y, rows = draw(3, 4)
    model = published(covariance_type=kind, c=0.0, divisor=scikit_learn_divisor()).fit(X, y)
    for far in (1e3, 1e6, 1e10, 1e20):
        beyond = X.mean(axis=0) + far * (rows - X.mean(axis=0))
        choice = clone(RIVALS[kind]).fit(X, y).predict(beyond)
        np.testing.assert_array_equal(model.predict(beyond), choice)
        sets = model.predict_set(beyond, "maximality")
        assert sets[np.arange(len(rows)), choice].all()
        if far <= 1e6:  # beyond that distances may tie to rounding, and ties stay
            assert (sets.sum(axis=1) == 1).all()


@pytest.mark.parametrize(("divisor", "ratio"), [("likelihood", 1), ("unbiased", 50 / 49)])
def test_without_imprecision_separate_features_are_naive_bayes(divisor, ratio):
    X, y = load_iris(return_X_y=True)
    model = published(c=0.0, divisor=divisor)
    bayes = GaussianNB(var_smoothing=0.0).fit(X, y)
    bayes.var_ *= ratio
    assert_precise(clone(model).set_params(covariance_type="diag").fit(X, y), bayes, X)
    bayes.var_ = np.tile(bayes.var_.mean(axis=1, keepdims=True), 4)
    assert_precise(clone(model).set_params(covariance_type="spherical").fit(X, y), bayes, X)


@pytest.mark.parametrize("kind", KINDS)
def test_divisors(kind):
    X, y, _ = draw()
    model = published(covariance_type=kind)
    unbiased, likelihood = (
        clone(model).set_params(divisor=divisor).fit(X, y).covariance_
        for divisor in ("unbiased", "likelihood")
    )
    counts = np.bincount(y)
    ratio = 41 / 38 if kind == "tied" else counts / (counts - 1)
    theirs = np.reshape(ratio, np.shape(ratio) + (1,) * (np.ndim(unbiased) - np.ndim(ratio)))
    np.testing.assert_allclose(unbiased, likelihood * theirs, rtol=1e-9)
    own = np.cov(X[y == 1].T)
    expected = {
        "tied": sum(np.cov(X[y == k].T) * (counts[k] - 1) for k in range(3)) / 38,
        "full": own,
        "diag": np.diag(own),
        "spherical": np.trace(own) / 5,
    }
    np.testing.assert_allclose(
        unbiased if kind == "tied" else unbiased[1], expected[kind], rtol=1e-9
    )
    np.testing.assert_array_equal(model.fit(X, y).covariance_, likelihood)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_close_upon_the_posterior(kind):
    X, y, rows = draw()
    widths = [
        published(covariance_type=kind, c=c, box="scaled")
        .fit(X, y)
        .predict_bounds(rows)
        .width.max()
        for c in (1e-2, 1e-4, 1e-6, 0.0)
    ]
    assert widths[0] > 10 * widths[1] > 100 * widths[2] > 0
    assert widths[3] < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_give_narrow_bounds(kind):
    X, y, rows = draw()
    copies = np.tile(X, (1000, 1)), np.tile(y, 1000)
    few = published(covariance_type=kind, box="scaled").fit(X, y)
    many = clone(few).fit(*copies)
    assert many.predict_bounds(rows).width.max() < 0.02 * few.predict_bounds(rows).width.max()


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(BOXES),
    st.lists(st.floats(0, 40), min_size=3, max_size=3),
    st.integers(0, 99),
)
def test_everything_grows_with_c(kind, box, cs, seed):
    X, y, rows = draw(seed, 7)
    inner = None
    for c in sorted(cs):
        model = published(covariance_type=kind, box=box, c=c).fit(X, y)
        density, posterior = model.log_density_bounds(rows), model.predict_bounds(rows)
        outer = model.predict_set(rows, "maximality"), density, posterior
        if inner is not None:
            assert (inner[0] <= outer[0]).all()
            for within, around in zip(inner[1:], outer[1:], strict=True):
                rounding = 1e-11 * (1 + np.abs(around.lower))
                assert (around.lower <= within.lower + rounding).all()
                assert (within.upper <= around.upper + rounding).all()
        inner = outer


@pytest.mark.parametrize("name", ["prior_imprecision", "covariance_imprecision"])
@pytest.mark.parametrize("kind", KINDS)
def test_everything_grows_with_other_imprecision(kind, name):
    X, y, rows = draw()
    model = published(covariance_type=kind, box="scaled", c=2.0)
    fits = [clone(model).set_params(**{name: s}).fit(X, y) for s in (0.0, 1.0, 50.0)]
    for less, more in pairwise(fits):
        assert (less.predict_set(rows, "maximality") <= more.predict_set(rows, "maximality")).all()
        within, around = less.predict_bounds(rows), more.predict_bounds(rows)
        assert (around.lower <= within.lower + 1e-12).all()
        assert (within.upper <= around.upper + 1e-12).all()
        np.testing.assert_allclose(less.predict_proba(rows), more.predict_proba(rows))
        assert (more.critical_c(rows) <= less.critical_c(rows) + 1e-9).all()
    assert (
        fits[0].predict_set(rows, "maximality").sum()
        < fits[2].predict_set(rows, "maximality").sum()
    )


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_labels_features_and_rows_is_nothing(kind, box):
    X, y, rows = draw()
    model = published(
        covariance_type=kind, box=box, c=3.0, priors=[[0.1, 0.5], [0.2, 0.4], [0.2, 0.6]]
    )
    plain = answers(model.fit(X, y), rows)
    order = np.array([2, 0, 1])
    relabelled = clone(model).set_params(priors=np.array(model.priors)[np.argsort(order)])
    for one, other in zip(plain, answers(relabelled.fit(X, order[y]), rows), strict=True):
        np.testing.assert_allclose(one, other[:, order], rtol=1e-7, atol=1e-9)
    turned = np.array([3, 0, 4, 2, 1])
    assert_same(answers(clone(model).fit(X[:, turned], y), rows[:, turned]), plain)
    shuffled = np.random.default_rng(0).permutation(len(y))
    assert_same(answers(clone(model).fit(X[shuffled], y[shuffled]), rows), plain)


SCALES = 10.0 ** np.array([-4, 0, 3, -1, 5])
AWAY = np.array([2.0, 0.0, 1.0])
SHIFT = np.array([3.0, -50.0, 1e3, 0.0, 7.0])


@pytest.mark.parametrize("box", ["scaled", "standard_error"])
@pytest.mark.parametrize("kind", ["tied", "full", "diag"])
def test_units_of_features_are_nothing_to_a_box_in_deviations(kind, box):
    X, y, rows = draw()
    model = published(covariance_type=kind, box=box, c=3.0).fit(X, y)
    other = clone(model).fit(X * SCALES, y)
    assert_same(answers(other, rows * SCALES), answers(model, rows))
    ours, theirs = other.log_density_bounds(rows * SCALES), model.log_density_bounds(rows)
    np.testing.assert_allclose(ours.lower, theirs.lower - np.log(SCALES).sum(), rtol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs.upper - np.log(SCALES).sum(), rtol=1e-9)
    np.testing.assert_allclose(other.half_widths_, model.half_widths_ * SCALES)
    np.testing.assert_array_equal(other.rank_, model.rank_)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_features_matter_to_the_papers_box(kind):
    X, y, rows = draw()
    model = published(covariance_type=kind, c=3.0).fit(X, y)
    fine, coarse = (clone(model).fit(X * unit, y) for unit in (1e-3, 1e3))
    widths = [m.predict_bounds(rows * u).width.mean() for m, u in ((fine, 1e-3), (coarse, 1e3))]
    assert widths[0] > 0.5
    assert widths[1] < 0.01
    np.testing.assert_allclose(fine.predict_proba(rows * 1e-3), coarse.predict_proba(rows * 1e3))


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_shifting_the_features_is_nothing(kind, box):
    X, y, rows = draw()
    model = published(covariance_type=kind, box=box, c=3.0).fit(X, y)
    assert_same(answers(clone(model).fit(X + SHIFT, y), rows + SHIFT), answers(model, rows))


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_one_unit_for_all_features_is_nothing_to_spheres(unit):
    X, y, rows = draw()
    model = published(covariance_type="spherical", box="scaled").fit(X, y)
    assert_same(answers(clone(model).fit(X * unit, y), rows * unit), answers(model, rows))


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_count_rows(kind, box):
    X, y, rows = draw()
    weight = np.resize([2, 1, 3, 0, 1], len(y))
    options = {"covariance_type": kind, "box": box, "prior_imprecision": 1.0}
    options["covariance_imprecision"] = 1.0
    model = published(**options).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same(answers(model, rows), answers(repeated, rows))
    np.testing.assert_allclose(model.covariance_, repeated.covariance_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.half_widths_, repeated.half_widths_)
    ours, theirs = model.log_density_bounds(rows), repeated.log_density_bounds(rows)
    np.testing.assert_allclose(ours.lower, theirs.lower, rtol=1e-8)
    np.testing.assert_allclose(ours.upper, theirs.upper, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_classes_of_tied_and_full_agree(kind):
    """Classes with the same scatter: whose covariance it is makes no difference."""
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(15, 3))
    X = np.vstack([shape, shape + AWAY])
    y, rows = np.repeat([0, 1], 15), rng.normal(size=(10, 3)) * 2
    tied = published(covariance_type="tied", c=2.0).fit(X, y)
    model = published(covariance_type=kind, c=2.0).fit(X, y)
    if kind == "full":
        assert_same(answers(model, rows), answers(tied, rows))
    elif kind != "tied":
        white = np.linalg.qr(shape - shape.mean(axis=0))[0]
        X = np.vstack([white, white + AWAY])
        assert_same(answers(clone(model).fit(X, y), rows), answers(clone(tied).fit(X, y), rows))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stand_alone_and_threads_do_not_matter(kind):
    X, y, _ = draw()
    rows = draw_between(np.random.default_rng(1), X, y, 700)
    model = published(covariance_type=kind, c=2.0, n_jobs=1).fit(X, y)
    whole = answers(model, rows)
    parallel = clone(model).set_params(n_jobs=2).fit(X, y)
    for one, other in zip(whole, answers(parallel, rows), strict=True):
        np.testing.assert_array_equal(one, other)
    for i in (0, 345, 699):
        assert_same(
            answers(model, rows[i : i + 1]), [part[i : i + 1] for part in whole], rtol=1e-12
        )
