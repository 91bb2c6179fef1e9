"""Couplings against brute force: dense levels, fine slopes, definitions written out."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

from dubito._numerics.targets import class_targets
from dubito.calibration import EvidentialMultinomialCalibrator
from dubito.calibration._kernels import slope_couplings as couplings
from dubito.calibration._kernels import slope_likelihood as multinomial
from dubito.calibration._kernels.slope_quadrature import quadrature_points

COUPLINGS = ("gumbel", "inverse_cdf", "envelope")


def draw(n, n_classes, *, seed=0, sharp=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), y] += sharp
    return scores, y


def fitted(coupling, n, n_classes, **options):
    scores, y = draw(n, n_classes)
    model = EvidentialMultinomialCalibrator(
        coupling=coupling, targets="smoothed", classes=np.arange(n_classes), **options
    )
    return model.fit(scores, y)


def softmax(theta, s):
    """Probabilities at many slopes, (T, K)."""
    e = np.exp(np.multiply.outer(theta, s - s.max()))
    return e / e.sum(axis=1, keepdims=True)


def negative_log_likelihood(theta, scores, y):
    """Xu et al. 2015, eq. 24 with the targets of eq. 25, term by term."""
    n_classes = scores.shape[1]
    counts = np.bincount(y, minlength=n_classes)
    total = np.zeros(len(theta))
    for row, label in zip(scores, y, strict=True):
        target = np.full(n_classes, 1 / (counts[label] + n_classes))
        target[label] = (counts[label] + 1) / (counts[label] + n_classes)
        logits = np.multiply.outer(theta, row)
        total += logsumexp(logits, axis=1) - logits @ target
    return total


@cache
def brute_force_levels(n, n_classes, levels=400):
    """Weights and ends of level sets at midpoints in r, by bisection on the likelihood."""
    scores, y = draw(n, n_classes)

    def nll(theta):
        return negative_log_likelihood(np.atleast_1d(theta), scores, y)

    best = minimize_scalar(
        lambda t: nll(t)[0], bounds=(0, 100), method="bounded", options={"xatol": 1e-10}
    )
    edges = np.linspace(0, 7, levels + 1)
    weight = np.diff(-np.exp(-(edges**2) / 2))
    target = best.fun + (0.5 * (edges[1:] + edges[:-1])) ** 2 / 2
    ends = []
    for outer in (0.0, 1e4):
        inside, outside = np.full(levels, best.x), np.full(levels, outer)
        for _ in range(45):
            middle = 0.5 * (inside + outside)
            within = nll(middle) <= target
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        ends.append(inside)
    return weight / weight.sum(), *ends


def brute_force(coupling, n, n_classes, s):
    """Bounds of one row by dense levels and dense slopes within each, without the kernels."""
    lower, upper = np.zeros(len(s)), np.zeros(len(s))
    for weight, low, high in zip(*brute_force_levels(n, n_classes), strict=True):
        # Crowded at the lower end, where wide level sets have their bends.
        theta = low + (high - low) * np.linspace(0, 1, 201) ** 2
        belief, plausibility = at_level(coupling, theta, softmax(theta, s), s)
        lower += weight * belief
        upper += weight * plausibility
    return lower, upper


def at_level(coupling, theta, p, s):
    """Belief and plausibility of each class at one level, from the definitions."""
    if coupling == "envelope":
        return p.min(axis=0), p.max(axis=0)
    if coupling == "inverse_cdf":
        g = np.hstack([np.zeros((len(p), 1)), np.cumsum(p, axis=1)])
        least, most = g.min(axis=0), g.max(axis=0)
        return np.maximum(least[1:] - most[:-1], 0), most[1:] - least[:-1]
    ends = np.array([theta[0], theta[-1]])
    gaps = s[None, :] - s[:, None]
    lower = 1 / np.exp(np.multiply.outer(ends, gaps).max(axis=0)).sum(axis=1)
    rate = p * ((s[:, None] - s[None, :]).clip(0) @ p.T).T
    return lower, p[0] + trapezoid(rate, theta, axis=0)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize(("n", "n_classes"), [(3, 2), (3, 3), (12, 3), (60, 5)])
def test_bounds_are_those_of_brute_force(coupling, n, n_classes):
    model = fitted(coupling, n, n_classes)
    rows = np.random.default_rng(1).normal(size=(2, n_classes)) * 1.5
    bounds = model.predict_bounds(rows)
    for i, row in enumerate(rows):
        lower, upper = brute_force(coupling, n, n_classes, row)
        # What remains is the spacing of the brute force.
        np.testing.assert_allclose(bounds.lower[i], lower, rtol=0, atol=3e-5)
        np.testing.assert_allclose(bounds.upper[i], upper, rtol=0, atol=3e-5)


def wide(rows, n_classes, scale=2.0, seed=2):
    return scale * np.random.default_rng(seed).normal(size=(rows, n_classes))


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize(("n", "n_classes"), [(1, 3), (3, 5), (500, 10)])
@pytest.mark.parametrize("scale", [0.3, 300.0])
def test_the_rule_is_as_good_as_a_much_finer_one(coupling, n, n_classes, scale):
    rows = wide(5, n_classes, scale)
    bounds = fitted(coupling, n, n_classes).predict_bounds(rows)
    finer = fitted(coupling, n, n_classes, n_points=64).predict_bounds(rows)
    tolerance = {"gumbel": 1e-8, "inverse_cdf": 5e-5, "envelope": 1e-6}[coupling]
    np.testing.assert_allclose(bounds.lower, finer.lower, rtol=0, atol=tolerance)
    np.testing.assert_allclose(bounds.upper, finer.upper, rtol=0, atol=tolerance)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_nearly_separable_raw_targets_keep_the_accuracy(coupling):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(15, 4))
    y = scores.argmax(axis=1)
    best, second = np.argsort(scores[0])[[-1, -2]]
    scores[0, second] = scores[0, best] - 0.01
    y[0] = second

    def bounds(n_points):
        model = EvidentialMultinomialCalibrator(
            coupling=coupling, n_points=n_points, targets="raw", classes=range(4)
        )
        return model.fit(scores, y).predict_bounds(wide(5, 4, 0.2))

    ours, finer = bounds(16), bounds(64)
    tolerance = {"gumbel": 1e-8, "inverse_cdf": 5e-5, "envelope": 1e-6}[coupling]
    np.testing.assert_allclose(ours.lower, finer.lower, rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.upper, finer.upper, rtol=0, atol=tolerance)


@pytest.mark.parametrize("n", [2, 5, 60])
def test_couplings_agree_for_two_classes(n):
    rows = wide(20, 2)
    first, *others = (fitted(c, n, 2).predict_bounds(rows) for c in COUPLINGS)
    for other in others:
        np.testing.assert_allclose(other.lower, first.lower, rtol=0, atol=1e-7)
        np.testing.assert_allclose(other.upper, first.upper, rtol=0, atol=1e-7)
    np.testing.assert_allclose(first.lower, 1 - first.upper[:, ::-1], rtol=0, atol=1e-9)


def test_two_classes_have_the_ends_of_the_level_sets():
    model = fitted("gumbel", 20, 2)
    rows = wide(6, 2)
    points = model.quadrature_
    gap = np.abs(rows[:, 1] - rows[:, 0])
    bounds = model.predict_bounds(rows)
    for ends, best in ((points.lower, bounds.lower), (points.upper, bounds.upper)):
        expected = points.gamma_weight @ expit(np.multiply.outer(ends, gap))
        np.testing.assert_allclose(best[np.arange(6), rows.argmax(axis=1)], expected, atol=1e-9)


@pytest.mark.parametrize("coupling", ["gumbel", "envelope"])
@pytest.mark.parametrize("n", [4, 100])
def test_labels_may_be_permuted_and_scores_keep_their_order(coupling, n):
    model = fitted(coupling, n, 6)
    rows = wide(50, 6)
    permutation = np.random.default_rng(4).permutation(6)
    bounds, permuted = model.predict_bounds(rows), model.predict_bounds(rows[:, permutation])
    order = np.argsort(rows, axis=1)
    for plain, moved in ((bounds.lower, permuted.lower), (bounds.upper, permuted.upper)):
        np.testing.assert_allclose(plain[:, permutation], moved, rtol=0, atol=1e-15)
        assert (np.diff(np.take_along_axis(plain, order, axis=1), axis=1) >= -1e-16).all()


def test_the_papers_coupling_depends_on_the_order_of_the_labels():
    model = fitted("inverse_cdf", 10, 6)
    rows = wide(50, 6)
    plain, moved = model.predict_bounds(rows), model.predict_bounds(rows[:, ::-1])
    swapped = model.predict_bounds(rows[:, [0, 2, 4, 1, 3, 5]])
    assert np.abs(plain.upper[:, [0, 2, 4, 1, 3, 5]] - swapped.upper).max() > 0.01
    # Turned round, neighbours stay neighbours.
    np.testing.assert_allclose(plain.upper[:, ::-1], moved.upper, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::dubito.calibration.LabelMismatchWarning")
@pytest.mark.parametrize("coupling", COUPLINGS)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_probabilities_lie_between_the_bounds(coupling, data):
    n, n_classes = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 6))
    seed, sharp = data.draw(st.integers(0, 10**6)), data.draw(st.floats(-3, 3))
    scores, y = draw(n, n_classes, seed=seed, sharp=sharp)
    scores = np.round(scores, 1)  # ties
    model = EvidentialMultinomialCalibrator(coupling=coupling, classes=range(n_classes))
    model.fit(scores, y)
    rows = np.round(wide(20, n_classes, seed=seed), data.draw(st.integers(0, 3)))
    p, bounds = model.predict_proba(rows), model.predict_bounds(rows)
    assert (bounds.lower <= p + 1e-15).all()
    assert (p <= bounds.upper + 1e-15).all()
    if coupling != "inverse_cdf":
        tied = rows[:, :, None] == rows[:, None, :]
        for bound in (bounds.lower, bounds.upper):
            assert np.abs(bound[:, :, None] - bound[:, None, :])[tied].max() < 1e-15


def test_envelope_lies_within_gumbel():
    rows = wide(50, 5)
    narrow, broad = (fitted(c, 10, 5).predict_bounds(rows) for c in ("envelope", "gumbel"))
    assert (narrow.lower >= broad.lower - 1e-7).all()
    assert (narrow.upper <= broad.upper + 1e-7).all()
    paper = fitted("inverse_cdf", 10, 5).predict_bounds(rows)
    assert (narrow.upper <= paper.upper + 1e-5).all()


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize(("n", "n_classes"), [(3, 2), (10, 5), (300, 12), (300, 150)])
def test_compiled_and_numpy_kernels_agree(coupling, n, n_classes, monkeypatch):
    points = fitted(coupling, n, n_classes).quadrature_
    rows = np.round(wide(70, n_classes), 2)
    rows -= rows.max(axis=1, keepdims=True)
    pairs = []
    for start in (0, 2**62):
        monkeypatch.setattr(couplings, "COMPILED_FROM", start)
        pairs.append(couplings.belief_and_plausibility(rows, points, coupling))
    for ours, plain in zip(*pairs, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-11, atol=1e-14)


def test_compiled_exponential_is_right_to_the_last_digits():
    compiled = pytest.importorskip("dubito.calibration._kernels.slope_couplings_compiled")
    s = -np.concatenate([np.linspace(0, 5, 10_001), np.logspace(-12, 2.8, 1000)])
    power, out = np.empty_like(s), np.empty_like(s)
    compiled._exp(1.1, s, power, power.view(np.int64), out)
    # Two units in the last place: older compilers fuse less, and numpy's exp has one of its own.
    np.testing.assert_allclose(out, np.exp(1.1 * s), rtol=4.5e-16, atol=0)
    compiled._exp(1e6, s[-1:], power[:1], power[:1].view(np.int64), out[:1])
    assert out[0] < 1e-300


def test_points_integrate_over_levels_and_slopes():
    scores, y = draw(8, 3)
    targets = class_targets(y, np.ones(8), scores.shape[1], "smoothed")
    linear = multinomial.linear_term(scores, y, np.ones(8), targets)
    fit = multinomial.fit_likelihood(scores, np.ones(8), linear)
    model = EvidentialMultinomialCalibrator(targets="smoothed", classes=range(3)).fit(scores, y)
    for refine in (0, 2):
        points = quadrature_points(fit, 16, refine=refine)
        # Both are the length of a random level set.
        mean = points.gamma_weight @ (points.upper - points.lower)
        area = points.lower_weight.sum() + points.upper_weight.sum()
        theta = np.linspace(0, model.level_set(1e-12)[1], 200_001)
        np.testing.assert_allclose(mean, area, rtol=1e-7)
        np.testing.assert_allclose(area, trapezoid(model.slope_contour(theta), theta), rtol=1e-7)
