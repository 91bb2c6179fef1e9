"""Resamples as weights, and the limits made of them."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from dubito.metrics import bootstrap, smooth_calibration_error
from dubito.metrics.bootstrap import CalibrationErrorMetric, ResampledMetric
from dubito.metrics.forecasts import read_forecasts, top_event


def test_resamples_draw_as_many_rows_as_there_are_with_their_weights():
    weight = np.array([0.5, 2.0, 3.0])
    rows = bootstrap.resample({"drawn": lambda w: w}, weight, 400, np.random.default_rng(0))
    times = rows["drawn"] / weight[:, None]
    assert (times == times.round()).all()
    assert (times.sum(axis=0) == 3).all()
    # Each row is drawn once on average, with variance 2/3: a standard error of 0.04.
    np.testing.assert_allclose(times.mean(axis=1), 1, atol=0.15)


@pytest.mark.parametrize("seen", [1.0, -1.0])
def test_one_cell_has_the_limits_of_its_deviation(seen):
    # |s d + u| with d = 1 and u normal of spread 0.1: the limits are 1 -+ 1.96 x 0.1.
    drawn = seen + 0.1 * norm.ppf((np.arange(1999) + 1) / 2000)[None]
    norm_of = partial(np.linalg.norm, axis=0)
    factors = bootstrap.residual_factors(np.array([[seen]]), drawn, norm_of, 0.95)
    assert factors == pytest.approx((0.804, 1.196), abs=0.003)


def test_residuals_that_chance_explains_may_be_none():
    norm_of = partial(np.linalg.norm, axis=0)
    drawn = 1.0 + 3 * norm.ppf((np.arange(1999) + 1) / 2000)[None]
    low, high = bootstrap.residual_factors(np.ones((1, 1)), drawn, norm_of, 0.95)
    assert low == 0
    assert high == pytest.approx(1 + 3 * 1.96, rel=0.1)


def test_limits_stay_in_range_and_hold_the_value():
    residuals = bootstrap.MeanResiduals(
        lambda w: np.full((1, w.shape[1]), 0.9), lambda e: np.abs(e[0])
    )
    error = CalibrationErrorMetric(0.9, residuals, np.ones(1))
    assert error.estimate(np.linspace(0.4, 1.4, 99)[None], 0.95).high == 1
    low, value, high = 0.5, 0.5, 0.75
    assert ResampledMetric(value, None).estimate(np.array([0.6, 0.75]), 0.95) == (value, low, high)
    assert ResampledMetric(value, None).estimate(np.array([0.25, 0.4]), 0.95) == (
        value,
        0.25,
        value,
    )


def test_the_smooth_error_of_many_forecasts_on_a_grid_is_close():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = rng.random(3000) < p**1.5
    residuals = bootstrap.smooth_residuals(top_event(read_forecasts(y, p, None, None)))
    value = residuals.error(residuals.mean(np.ones((3000, 1))))[0]
    # Half a cell of 1/64 times the mean of |o - p|.
    assert value == pytest.approx(smooth_calibration_error(y, p), abs=np.abs(y - p).mean() / 128)
