"""Matrix scaling: optimal, exact in its limits, finite at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from dubito._numerics.softmax import softmax_in_place
from dubito.calibration import (
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration._kernels import matrix_likelihood
from dubito.calibration._kernels.matrix_scaling import (
    kronecker_solver,
    matrix_hessian,
    matrix_value,
    spectrum,
)


def draw(n, n_classes, *, seed=0):
    """Scores that take each class for the next now and then."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    u = 2 * rng.normal(size=(n, n_classes)) + 4 * np.eye(n_classes)[y]
    return u + 0.6 * np.roll(u, 1, axis=1), y


def fitted(model):
    return np.column_stack([model.matrix_, model.bias_])


def objective(parameters, u, y, ridge, base):
    """The objective as the docstring has it, one ridge for all groups."""
    n, n_classes = u.shape
    pseudo = min(0.25, ridge)
    fraction = pseudo / (n + pseudo)
    targets = (1 - fraction) * np.eye(n_classes)[y] + fraction / n_classes
    w, b = parameters[:, :-1], parameters[:, -1]
    loss = -(targets * log_softmax(u @ w.T + b, axis=1)).sum()
    away = w - base * np.eye(n_classes)
    return loss + ridge / 2 * ((u**2).mean() * (away**2).sum() + (b**2).sum())


@pytest.mark.parametrize("ridge", [0.1, 3.0])
def test_minimises_the_documented_objective(ridge):
    u, y = draw(150, 3)
    model = MatrixCalibrator(ridge=ridge).fit(u, y)
    assert model.gradient_norm_ < 1e-10
    step = 1e-5
    for k, j in np.ndindex(3, 4):
        move = np.zeros((3, 4))
        move[k, j] = step
        up, down = (
            objective(fitted(model) + sign * move, u, y, ridge, model.base_slope_)
            for sign in (1, -1)
        )
        assert abs(up - down) / (2 * step) < 1e-5


def test_hessian_agrees_with_differences_of_the_gradient():
    u, _ = draw(40, 3)
    weight = np.linspace(0.5, 2, 40)
    x, step = np.random.default_rng(0).normal(scale=0.3, size=12), 1e-6

    def gradient(x):
        table = x.reshape(3, 4)
        _, by_matrix, by_bias = matrix_value(u, weight, table[:, :-1], table[:, -1])
        return np.column_stack([by_matrix, by_bias]).ravel()

    differences = [(gradient(x + d) - gradient(x - d)) / (2 * step) for d in step * np.eye(12)]
    table = x.reshape(3, 4)
    p = softmax_in_place(u @ table[:, :-1].T + table[:, -1])
    hessian = matrix_hessian(np.column_stack([u, np.ones(40)]), weight, p)
    np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-5)


def test_the_kronecker_solver_solves_with_what_it_approximates():
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=(30, 3)), np.ones(30)])
    weight, p = np.linspace(0.5, 2, 30), rng.dirichlet(np.ones(3), size=30)
    a = np.diag(weight @ p) - (weight[:, None] * p).T @ p
    c = (features * weight[:, None]).T @ features / weight.sum()
    solver = kronecker_solver(spectrum(features, weight, p), np.full(12, 0.7))
    whole = np.kron(a, c) + 0.7 * np.eye(12)
    g = rng.normal(size=12)
    np.testing.assert_allclose(solver.solve(g), np.linalg.solve(whole, g), rtol=1e-7)
    np.testing.assert_allclose(
        solver.inverse_diagonal(), np.linalg.inv(whole).diagonal(), rtol=1e-7
    )


def test_without_penalty_it_is_multinomial_logistic_regression():
    u, y = draw(400, 3)
    model = MatrixCalibrator(ridge=0).fit(u, y)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(u, y)
    np.testing.assert_allclose(model.predict_proba(u), reference.predict_proba(u), atol=1e-5)


def test_an_endless_penalty_gives_the_temperature_map():
    u, y = draw(100, 4)
    model = MatrixCalibrator(ridge=1e12).fit(u, y)
    np.testing.assert_allclose(
        model.predict_proba(u), TemperatureCalibrator().fit(u, y).predict_proba(u), atol=1e-8
    )


@pytest.mark.parametrize("n_classes", [5, 36])
def test_learns_which_classes_are_taken_for_which(n_classes):
    u, y = draw(60 * n_classes, n_classes)
    test, y_test = draw(2000, n_classes, seed=1)
    matrix_loss, vector_loss = (
        -np.log(kind().fit(u, y).predict_proba(test)[np.arange(2000), y_test]).mean()
        for kind in (MatrixCalibrator, VectorCalibrator)
    )
    assert matrix_loss < vector_loss - 0.02


def test_without_confusion_nothing_is_off_the_diagonal():
    rng = np.random.default_rng(0)
    u = 2 * rng.normal(size=(300, 4))
    y = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
    model = MatrixCalibrator().fit(u, y)
    off = model.matrix_ - np.diag(model.matrix_.diagonal())
    assert np.abs(off).max() < 0.1
    assert model.ridge_[2] > 100


def test_order_of_classes_is_nothing():
    u, y = draw(150, 4)
    order = np.array([2, 0, 3, 1])
    model = MatrixCalibrator().fit(u, y)
    other = MatrixCalibrator().fit(u[:, order], np.argsort(order)[y])
    np.testing.assert_allclose(other.matrix_, model.matrix_[np.ix_(order, order)], atol=1e-7)
    np.testing.assert_allclose(other.bias_, model.bias_[order], atol=1e-7)


def test_weights_are_repetitions():
    u, y = draw(60, 3)
    weight = np.arange(60) % 4
    weighted = MatrixCalibrator().fit(u, y, weight)
    repeated = MatrixCalibrator().fit(np.repeat(u, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(fitted(weighted), fitted(repeated), atol=1e-8)


def test_two_columns_are_one_margin():
    u, y = draw(80, 2)
    two, one = MatrixCalibrator().fit(u, y), MatrixCalibrator().fit(u[:, 1] - u[:, 0], y)
    np.testing.assert_allclose(fitted(one), fitted(two), atol=1e-10)


def test_a_class_without_rows_is_unlikely_but_possible():
    u, y = draw(90, 3)
    kept = y != 2
    model = MatrixCalibrator().fit(u[kept], y[kept])
    assert (model.predict_proba(u) > 0).all()
    assert 0 < model.predict_proba(u[kept])[:, 2].mean() < 0.1


@pytest.mark.parametrize("score", [0.0, 1.0, 1e6, 1e-6])
def test_separable_and_constant_scores_stay_finite(score):
    y = np.arange(30) % 3
    model = MatrixCalibrator().fit(score * np.eye(3)[y], y)
    assert np.isfinite(fitted(model)).all()
    proba = model.predict_proba(score * np.eye(3))
    assert proba.min() > 0
    assert proba.diagonal().min() >= 1 / 3 - 1e-12


@pytest.mark.parametrize("n_classes", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_classes_few_rows(n_classes):
    u, y = draw(300, n_classes)
    model = MatrixCalibrator(classes=np.arange(n_classes)).fit(u, y)
    assert model.gradient_norm_ <= 1e-8
    assert np.isfinite(fitted(model)).all()


def test_the_solver_for_many_classes_agrees_with_newton(monkeypatch):
    u, y = draw(500, 5)
    newton = MatrixCalibrator(ridge=2.0).fit(u, y)
    monkeypatch.setattr(matrix_likelihood, "_DENSE_PARAMETERS", 1)
    kronecker = MatrixCalibrator(ridge=2.0).fit(u, y)
    np.testing.assert_allclose(fitted(kronecker), fitted(newton), atol=1e-6)


def test_the_solver_for_many_rows_agrees_with_newton(monkeypatch):
    u, y = draw(2000, 4)
    newton = MatrixCalibrator(ridge=2.0).fit(u, y)
    monkeypatch.setattr(matrix_likelihood, "_HESSIAN_MULTIPLICATIONS", 400 * 20**2)
    sampled = MatrixCalibrator(ridge=2.0).fit(u, y)
    np.testing.assert_allclose(fitted(sampled), fitted(newton), atol=1e-6)
    assert np.isfinite(MatrixCalibrator().fit(u, y).ridge_).all()
