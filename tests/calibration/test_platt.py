"""Sigmoid calibration: optimality, limits, edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from dubito._numerics.logistic_fit import (
    RIDGES,
    fit_logistic,
    leave_one_out_loss,
    standardisation,
)
from dubito._numerics.targets import event_targets
from dubito.calibration import PlattCalibrator


def draw(n, slope=1.5, shift=0.3, seed=0):
    rng = np.random.default_rng(seed)
    s = 2 * rng.normal(size=n) + 0.5
    return s, rng.random(n) < expit(slope * s + shift)


def test_ridge_zero_is_platts_method():
    s, y = draw(40)
    positive, negative = y.sum(), (~y).sum()
    t = np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(c):
        eta = c[0] * s + c[1]
        return -np.sum(t * log_expit(eta) + (1 - t) * log_expit(-eta))

    reference = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9,
                         "fatol": 1e-13}).x  # fmt: skip
    calibrator = PlattCalibrator(ridge=0).fit(s, y)
    np.testing.assert_allclose(calibrator.slope_[0], reference[0], rtol=1e-6)
    np.testing.assert_allclose(calibrator.intercept_[0], reference[1], rtol=1e-6)


def test_ridge_zero_is_scikit_learns_sigmoid():
    s, y = draw(200)
    margin = LogisticRegression(C=np.inf).fit(s[:, None], y)
    rival = CalibratedClassifierCV(FrozenEstimator(margin), method="sigmoid").fit(s[:, None], y)
    scores = margin.decision_function(s[:, None])
    ours = PlattCalibrator(ridge=0).fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(ours, rival.predict_proba(s[:, None]), atol=1e-5)


@pytest.mark.parametrize("kind", ["margin", "logits"])
def test_ridge_is_the_penalised_optimum(kind):
    s, y = draw(25)
    centre, scale = s.mean(), s.std()
    prior = [logit((y.sum() + 0.5) / 26), 0.0] if kind == "margin" else [centre, scale]
    unit = 1.0 if kind == "margin" else max(1.0, np.hypot(scale, centre))

    def loss(c):
        eta = c[0] + c[1] * (s - centre) / scale
        fit = -np.sum(np.where(y, log_expit(eta), log_expit(-eta)))
        return fit + 0.35 * np.sum((c - prior) ** 2) / unit**2

    reference = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9,
                         "fatol": 1e-13}).x  # fmt: skip
    calibrator = PlattCalibrator(ridge=0.7, input=kind).fit(s, y)
    np.testing.assert_allclose(calibrator.maps_[0].fit.coef, reference, rtol=1e-6)
    assert calibrator.gradient_norm_[0] < 1e-14
    assert calibrator.ridge_[0] == 0.7


def test_strong_ridge_leaves_logits_alone():
    s, y = draw(30)
    proba = PlattCalibrator(input="logits", ridge=1e9).fit(s, y).predict_proba(s)
    np.testing.assert_allclose(proba[:, 1], expit(s), atol=1e-6)


def test_strong_ridge_gives_margins_the_class_frequency():
    s, y = draw(30)
    proba = PlattCalibrator(ridge=1e9).fit(s, y).predict_proba(s)
    np.testing.assert_allclose(proba[:, 1], (y.sum() + 0.5) / 31, atol=1e-6)


def test_many_rows_give_the_plain_logistic_fit():
    s, y = draw(20_000)
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(s[:, None], y)
    calibrator = PlattCalibrator().fit(s, y)
    np.testing.assert_allclose(calibrator.slope_, plain.coef_[0], rtol=1e-2)
    np.testing.assert_allclose(calibrator.slope_, 1.5, rtol=0.05)


def test_leave_one_out_is_close_to_refitting():
    s, y = draw(30)
    design = np.column_stack([s / s.std(), np.ones(30)])
    penalty, prior, weight = np.full(2, 0.5), np.zeros(2), np.ones(30)
    whole = fit_logistic(design, y.astype(float), weight, penalty, prior)
    analytic = leave_one_out_loss(design, y, weight, penalty, whole)
    exact = 0.0
    for i in range(30):
        rest = np.arange(30) != i
        fit = fit_logistic(design[rest], y[rest].astype(float), weight[rest], penalty, prior)
        eta = design[i] @ fit.coef
        exact -= log_expit(eta if y[i] else -eta)
    in_sample = -np.sum(log_expit(np.where(y, 1, -1) * (design @ whole.coef)))
    assert analytic == pytest.approx(exact, rel=0.02)
    assert abs(analytic - exact) < 0.2 * (exact - in_sample)


def test_useless_scores_choose_a_strong_ridge():
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(20):
        s, y = rng.normal(size=40), np.arange(40) % 2 == 0
        chosen.append(PlattCalibrator(ridge="auto").fit(s, y).ridge_[0])
    assert np.median(chosen) == max(RIDGES)


@pytest.mark.parametrize("ridge", ["auto", 0, 0.3])
@pytest.mark.parametrize(("scale", "shift"), [(1e-8, 0.0), (1e8, 0.0), (2.0, 1e4)])
def test_scale_and_shift_of_margins_do_not_matter(ridge, scale, shift):
    s, y = draw(50)
    plain = PlattCalibrator(ridge=ridge).fit(s, y)
    moved = PlattCalibrator(ridge=ridge).fit(scale * s + shift, y)
    np.testing.assert_allclose(
        moved.predict_proba(scale * s + shift), plain.predict_proba(s), atol=1e-9
    )
    np.testing.assert_allclose(moved.slope_, plain.slope_ / scale, rtol=1e-8)


@pytest.mark.parametrize("ridge", ["auto", 0, 0.3])
def test_weights_are_repetitions(ridge):
    s, y = draw(50)
    weight = np.arange(50) % 3
    weighted = PlattCalibrator(ridge=ridge).fit(s, y, sample_weight=weight)
    repeated = PlattCalibrator(ridge=ridge).fit(np.repeat(s, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(s), repeated.predict_proba(s), atol=1e-11)


@pytest.mark.parametrize("ridge", ["auto", 0, 0.3])
def test_mirror_image(ridge):
    s, y = draw(50)
    proba = PlattCalibrator(ridge=ridge).fit(s, y).predict_proba(s)
    mirror = PlattCalibrator(ridge=ridge).fit(-s, ~y).predict_proba(-s)
    np.testing.assert_allclose(mirror[:, ::-1], proba, atol=1e-12)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=15),
    st.sampled_from(["margin", "logits"]),
    st.sampled_from(["auto", 0, 1e-6]),
)
@example([(0.0, False), (4.345847379902e-311, True)], "margin", "auto")
def test_every_set_gives_a_finite_optimum(rows, kind, ridge):
    s, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    calibrator = PlattCalibrator(input=kind, ridge=ridge, classes=[False, True]).fit(s, y)
    assert np.isfinite(calibrator.slope_).all()
    assert np.isfinite(calibrator.intercept_).all()
    assert calibrator.gradient_norm_[0] < 1e-9
    proba = calibrator.predict_proba(s)
    assert ((proba >= 0) & (proba <= 1)).all()


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("ridge", ["auto", 0])
def test_one_class_is_likely_but_not_certain(label, ridge):
    calibrator = PlattCalibrator(classes=[0, 1], ridge=ridge)
    calibrator.fit(np.linspace(-1, 1, 20), np.full(20, label))
    proba = calibrator.predict_proba([-1.0, 0.0, 1.0])[:, label]
    assert (proba > 0.9).all()
    assert (proba < 0.999).all()


@pytest.mark.parametrize("ridge", ["auto", 0])
def test_separable_scores_are_not_certain(ridge):
    s = np.linspace(-1, 1, 20)
    calibrator = PlattCalibrator(ridge=ridge).fit(s, s > 0)
    proba = calibrator.predict_proba([-0.06, 1.0])[:, 1]
    assert 0.2 < proba[0] < 0.5
    assert 0.9 < proba[1] < 0.99999


def test_constant_scores_have_no_slope():
    calibrator = PlattCalibrator(ridge=0).fit(np.full(10, 3.7), np.arange(10) < 6)
    assert calibrator.slope_[0] == 0
    expected = event_targets(np.arange(10) < 6, np.ones(10), "smoothed").mean()
    np.testing.assert_allclose(calibrator.predict_proba([3.7, 1e9])[:, 1], expected)


def test_rounding_is_no_slope():
    s = np.full(10, 0.1) + 1e-17 * np.arange(10)
    s[3] = np.nextafter(0.1, 1)
    assert standardisation(s, np.ones(10))[1] == 0


def test_probabilities_are_read_as_log_odds():
    s, y = draw(40)
    by_proba = PlattCalibrator(input="proba").fit(expit(s), y)
    by_logits = PlattCalibrator(input="logits").fit(s, y)
    np.testing.assert_allclose(
        by_proba.predict_proba(expit(s)), by_logits.predict_proba(s), atol=1e-9
    )


def test_many_classes_one_of_them_missing():
    rng = np.random.default_rng(2)
    y = np.arange(120) % 4
    scores = rng.normal(size=(120, 5)) + 2 * np.eye(5)[y]
    calibrator = PlattCalibrator(classes=range(5)).fit(scores, y)
    proba = calibrator.predict_proba(scores)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert calibrator.slope_.shape == (5,)
    assert np.median(proba[:, 4]) < 0.02
    assert (calibrator.predict(scores) == y).mean() > 0.7


def test_clone_and_wrong_ridge():
    calibrator = PlattCalibrator(ridge=0.1, floor=1e-6)
    assert clone(calibrator).get_params() == calibrator.get_params()
    with pytest.raises(ValueError, match="'ridge' parameter"):
        PlattCalibrator(ridge=-1).fit([0.0, 1.0], [0, 1])
    check_is_fitted(calibrator.fit([0.0, 1.0], [0, 1]))
