"""Bounds with a confidence level from one slope: by brute force, identities and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import chi2

from dubito.calibration import EvidentialMultinomialCalibrator
from dubito.calibration._kernels import slope_level as slope_levels


def draw(n, n_classes, *, slope=1.5, seed=0):
    """Scores whose softmax at `slope` is the truth."""
    rng = np.random.default_rng([seed, n, n_classes])
    scores = rng.normal(size=(n, n_classes))
    return scores, np.argmax(slope * scores + rng.gumbel(size=scores.shape), axis=1)


def fitted(scores, y, **options):
    return EvidentialMultinomialCalibrator(classes=range(scores.shape[1]), **options).fit(scores, y)


def level_set(scores, y, pseudo, level, farthest=200.0):
    """Ends of a likelihood's level set in [0, farthest], by generic solvers."""
    n, n_classes = scores.shape
    fraction = pseudo / (n + pseudo)
    target = (1 - fraction) * np.eye(n_classes)[y] + fraction / n_classes

    def loss(theta):
        return -float(np.sum(target * log_softmax(theta * scores, axis=1)))

    best = minimize_scalar(loss, bounds=(0, farthest), options={"xatol": 1e-10})
    at = min((0.0, best.x, farthest), key=loss)
    depth = loss(at) + 0.5 * chi2.ppf(level, 1)
    low = 0.0 if loss(0.0) <= depth else brentq(lambda v: loss(v) - depth, 0.0, at)
    open_above = loss(farthest) <= depth
    return low, farthest if open_above else brentq(lambda v: loss(v) - depth, at, farthest)


@pytest.mark.parametrize(("n", "n_classes"), [(5, 2), (8, 3), (30, 4), (100, 10)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bounds_are_extremes_over_the_hull_of_two_level_sets(n, n_classes, level):
    scores, y = draw(n, n_classes)
    ends = [level_set(scores, y, pseudo, level) for pseudo in (0.0, 0.5)]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    theta = np.append(np.linspace(low, min(high, 20.0), 20_001), np.linspace(low, high, 20_001))
    rows = np.random.default_rng(1).normal(size=(5, n_classes))
    rows[0] = np.round(rows[0])  # ties
    model = fitted(scores, y)
    bounds = model.predict_bounds(rows, level=level)
    assert bounds.level == level
    for i, row in enumerate(rows):
        p = softmax(np.multiply.outer(np.append(theta, model.slope_), row), axis=1)
        np.testing.assert_allclose(bounds.lower[i], p.min(axis=0), rtol=0, atol=1e-6)
        np.testing.assert_allclose(bounds.upper[i], p.max(axis=0), rtol=0, atol=1e-6)


def test_bounds_are_nested_and_hold_the_probability():
    scores, y = draw(20, 5)
    rows = 3 * np.random.default_rng(1).normal(size=(200, 5))
    for targets in ("light", "smoothed", "raw"):
        model = fitted(scores, y, targets=targets)
        proba = model.predict_proba(rows)
        inner = model.predict_bounds(rows, level=0.1)
        assert (inner.lower <= proba).all()
        assert (proba <= inner.upper).all()
        for level in (0.5, 0.9, 0.999, 1 - 1e-12):
            outer = model.predict_bounds(rows, level=level)
            assert (outer.lower <= inner.lower + 1e-10).all()  # maxima are interpolated
            assert (outer.upper >= inner.upper - 1e-10).all()
            inner = outer


def test_labels_may_be_permuted_and_the_coupling_does_not_matter():
    scores, y = draw(25, 4)
    order = np.array([2, 0, 3, 1])
    rows = np.random.default_rng(1).normal(size=(50, 4))
    bounds = fitted(scores, y).predict_bounds(rows, level=0.9)
    other = fitted(scores[:, order], np.argsort(order)[y], coupling="inverse_cdf")
    permuted = other.predict_bounds(rows[:, order], level=0.9)
    np.testing.assert_allclose(permuted.lower, bounds.lower[:, order], rtol=0, atol=1e-8)
    np.testing.assert_allclose(permuted.upper, bounds.upper[:, order], rtol=0, atol=1e-8)


def test_weight_two_is_a_row_twice_and_absent_classes_do_no_harm():
    scores, y = draw(12, 4)
    y = np.minimum(y, 2)  # no row of the last class
    rows = np.random.default_rng(1).normal(size=(20, 4))
    weight = np.where(np.arange(12) % 3 == 0, 2.0, 1.0)
    weighted = EvidentialMultinomialCalibrator(classes=range(4)).fit(scores, y, weight)
    twice = fitted(np.repeat(scores, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)))
    one, two = (m.predict_bounds(rows, level=0.9) for m in (weighted, twice))
    np.testing.assert_allclose(one.lower, two.lower, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one.upper, two.upper, rtol=0, atol=1e-7)


def test_labels_that_always_come_first_exclude_no_large_slope():
    scores = np.array([[2.0, 0, 0], [0, 1, 0.5], [0, 0, 3], [1, 1, 0]])
    model = fitted(scores, [0, 1, 2, 0])
    low, high = slope_levels.slope_interval(model._level_likelihoods, 0.9)
    assert high == np.inf
    # The supremum of the raw likelihood is a half, from the tie.
    depth = np.log(2) + 0.5 * chi2.ppf(0.9, 1)
    own = scores[np.arange(4), [0, 1, 2, 0]]
    loss = brentq(
        lambda v: np.sum(np.log(np.exp(v * (scores - own[:, None])).sum(axis=1))) - depth, 0, 50
    )
    assert low == pytest.approx(min(loss, level_set(scores, [0, 1, 2, 0], 0.5, 0.9)[0]), abs=1e-6)
    bounds = model.predict_bounds([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1, 1, 1]], level=0.9)
    np.testing.assert_allclose(bounds.upper[0, 0], 1.0)
    np.testing.assert_allclose(bounds.lower[0, 1:], 0.0)
    np.testing.assert_allclose(bounds.upper[1, :2], 0.5)  # a tie is shared
    np.testing.assert_allclose(bounds.lower[2], 1 / 3)


def test_constant_scores_exclude_nothing():
    model = fitted(np.ones((6, 3)), [0, 1, 2, 0, 1, 0])
    bounds = model.predict_bounds([[2.0, 1.0, -5.0]], level=0.9)
    np.testing.assert_allclose(bounds.lower, [[1 / 3, 0, 0]], atol=1e-12)
    assert bounds.upper[0, 0] == pytest.approx(1.0)
    # The greatest probability of the middle class, of any slope.
    best = max(softmax(np.multiply.outer(np.linspace(0, 5, 50_001), [2, 1, -5]), axis=1)[:, 1])
    assert bounds.upper[0, 1] == pytest.approx(best, abs=1e-8)


@pytest.mark.filterwarnings("ignore::dubito.calibration.LabelMismatchWarning")
def test_scores_against_their_labels_leave_slope_zero():
    scores, y = draw(40, 3, slope=-3.0)
    low, high = slope_levels.slope_interval(fitted(scores, y)._level_likelihoods, 0.9)
    assert low == 0.0
    assert 0 < high < 1


@pytest.mark.parametrize("interval", [(0.5, 4.0), (0.0, np.inf), (2.0, 2.0), (0.0, 1e9)])
def test_thousands_of_classes_and_gaps_of_many_sizes(interval):
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=2000), -np.geomspace(1e-9, 1e9, 2000), -np.arange(2000.0)])
    rows -= rows.max(axis=1, keepdims=True)
    lower, upper = slope_levels.extreme_probabilities(rows, interval)
    low, high = interval[0], min(interval[1], 1e12)
    theta = np.unique(np.clip(np.append(np.geomspace(1e-12, 1e12, 4000), [low, high]), low, high))
    p = softmax(np.multiply.outer(theta, rows[1]), axis=1)
    assert (upper[1] >= p.max(axis=0) - 1e-9).all()
    np.testing.assert_allclose(upper[1], p.max(axis=0), rtol=0, atol=1e-5)  # the grid is coarse
    assert (lower <= upper).all()
    assert (lower[1] <= p.min(axis=0) + 1e-12).all()


@pytest.mark.parametrize(
    "slope",
    [pytest.param(0.5, marks=pytest.mark.slow), 2.0, pytest.param(6.0, marks=pytest.mark.slow)],
)
def test_the_level_is_kept(slope):
    """Coverage of the true slope, pooled over cells; 300 draws have error 0.017."""
    held = []
    for n, n_classes, draws in [(10, 3, 80), (10, 10, 80), (30, 5, 80), (100, 3, 60)]:
        for seed in range(draws):
            scores, y = draw(n, n_classes, slope=slope, seed=seed)
            low, high = slope_levels.slope_interval(
                slope_levels.slope_level_likelihoods(scores, y, np.ones(n)), 0.9
            )
            held.append(low <= slope <= high)
    assert np.mean(held) > 0.87
