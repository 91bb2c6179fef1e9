"""Profile likelihood of a logistic curve: against a scalar minimiser, in both sets of units."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from dubito._numerics.logistic_profile_compiled import EXACT, in_axes, profile
from dubito._numerics.vector_math_compiled import exp_buffers


def loss(coef, x, weight, target):
    """Return the negative log-likelihood of intercept and slope."""
    eta = coef[0] + coef[1] * x
    return weight @ (np.logaddexp(0, eta) - target * eta)


@pytest.fixture
def data():
    """Return scores, sample weights and targets, the optimum and the likelihood."""
    rng = np.random.default_rng(0)
    x, weight = np.sort(rng.normal(size=37)), rng.uniform(0.5, 2, 37)
    target = np.where(rng.random(37) < 1 / (1 + np.exp(-x)), 0.95, 0.05)
    best = minimize(loss, np.zeros(2), (x, weight, target), tol=1e-12)
    totals = np.array([weight @ target, weight @ (target * x)])
    return (x, weight, target), best.x, (np.stack([x, weight]), totals, float(best.fun))


@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("from_optimum", [False, True])
@pytest.mark.parametrize("s", [-4.0, 0.3, 6.0])
@pytest.mark.parametrize("query", [-3.0, 0.0, 50.0])
def test_the_profile_is_the_least_loss_across_a_query(data, query, s, from_optimum, scale):
    rows, optimum, likelihood = data
    origin = optimum if from_optimum else np.zeros(2)
    axes = np.array([1.0, query]) / np.hypot(1.0, query)
    across = np.array([-axes[1], axes[0]])

    def fall_at(b):
        return loss(origin + (s * axes + b * across) / scale, *rows) - likelihood[2]

    least = minimize_scalar(fall_at, options={"xtol": 1e-12})
    at = in_axes(likelihood, tuple(origin), tuple(axes), scale)
    b, fall = profile(at, s, 0.0, exp_buffers(len(rows[0])), EXACT)
    np.testing.assert_allclose(b, least.x, atol=1e-5 * scale)
    np.testing.assert_allclose(fall, least.fun, rtol=1e-9, atol=1e-9)
