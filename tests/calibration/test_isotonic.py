"""Isotonic calibration against scikit-learn, its smoothing, and its edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from dubito._numerics.isotonic import interpolate
from dubito.calibration import IsotonicCalibrator

ROWS = st.lists(
    st.tuples(st.integers(-8, 8), st.booleans(), st.integers(1, 4)), min_size=1, max_size=40
)
QUERIES = np.linspace(-10, 10, 81)


def fit(rows, **options):
    score, event, weight = map(np.array, zip(*rows, strict=True))
    calibrator = IsotonicCalibrator(classes=[False, True], **options)
    return calibrator.fit(score * 0.5, event, weight), (score * 0.5, event, weight)


def sigmoid_data(n, slope, seed):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    return score, (rng.random(n) < 1 / (1 + np.exp(-slope * score))).astype(int)


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_without_smoothing_it_is_scikit_learns(rows):
    fitted, (score, event, weight) = fit(rows, smoothing=0)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, event * 1.0, weight)
    np.testing.assert_allclose(
        fitted.predict_proba(QUERIES)[:, 1], theirs.predict(QUERIES), atol=1e-13
    )


def test_without_smoothing_it_is_scikit_learns_on_many_rows():
    score, event = sigmoid_data(20_000, 2.0, 0)
    queries = np.random.default_rng(1).normal(size=5_000)
    ours = IsotonicCalibrator(smoothing=0).fit(score, event).predict_proba(queries)[:, 1]
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, event).predict(queries)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(ROWS, st.floats(1e-3, 10))
def test_smoothing_keeps_off_the_ends_and_rises(rows, smoothing):
    proba = fit(rows, smoothing=smoothing)[0].predict_proba(QUERIES)[:, 1]
    assert (proba > 0).all()
    assert (proba < 1).all()
    assert (np.diff(proba) >= 0).all()


@settings(deadline=None, max_examples=40)
@given(ROWS, st.floats(0.1, 10))
def test_smoothing_is_two_more_rows_at_the_ends(rows, smoothing):
    smoothed, (score, event, weight) = fit(rows, smoothing=smoothing)
    plain = IsotonicCalibrator(smoothing=0, classes=[False, True]).fit(
        np.append(score, [score.min(), score.max()]),
        np.append(event, [True, False]),
        np.append(weight, [smoothing, smoothing]),
    )
    np.testing.assert_allclose(
        smoothed.predict_proba(QUERIES), plain.predict_proba(QUERIES), atol=1e-13
    )


def test_one_block_has_laplaces_rule():
    proba = IsotonicCalibrator().fit([3.0, 2.0, 1.0], [0, 1, 1]).predict_proba([0.0, 2.0, 9.0])
    np.testing.assert_allclose(proba[:, 1], 3 / 5)
    lone = IsotonicCalibrator(classes=[0, 1]).fit([0.0] * 8, [0] * 8)
    np.testing.assert_allclose(lone.predict_proba([5.0]), [[0.9, 0.1]])


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_classes_and_scores_turned_round(rows):
    turned = [(-s, not e, w) for s, e, w in rows]
    np.testing.assert_allclose(
        fit(rows)[0].predict_proba(QUERIES),
        fit(turned)[0].predict_proba(-QUERIES)[:, ::-1],
        atol=1e-13,
    )


@pytest.mark.parametrize("slope", [0.5, 2.0])
@pytest.mark.parametrize("n", [30, 300])
def test_smoothing_lowers_the_log_loss(n, slope):
    losses = {0.0: [], 1.0: []}
    for seed in range(30):
        score, event = sigmoid_data(n, slope, seed)
        new_score, new_event = sigmoid_data(1_000, slope, 1_000 + seed)
        for smoothing, collected in losses.items():
            fitted = IsotonicCalibrator(smoothing=smoothing, classes=[0, 1]).fit(score, event)
            proba = np.clip(fitted.predict_proba(new_score), 1 / (n + 2), 1 - 1 / (n + 2))
            collected.append(log_loss(new_event, proba, labels=[0, 1]))
    # Even against estimates clipped at 1/(n+2); without clipping theirs would be infinite.
    assert np.mean(losses[1.0]) < np.mean(losses[0.0])


def test_many_rows_find_the_truth():
    score, event = sigmoid_data(50_000, 2.0, 0)
    queries = np.linspace(-1.5, 1.5, 50)
    proba = IsotonicCalibrator().fit(score, event).predict_proba(queries)[:, 1]
    np.testing.assert_allclose(proba, 1 / (1 + np.exp(-2 * queries)), atol=0.04)


def test_interpolation_survives_any_gap():
    values = np.array([0.0, 1.0])
    for knots in ([-1.5e308, 1.5e308], [0.0, 5e-324], [1.0, np.nextafter(1.0, 2.0)]):
        queries = np.array([-1.7e308, knots[0], knots[1], 1.7e308])
        np.testing.assert_array_equal(interpolate(queries, np.array(knots), values), [0, 0, 1, 1])
    assert interpolate(np.array([0.0]), np.array([-1.5e308, 1.5e308]), values) == 0.5
    assert interpolate(np.array([-3.0, 3.0]), np.array([0.0]), np.array([0.2])).tolist() == [
        0.2,
        0.2,
    ]


def test_more_than_two_classes_are_normalised_one_against_rest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 3))
    y = (scores + rng.normal(size=(200, 3))).argmax(axis=1)
    fitted = IsotonicCalibrator(smoothing=0.5).fit(scores, y)
    events = [
        IsotonicCalibrator(smoothing=0.5).fit(scores[:, k], y == k).predict_proba(scores[:, k])
        for k in range(3)
    ]
    against_rest = np.column_stack([event[:, 1] for event in events])
    expected = against_rest / against_rest.sum(axis=1, keepdims=True)
    mixed = (200 * expected + (np.bincount(y) + 1) / 203) / 201
    np.testing.assert_allclose(fitted.predict_proba(scores), mixed, atol=1e-12)


def test_refuses_negative_smoothing():
    with pytest.raises(ValueError, match="smoothing"):
        IsotonicCalibrator(smoothing=-1).fit([0.0, 1.0], [0, 1])
