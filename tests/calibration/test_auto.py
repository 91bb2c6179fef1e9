"""AutoCalibrator: each of its steps against a reference, and what it promises as a whole."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss

from dubito.calibration import (
    AutoCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration._kernels.limited_slope import LimitedSlope, fit_limited_slope, limit_gaps
from dubito.calibration._kernels.pool_weights import fit_pool_weights, folds_by_margin


def draw(n, n_classes=3, slope=1.5, seed=0):
    """Draw logits and labels that they are right about."""
    rng = np.random.default_rng(seed)
    u = slope * rng.normal(size=(n, n_classes))
    y = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return u, y


def test_limited_gaps_keep_the_order_and_the_limit():
    u = np.random.default_rng(0).normal(size=(50, 5)) * np.geomspace(1e-3, 1e9, 50)[:, None]
    v = limit_gaps(u, 2.0)
    np.testing.assert_array_equal(np.argsort(u, axis=1), np.argsort(v, axis=1))
    assert v.max() == 0.0
    assert v.min() >= -2.0
    np.testing.assert_allclose(limit_gaps(u, np.inf), u - u.max(axis=1, keepdims=True))


def test_without_outliers_the_first_step_is_temperature_scaling():
    u, y = draw(300)
    fitted = fit_limited_slope(u, y, np.ones(300))
    assert fitted.limit == np.inf
    assert fitted.slope == pytest.approx(TemperatureCalibrator().fit(u, y).slope_, rel=1e-9)
    np.testing.assert_allclose(np.exp(fitted.log_proba(u)), softmax(fitted.slope * u, axis=1))


def test_outliers_are_limited():
    u, y = draw(300)
    u[::10] *= 1e4  # sure of themselves, and often wrong
    y[::10] = np.random.default_rng(1).integers(3, size=30)
    fitted = fit_limited_slope(u, y, np.ones(300))
    assert fitted.limit < np.inf
    clean, labels = draw(2000, seed=2)
    plain = LimitedSlope(np.inf, TemperatureCalibrator().fit(u, y).slope_)
    losses = [log_loss(labels, np.exp(s.log_proba(clean))) for s in (fitted, plain)]
    assert losses[0] < losses[1] - 0.1


def test_weights_of_the_pool_are_a_maximum():
    rng = np.random.default_rng(0)
    likelihood = rng.uniform(0.05, 1.0, size=(40, 3))
    weight, prior = rng.uniform(0.5, 2.0, 40), np.array([4.0, 0.1, 0.02])
    found = fit_pool_weights(likelihood, weight, prior)

    def value(v):
        return weight @ np.log(likelihood @ v) + prior @ np.log(v)

    grid = np.linspace(0.001, 0.998, 120)
    others = [
        np.array([a, b, 1 - a - b]) for a, b in itertools.product(grid, grid) if a + b < 0.9999
    ]
    assert value(found) >= max(map(value, others)) - 1e-4
    assert found.sum() == pytest.approx(1.0)


def test_folds_do_not_depend_on_order():
    u, y = draw(60)
    fold = folds_by_margin(u, y, 5)
    assert np.bincount(fold).tolist() == [12] * 5
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(folds_by_margin(u[order], y[order], 5), fold[order])
    swapped = folds_by_margin(u[:, [2, 0, 1]], np.array([1, 2, 0])[y], 5)
    np.testing.assert_array_equal(swapped, fold)
    twice = folds_by_margin(np.repeat(u, 2, axis=0), np.repeat(y, 2), 5)
    np.testing.assert_array_equal(twice, np.repeat(fold, 2))


def test_with_few_rows_it_is_the_map_and_a_little_base_rate():
    u, y = draw(60)
    fitted = AutoCalibrator(input="logits").fit(u, y)
    assert fitted.isotonic_ is None
    np.testing.assert_allclose(fitted.pool_weights_, [1 - 0.25 / 61, 0, 0.25 / 61])
    base = (np.bincount(y) + 1 / 3) / 61
    slope = TemperatureCalibrator().fit(u, y).slope_
    log_proba = np.log(softmax(slope * u, axis=1))
    matrix = MatrixCalibrator().fit(log_proba, y).predict_proba(log_proba)
    expected = matrix + 0.25 / 61 * (base - matrix)
    np.testing.assert_allclose(fitted.predict_proba(u), expected, atol=1e-8)
    assert "60 rows, 3 classes" in fitted.summary_


def test_isotonic_counts_where_the_link_is_not_logistic():
    rng = np.random.default_rng(0)
    score = rng.uniform(-3, 3, size=3000)
    y = (rng.uniform(size=3000) < np.where(score > 1, 0.9, 0.35)).astype(int)
    fitted = AutoCalibrator().fit(score, y)
    assert fitted.pool_weights_[1] > 0.5
    loss = log_loss(y, fitted.predict_proba(score))
    assert loss < log_loss(y, MatrixCalibrator().fit(score, y).predict_proba(score)) - 0.02
    assert isinstance(fitted.isotonic_, IsotonicCalibrator)


def test_where_the_form_is_right_isotonic_hardly_counts():
    fitted = AutoCalibrator().fit(*draw(2000))
    assert fitted.pool_weights_[0] > 0.9
    assert fitted.limit_ == np.inf


def test_rows_and_labels_in_any_order():
    u, y = draw(400)
    asked = draw(20, seed=1)[0]
    expected = AutoCalibrator().fit(u, y).predict_proba(asked)
    order = np.random.default_rng(0).permutation(400)
    shuffled = AutoCalibrator().fit(u[order], y[order]).predict_proba(asked)
    np.testing.assert_allclose(shuffled, expected, atol=1e-7)
    columns = [2, 0, 1]
    swapped = AutoCalibrator().fit(u[:, columns], np.array([1, 2, 0])[y])
    np.testing.assert_allclose(
        swapped.predict_proba(asked[:, columns]), expected[:, columns], atol=1e-7
    )


def test_a_row_of_weight_two_is_two_rows():
    u, y = draw(240)
    asked = draw(20, seed=1)[0]
    weight = 1.0 + np.arange(240) % 2
    weighted = AutoCalibrator().fit(u, y, weight)
    repeated = AutoCalibrator().fit(
        np.repeat(u, weight.astype(int), axis=0), np.repeat(y, 1 + np.arange(240) % 2)
    )
    np.testing.assert_allclose(weighted.pool_weights_, repeated.pool_weights_, atol=1e-9)
    np.testing.assert_allclose(
        weighted.predict_proba(asked), repeated.predict_proba(asked), atol=1e-7
    )


def test_scores_of_few_values_are_not_pooled():
    rng = np.random.default_rng(0)
    score = rng.integers(2, size=400).astype(float)
    y = (rng.uniform(size=400) < 0.3 + 0.4 * score).astype(int)
    fitted = AutoCalibrator().fit(score, y)
    assert fitted.isotonic_ is None
    assert np.isfinite(fitted.predict_proba([0.0, 1.0])).all()


def test_many_classes_take_vector_scaling():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 150
    scores = rng.normal(size=(300, 150))
    scores[np.arange(300), y] += 3
    fitted = AutoCalibrator().fit(scores, y)
    assert isinstance(fitted.map_, VectorCalibrator)
    bounds = fitted.predict_bounds(scores[:5], level=0.9)
    proba = fitted.predict_proba(scores[:5])
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()


def test_a_constant_added_to_a_row_of_margins_is_information():
    rng = np.random.default_rng(0)
    margins = 2 * rng.normal(size=(1500, 3))
    logits = margins * [1.0, 1.0, 2.0]  # a row of large margins is of the third class
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    as_margins, as_logits = (
        AutoCalibrator(input=kind).fit(margins, y) for kind in ("margin", "logits")
    )
    one_row, shifted = [[0.0, 0.0, 0.0]], [[2.0, 2.0, 2.0]]
    assert as_margins.predict_proba(shifted)[0, 2] > as_margins.predict_proba(one_row)[0, 2] + 0.2
    np.testing.assert_allclose(
        as_logits.predict_proba(shifted), as_logits.predict_proba(one_row), atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_class_without_rows_stays_possible(n_classes):
    u, y = draw(30, n_classes)
    seen = y != n_classes - 1
    fitted = AutoCalibrator(classes=np.arange(n_classes)).fit(u[seen], y[seen])
    proba = fitted.predict_proba(u)
    assert (proba > 1e-4).all()
    assert (fitted.predict_bounds(u).upper[:, -1] > proba[:, -1]).all()


def test_bounds_at_a_level_hold_the_truth():
    """Two classes, slope and offset off the scores' own: on average over rows."""
    held, wide = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        score = 2 * rng.normal(size=330)
        truth = expit(0.7 * score - 0.5)
        y = (rng.uniform(size=330) < truth).astype(int)
        fitted = AutoCalibrator().fit(score[:300], y[:300])
        lower, upper = fitted.predict_bounds(score[300:], level=0.9)
        held.append(((lower[:, 1] <= truth[300:]) & (truth[300:] <= upper[:, 1])).mean())
        wide.append((upper - lower).mean())
    assert np.mean(held) >= 0.87
    assert np.mean(wide) < 0.2


def test_units_of_margins_mean_nothing():
    rng = np.random.default_rng(1)
    y = rng.integers(5, size=400)
    scores = np.sinh(rng.normal(size=(400, 5)) + 1.5 * np.eye(5)[y])
    expected = AutoCalibrator().fit(scores, y)
    assert expected.isotonic_ is not None
    scaled = AutoCalibrator().fit(1e-3 * scores, y)
    np.testing.assert_allclose(
        scaled.predict_proba(1e-3 * scores), expected.predict_proba(scores), atol=1e-10
    )


def test_the_summary_gives_the_reason_for_no_isotonic_map():
    rng = np.random.default_rng(0)
    score = rng.integers(2, size=400).astype(float)
    y = (rng.uniform(size=400) < 0.3 + 0.4 * score).astype(int)
    assert "too many equal scores" in AutoCalibrator().fit(score, y).summary_


def test_misfit_is_that_of_the_pool():
    rng = np.random.default_rng(0)
    score = rng.uniform(-3, 3, size=3000)
    y = (rng.uniform(size=3000) < np.where(score > 1, 0.9, 0.35)).astype(int)
    fitted = AutoCalibrator().fit(score, y)
    assert fitted.map_.misfit_ > 1 / 6
    assert fitted.misfit_ < 1 / 6
    fitted.predict_bounds(score[:5], level=0.9)  # without a warning
