"""Joint calibration where rows are fewer than classifiers: right, wider than right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from dubito.calibration import (
    CalibrationInputError,
    EvidentialJointCalibrator,
    _softmax_joint_model,
)
from dubito.calibration._kernels.joint_softmax import belief_and_plausibility
from dubito.calibration._kernels.joint_softmax_level import stepped_bounds

from reference.joint import near_copies


def light_loss(slope, scores, y):
    """The negative log-likelihood with light targets, and its gradient."""
    n, _, n_classes = scores.shape
    fraction = 0.25 / (n + 0.25)
    target = (1 - fraction) * np.eye(n_classes)[y] + fraction / n_classes
    log_p = log_softmax(np.einsum("j,ijk->ik", slope, scores), axis=1)
    gradient = np.einsum("ijk,ik->j", scores, np.exp(log_p) - target)
    return -float(np.sum(target * log_p)), gradient


@pytest.mark.parametrize(
    "noise", [0.1, *(pytest.param(noise, marks=pytest.mark.slow) for noise in (1e-3, 1e-2))]
)
def test_the_fit_is_the_maximum_or_refused(noise):
    """Projected Newton steps alone left 6, 5 and 3 of these at a likelihood far below the best."""
    for seed in range(80):
        scores, y = near_copies(seed, noise=noise)
        model = EvidentialJointCalibrator(targets="light", classes=range(3)).fit(scores, y)
        assert model.gradient_norm_ <= 1e-8
        scale = model.model_.scale
        ours = light_loss(model.slope_ * scale, scores / scale[:, None], y)[0]
        # The objective is convex: scipy finds no better point from the estimate either.
        for start in (np.zeros(10), model.slope_ * scale):
            rival = minimize(
                light_loss,
                start,
                args=(scores / scale[:, None], y),
                jac=True,
                bounds=[(0, None)] * 10,
                method="L-BFGS-B",
                options={"maxiter": 3000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-9},
            )
            assert ours <= rival.fun + 1e-9


def test_a_fit_without_its_certificate_is_refused(monkeypatch):
    scores, y = near_copies(0)
    real = _softmax_joint_model.fit_softmax_model
    monkeypatch.setattr(
        _softmax_joint_model,
        "fit_softmax_model",
        lambda *given: real(*given)._replace(gradient_norm=1e-3),
    )
    with pytest.raises(CalibrationInputError, match=r"gradient is still 1.0e-03.*use a ridge"):
        EvidentialJointCalibrator(classes=range(3)).fit(scores, y)


def test_levels_in_steps_hold_the_exact_bounds():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    scores = rng.normal(size=(45, 2, 3)) + np.eye(3)[y][:, None]
    model = EvidentialJointCalibrator(likelihood="exact").fit(scores, y).model_
    assert not model.flat
    queries = model._queries(scores[:4])
    lower, upper = belief_and_plausibility(model.belief_likelihood, queries)
    low, high = stepped_bounds(model.belief_likelihood, queries)
    assert (low <= lower + 1e-9).all()
    assert (high >= upper - 1e-9).all()
    assert max((lower - low).max(), (high - upper).max()) < 1 / 32


def test_flat_likelihoods_are_integrated_in_steps():
    scores, y = near_copies(3)
    model = EvidentialJointCalibrator(classes=range(3), likelihood="exact").fit(scores, y)
    assert model.model_.flat
    low, high = stepped_bounds(model.model_.belief_likelihood, model.model_._queries(scores[:2]))
    bounds, proba = model.predict_bounds(scores[:2]), model.predict_proba(scores[:2])
    np.testing.assert_allclose(bounds.lower, np.minimum(low, proba), atol=1e-12)
    np.testing.assert_allclose(bounds.upper, np.minimum(np.maximum(high, proba), 1), atol=1e-12)
    assert not EvidentialJointCalibrator(classes=range(3), ridge=1.0).fit(scores, y).model_.flat
