"""Beta calibration: optimality under its constraints, limits, edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.metrics import log_loss

from dubito._numerics.logistic_fit import fit_logistic
from dubito.calibration import BetaCalibrator, LabelMismatchWarning, PlattCalibrator


def draw(n, a=2.0, b=0.5, c=0.3, seed=0):
    """Draw log-odds whose true correction is a beta map."""
    rng = np.random.default_rng(seed)
    s = 2.5 * rng.normal(size=n)
    return s, rng.random(n) < expit(a * log_expit(s) - b * log_expit(-s) + c)


def columns(s):
    return np.column_stack([log_expit(s), -log_expit(-s), np.ones(len(s))])


def platt_targets(y):
    positive, negative = y.sum(), (~y).sum()
    return np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))


@pytest.mark.filterwarnings("ignore::dubito.calibration.LabelMismatchWarning")  # falling ones
@pytest.mark.parametrize(("a", "b"), [(2.0, 0.5), (3.0, -1.0), (-1.0, 2.0), (-1.0, -0.5)])
def test_ridge_zero_is_the_constrained_optimum(a, b):
    s, y = draw(150, a, b)
    t = platt_targets(y)

    def loss(c):
        eta = columns(s) @ c
        return -np.sum(t * log_expit(eta) + (1 - t) * log_expit(-eta))

    def slope(c):
        return columns(s).T @ (expit(columns(s) @ c) - t)

    reference = minimize(
        loss, [1.0, 1.0, 0.0], jac=slope, bounds=[(0, None), (0, None), (None, None)],
        method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    calibrator = BetaCalibrator(input="logits", ridge=0).fit(s, y)
    np.testing.assert_allclose(calibrator.coef_[0], reference.x, atol=1e-5)
    assert loss(calibrator.coef_[0]) <= reference.fun + 1e-10
    gradient = slope(calibrator.coef_[0])
    at_bound = calibrator.coef_[0] == 0
    assert (gradient[at_bound] >= 0).all()
    np.testing.assert_allclose(gradient[~at_bound], 0, atol=1e-9)
    assert calibrator.gradient_norm_[0] < 1e-12


def test_truth_is_found():
    s, y = draw(50_000)
    np.testing.assert_allclose(BetaCalibrator(input="logits").fit(s, y).coef_[0], [2.0, 0.5, 0.3],
                               atol=0.1)  # fmt: skip


def test_asymmetric_truth_is_better_met_than_by_a_sigmoid():
    s, y = draw(2_000)
    test, y_test = draw(20_000, seed=1)
    losses = [
        log_loss(y_test, c.fit(s, y).predict_proba(test))
        for c in (BetaCalibrator(input="logits"), PlattCalibrator(input="logits"))
    ]
    assert losses[0] < losses[1] - 0.005


@pytest.mark.parametrize("kind", ["margin", "logits"])
def test_strong_ridge_is_a_sigmoid(kind):
    s, y = draw(40)
    centre = PlattCalibrator(input=kind, ridge=1e4).fit(s, y)
    beta = BetaCalibrator(input=kind, ridge=1e4).fit(s, y)
    np.testing.assert_allclose(beta.predict_proba(s), centre.predict_proba(s), atol=1e-2)


@pytest.mark.parametrize("ridge", ["auto", 0])
@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (2.0, 1e4)])
def test_scale_and_shift_of_margins_do_not_matter(ridge, scale, shift):
    s, y = draw(60)
    plain = BetaCalibrator(ridge=ridge).fit(s, y).predict_proba(s)
    moved = BetaCalibrator(ridge=ridge).fit(scale * s + shift, y)
    np.testing.assert_allclose(moved.predict_proba(scale * s + shift), plain, atol=1e-7)


@pytest.mark.parametrize("kind", ["margin", "logits"])
@pytest.mark.parametrize("ridge", ["auto", 0])
def test_mirror_image(kind, ridge):
    s, y = draw(60)
    proba = BetaCalibrator(input=kind, ridge=ridge).fit(s, y).predict_proba(s)
    mirror = BetaCalibrator(input=kind, ridge=ridge).fit(-s, ~y).predict_proba(-s)
    np.testing.assert_allclose(mirror[:, ::-1], proba, atol=1e-9)


@pytest.mark.parametrize("ridge", ["auto", 0])
def test_weights_are_repetitions(ridge):
    s, y = draw(60)
    weight = np.arange(60) % 3
    weighted = BetaCalibrator(ridge=ridge).fit(s, y, sample_weight=weight)
    repeated = BetaCalibrator(ridge=ridge).fit(np.repeat(s, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(s), repeated.predict_proba(s), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=15),
    st.sampled_from(["margin", "logits"]),
    st.sampled_from(["auto", 0]),
)
def test_every_set_gives_a_finite_rising_map(rows, kind, ridge):
    s, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    calibrator = BetaCalibrator(input=kind, ridge=ridge, classes=[False, True]).fit(s, y)
    assert np.isfinite(calibrator.coef_).all()
    assert (calibrator.coef_[0, :2] >= 0).all()
    assert calibrator.gradient_norm_[0] < 1e-7
    grid = np.sort(np.concatenate([s, [-1e7, 0.0, 1e7]]))
    assert (np.diff(calibrator.predict_proba(grid)[:, 1]) >= -1e-12).all()


def test_faces_are_all_tried():
    # The free optimum has two negative coefficients; clipping both would not be optimal.
    rng = np.random.default_rng(3)
    design = np.column_stack([rng.normal(size=(80, 2)) @ [[1.0, 0.9], [0.0, 0.3]], np.ones(80)])
    target = (design[:, 0] - 1.2 * design[:, 1] + 0.3 * rng.normal(size=80) > 0).astype(float)
    penalty, prior = np.full(3, 0.1), np.zeros(3)
    fit = fit_logistic(design, target, np.ones(80), penalty, prior, nonnegative=(0, 1))
    gradient = design.T @ (expit(design @ fit.coef) - target) + penalty * fit.coef
    assert (fit.coef[:2] >= 0).all()
    assert (gradient[~fit.free] >= 0).all()
    np.testing.assert_allclose(gradient[fit.free], 0, atol=1e-10)


def test_falling_scores_give_a_flat_map():
    s, y = draw(200)
    with pytest.warns(LabelMismatchWarning, match="negate the scores"):
        calibrator = BetaCalibrator().fit(-s, y)
    proba = calibrator.predict_proba(np.linspace(-5, 5, 11))[:, 1]
    assert np.ptp(proba) < 1e-9
    assert proba[0] == pytest.approx(y.mean(), abs=0.01)


@pytest.mark.parametrize("ridge", ["auto", 0])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_is_likely_but_not_certain(label, ridge):
    calibrator = BetaCalibrator(classes=[0, 1], ridge=ridge)
    calibrator.fit(np.linspace(-1, 1, 20), np.full(20, label))
    proba = calibrator.predict_proba([-1.0, 0.0, 1.0])[:, label]
    assert (proba > 0.9).all()
    assert (proba < 0.9999).all()


def test_probabilities_of_zero_and_one_stay_finite():
    proba = np.array([0.0, 0.0, 0.2, 0.8, 1.0, 1.0])
    calibrator = BetaCalibrator(input="proba").fit(proba, [0, 1, 0, 1, 1, 1])
    out = calibrator.predict_proba(proba)[:, 1]
    assert ((out > 0) & (out < 1)).all()


def test_many_classes_one_of_them_missing():
    rng = np.random.default_rng(2)
    y = np.arange(120) % 4
    scores = rng.normal(size=(120, 5)) + 2 * np.eye(5)[y]
    proba = BetaCalibrator(classes=range(5)).fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.median(proba[:, 4]) < 0.02


def test_clone():
    calibrator = BetaCalibrator(ridge=0.1, floor=1e-6)
    assert clone(calibrator).get_params() == calibrator.get_params()


@pytest.mark.parametrize("ridge", ["auto", 0, 1.0])
def test_enormous_logits_are_certain_not_confusing(ridge):
    logits = 1e10 * np.array([-2, -1, -1.5, 1, 2, 1.7])
    fitted = BetaCalibrator(input="logits", ridge=ridge).fit(logits, [0, 0, 0, 1, 1, 1])
    assert fitted.gradient_norm_.max() < 1e-6
    assert (fitted.predict_proba(logits)[:3, 1] < 0.201).all()
    assert (fitted.predict_proba(logits)[3:, 1] > 0.799).all()


def test_logits_that_differ_by_rounding_only_are_constant():
    # Their logarithms are equal; a slope in units of so small a difference put both rows at 1.
    for spread in (1.4e-45, 1e-20, 1e-14):
        model = BetaCalibrator(input="logits").fit([0.0, -spread], [1, 0])
        assert model.gradient_norm_ < 1e-9
        np.testing.assert_allclose(model.predict_proba([0.0, -spread]), 0.5, atol=1e-9)
