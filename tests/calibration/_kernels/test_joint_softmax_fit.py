"""The softmax fit of joint calibration ends at the optimum, with a certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from dubito.calibration._kernels.joint_softmax import fit_softmax_model


def problem(seed):
    """Draw rows of utilities: classifiers alike or not, helpful or contrary, few rows or many."""
    rng = np.random.default_rng(seed)
    n, n_classes, n_slopes = rng.integers(1, 150), rng.integers(3, 8), rng.integers(1, 15)
    y = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_slopes, n_classes))
    scores += rng.choice([0, 1, 5]) * rng.normal(size=(n, 1, n_classes))
    worth = rng.choice([0, 0.5, 2, 20]) * rng.normal(size=(n_slopes, 1))
    scores += worth * np.eye(n_classes)[y][:, None, :]
    rows = (scores - scores[:, :, :1]).transpose(0, 2, 1)[:, 1:]
    if rng.random() < 0.3:
        biases = np.broadcast_to(np.eye(n_classes)[1:, 1:], (n, n_classes - 1, n_classes - 1))
        rows = np.concatenate([rows, biases], axis=2)
    target = np.full((n, n_classes), 1 / (n + n_classes)) + np.eye(n_classes)[y] * n / (
        n + n_classes
    )
    bounded = np.arange(rows.shape[2]) < n_slopes
    penalty = np.where(bounded, rng.choice([0.0, 0.0, 0.1, 10.0]), 0.0)
    return np.ascontiguousarray(rows), target[:, 1:], penalty, bounded


def objective(coef, rows, target, penalty):
    u = rows @ coef
    total = logsumexp(np.column_stack([np.zeros(len(u)), u]), axis=1)
    gradient = np.einsum("ik,ikp->p", np.exp(u - total[:, None]) - target, rows)
    return total.sum() - (target * u).sum() + 0.5 * penalty @ coef**2, gradient + penalty * coef


@pytest.mark.parametrize("seed", range(40))
def test_no_other_optimiser_finds_better(seed):
    rows, target, penalty, bounded = problem(seed)
    fit = fit_softmax_model(rows, target, np.ones(len(rows)), penalty, bounded)
    assert fit.gradient_norm < 1e-12
    assert (fit.coef[bounded] >= 0).all()
    value, gradient = objective(fit.coef, rows, target, penalty)
    held = bounded & (fit.coef == 0)
    np.testing.assert_allclose(gradient[~held], 0, atol=1e-9 * len(rows))
    assert (gradient[held] >= -1e-9 * len(rows)).all()
    other = minimize(
        objective,
        np.zeros(len(penalty)),
        args=(rows, target, penalty),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None) if bound else (None, None) for bound in bounded],
    )
    assert value <= other.fun + 1e-9 * len(rows)
