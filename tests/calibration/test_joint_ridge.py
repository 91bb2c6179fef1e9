"""The ridge of joint calibration that maximises the marginal likelihood, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logsumexp
from sklearn.metrics import log_loss

from dubito.calibration import EvidentialFusion, EvidentialJointCalibrator


def binary(n, seed, slopes=(1.5, 1.0, 0.0)):
    """Scores of classifiers with most of their noise in common, and labels."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 1))
    scores = shared + 0.4 * rng.normal(size=(n, len(slopes)))
    return scores, (rng.random(n) < expit(scores @ slopes - 0.3)).astype(int)


def softmax_rows(n, seed, n_classes=3, bias=0.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 2, n_classes))
    offsets = bias * np.linspace(-1, 1, n_classes)
    utilities = 1.2 * scores[:, 0] + 0.6 * scores[:, 1] + offsets
    return scores, np.argmax(utilities + rng.gumbel(size=(n, n_classes)), axis=1)


def minus_log_marginal_likelihood(log_ridge, design, y):
    """Return minus the log marginal likelihood by Laplace's approximation, the bias being free."""
    ridge = np.exp(log_ridge)
    slopes = design.shape[1] - 1
    penalty = np.append(0.0, np.full(slopes, ridge))
    sign = np.where(y == 1, 1.0, -1.0)

    def objective(x):
        eta = design @ x
        residual = expit(eta) - y
        value = -log_expit(sign * eta).sum() + 0.5 * penalty @ (x * x)
        return value, design.T @ residual + penalty * x

    found = minimize(objective, np.zeros(len(penalty)), jac=True, options={"gtol": 1e-9})
    p = expit(design @ found.x)
    hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(penalty)
    return found.fun + 0.5 * np.linalg.slogdet(hessian)[1] - 0.5 * slopes * np.log(ridge)


@pytest.mark.parametrize("seed", range(3))
def test_the_ridge_maximises_the_marginal_likelihood(seed):
    scores, y = binary(80, seed)
    model = EvidentialJointCalibrator(targets="raw", ridge="auto").fit(scores, y)
    standardised = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    design = np.column_stack([np.ones(len(y)), standardised])
    best = minimize_scalar(
        minus_log_marginal_likelihood, bounds=(-6, 9), args=(design, y), method="bounded"
    )
    reached = minus_log_marginal_likelihood(np.log(model.ridge_[0]), design, y)
    # MacKay's fixed point neglects how the curvature moves with the ridge.
    assert reached == pytest.approx(best.fun, abs=0.05)


def test_the_estimate_is_that_of_the_ridge_found():
    scores, y = binary(60, 3)
    auto = EvidentialJointCalibrator(ridge="auto").fit(scores, y)
    given = EvidentialJointCalibrator(ridge=float(auto.ridge_[0])).fit(scores, y)
    np.testing.assert_allclose(auto.slope_, given.slope_, rtol=1e-6)
    np.testing.assert_allclose(auto.predict_proba(scores), given.predict_proba(scores), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bounds_have_no_ridge_and_hold_the_probability(n_classes):
    scores, y = binary(60, 4) if n_classes == 2 else softmax_rows(60, 4)
    auto = EvidentialJointCalibrator(ridge="auto", bias=n_classes == 2).fit(scores, y)
    none = EvidentialJointCalibrator(bias=n_classes == 2).fit(scores, y)
    bounds, plain, proba = (
        auto.predict_bounds(scores),
        none.predict_bounds(scores),
        auto.predict_proba(scores),
    )
    np.testing.assert_allclose(bounds.lower, np.minimum(plain.lower, proba), atol=1e-7)
    np.testing.assert_allclose(bounds.upper, np.maximum(plain.upper, proba), atol=1e-7)
    np.testing.assert_allclose(auto.slope_ / none.slope_, 1, atol=0.9)
    assert np.linalg.norm(auto.slope_) < np.linalg.norm(none.slope_)


def test_biases_come_where_rows_show_them_and_for_any_order_of_classes():
    scores, y = softmax_rows(300, 0, bias=1.5)
    shown = EvidentialJointCalibrator(ridge="auto").fit(scores, y)
    np.testing.assert_allclose(shown.intercept_, [-1.5, 0, 1.5], atol=0.6)
    assert shown.ridge_.shape == (2,)
    order = [2, 0, 1]
    other = EvidentialJointCalibrator(ridge="auto").fit(scores[:, :, order], np.argsort(order)[y])
    np.testing.assert_allclose(
        other.predict_proba(scores[:, :, order]), shown.predict_proba(scores)[:, order], atol=1e-6
    )
    hidden = EvidentialJointCalibrator(ridge="auto").fit(*softmax_rows(1000, 1))
    assert hidden.ridge_.shape == (1,)
    np.testing.assert_array_equal(hidden.intercept_, np.zeros(3))


def test_it_serves_better_than_no_ridge_where_rows_are_few():
    loss = {"auto": [], 0.0: []}
    for seed in range(30):
        scores, y = binary(25, seed, slopes=(0.8, 0.6, 0.4, 0.2))
        new, truth = binary(500, 1000 + seed, slopes=(0.8, 0.6, 0.4, 0.2))
        for ridge, found in loss.items():
            model = EvidentialJointCalibrator(ridge=ridge).fit(scores, y)
            found.append(log_loss(truth, model.predict_proba(new)))
    assert np.mean(loss["auto"]) < np.mean(loss[0.0]) - 0.01


def test_members_that_are_copies_are_no_trouble():
    scores, y = softmax_rows(60, 5)
    copied = np.concatenate([scores, scores[:, :1]], axis=1)
    model = EvidentialJointCalibrator(ridge="auto").fit(copied, y)
    bounds, proba = model.predict_bounds(copied[:5]), model.predict_proba(copied[:5])
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert np.isfinite(logsumexp(model.slope_))


def test_it_is_the_default_of_fusion():
    scores, y = binary(60, 6)
    columns = [("a", None, [0]), ("b", None, [1]), ("c", None, [2])]
    fusion = EvidentialFusion(columns).fit(scores, y)
    alone = EvidentialJointCalibrator(ridge="auto").fit(scores, y)
    np.testing.assert_allclose(fusion.predict_proba(scores), alone.predict_proba(scores), atol=1e-9)
    assert fusion.calibrator_.ridge == "auto"
