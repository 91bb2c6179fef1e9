"""Isotonic bounds at a confidence level: cuts of the contour, exact ones, and what they hold."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta, chi2

from dubito._numerics.isotonic import (
    cut_bounds,
    fits_below_and_above,
    flatness,
    neighbour_bounds,
    ratio_quantile,
    widened_bounds,
)
from dubito.calibration import EvidentialIsotonicCalibrator

ROOT = Path(__file__).parents[2]

ROWS = st.lists(
    st.tuples(st.integers(-6, 6), st.booleans(), st.integers(1, 4)), min_size=1, max_size=25
)
QUERIES = np.concatenate([[-1e6], np.arange(-7, 7.5, 0.5), [1e6]])


def fit(rows, **options):
    score, event, weight = map(np.array, zip(*rows, strict=True))
    calibrator = EvidentialIsotonicCalibrator(classes=[False, True], **options)
    return calibrator.fit(score * 1.0, event, weight)


def cut_of(fitted, level):
    """Return the quantile that -2 log pl is cut at."""
    (fitted_map,) = fitted.maps_
    below, _ = fits_below_and_above(fitted_map.successes, fitted_map.failures)
    return ratio_quantile(level, flatness(below.starts, fitted_map.successes + fitted_map.failures))


# --- the limit law -----------------------------------------------------------------------------


def test_table_is_that_of_the_limit_law():
    sys.path.insert(0, str(ROOT))
    isotonic_limit = pytest.importorskip("experiments.validity.isotonic_limit")
    found = isotonic_limit.simulate(20_000, seed=1)
    for level in (0.2, 0.5, 0.8, 0.9, 0.95, 0.99):
        fine, coarse = (found < ratio_quantile(level, 0.0)).mean(axis=1)
        error = np.sqrt(level * (1 - level) / found.shape[1])
        assert 2 * fine - coarse == pytest.approx(level, abs=4 * error)


def test_quantiles_lie_between_the_limit_law_and_chi_square():
    levels = np.concatenate([np.linspace(0.001, 0.999, 500), [0.9999, 0.999999]])
    for flat in (0.0, 0.3, 1.0):
        quantiles = [ratio_quantile(level, flat) for level in levels]
        assert (np.diff(quantiles) > 0).all()
        assert (quantiles <= chi2.ppf(levels, 1) * (1 + 1e-9)).all()
    # Banerjee and Wellner (2001) found 2.29 for 0.95 from far fewer paths.
    assert ratio_quantile(0.95, 0.0) == pytest.approx(2.27, abs=0.03)
    assert ratio_quantile(0.9, 1.0) == pytest.approx(chi2.ppf(0.9, 1))


def cuts_of(fitted_map, score, level):
    """Cuts as they are, without the widening near the first and last rows."""
    knots = fitted_map._knots_left(score)
    return cut_bounds(*knots, fitted_map.successes, fitted_map.failures, level)


# --- cuts --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(ROWS, st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_ends_are_where_the_contour_falls_below_the_cut(rows, level):
    fitted = fit(rows)
    (fitted_map,) = fitted.maps_
    lower, upper = cuts_of(fitted_map, QUERIES, level)
    cut = np.exp(-0.5 * cut_of(fitted, level))
    for query, low, high in zip(QUERIES, lower, upper, strict=True):
        grid = np.linspace(0, 1, 301)
        theta = np.concatenate([[low, high], grid])
        pl = fitted.contour([query], theta)[0]
        if low > 0:
            assert pl[0] == pytest.approx(cut, rel=1e-9)
        if high < 1:
            assert pl[1] == pytest.approx(cut, rel=1e-9)
        inside = (grid >= low) & (grid <= high)
        assert (pl[2:][inside] >= cut * (1 - 1e-9)).all()
        assert (pl[2:][~inside] <= cut * (1 + 1e-9)).all()


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_ends_rise_with_the_score_and_part_with_the_level(rows):
    fitted = fit(rows)
    inner = fitted.predict_bounds(QUERIES, level=0.5)
    outer = fitted.predict_bounds(QUERIES, level=0.95)
    for level in (0.5, 0.95):
        for end in cuts_of(fitted.maps_[0], QUERIES, level):
            assert (np.diff(end) >= -1e-12).all()
    assert (outer.lower <= inner.lower + 1e-12).all()
    assert (outer.upper >= inner.upper - 1e-12).all()
    assert outer.level == 0.95


@settings(deadline=None, max_examples=40)
@given(ROWS, st.booleans())
def test_classes_and_scores_turned_round(rows, exact):
    turned = [(-s, not e, w) for s, e, w in rows]
    bounds = fit(rows, exact=exact).predict_bounds(QUERIES, level=0.9)
    other = fit(turned, exact=exact).predict_bounds(-QUERIES, level=0.9)
    np.testing.assert_allclose(bounds.lower, other.lower[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(bounds.upper, other.upper[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("exact", [False, True])
def test_a_weight_of_two_is_a_row_twice(exact):
    rng = np.random.default_rng(0)
    score = rng.integers(0, 12, 40) * 1.0
    event, weight = rng.random(40) < score / 12, rng.integers(1, 4, 40)
    query = np.arange(-1, 13, 0.5)
    weighted = EvidentialIsotonicCalibrator(exact=exact).fit(score, event, weight)
    repeated = EvidentialIsotonicCalibrator(exact=exact).fit(
        np.repeat(score, weight), np.repeat(event, weight)
    )
    ours, theirs = (f.predict_bounds(query, level=0.9) for f in (weighted, repeated))
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-12)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-12)


def test_one_class_leaves_the_other_possible():
    fitted = EvidentialIsotonicCalibrator(classes=[0, 1]).fit([1.0, 2.0, 3.0], [1, 1, 1])
    lower, upper = cuts_of(fitted.maps_[0], np.array([0.0, 1.0, 1.5, 3.0, 4.0]), 0.9)
    np.testing.assert_array_equal(upper, 1)
    # With j events at or below s the contour is θ^j, and there is one block.
    seen = np.array([np.nan, 1, 1, 3, 3])
    expected = np.exp(-0.5 * chi2.ppf(0.9, 1) / seen)
    np.testing.assert_allclose(lower[1:], expected[1:])
    assert lower[0] == 0


@pytest.mark.parametrize("weight", [1e-90, 1e-9, 1e9, 1e17, 1e99])
@pytest.mark.parametrize("exact", [False, True])
def test_weights_of_any_size(weight, exact):
    rng = np.random.default_rng(0)
    score, event = rng.normal(size=30), rng.random(30) < 0.5
    fitted = EvidentialIsotonicCalibrator(exact=exact).fit(score, event, np.full(30, weight))
    bounds, proba = fitted.predict_bounds(score, level=0.9), fitted.predict_proba(score)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()


def test_bounds_hold_the_probability_of_four_classes():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(80, 4))
    y = (scores + rng.normal(size=(80, 4))).argmax(axis=1)
    for exact in (False, True):
        fitted = EvidentialIsotonicCalibrator(exact=exact).fit(scores, y)
        bounds, proba = fitted.predict_bounds(scores, level=0.5), fitted.predict_proba(scores)
        assert (bounds.lower <= proba).all()
        assert (proba <= bounds.upper).all()


# --- exact bounds ------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
def test_exact_bounds_are_those_of_the_nearest_rows(tied):
    rng = np.random.default_rng(2)
    n = 60
    score = rng.integers(0, 15, n) * 1.0 if tied else rng.normal(size=n)
    event = rng.random(n) < expit(score - 7 * tied)
    fitted = EvidentialIsotonicCalibrator(exact=True).fit(score, event)
    queries = np.concatenate([[-100.0, 100.0], score, score + 0.5])
    (fitted_map,) = fitted.maps_
    lower, upper = fitted_map.level_bounds(queries, 0.9)
    reach = int(np.ceil(n ** (2 / 3)))
    for query, low, high in zip(queries, lower, upper, strict=True):
        for end, sign in ((low, -1), (high, 1)):
            away = sign * (score - query)
            near = np.sort(away[away >= 0])[:reach]
            taken = (away >= 0) & (away <= near[-1]) if len(near) else np.zeros(n, dtype=bool)
            k, size = event[taken].sum(), taken.sum()
            if sign < 0:
                expected = beta.ppf(0.05, k, size - k + 1) if k else 0.0
            else:
                expected = beta.ppf(0.95, k + 1, size - k) if k < size else 1.0
            assert end == pytest.approx(expected, abs=1e-12)


# --- coverage ----------------------------------------------------------------------------------


def held(read, n, probability, rounds, seed):
    """Return how often bounds at 0.9 hold the probability at new scores, and their mean width."""
    rng = np.random.default_rng(seed)
    hits, widths = [], []
    for _ in range(rounds):
        score, new = np.sort(rng.normal(size=n)), rng.normal(size=20)
        event = (rng.random(n) < probability(score)).astype(float)
        place = np.searchsorted(score, new)
        lower, upper = read(place, place, event, 1 - event, 0.9)
        truth = probability(new)
        hits.append(((lower <= truth) & (truth <= upper)).mean())
        widths.append((upper - lower).mean())
    return np.mean(hits), np.mean(widths)


SMOOTH = {
    "weak": expit,
    "strong": lambda s: expit(3 * s),
    "rare": lambda s: expit(2 * s - 2),
    "not logistic": lambda s: 0.1 + 0.8 * expit(4 * s) ** 3,
}


@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("name", SMOOTH)
def test_cuts_hold_the_probability(name, n):
    rounds = 150 if n == 1000 else 400
    fraction, width = held(cut_bounds, n, SMOOTH[name], rounds, seed=n)
    assert fraction > 0.86  # the error of a fraction from so many rounds is 0.006
    assert width < 1.7 * n ** (-1 / 3)


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("slope", [0.0, 0.8])
def test_near_the_ends_cuts_are_too_narrow_and_widened_ones_are_not(n, slope):
    """Isotonic fits err there whatever n: at the first row the least mean of runs is taken."""
    rng = np.random.default_rng(n)
    ends = np.array([0.02, 0.98])
    truth = 0.1 + slope * ends
    held_by = {cut_bounds: 0, widened_bounds: 0}
    for _ in range(300):
        score = np.sort(rng.random(n))
        event = (rng.random(n) < 0.1 + slope * score).astype(float)
        place = np.searchsorted(score, ends)
        for read in held_by:
            lower, upper = read(place, place, event, 1 - event, 0.9)
            held_by[read] += ((lower <= truth) & (truth <= upper)).mean() / 300
    assert held_by[widened_bounds] > 0.9
    if n == 300:
        assert held_by[cut_bounds] < 0.85


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_widened_bounds_lie_between_cuts_and_exact_ones(rows):
    (fitted_map,) = fit(rows).maps_
    (exact_map,) = fit(rows, exact=True).maps_
    lower, upper = fitted_map.level_bounds(QUERIES, 0.9)
    inner, outer = cuts_of(fitted_map, QUERIES, 0.9), exact_map.level_bounds(QUERIES, 0.9)
    assert ((lower == inner[0]) | (lower == outer[0])).all()
    assert ((upper == inner[1]) | (upper == outer[1])).all()
    assert (lower <= inner[0]).all()
    assert (upper >= inner[1]).all()


@pytest.mark.parametrize("n", [10, 100, 700])
@pytest.mark.parametrize(
    "probability",
    [*SMOOTH.values(), lambda s: np.full_like(s, 0.3), lambda s: np.where(s < 0, 0.02, 0.9)],
)
def test_exact_bounds_hold_any_monotone_probability(n, probability):
    fraction, _ = held(neighbour_bounds, n, probability, 150, seed=n)
    assert fraction > 0.9


def test_exact_bounds_are_about_twice_as_wide():
    widths = [held(read, 300, expit, 60, seed=0)[1] for read in (cut_bounds, neighbour_bounds)]
    assert 1.4 < widths[1] / widths[0] < 2.2
