"""Temperature scaling: optimal, exact in its limits, finite at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from dubito._numerics.vector_math_compiled import exp_in_place
from dubito.calibration import (
    LabelMismatchWarning,
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration._kernels.temperature_scaling_compiled import temperature_sums


def draw(n, n_classes, *, seed=0, slope=0.6):
    rng = np.random.default_rng(seed)
    u = 3 * rng.normal(size=(n, n_classes))
    return u, np.argmax(slope * u + rng.gumbel(size=u.shape), axis=1)


def mean_loss(u, y, slope, pseudo_rows=0.0, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    fraction = pseudo_rows / (weight.sum() + pseudo_rows)
    targets = (1 - fraction) * np.eye(u.shape[1])[y] + fraction / u.shape[1]
    return -np.average((targets * log_softmax(slope * u, axis=1)).sum(axis=1), weights=weight)


def test_exponential_is_right_to_rounding():
    x = -np.concatenate([[0.0], np.geomspace(1e-300, 708, 20_001)])
    result, power = x.copy(), np.empty_like(x)
    exp_in_place(result, power, power.view(np.int64))
    np.testing.assert_allclose(result, np.exp(x), rtol=3e-16)


def test_derivatives_agree_with_differences():
    u, y = draw(50, 4)
    weight = np.linspace(0.5, 2, 50)
    step, slope, fraction = 1e-5, 0.7, 0.1
    lower, upper = (
        temperature_sums(u, y, weight, fraction, t) for t in (slope - step, slope + step)
    )
    here = temperature_sums(u, y, weight, fraction, slope)
    for order in range(3):
        slope = (upper[order] - lower[order]) / (2 * step)
        assert here[order + 1] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("ridge", [0.0, 0.25, 5.0])
def test_minimises_the_likelihood(n_classes, ridge):
    u, y = draw(300, n_classes)
    model = TemperatureCalibrator(ridge=ridge).fit(u, y)
    best = minimize_scalar(
        lambda t: mean_loss(u, y, t, ridge), bounds=(0, 10), options={"xatol": 1e-12}
    )
    assert mean_loss(u, y, model.slope_, ridge) <= best.fun + 1e-14
    assert model.slope_ == pytest.approx(best.x, rel=1e-6)
    assert model.gradient_norm_ < 1e-12
    assert model.temperature_ == 1 / model.slope_


def test_agrees_with_scikit_learn_without_pseudo_observations():
    u, y = draw(500, 6)
    ours = TemperatureCalibrator(ridge=0).fit(u, y)
    if not hasattr(sklearn.calibration, "_TemperatureScaling"):
        pytest.skip("this scikit-learn has no temperature scaling")
    theirs = sklearn.calibration._TemperatureScaling().fit(u, y)
    assert ours.slope_ == pytest.approx(theirs.beta_, rel=1e-7)
    np.testing.assert_allclose(ours.predict_proba(u), theirs.predict(u), rtol=1e-6)


def test_many_rows_start_from_a_sample_and_end_at_the_optimum():
    u, y = draw(20_000, 3)
    model = TemperatureCalibrator().fit(u, y)
    assert model.n_iter_ <= 4
    assert model.gradient_norm_ < 1e-12
    grid = model.slope_ * np.array([1 - 1e-5, 1, 1 + 1e-5])
    assert np.argmin([mean_loss(u, y, t, 0.25) for t in grid]) == 1


def test_pseudo_observations_vanish_with_many_rows():
    u, y = draw(200, 3)
    gaps = [
        abs(
            TemperatureCalibrator().fit(np.tile(u, (r, 1)), np.tile(y, r)).slope_
            - TemperatureCalibrator(ridge=0).fit(u, y).slope_
        )
        for r in (1, 10)
    ]
    assert 0 < gaps[1] < gaps[0] / 8


@given(st.floats(1e-90, 1e90), st.integers(0, 5))
def test_units_of_scores_do_not_matter(unit, seed):
    u, y = draw(40, 3, seed=seed)
    model, scaled = TemperatureCalibrator().fit(u, y), TemperatureCalibrator().fit(unit * u, y)
    assert scaled.slope_ * unit == pytest.approx(model.slope_, rel=1e-10)
    np.testing.assert_allclose(
        scaled.predict_proba(unit * u), model.predict_proba(u), rtol=1e-8, atol=1e-14
    )


def test_constants_added_to_rows_do_not_matter():
    u, y = draw(80, 4)
    shift = 100 * np.random.default_rng(1).normal(size=(80, 1))
    model, shifted = TemperatureCalibrator().fit(u, y), TemperatureCalibrator().fit(u + shift, y)
    assert shifted.slope_ == pytest.approx(model.slope_, rel=1e-12)


def test_separable_scores_have_a_finite_slope():
    y = np.arange(30) % 3
    model = TemperatureCalibrator().fit(np.eye(3)[y], y)
    # All rows alike: the fitted probability is the target itself.
    fraction = 0.25 / 30.25
    assert model.predict_proba(np.eye(3))[0, 0] == pytest.approx(
        1 - fraction + fraction / 3, rel=1e-10
    )


def test_separable_scores_without_pseudo_observations_stay_finite():
    y = np.arange(30) % 3
    model = TemperatureCalibrator(ridge=0).fit(np.eye(3)[y], y)
    assert np.isfinite(model.slope_)
    assert model.predict_proba(np.eye(3)).diagonal().min() > 1 - 1e-6


def test_scores_that_point_away_give_even_probabilities():
    u, y = draw(60, 3)
    with pytest.warns(LabelMismatchWarning, match="negate the scores"):
        model = TemperatureCalibrator().fit(-u, y)
    assert model.slope_ == 0
    assert model.temperature_ == np.inf
    np.testing.assert_array_equal(model.predict_proba(u), np.full(u.shape, 1 / 3))


def test_constant_scores_have_slope_one():
    model = TemperatureCalibrator().fit(np.full((6, 3), 7.0), [0, 1, 2, 0, 1, 2])
    assert model.slope_ == 1
    np.testing.assert_allclose(model.predict_proba(np.full((1, 3), 7.0)), 1 / 3)


@pytest.mark.parametrize("score", [1e6, 1e-6, 1e150, 1e-150, 1e300])
def test_huge_and_tiny_scores(score):
    u, y = draw(50, 4)
    proba = TemperatureCalibrator().fit(score * u, y).predict_proba(score * u)
    reference = TemperatureCalibrator().fit(u, y).predict_proba(u)
    np.testing.assert_allclose(proba, reference, rtol=1e-8, atol=1e-14)


def test_one_huge_row_among_common_ones():
    u, y = draw(50, 4)
    u[0] *= 1e12
    model = TemperatureCalibrator().fit(u, y)
    assert np.isfinite(model.slope_)
    np.testing.assert_allclose(model.predict_proba(u).sum(axis=1), 1)


def test_two_columns_are_one_margin():
    u, y = draw(70, 2)
    two = TemperatureCalibrator().fit(u, y)
    one = TemperatureCalibrator().fit(u[:, 1] - u[:, 0], y)
    assert one.slope_ == pytest.approx(two.slope_, rel=1e-12)
    np.testing.assert_allclose(two.predict_proba(u), softmax(two.slope_ * u, axis=1), rtol=1e-10)


def test_a_class_without_rows_keeps_its_probability():
    u, y = draw(60, 4)
    kept = y != 3
    model = TemperatureCalibrator().fit(u[kept], y[kept])
    proba = model.predict_proba(u)
    np.testing.assert_allclose(proba, softmax(model.slope_ * u, axis=1))
    assert (proba > 0).all()


def test_more_classes_than_rows():
    u, y = draw(300, 1000)
    model = TemperatureCalibrator(classes=np.arange(1000)).fit(u, y)
    assert model.gradient_norm_ < 1e-12


@pytest.mark.parametrize("ridge", [-1.0, "much", None])
def test_ridge_is_checked(ridge):
    u, y = draw(20, 3)
    with pytest.raises(ValueError, match="'ridge' parameter"):
        TemperatureCalibrator(ridge=ridge).fit(u, y)


def test_rows_of_equal_scores_give_even_probabilities():
    rng = np.random.default_rng(0)
    for kind in (TemperatureCalibrator, VectorCalibrator, MatrixCalibrator):
        for _ in range(10):
            scores = np.repeat(rng.normal(size=(3, 1)), 3, axis=1)
            proba = kind().fit(scores, [0, 1, 2]).predict_proba([[0.1, 0.2, 0.3]])
            assert (proba > 0.2).all()
