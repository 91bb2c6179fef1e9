"""Belief from counts in bins, against exact fractions and quadrature."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss

from dubito._numerics.bernoulli import (
    belief_interval,
    clopper_pearson,
    contour,
    total_contour,
)
from dubito.calibration import BinningCalibrator, EvidentialBinningCalibrator

COUNTS = st.floats(0, 1e6)
NODES, WEIGHTS = leggauss(80)


def exact_interval(k, r):
    """Return belief and plausibility as fractions: incomplete beta functions are binomial sums."""
    n = k + r
    p = Fraction(k, n)
    tail = sum(comb(n + 1, j) * p**j * (1 - p) ** (n + 1 - j) for j in range(k + 1, n + 2))
    total = Fraction(1, (n + 1) * comb(n, k)) / (p**k * (1 - p) ** r)
    return float(p - total * tail), float(p + total * (1 - tail))


def interval(k, r):
    return tuple(float(side) for side in belief_interval(np.array(float(k)), np.array(float(r))))


@pytest.mark.parametrize(
    ("k", "r"), [(0, 1), (1, 0), (1, 1), (3, 4), (0, 50), (50, 0), (20, 1), (30, 300), (400, 500)]
)
def test_intervals_are_exact(k, r):
    assert interval(k, r) == pytest.approx(exact_interval(k, r), rel=1e-13, abs=1e-15)


OLD = np.lib.NumpyVersion(scipy.__version__) < "1.14.0"
VAST = pytest.param(1e9, 3e9, marks=pytest.mark.skipif(OLD, reason="this betainc has 8 digits"))


@pytest.mark.parametrize(("k", "r"), [(5e5, 5e5), (1e3, 1e6), (123.4, 98765.4), (2.5, 7.25), VAST])
def test_intervals_by_quadrature(k, r):
    p = k / (k + r)
    spread = np.sqrt(p * (1 - p) / (k + r))

    def area(a, b):
        u = (a + b) / 2 + (b - a) / 2 * NODES
        log_pl = k * np.log1p((u - p) / p) + r * np.log1p(-(u - p) / (1 - p))
        return (b - a) / 2 * (WEIGHTS @ np.exp(log_pl))

    below, above = area(max(0, p - 14 * spread), p), area(p, min(1, p + 14 * spread))
    lower, upper = interval(k, r)
    assert p - lower == pytest.approx(below, rel=1e-9, abs=1e-14)
    assert upper - p == pytest.approx(above, rel=1e-9, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(COUNTS, COUNTS)
def test_laws_of_one_bin(k, r):
    lower, upper = interval(k, r)
    p = k / (k + r) if k + r > 0 else 0.5
    assert 0 <= lower <= p <= upper <= 1
    mirrored = interval(r, k)
    assert (1 - upper, 1 - lower) == pytest.approx(mirrored, abs=1e-12)
    doubled = interval(2 * k, 2 * r)
    assert doubled[0] >= lower - 1e-12
    assert doubled[1] <= upper + 1e-12


def test_limits_of_one_bin():
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(0, 3) == pytest.approx((0, 1 / 4), abs=1e-15)
    assert interval(3, 0) == pytest.approx((3 / 4, 1), abs=1e-15)
    assert interval(1e-12, 1e-12) == pytest.approx((0, 1), abs=1e-9)
    # Close to a normal contour the half widths are the spread times sqrt(pi/2).
    lower, upper = interval(3e9, 1e9)
    half = np.sqrt(np.pi / 2) * np.sqrt(0.75 * 0.25 / 4e9)
    assert (0.75 - lower, upper - 0.75) == pytest.approx((half, half), rel=1e-4)


@pytest.mark.parametrize("n", [1e14, 1e16, 1e18, 1e100])
def test_more_rows_than_there_are(n):
    lower, upper = interval(n / 3, 2 * n / 3)
    assert 1 / 3 - 1e-7 < lower < 1 / 3 < upper < 1 / 3 + 1e-7
    assert interval(0, n) == pytest.approx((0, 0), abs=1e-13)


def test_the_integral_of_the_contour():
    u = (NODES + 1) / 2
    for k, r in [(0.0, 0.0), (3.0, 0.0), (2.0, 5.0), (17.0, 15.5), (40.0, 2.0)]:
        area = WEIGHTS @ contour(u, np.array(k), np.array(r)) / 2
        assert total_contour(np.array(k), np.array(r)) == pytest.approx(area, rel=1e-9)


def test_bounds_and_contour_are_those_of_the_bin():
    rng = np.random.default_rng(0)
    score = rng.normal(size=300)
    event = rng.random(300) < 1 / (1 + np.exp(-2 * score))
    fitted = EvidentialBinningCalibrator(n_bins=6).fit(score, event)
    edges = fitted.maps_[0].bins.edges
    theta = np.linspace(0, 1, 11)
    for s in (-9.0, -0.5, 0.1, 9.0):
        inside = (
            (score >= edges).T
            if False
            else np.searchsorted(edges, score) == np.searchsorted(edges, s)
        )
        k, n = int(event[inside].sum()), int(inside.sum())
        bounds = fitted.predict_bounds([s])
        assert (bounds.lower[0, 1], bounds.upper[0, 1]) == pytest.approx(exact_interval(k, n - k))
        middle = fitted.predict_bounds([s]).pignistic()[0, 1]
        assert fitted.predict_proba([s])[0, 1] == pytest.approx(middle)
        estimate = np.array(k / n)
        likelihood, best = (t**k * (1 - t) ** (n - k) for t in (theta, estimate))
        np.testing.assert_allclose(
            fitted.contour([s], theta)[0], likelihood / best, rtol=1e-9, atol=1e-14
        )


def test_an_empty_bin_is_vacuous():
    fitted = EvidentialBinningCalibrator(n_bins=4, strategy="uniform").fit([0, 0.1, 8], [0, 1, 1])
    bounds = fitted.predict_bounds([3.0])
    np.testing.assert_array_equal(bounds.lower, 0)
    np.testing.assert_array_equal(bounds.upper, 1)
    np.testing.assert_array_equal(fitted.predict_proba([3.0]), 0.5)
    np.testing.assert_array_equal(fitted.contour([3.0], [0.0, 0.3, 1.0]), 1)
    mass = fitted.predict_mass([3.0])
    assert mass.bel([0]) == mass.bel([1]) == 0


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_laplaces_rule_lies_between_the_bounds(strategy):
    rng = np.random.default_rng(0)
    score = rng.normal(size=200)
    event = rng.random(200) < 1 / (1 + np.exp(-3 * score))
    options = {"n_bins": 15, "strategy": strategy}
    bounds = EvidentialBinningCalibrator(**options).fit(score, event).predict_bounds(score)
    proba = BinningCalibrator(**options).fit(score, event).predict_proba(score)
    assert (bounds.lower < proba).all()
    assert (proba < bounds.upper).all()
    np.testing.assert_array_equal(
        EvidentialBinningCalibrator().fit(score, event).n_bins_,
        BinningCalibrator().fit(score, event).n_bins_,
    )


def test_a_million_rows_and_a_class_never_seen():
    score = np.zeros(10)
    fitted = EvidentialBinningCalibrator(classes=[0, 1]).fit(
        score, np.zeros(10, dtype=int), np.full(10, 1e5)
    )
    bounds = fitted.predict_bounds([0.0])
    np.testing.assert_allclose(bounds.upper[0, 1], 1 / (1e6 + 1), rtol=1e-9)
    assert bounds.lower[0, 1] == 0


def test_three_classes_bound_the_normalised_probabilities():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, 3))
    y = (scores + rng.normal(size=(300, 3))).argmax(axis=1)
    fitted = EvidentialBinningCalibrator(n_bins=5).fit(scores, y)
    bounds, proba = fitted.predict_bounds(scores), fitted.predict_proba(scores)
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()
    one, rest = (fitted.maps_[k].bounds(scores[:, k]) for k in (0, 1))
    other = fitted.maps_[2].bounds(scores[:, 2])
    plain = one[0] / (one[0] + rest[1] + other[1])
    base = ((y == 0).sum() + 1) / 303
    np.testing.assert_allclose(bounds.lower[:, 0], (300 * plain + base) / 301)
    assert fitted.contour(scores, [0.2, 0.5]).shape == (300, 3, 2)
    assert not hasattr(fitted, "predict_mass")


# --- bounds at a level -------------------------------------------------------------------------


@settings(deadline=None)
@given(COUNTS, COUNTS, st.floats(0.01, 0.999))
def test_limits_of_clopper_and_pearson(k, r, level):
    tail = (1 - level) / 2
    lower, upper = clopper_pearson(np.array([k]), np.array([r]), level)
    expected = scipy.stats.beta.ppf(tail, k, r + 1) if k > 1e-6 else lower[0]
    assert lower[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    expected = scipy.stats.beta.ppf(1 - tail, k + 1, r) if r > 1e-6 else upper[0]
    assert upper[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert 0 <= lower[0] <= (k / (k + r) if k + r else 0.5) <= upper[0] <= 1


def test_limits_hold_every_binomial_probability():
    n, theta = 12, np.linspace(0.01, 0.99, 197)
    k = np.arange(n + 1)
    lower, upper = clopper_pearson(k * 1.0, n - k * 1.0, 0.8)
    chance = scipy.stats.binom.pmf(k[:, None], n, theta)
    held = (lower[:, None] <= theta) & (theta <= upper[:, None])
    assert ((chance * held).sum(axis=0) >= 0.8).all()


def test_empty_bins_are_vacuous_at_any_level():
    options = {"n_bins": 3, "strategy": "uniform"}
    fitted = EvidentialBinningCalibrator(**options).fit([0.0, 0.5, 9.0], [0, 0, 1])
    bounds = fitted.predict_bounds([4.5], level=0.9)
    np.testing.assert_array_equal([bounds.lower[0], bounds.upper[0]], [[0, 0], [1, 1]])


def test_bounds_at_a_level_hold_the_mean_of_the_bin():
    rng = np.random.default_rng(0)
    n, rounds = 100, 400
    held = []
    grid = np.linspace(-1, 1, 2001)[:-1]
    truth = 1 / (1 + np.exp(-2 * grid))
    for _ in range(rounds):
        score = rng.uniform(-1, 1, n)
        event = rng.random(n) < 1 / (1 + np.exp(-2 * score))
        calibrator = EvidentialBinningCalibrator(
            n_bins=5, strategy="uniform", input="margin", classes=[False, True]
        )
        fitted = calibrator.fit(np.append(score, [-1, 1]), np.append(event, [False, True]))
        (bins,) = (m.bins for m in fitted.maps_)
        place = bins.find(grid)
        means = np.bincount(place, truth) / np.bincount(place)
        lower, upper = fitted.maps_[0].level_bounds(grid[:: len(grid) // 5][:5] + 0.1, 0.9)
        held.append((lower <= means) & (means <= upper))
    assert np.mean(held) > 0.9
