"""The Hessian of the logistic log-likelihood, compared with differences of its gradient."""

import numpy as np
import pytest
from scipy.special import expit

from dubito._numerics.logistic_curvature import logistic_curvature, logistic_hessian


def test_hessian_is_the_derivative_of_the_gradient():
    rng = np.random.default_rng(0)
    design, weight, coef = rng.normal(size=(30, 3)), rng.uniform(0.5, 2, 30), rng.normal(size=3)
    penalty = np.array([0.0, 0.5, 2.0])

    def gradient(beta):
        return design.T @ (weight * expit(design @ beta)) + penalty * beta

    step = 1e-5 * np.eye(3)
    expected = [(gradient(coef + h) - gradient(coef - h)) / 2e-5 for h in step]
    hessian = logistic_hessian(design, design @ coef, weight, penalty)
    np.testing.assert_allclose(hessian, expected, rtol=1e-7, atol=1e-9)


def test_curvature_does_not_vanish_where_the_probability_rounds_to_one():
    eta = np.array([-600.0, -40.0, 40.0, 600.0])
    curvature = logistic_curvature(eta, np.full(4, 3.0))
    assert curvature == pytest.approx(3 * np.exp(-np.abs(eta)), rel=1e-15)
