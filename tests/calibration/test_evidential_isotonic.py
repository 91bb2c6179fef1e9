"""Isotonic profile likelihoods against a list of all block structures, and their laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.integrate import trapezoid
from scipy.special import xlog1py, xlogy

from dubito._numerics.bernoulli import belief_interval
from dubito._numerics.isotonic import belief_steps, fits_below_and_above, isotonic_fit
from dubito._numerics.isotonic_compiled import segment_integral
from dubito.calibration import (
    CalibrationInputError,
    EvidentialIsotonicCalibrator,
    LabelMismatchWarning,
)
from dubito.calibration.evidential_isotonic import EvidentialIsotonicMap

# --- brute force -------------------------------------------------------------------------------
# At the constrained optimum every maximal run of equal values is either at its own mean or holds
# s, at θ. So the best of all divisions into runs that are feasible is the optimum.


def best_log_likelihood(k, r, place, theta):
    """Maximise the likelihood over non-decreasing f with f(s)=θ, s at `place` (odd: a score)."""
    at = place // 2
    if place % 2 == 0:
        k, r = np.insert(k, at, 0.0), np.insert(r, at, 0.0)
    best = np.full(len(theta), -np.inf)
    with np.errstate(divide="ignore"):
        for cuts in itertools.product([False, True], repeat=len(k) - 1):
            edges = [0, *(1 + np.flatnonzero(cuts)), len(k)]
            runs = [(a, b, k[a:b].sum(), r[a:b].sum()) for a, b in itertools.pairwise(edges)]
            left = [(p, q) for _, b, p, q in runs if b <= at]
            right = [(p, q) for a, _, p, q in runs if a > at]
            held = next((p, q) for a, b, p, q in runs if a <= at < b)
            low = [p / (p + q) for p, q in left]
            high = [p / (p + q) for p, q in right]
            if low != sorted(low) or high != sorted(high):
                continue
            total = xlogy(held[0], theta) + xlog1py(held[1], -theta)
            for p, q in left + right:
                total = total + xlogy(p, p / (p + q)) + xlogy(q, q / (p + q))
            feasible = (theta >= max(low, default=0.0)) & (theta <= min(high, default=1.0))
            best = np.where(feasible, np.maximum(best, total), best)
    return best


def run_means(k, r):
    """Every value at which the contour can have a kink."""
    pairs = itertools.combinations(range(len(k) + 1), 2)
    means = sorted({0.0, 1.0} | {k[a:b].sum() / (k[a:b] + r[a:b]).sum() for a, b in pairs})
    return np.array([m for i, m in enumerate(means) if i == 0 or m > means[i - 1] + 1e-13])


def brute_bounds(k, r, place):
    """Integrate the brute contour between all possible kinks."""
    kinks = run_means(k, r)
    nodes, weights = leggauss(40)
    z, w = (nodes + 1) / 2, weights / 2
    ends = np.concatenate([kinks[:-1], kinks[1:]])
    reach = np.concatenate([np.diff(kinks), -np.diff(kinks)]) / 2
    # Fifth powers crowd the nodes at the kinks, where θ^a may have no derivative.
    theta = (ends[:, None] + reach[:, None] * z**5).ravel()
    weight = (np.abs(reach)[:, None] * 5 * z**4 * w).ravel()
    at_kinks = best_log_likelihood(k, r, place, kinks)
    flat = kinks[at_kinks >= at_kinks.max() - 1e-12]
    pl = np.exp(best_log_likelihood(k, r, place, theta) - at_kinks.max())
    below = weight @ (pl * (theta < flat.min()))
    above = weight @ (pl * (theta > flat.max()))
    return flat.min() - below, flat.max() + above


def draw_tallies(rng, kind, m):
    """Draw successes and failures of m distinct scores, none of them empty."""
    if kind == "unit":
        k = rng.integers(0, 2, m).astype(float)
        return k, 1 - k
    if kind == "tied":
        k, r = rng.integers(0, 4, (2, m)).astype(float)
    elif kind == "fractional":
        k, r = rng.exponential(size=(2, m)) * (rng.random((2, m)) < 0.7)
    else:
        k, r = 10 ** rng.uniform(-3, 3, (2, m)) * (rng.random((2, m)) < 0.7)
    return k, np.where(k + r > 0, r, 1.0)


def tallies_map(k, r):
    m = len(k)
    return EvidentialIsotonicMap(np.arange(m) * 1.0, k, r, *belief_steps(k, r))


@pytest.mark.parametrize("kind", ["unit", "tied", "fractional", "wild"])
@pytest.mark.parametrize("m", [1, 2, 4, 6])
def test_bounds_and_contour_are_those_of_brute_force(kind, m):
    rng = np.random.default_rng(m)
    theta = np.concatenate([[0.0, 1.0], rng.random(15)])
    for _ in range(3):
        k, r = draw_tallies(rng, kind, m)
        fitted = tallies_map(k, r)
        for place in range(2 * m + 1):
            score = np.array([0.5 * (place - 1)])
            expected = brute_bounds(k, r, place)
            np.testing.assert_allclose(np.concatenate(fitted.bounds(score)), expected, atol=1e-9)
            top = best_log_likelihood(k, r, place, run_means(k, r)).max()
            pl = np.exp(best_log_likelihood(k, r, place, theta) - top)
            np.testing.assert_allclose(fitted.contour(score, theta)[0], pl, rtol=1e-9, atol=1e-12)


def test_a_longer_one_with_ties():
    rng = np.random.default_rng(3)
    score = rng.integers(0, 8, 40) * 1.0
    event = rng.random(40) < score / 8
    fitted = EvidentialIsotonicCalibrator().fit(score, event)
    distinct = np.unique(score)
    k = np.array([event[score == s].sum() for s in distinct], dtype=float)
    r = np.array([(~event)[score == s].sum() for s in distinct], dtype=float)
    for place in (0, 3, 6, 7, 12, 16):
        s = np.interp(place, 2 * np.arange(len(distinct)) + 1, distinct)
        s = -1.0 if place == 0 else 9.0 if place == 16 else s
        bounds = fitted.predict_bounds([s])
        expected = brute_bounds(k, r, place)
        np.testing.assert_allclose([bounds.lower[0, 1], bounds.upper[0, 1]], expected, atol=1e-9)


# --- the quadrature ----------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 1e6),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_segment_integrals(power, copower, start, stop):
    mode = power / (power + copower)
    spread = np.sqrt(mode * (1 - mode) / (power + copower))
    top = mode - start * min(spread, 0.5 * mode)
    bottom = stop * top
    # Down as far as anything is left, in panels of twenty nodes crowded at both ends.
    nodes, weights = leggauss(20)
    floor = max(bottom, top - 50 * max(spread, top / (power + 1)))
    part = np.linspace(0, 1, 201)
    edges = floor + (top - floor) * part**5 / (part**5 + (1 - part) ** 5)
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    u = middle + half * nodes
    log_pl = power * np.log(u / top) + copower * np.log1p((top - u) / (1 - top))
    expected = (half * weights * np.exp(log_pl)).sum()
    # A segment as short as the spacing of numbers has no digits to compare: its ends are rounded.
    assert segment_integral(top, bottom, power, copower, 0.0) == pytest.approx(
        expected, rel=1e-9, abs=1e-15 * top
    )


@pytest.mark.parametrize(("k", "r"), [(3, 5), (1e5, 2e5), (0.3, 1e6), (7, 0), (0, 2.5)])
def test_one_distinct_score_is_one_bin(k, r):
    k, r = np.array([float(k)]), np.array([float(r)])
    lower, upper = belief_steps(k, r)
    expected = belief_interval(k, r)
    np.testing.assert_allclose(lower, [0, expected[0][0]], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(upper, [expected[1][0], 1], rtol=1e-10, atol=1e-13)


# --- laws --------------------------------------------------------------------------------------

SCORES = st.lists(
    st.tuples(st.integers(-6, 6), st.booleans(), st.integers(1, 4)), min_size=1, max_size=25
)
QUERIES = np.concatenate([[-1e6], np.arange(-7, 7.5, 0.5), [1e6]])


def fit(rows, repeat=1):
    score, event, weight = map(np.array, zip(*rows, strict=True))
    calibrator = EvidentialIsotonicCalibrator(classes=[False, True])
    return calibrator.fit(score * 1.0, event, repeat * weight)


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_bounds_rise_with_the_score_and_hold_the_estimate(rows):
    fitted = fit(rows)
    bounds, proba = fitted.predict_bounds(QUERIES), fitted.predict_proba(QUERIES)
    assert (np.diff(bounds.lower[:, 1]) >= 0).all()
    assert (np.diff(bounds.upper[:, 1]) >= 0).all()
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert bounds.lower[0, 1] == 0  # nothing speaks for an event below all scores,
    assert bounds.upper[-1, 1] == 1  # nothing against one above them


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_the_same_rows_again_narrow_the_bounds(rows):
    once, twice = fit(rows).predict_bounds(QUERIES), fit(rows, 2).predict_bounds(QUERIES)
    assert (twice.lower >= once.lower - 1e-12).all()
    assert (twice.upper <= once.upper + 1e-12).all()
    theta = np.linspace(0, 1, 21)
    np.testing.assert_allclose(
        fit(rows, 2).contour(QUERIES, theta), fit(rows).contour(QUERIES, theta) ** 2, atol=1e-12
    )


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_classes_and_scores_turned_round(rows):
    turned = [(-s, not e, w) for s, e, w in rows]
    bounds, other = fit(rows).predict_bounds(QUERIES), fit(turned).predict_bounds(-QUERIES)
    np.testing.assert_allclose(bounds.lower, other.lower[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(bounds.upper, other.upper[:, ::-1], atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_bounds_are_means_of_the_contours_levels(rows):
    fitted = fit(rows)
    theta = np.linspace(0, 1, 4001)
    pl = fitted.contour(QUERIES, theta)
    assert pl.max(axis=1) == pytest.approx(1, abs=1e-2)
    bounds = fitted.predict_bounds(QUERIES)
    # Bel is the mean of the lower end of the levels: 1 less the area under the running maximum.
    step = theta[1]
    rising = np.maximum.accumulate(pl, axis=1)
    falling = np.maximum.accumulate(pl[:, ::-1], axis=1)
    area_rising, area_falling = (trapezoid(y, dx=step, axis=1) for y in (rising, falling))
    np.testing.assert_allclose(bounds.lower[:, 1], 1 - area_rising, atol=2e-3)
    np.testing.assert_allclose(bounds.upper[:, 1], area_falling, atol=2e-3)


def test_only_the_order_of_scores_matters():
    rng = np.random.default_rng(0)
    score, event = rng.normal(size=200), rng.random(200) < 0.5
    plain = EvidentialIsotonicCalibrator().fit(score, event).predict_bounds(score)
    bent = EvidentialIsotonicCalibrator().fit(score**3, event).predict_bounds(score**3)
    np.testing.assert_array_equal(plain.lower, bent.lower)
    np.testing.assert_array_equal(plain.upper, bent.upper)


def test_one_class_leaves_the_other_possible():
    fitted = EvidentialIsotonicCalibrator(classes=[0, 1]).fit([1.0, 2.0, 3.0], [1, 1, 1])
    bounds = fitted.predict_bounds([0.0, 1.0, 1.5, 3.0, 4.0])
    np.testing.assert_array_equal(bounds.upper[:, 1], 1)
    # With j events at or below s, the contour is θ^j: Bel = 1 - 1/(j+1).
    np.testing.assert_allclose(bounds.lower[:, 1], [0, 1 / 2, 1 / 2, 3 / 4, 3 / 4], atol=1e-15)


def test_bounds_close_in_where_there_are_data():
    rng = np.random.default_rng(0)
    widths = []
    for n in (1_000, 8_000, 64_000):
        score = rng.normal(size=n)
        fitted = EvidentialIsotonicCalibrator().fit(score, rng.random(n) < 1 / (1 + np.exp(-score)))
        widths.append(fitted.predict_bounds(np.linspace(-1, 1, 101)).width.mean())
    ratios = np.array(widths[:-1]) / widths[1:]
    assert (ratios > 1.6).all()  # eight times the rows halve them
    assert (ratios < 2.5).all()


def test_one_flat_block_of_many_rows():
    n = 20_000  # the scores know nothing, or the opposite of what they should
    score = np.arange(n) * 1.0
    with pytest.warns(LabelMismatchWarning):
        fitted = EvidentialIsotonicCalibrator().fit(score, score < n / 2)
    middle = fitted.predict_bounds([n / 2 - 0.5])
    expected = belief_interval(np.array(n / 2), np.array(n / 2))
    np.testing.assert_allclose([middle.lower[0, 1], middle.upper[0, 1]], expected, atol=1e-11)


@pytest.mark.parametrize("weight", [1e-90, 1e-9, 1e9, 1e17, 1e99])
def test_weights_of_any_size(weight):
    rng = np.random.default_rng(0)
    score, event = rng.normal(size=30), rng.random(30) < 0.5
    fitted = EvidentialIsotonicCalibrator().fit(score, event, np.full(30, weight))
    bounds, proba = fitted.predict_bounds(score), fitted.predict_proba(score)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    inner = bounds.width[np.argsort(score)[5:-5]]
    if weight < 1:
        np.testing.assert_allclose(inner, 1, atol=1e-6)
    else:
        assert (inner < 1e-3).all()


def test_suffix_fits_are_fits():
    rng = np.random.default_rng(0)
    k, r = draw_tallies(rng, "tied", 60)
    follow, block_k, block_r = fits_below_and_above(k, r)[0][:3]
    for j in range(60):
        values, at = np.empty(60 - j), j
        while at < 60:
            values[at - j : follow[at] - j] = block_k[at] / (block_k[at] + block_r[at])
            at = follow[at]
        np.testing.assert_allclose(values, isotonic_fit(k[j:], r[j:]), atol=1e-13)


# --- the shell ---------------------------------------------------------------------------------


def test_mass_of_two_classes():
    fitted = fit([(0, False, 1), (1, True, 1), (2, False, 1), (3, True, 1)])
    bounds, mass = fitted.predict_bounds(QUERIES), fitted.predict_mass(QUERIES)
    np.testing.assert_allclose(mass.bel([True]), bounds.lower[:, 1])
    np.testing.assert_allclose(mass.pl([True]), bounds.upper[:, 1])


def test_contour_of_more_classes_is_each_against_the_rest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 3))
    y, theta = scores.argmax(axis=1), [0.2, 0.5]
    contour = EvidentialIsotonicCalibrator().fit(scores, y).contour(scores, theta)
    alone = EvidentialIsotonicCalibrator().fit(scores[:, 1], y == 1).contour(scores[:, 1], theta)
    np.testing.assert_array_equal(contour[:, 1], alone)


def test_contour_takes_probabilities_in_any_order():
    fitted = fit([(0, False, 1), (1, True, 2), (2, False, 1), (3, True, 1)])
    theta = np.array([0.9, 0.1, 0.5, 0.5])
    pl = fitted.contour([0.5, 1.0], theta)
    np.testing.assert_array_equal(pl[:, [1, 2, 3, 0]], fitted.contour([0.5, 1.0], np.sort(theta)))
    with pytest.raises(CalibrationInputError, match=r"probabilities in \[0, 1\]; got 1.5 to 1.5"):
        fitted.contour([0.5], [1.5])


@pytest.mark.parametrize("tiny", [1e-18, 1e-100, 1e-300])
def test_weights_below_rounding_have_bounds(tiny):
    weight = [1, tiny, 1, 1, tiny, tiny]
    fitted = EvidentialIsotonicCalibrator().fit(np.arange(6.0), [0, 1, 0, 1, 0, 1], weight)
    few = EvidentialIsotonicCalibrator().fit([0.0, 2.0, 3.0], [0, 0, 1])
    for level in (None, 0.9):
        found, expected = (m.predict_bounds([1.0], level) for m in (fitted, few))
        np.testing.assert_allclose(found.lower, expected.lower, atol=1e-6)
