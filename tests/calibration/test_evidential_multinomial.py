"""The evidential multinomial calibrator: its fit, its likelihood and what it does at the edges."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone

from dubito.calibration import (
    CalibrationInputError,
    EvidentialMultinomialCalibrator,
    LabelMismatchWarning,
    TemperatureCalibrator,
)
from dubito.calibration._kernels import slope_couplings as couplings
from dubito.testing.calibrators import draw_scores

COUPLINGS = ("gumbel", "inverse_cdf", "envelope")


def draw(n, n_classes, *, seed=0, sharp=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), y] += sharp
    return scores, y


def likelihood(scores, y, *, smoothed=True):
    """The negative log-likelihood of the slope (Xu et al. 2015, eq. 24 and 25)."""
    n_classes = scores.shape[1]
    targets = np.eye(n_classes)[y]
    if smoothed:
        count = np.bincount(y, minlength=n_classes)[y][:, None]
        targets = (count * targets + 1) / (count + n_classes)

    def value(theta):
        return logsumexp(theta * scores, axis=1).sum() - theta * (targets * scores).sum()

    return value


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
@pytest.mark.parametrize(("n", "n_classes"), [(20, 2), (50, 3), (400, 12)])
def test_slope_is_the_maximum_of_the_likelihood(targets, n, n_classes):
    scores, y = draw(n, n_classes, sharp=1.0)
    model = EvidentialMultinomialCalibrator(targets=targets, classes=range(n_classes))
    model.fit(scores, y)
    value = likelihood(scores, y, smoothed=targets == "smoothed")
    best = minimize_scalar(value, bounds=(0, 20), method="bounded", options={"xatol": 1e-9})
    assert model.slope_ == pytest.approx(best.x, abs=1e-6)
    assert model.gradient_norm_ < 1e-13
    assert model.n_iter_ < 20


@pytest.mark.parametrize(("n", "sharp"), [(1, 1.0), (3, -2.0), (5, 0.0), (40, 1.0), (300, 3.0)])
def test_contour_and_level_sets_are_exact(n, sharp):
    scores, y = draw(n, 4, sharp=sharp)
    model = EvidentialMultinomialCalibrator(targets="smoothed", classes=range(4)).fit(scores, y)
    value = likelihood(scores, y)
    theta = model.slope_ * np.array([0, 0.5, 0.9, 1, 1.1, 2]) + np.array([0, 0, 0, 0, 0.1, 1])
    expected = [np.exp(value(model.slope_) - value(t)) for t in theta]
    np.testing.assert_allclose(model.slope_contour(theta), expected, rtol=1e-9, atol=1e-15)
    levels = np.array([1.0, 0.99, 0.5, 0.1, 1e-3, 1e-8])
    lower, upper = model.level_set(levels)
    assert lower[0] == upper[0] == model.slope_

    def gap(t, level):
        return value(t) - value(model.slope_) + np.log(level)

    for low, high, level in zip(lower[1:], upper[1:], levels[1:], strict=True):
        assert gap(high, level) == pytest.approx(0, abs=1e-9)
        if gap(0, level) > 0:
            exact = brentq(gap, 0, model.slope_, args=(level,), xtol=1e-14)
            assert low == pytest.approx(exact, abs=1e-10)
        else:
            assert low == 0


def test_contour_and_level_set_take_numbers_and_tables():
    model = EvidentialMultinomialCalibrator().fit(*draw(30, 3))
    assert model.slope_contour(model.slope_) == 1.0
    assert model.slope_contour(np.full((2, 3), model.slope_)).shape == (2, 3)
    assert model.slope_contour(np.inf) == 0.0
    low, high = model.level_set(0.5)
    assert low < model.slope_ < high
    with pytest.raises(ValueError, match="negative"):
        model.slope_contour([-1.0])
    for gamma in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="gamma"):
            model.level_set(gamma)


def test_separable_data_need_pseudo_observations():
    scores = np.random.default_rng(0).normal(size=(20, 3))
    y = scores.argmax(axis=1)
    with pytest.raises(CalibrationInputError, match='targets="light"'):
        EvidentialMultinomialCalibrator(targets="raw", classes=range(3)).fit(scores, y)
    model = EvidentialMultinomialCalibrator(classes=range(3)).fit(scores, y)
    assert 0 < model.slope_ < np.inf


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_more_rows_narrow_the_bounds_down_to_the_probabilities(coupling):
    scores, y = draw(25, 4)
    rows = np.random.default_rng(1).normal(size=(10, 4))
    widths = []
    for times in (1, 2, 4, 4000):
        model = EvidentialMultinomialCalibrator(coupling=coupling, targets="raw")
        model.fit(scores, y, sample_weight=np.full(25, float(times)))
        widths.append(model.predict_bounds(rows).width)
    assert all((b < a).all() for a, b in pairwise(widths))
    assert widths[-1].max() < 0.02


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_weights_are_repetitions(coupling):
    scores, y = draw(30, 3)
    weight = np.arange(30) % 3
    rows = np.random.default_rng(1).normal(size=(10, 3))
    weighted = EvidentialMultinomialCalibrator(coupling=coupling, classes=range(3))
    repeated = clone(weighted)
    weighted.fit(scores, y, sample_weight=weight)
    repeated.fit(np.repeat(scores, weight, axis=0), np.repeat(y, weight))
    a, b = weighted.predict_bounds(rows), repeated.predict_bounds(rows)
    np.testing.assert_allclose(a.lower, b.lower, atol=1e-10)
    np.testing.assert_allclose(a.upper, b.upper, atol=1e-10)


def sound(model, rows):
    """Check that predictions are finite and in order; return the bounds."""
    p, bounds = model.predict_proba(rows), model.predict_bounds(rows)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (bounds.lower >= 0).all()
    assert (bounds.lower <= p + 1e-12).all()
    assert (p <= bounds.upper + 1e-12).all()
    assert (bounds.upper <= 1).all()
    return bounds


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e100])
def test_the_unit_of_the_scores_does_not_matter(coupling, scale):
    scores, y = draw(12, 3)
    rows = np.random.default_rng(1).normal(size=(10, 3))
    plain = EvidentialMultinomialCalibrator(coupling=coupling, classes=range(3)).fit(scores, y)
    model = clone(plain).fit(scale * scores, y)
    bounds, expected = sound(model, scale * rows), plain.predict_bounds(rows)
    np.testing.assert_allclose(bounds.lower, expected.lower, rtol=0, atol=1e-6)
    np.testing.assert_allclose(bounds.upper, expected.upper, rtol=0, atol=1e-6)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e9])
def test_rows_unlike_those_of_the_fit_are_sound(coupling, scale):
    rows = scale * np.random.default_rng(1).normal(size=(10, 3))
    for n, sharp in ((1, 1.0), (6, -3.0), (6, 1.0), (500, 1.0)):
        scores, y = draw(n, 3, sharp=sharp)
        model = EvidentialMultinomialCalibrator(coupling=coupling, classes=range(3))
        bounds = sound(model.fit(scores, y), rows)
        if scale == 0.0:  # with equal scores all slopes are alike
            np.testing.assert_allclose(bounds.lower, 1 / 3, atol=1e-9)
            np.testing.assert_allclose(bounds.upper, 1 / 3, atol=1e-9)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_constant_scores_leave_every_slope_possible(coupling, targets):
    model = EvidentialMultinomialCalibrator(coupling=coupling, targets=targets, classes=range(3))
    model.fit(np.full((5, 3), 7.0), [0, 1, 2, 0, 0])
    assert model.slope_ == 0
    assert model.level_set(0.5) == (0.0, np.inf)
    assert model.slope_contour(1e9) == 1.0
    bounds = sound(model, [[3.0, 2.0, 0.0], [1.0, 1.0, 1.0]])
    # Slope 0 gives a third to each class, slope infinity all to the best.
    np.testing.assert_allclose(bounds.upper[0, 0], 1, atol=1e-6)
    np.testing.assert_allclose(bounds.lower[0], [1 / 3, 0, 0], atol=1e-6)
    np.testing.assert_allclose(bounds.lower[1], 1 / 3, atol=1e-12)
    np.testing.assert_allclose(bounds.upper[1], 1 / 3, atol=1e-12)


def test_reversed_scores_have_slope_zero():
    scores, y = draw(200, 3, sharp=-2.0)
    with pytest.warns(LabelMismatchWarning, match="negate the scores"):
        model = EvidentialMultinomialCalibrator().fit(scores, y)
    assert model.slope_ == 0
    np.testing.assert_allclose(model.predict_proba(scores[:5]), 1 / 3)
    assert sound(model, scores).width.max() < 0.05


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_classes_may_be_missing_and_many(coupling):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 1000))
    y = np.repeat([3, 700], 30)
    scores[np.arange(60), y] += 4
    model = EvidentialMultinomialCalibrator(coupling=coupling, targets="raw")
    bounds = sound(model.fit(scores, y), scores[:3])
    assert bounds.lower.shape == (3, 1000)


def test_bounds_come_in_chunks(monkeypatch):
    scores, y = draw(200, 3)
    model = EvidentialMultinomialCalibrator().fit(scores, y)
    whole = model.predict_bounds(scores)
    monkeypatch.setattr(type(model), "_entries_per_class", 2**22)
    parts = model.predict_bounds(scores)
    np.testing.assert_allclose(whole.lower, parts.lower, atol=1e-15)
    np.testing.assert_allclose(whole.upper, parts.upper, atol=1e-15)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_mass_agrees_with_the_bounds(n_classes):
    scores, y = draw(15, n_classes)
    model = EvidentialMultinomialCalibrator(coupling="inverse_cdf", classes=range(n_classes))
    mass = model.fit(scores, y).predict_mass(scores)
    assert mass.mass.shape == (15, 2**n_classes - 1)
    bounds, singles = model.predict_bounds(scores), mass.bounds()
    # Two rules for one integral: bounds are cut at their kinks, masses are not.
    np.testing.assert_allclose(singles.lower, bounds.lower, rtol=0, atol=5e-5)
    np.testing.assert_allclose(singles.upper, bounds.upper, rtol=0, atol=5e-5)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_mass_is_that_of_its_levels(n_classes):
    scores, y = draw(15, n_classes)
    model = EvidentialMultinomialCalibrator(coupling="inverse_cdf", classes=range(n_classes))
    nodes = model.fit(scores, y).quadrature_
    rows = scores - scores.max(axis=1, keepdims=True)
    mass = couplings.inverse_cdf_mass(rows, nodes)
    members = (np.arange(1, 2**n_classes)[:, None] >> np.arange(n_classes)) & 1
    lower, upper = np.zeros_like(rows), np.zeros_like(rows)
    for weight, least, most in couplings.extremes(rows, nodes):
        lower += weight * np.maximum(least[:, 1:] - most[:, :-1], 0)
        upper += weight * (most[:, 1:] - least[:, :-1])
    np.testing.assert_allclose(mass[:, 2 ** np.arange(n_classes) - 1], lower, rtol=0, atol=1e-9)
    np.testing.assert_allclose(mass @ members, upper, rtol=0, atol=1e-9)


def test_mass_exists_where_the_model_defines_it():
    two, three = draw(15, 2), draw(15, 3)
    for coupling in COUPLINGS:
        model = EvidentialMultinomialCalibrator(coupling=coupling).fit(*two)
        singles, bounds = model.predict_mass(two[0]).bounds(), model.predict_bounds(two[0])
        np.testing.assert_allclose(singles.lower, bounds.lower, rtol=0, atol=1e-9)
        np.testing.assert_allclose(singles.upper, bounds.upper, rtol=0, atol=1e-8)
    assert not hasattr(EvidentialMultinomialCalibrator().fit(*three), "predict_mass")


def test_one_column_and_probabilities_are_read():
    scores, y = draw(40, 2)
    rows = np.array([-1.0, 0.3, 2.0])
    margin = scores[:, 1] - scores[:, 0]
    one = EvidentialMultinomialCalibrator().fit(margin, y).predict_bounds(rows)
    p = 1 / (1 + np.exp(-margin))
    shares = EvidentialMultinomialCalibrator(input="proba").fit(p, y)
    two = shares.predict_bounds(1 / (1 + np.exp(-rows)))
    np.testing.assert_allclose(one.lower, two.lower, atol=1e-9)
    frozen = scores.astype(np.float32)
    frozen.flags.writeable = False
    EvidentialMultinomialCalibrator().fit(frozen, y).predict_bounds(frozen)


def test_light_targets_are_those_of_temperature_scaling():
    scores, y = draw_scores(80, 4)
    light = EvidentialMultinomialCalibrator(targets="light").fit(scores, y)
    assert light.slope_ == pytest.approx(TemperatureCalibrator().fit(scores, y).slope_, rel=1e-9)
    separable = 20 * np.eye(4)[y]
    fitted = EvidentialMultinomialCalibrator(targets="light").fit(separable, y)
    assert np.isfinite(fitted.slope_)
    assert fitted.predict_bounds(separable).lower.max(axis=1).min() > 0.5
