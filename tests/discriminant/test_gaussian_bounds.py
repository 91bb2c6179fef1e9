"""Bounds on densities and posteriors, against enumeration of everything they range over."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import multivariate_normal
from sklearn.base import clone

from reference.discriminant import ImpreciseGaussians, draw_between, draw_classes
from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
PRIORS = {2: [[0.2, 0.6], [0.5, 0.9]], 3: [[0.1, 0.5], [0.2, 0.3], [0.4, 0.5]]}


def options_of(rng, seed, kind, counts):
    """Everything that can be set, and boxes that reach from 0.01 to 2 standard deviations."""
    reach = np.exp(rng.uniform(np.log(0.01), np.log(2)))
    box = ("scaled", "standard_error", "raw")[seed % 3]
    return {
        "covariance_type": kind,
        "box": box,
        "c": reach * counts.min() ** (0.5 if box == "standard_error" else 1.0),
        "priors": PRIORS.get(len(counts)) if seed % 2 else None,
        "prior_imprecision": 3.0 * (seed % 4 == 0),
        "covariance_imprecision": 2.0 * (seed % 5 == 4),
    }


@cache
def solved(kind, n_features, seed, n_rows=9):
    """Return a fitted model, its reference, and rows to predict for."""
    rng = np.random.default_rng([seed, n_features, KINDS.index(kind)])
    counts = rng.integers(n_features + 2, 3 * n_features + 8, size=2 + seed % 3)
    X, y = draw_classes(rng, n_features, counts, condition=10 ** rng.uniform(0, 4))
    options = options_of(rng, seed, kind, counts)
    if options["box"] == "raw":
        X = X / np.median(X.std(axis=0))
    model = published(**options).fit(X, y)
    return model, ImpreciseGaussians(X, y, **options), draw_between(rng, X, y, n_rows)


def each(function, rows):
    """Return both results of a function for each row."""
    lower, upper = zip(*map(function, rows), strict=True)
    return np.array(lower), np.array(upper)


CASES = [
    pytest.param(kind, p, seed, id=f"{kind}-{p}-{seed}")
    for kind in KINDS
    for p, seeds in {1: 4, 2: 5, 3: 6, 5: 6, 8: 6, 12: 5}.items()
    for seed in range(seeds)
]


@pytest.mark.parametrize(("kind", "p", "seed"), CASES)
def test_densities_equal_enumeration(kind, p, seed):
    model, reference, rows = solved(kind, p, seed)
    ours, theirs = model.log_density_bounds(rows), each(reference.log_densities, rows)
    # Log densities much smaller than the largest one are accurate relative to the largest.
    rounding = 1e-13 * np.abs(theirs[0]).max()
    np.testing.assert_allclose(ours.lower, theirs[0], rtol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs[1], rtol=1e-9, atol=rounding)


@pytest.mark.parametrize(("kind", "p", "seed"), CASES)
def test_posteriors_and_decisions_equal_enumeration(kind, p, seed):
    model, reference, rows = solved(kind, p, seed)
    ours, theirs = model.predict_bounds(rows), each(reference.posteriors, rows)
    np.testing.assert_allclose(ours.lower, theirs[0], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(ours.upper, theirs[1], rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(
        model.predict_set(rows, "maximality"), [reference.maximal(x) for x in rows]
    )
    assert model.n_unsettled_ == 0


def test_the_cases_are_many_and_hard():
    models, references, rows = zip(*(solved(*case.values) for case in CASES), strict=True)
    sizes = np.concatenate(
        [
            model.predict_set(row, "maximality").sum(axis=1)
            for model, row in zip(models, rows, strict=True)
        ]
    )
    assert len(sizes) > 1000
    assert np.bincount(sizes)[1:5].min() > 20
    assert 0.2 < np.mean(sizes > 1) < 0.8
    reach = [(r.half_widths() / r.deviations).max() for r in references if r.box != "raw"]
    assert min(reach) < 0.05
    assert max(reach) > 1
    condition = [np.linalg.cond(c) for r in references for c in r.covariances]
    assert max(condition) > 5e3


def test_all_vertices_of_sixteen_features():
    rng = np.random.default_rng(3)
    X, y = draw_classes(rng, 16, [20, 25])
    rows = draw_between(rng, X, y, 6)
    for kind in ("tied", "full"):
        options = {"covariance_type": kind, "box": "scaled", "c": 12.0}
        model = published(**options).fit(X, y)
        lower, upper = each(ImpreciseGaussians(X, y, **options).log_densities, rows)
        ours = model.log_density_bounds(rows)
        np.testing.assert_allclose(ours.lower, lower, rtol=1e-9)
        np.testing.assert_allclose(ours.upper, upper, rtol=1e-9, atol=1e-9)
        assert model.n_unsettled_ == 0


def gaussians(model):
    """Return the covariance of each class of a fitted model, as a matrix."""
    p = model.n_features_in_
    for k in range(len(model.classes_)):
        kind, own = model.covariance_type, np.asarray(model.covariance_)
        if kind == "tied":
            yield own
        else:
            yield own[k] if kind == "full" else np.eye(p) * own[k]


@pytest.mark.parametrize("kind", KINDS)
def test_the_density_lies_within(kind):
    rng = np.random.default_rng(5)
    X, y = draw_classes(rng, 6, [9, 12, 20])
    rows = np.vstack([draw_between(rng, X, y, 40), X])
    for c in (0.0, 0.3, 5.0):
        model = published(covariance_type=kind, c=c, box="scaled").fit(X, y)
        bounds = model.log_density_bounds(rows)
        density = np.column_stack(
            [
                multivariate_normal(mean, covariance).logpdf(rows)
                for mean, covariance in zip(model.means_, gaussians(model), strict=True)
            ]
        )
        rounding = 1e-9 * np.abs(density)
        assert (bounds.lower <= density + rounding).all()
        assert (density <= bounds.upper + rounding).all()
        if c == 0:
            np.testing.assert_allclose(bounds.lower, density, rtol=1e-9)
            np.testing.assert_allclose(bounds.upper, density, rtol=1e-9)
        else:
            assert (bounds.lower < density - 1e-9).all()


@settings(max_examples=40)
@given(st.sampled_from(KINDS), st.integers(1, 30), st.floats(0, 50), st.integers(0, 99))
def test_no_mean_of_the_box_has_a_density_outside(kind, p, c, seed):
    rng = np.random.default_rng([seed, p])
    X, y = draw_classes(rng, p, [p + 3, p + 9])
    model = published(covariance_type=kind, c=c, box="scaled").fit(X, y)
    row = draw_between(rng, X, y, 1)
    bounds = model.log_density_bounds(row)
    for k, covariance in enumerate(gaussians(model)):
        inner = rng.uniform(-1, 1, size=(20, p))
        moved = (
            np.vstack([inner, np.sign(inner), inner.clip(-0.5, 0.5) * 2]) * model.half_widths_[k]
        )
        density = multivariate_normal(np.zeros(p), covariance).logpdf(row - model.means_[k] - moved)
        rounding = 1e-9 * np.abs(density)
        assert (bounds.lower[0, k] <= density + rounding).all()
        assert (density <= bounds.upper[0, k] + rounding).all()


def test_boxes_are_c_over_the_count():
    rng = np.random.default_rng(6)
    X, y = draw_classes(rng, 3, [5, 8])
    weight = rng.integers(1, 4, size=len(y))
    counts = np.bincount(y, weight)[:, None]
    raw = published(c=0.7).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(raw.class_counts_, counts[:, 0])
    np.testing.assert_allclose(raw.half_widths_, 0.7 / counts + 0 * X[:2])
    middle = X - np.array([X[y == k].mean(axis=0) for k in range(2)])[y]
    for divisor, n in (("unbiased", 11), ("likelihood", 13)):
        scaled = clone(raw).set_params(box="scaled", covariance_type="full", divisor=divisor)
        deviation = np.sqrt((middle**2).sum(axis=0) / n)
        expected = 0.7 * deviation / [[5], [8]]
        np.testing.assert_allclose(scaled.fit(X, y).half_widths_, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_of_standard_errors(kind):
    rng = np.random.default_rng(6)
    X, y = draw_classes(rng, 3, [5, 8])
    model = published(covariance_type=kind, c=0.7, box="standard_error")
    for weight in (None, rng.integers(1, 4, size=len(y))):
        counts = np.bincount(y, weight)
        model.fit(X, y, sample_weight=weight)
        errors = [
            np.sqrt(np.diag(covariance) / count)
            for covariance, count in zip(gaussians(model), counts, strict=True)
        ]
        np.testing.assert_allclose(model.half_widths_, 0.7 * np.array(errors))


@pytest.mark.parametrize("kind", ["tied", pytest.param("full", marks=pytest.mark.slow)])
def test_how_often_boxes_hold_the_true_means(kind):
    # Boxes of c standard errors contain a coordinate as often as Student's t is within c, for any
    # number of rows; boxes of c / n less often the more rows there are.
    rng = np.random.default_rng(11)
    truth, root = np.array([[0.0, 0.0], [1.5, -1.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
    held = {}
    for n in (10, 100):
        y = np.repeat([0, 1], n)
        for box in ("raw", "standard_error"):
            model = published(covariance_type=kind, box=box, c=2.0, divisor="unbiased")
            within = []
            for _ in range(300):
                X = truth[y] + rng.normal(size=(2 * n, 2)) @ root.T
                model.fit(X, y)
                within.append(np.abs(model.means_ - truth) <= model.half_widths_)
            held[box, n] = np.mean(within)
        freedom = 2 * n - 2 if kind == "tied" else n - 1
        expected = 1 - 2 * stats.t(freedom).sf(2.0)
        # Coordinates of a mean correlate: 600 independent draws at least.
        assert abs(held["standard_error", n] - expected) < 4 * np.sqrt(0.05 * 0.95 / 600)
    assert held["raw", 10] < 0.55
    assert held["raw", 100] < 0.25


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_closed_form_of_separate_features(kind):
    rng = np.random.default_rng(7)
    X, y = draw_classes(rng, 40, [45, 50, 60])  # far more features than can be enumerated
    model = published(covariance_type=kind, c=9.0, box="scaled").fit(X, y)
    rows = draw_between(rng, X, y, 30)
    bounds = model.log_density_bounds(rows)
    for k in range(3):
        variance = np.ones(40) * model.covariance_[k]
        away = np.abs(rows - model.means_[k])
        far = (away + model.half_widths_[k]) ** 2 / variance
        near = np.maximum(away - model.half_widths_[k], 0) ** 2 / variance
        constant = np.log(2 * np.pi * variance).sum()
        np.testing.assert_allclose(bounds.lower[:, k], -0.5 * (constant + far.sum(axis=1)))
        np.testing.assert_allclose(bounds.upper[:, k], -0.5 * (constant + near.sum(axis=1)))


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_lie_within_bounds(kind):
    rng = np.random.default_rng(8)
    X, y = draw_classes(rng, 5, [9, 12, 20])
    rows = draw_between(rng, X, y, 50)
    for options in ({}, {"prior_imprecision": 4.0}, {"priors": PRIORS[3]}):
        model = published(covariance_type=kind, c=2.0, **options).fit(X, y)
        proba, bounds = model.predict_proba(rows), model.predict_bounds(rows)
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
        assert (bounds.lower <= proba + 1e-12).all()
        assert (proba <= bounds.upper + 1e-12).all()
        np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), proba, rtol=1e-12)
        np.testing.assert_array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
        prior = model.prior_bounds_
        assert prior.lower.shape == (1, 3)
        assert (prior.lower <= model.priors_ + 1e-12).all()
        assert (model.priors_ <= prior.upper + 1e-12).all()


def stretched(covariance, turn, stretch):
    """Return a covariance between S / kappa and kappa S where all stretches are."""
    root = np.linalg.cholesky(covariance)
    return root @ (turn * stretch) @ turn.T @ root.T


@pytest.mark.parametrize("kind", KINDS)
def test_no_covariance_of_the_interval_has_a_density_outside(kind):
    rng = np.random.default_rng(9)
    X, y = draw_classes(rng, 4, [7, 10], condition=100)
    row = draw_between(rng, X, y, 1)
    plain = published(covariance_type=kind, c=1.5, box="scaled").fit(X, y)
    model = clone(plain).set_params(covariance_imprecision=4.0).fit(X, y)
    bounds, inner = model.log_density_bounds(row), plain.log_density_bounds(row)
    assert (bounds.lower < inner.lower).all()
    assert (inner.upper < bounds.upper).all()
    for k, covariance in enumerate(gaussians(model)):
        kappa = 1 + 4 / (17 if kind == "tied" else [7, 10][k])
        for _ in range(100):
            turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
            stretch = kappa ** rng.uniform(-2, 2, size=4).clip(-1, 1)
            shift = model.half_widths_[k] * rng.uniform(-1.5, 1.5, size=4).clip(-1, 1)
            sigma = stretched(covariance, turn, stretch)
            density = multivariate_normal(model.means_[k] + shift, sigma).logpdf(row)
            assert bounds.lower[0, k] <= density + 1e-9
            assert density <= bounds.upper[0, k] + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_turned_towards_the_row_reach_the_bounds(kind):
    rng = np.random.default_rng(10)
    X, y = draw_classes(rng, 4, [7, 10], condition=100)
    rows = np.vstack([draw_between(rng, X, y, 8), X[y == 0].mean(axis=0) + 0.1])
    model = published(covariance_type=kind, c=0.0, covariance_imprecision=4.0).fit(X, y)
    bounds = model.log_density_bounds(rows)
    for k, covariance in enumerate(gaussians(model)):
        kappa = 1 + 4 / (17 if kind == "tied" else [7, 10][k])
        for i, row in enumerate(rows):
            away = np.linalg.solve(np.linalg.cholesky(covariance), row - model.means_[k])
            turn = np.linalg.qr(np.column_stack([away, np.eye(4)[:, 1:]]))[0]
            # In the direction of the row the density is greatest at its own distance.
            along = [1 / kappa, np.clip(away @ away, 1 / kappa, kappa), kappa]
            density = [
                multivariate_normal(
                    model.means_[k], stretched(covariance, turn, np.r_[a, [across] * 3])
                ).logpdf(row)
                for a in along
                for across in (1 / kappa, kappa)
            ]
            np.testing.assert_allclose(bounds.lower[i, k], min(density), rtol=1e-9)
            np.testing.assert_allclose(bounds.upper[i, k], max(density), rtol=1e-9)
