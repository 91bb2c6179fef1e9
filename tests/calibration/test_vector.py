"""Vector scaling: optimal, exact in its limits, finite at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from dubito.calibration import (
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration._kernels import marginal_likelihood, penalised_fit, vector_likelihood
from dubito.calibration._kernels.vector_scaling import (
    diagonal_hessian,
    diagonal_value_and_blocks,
)


def draw(n, n_classes, *, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    u = 2 * noise * rng.normal(size=(n, n_classes)) + 3 * np.eye(n_classes)[y]
    distortion = np.random.default_rng(7)
    u += distortion.normal(size=n_classes)
    return u * np.exp(0.3 * distortion.normal(size=n_classes)), y


def penalised(x, u, y, ridge, weight=None):
    """The objective as the docstring has it."""
    weight = np.ones(len(y)) if weight is None else weight
    n_classes = u.shape[1]
    pseudo = min(0.25, ridge)
    base = TemperatureCalibrator(ridge=pseudo).fit(u, y, weight).slope_
    fraction = pseudo / (weight.sum() + pseudo)
    targets = (1 - fraction) * np.eye(n_classes)[y] + fraction / n_classes
    slope, bias = x[:n_classes], x[n_classes:]
    loss = -(weight * (targets * log_softmax(slope * u + bias, axis=1)).sum(axis=1)).sum()
    square = np.average((u**2).mean(axis=1), weights=weight)
    return loss + ridge / 2 * (square * ((slope - base) ** 2).sum() + (bias**2).sum())


def fitted(model):
    return np.concatenate([model.slope_, model.bias_])


@pytest.mark.parametrize("ridge", [0.1, 3.0])
def test_minimises_the_documented_objective(ridge):
    u, y = draw(120, 3)
    weight = np.linspace(0.5, 2, 120)
    model = VectorCalibrator(ridge=ridge).fit(u, y, weight)
    best = minimize(penalised, fitted(model), args=(u, y, ridge, weight), tol=1e-10)
    assert penalised(fitted(model), u, y, ridge, weight) <= best.fun + 1e-9
    assert model.gradient_norm_ < 1e-10


def test_hessian_agrees_with_differences_of_the_gradient():
    u, _ = draw(40, 3)
    weight = np.linspace(0.5, 2, 40)
    x, step = np.array([0.5, 0.7, 0.4, 0.1, -0.3, 0.2]), 1e-6

    def gradient(x):
        return np.concatenate(diagonal_value_and_blocks(u, weight, x[:3], x[3:])[1:3])

    differences = [(gradient(x + d) - gradient(x - d)) / (2 * step) for d in step * np.eye(6)]
    hessian = diagonal_hessian(u, weight, x[:3], x[3:])
    np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-6)


def test_blocks_are_those_of_the_hessian():
    u, _ = draw(40, 3)
    weight = np.linspace(0.5, 2, 40)
    slope, bias = np.array([0.5, 0.7, 0.4]), np.array([0.1, -0.3, 0.2])
    blocks = diagonal_value_and_blocks(u, weight, slope, bias)[3]
    hessian = diagonal_hessian(u, weight, slope, bias)
    np.testing.assert_allclose(np.concatenate([blocks.slope, blocks.bias]), hessian.diagonal())
    np.testing.assert_allclose(blocks.both, hessian[:3, 3:].diagonal())


def test_two_classes_without_penalty_are_logistic_regression():
    u, y = draw(200, 2)
    margin = u[:, 1] - u[:, 0]
    model = VectorCalibrator(ridge=0).fit(margin, y)
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(margin[:, None], y)
    np.testing.assert_allclose(
        model.predict_proba(margin), reference.predict_proba(margin[:, None]), atol=1e-6
    )
    np.testing.assert_allclose(
        VectorCalibrator(ridge=0).fit(u, y).predict_proba(u), model.predict_proba(margin), atol=1e-9
    )


def test_without_penalty_the_likelihood_is_greatest():
    u, y = draw(300, 3, noise=1.5)
    model = VectorCalibrator(ridge=0).fit(u, y)
    best = minimize(penalised, fitted(model) + 0.1, args=(u, y, 0.0), tol=1e-9)
    assert penalised(fitted(model), u, y, 0.0) <= best.fun + 1e-8
    # The score equations: fitted probabilities of each class add up to its count.
    np.testing.assert_allclose(model.predict_proba(u).sum(axis=0), np.bincount(y), rtol=1e-8)


def test_an_endless_penalty_gives_the_temperature_map():
    u, y = draw(100, 4)
    model = VectorCalibrator(ridge=1e12).fit(u, y)
    np.testing.assert_allclose(
        model.predict_proba(u), TemperatureCalibrator().fit(u, y).predict_proba(u), atol=1e-8
    )


def test_the_automatic_ridge_is_a_fixed_point_of_the_evidence():
    u, y = draw(400, 5)
    model = VectorCalibrator().fit(u, y)
    scale = np.sqrt((u**2).mean())
    x = np.concatenate([scale * (model.slope_ - model.base_slope_), model.bias_])
    hessian = diagonal_hessian(u, np.ones(len(u)), model.slope_, model.bias_)
    hessian[:5] /= scale
    hessian[:, :5] /= scale
    penalty = np.repeat(model.ridge_, 5)
    spread = np.linalg.inv(hessian + np.diag(penalty)).diagonal()
    determined = 5 - model.ridge_ * spread.reshape(2, 5).sum(axis=1)
    np.testing.assert_allclose(
        model.ridge_, determined / (x**2).reshape(2, 5).sum(axis=1), rtol=0.1
    )


def test_distorted_classes_gain_and_undistorted_lose_nothing():
    u, y = draw(600, 5)
    test, y_test = draw(2000, 5, seed=1)
    rows = np.arange(2000)

    def loss(model):
        return -np.log(model.predict_proba(test)[rows, y_test]).mean()

    temperature = loss(TemperatureCalibrator().fit(u, y))
    assert loss(VectorCalibrator().fit(u, y)) < temperature - 0.02
    few = slice(0, 15)
    careful, bold = (loss(VectorCalibrator(ridge=r).fit(u[few], y[few])) for r in ("auto", 0.01))
    assert careful < bold


def test_order_of_classes_is_nothing():
    u, y = draw(150, 4)
    order = np.array([2, 0, 3, 1])
    model = VectorCalibrator().fit(u, y)
    other = VectorCalibrator().fit(u[:, order], np.argsort(order)[y])
    np.testing.assert_allclose(other.slope_, model.slope_[order], rtol=1e-7)
    np.testing.assert_allclose(other.bias_, model.bias_[order], atol=1e-7)


def test_weights_are_repetitions():
    u, y = draw(60, 3)
    weight = np.arange(60) % 4
    weighted = VectorCalibrator().fit(u, y, weight)
    repeated = VectorCalibrator().fit(np.repeat(u, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(fitted(weighted), fitted(repeated), atol=1e-8)


def test_units_of_scores_do_not_matter():
    u, y = draw(100, 3)
    model, scaled = VectorCalibrator().fit(u, y), VectorCalibrator().fit(1e-70 * u, y)
    np.testing.assert_allclose(1e-70 * scaled.slope_, model.slope_, rtol=1e-8)
    np.testing.assert_allclose(scaled.bias_, model.bias_, atol=1e-8)


def test_logits_may_be_shifted_row_by_row():
    u, y = draw(100, 3)
    shift = np.linspace(-50, 50, 100)[:, None]
    model = VectorCalibrator(input="logits").fit(u, y)
    shifted = VectorCalibrator(input="logits").fit(u + shift, y)
    np.testing.assert_allclose(fitted(shifted), fitted(model), atol=1e-8)


def test_a_class_without_rows_is_unlikely_but_possible():
    u, y = draw(90, 3)
    kept = y != 2
    model = VectorCalibrator().fit(u[kept], y[kept])
    proba = model.predict_proba(u)
    assert (proba > 0).all()
    # The score equation of a class without rows: at most its part of the pseudo-observations
    # and what the penalty holds back.
    assert 0 < model.predict_proba(u[kept])[:, 2].mean() < 0.1


def test_separable_scores_stay_finite():
    y = np.arange(30) % 3
    model = VectorCalibrator().fit(np.eye(3)[y], y)
    assert np.isfinite(fitted(model)).all()
    assert 0.9 < model.predict_proba(np.eye(3)).diagonal().min() < 1


@pytest.mark.parametrize("score", [0.0, 5.0, 1e6])
def test_constant_scores_give_the_frequencies(score):
    y = np.repeat([0, 1, 2], [60, 30, 10])
    model = VectorCalibrator(ridge=0.01).fit(np.full((100, 3), score), y)
    proba = model.predict_proba(np.full((1, 3), score))
    np.testing.assert_allclose(proba[0], [0.6, 0.3, 0.1], atol=0.01)


def test_one_row():
    model = VectorCalibrator().fit([[1.0, 2.0, 3.0]], [1])
    assert np.isfinite(model.predict_proba([[1.0, 2.0, 3.0]])).all()


def test_many_classes_few_rows():
    u, y = draw(300, 1000)
    model = VectorCalibrator(classes=np.arange(1000)).fit(u, y)
    assert model.gradient_norm_ <= 1e-8
    assert np.isfinite(fitted(model)).all()


def test_the_solver_for_many_classes_agrees_with_newton(monkeypatch):
    u, y = draw(500, 6)
    newton = VectorCalibrator(ridge=2.0).fit(u, y)
    monkeypatch.setattr(vector_likelihood, "_DENSE_CLASSES", 1)
    blocks = VectorCalibrator(ridge=2.0).fit(u, y)
    np.testing.assert_allclose(fitted(blocks), fitted(newton), atol=1e-6)


def entangled(n, n_classes):
    """Scores that separate groups of ten classes better than the classes of a group."""
    rng = np.random.default_rng(3)
    y = rng.integers(n_classes, size=n)
    u = 1.5 * rng.normal(size=(n, n_classes))
    u[np.arange(n), y] += 2
    u[y[:, None] // 10 == np.arange(n_classes) // 10] += 5
    return u * np.exp(rng.normal(scale=0.2, size=n_classes)), y


@pytest.mark.parametrize("scores", [draw, entangled])
def test_many_classes_take_few_passes(monkeypatch, scores):
    u, y = scores(4000, 250)
    passes = []

    def counted(*arguments):
        passes.append(len(arguments[0]))
        return diagonal_value_and_blocks(*arguments)

    monkeypatch.setattr(vector_likelihood, "diagonal_value_and_blocks", counted)
    monkeypatch.setattr(vector_likelihood, "_SAMPLE_SCORES", 1000 * 250)
    for ridge, most in (("auto", 25), (2.0, 12)):
        passes.clear()
        model = VectorCalibrator(ridge=ridge).fit(u, y)
        assert model.gradient_norm_ <= 1e-8
        assert passes.count(4000) <= (most if scores is draw else 2 * most)
        assert set(passes) == {1000, 4000}  # first a sample, for the ridge and a start


def test_all_rows_decide_on_the_ridge_for_many_classes(monkeypatch):
    u, y = draw(6000, 250)
    ridge = VectorCalibrator().fit(u, y).ridge_
    monkeypatch.setattr(vector_likelihood, "_SAMPLE_SCORES", 1000 * 250)
    from_sample = VectorCalibrator().fit(u, y).ridge_
    assert (np.abs(np.log(from_sample / ridge)) < 0.3).all()


def test_a_ridge_that_grows_for_ever_is_found_in_few_fits(monkeypatch):
    rng = np.random.default_rng(5)
    y = rng.integers(100, size=150)
    u = 2 * rng.normal(size=(150, 100)) + 4 * np.eye(100)[y]  # nothing to mend class by class
    fits = []

    def counted(*arguments, **keywords):
        fits.append(None)
        return solve_map(*arguments, **keywords)

    solve_map = penalised_fit.solve_map
    for module in (marginal_likelihood, penalised_fit):
        monkeypatch.setattr(module, "solve_map", counted)
    model = VectorCalibrator(classes=np.arange(100)).fit(u, y)
    assert len(fits) <= 15
    assert model.ridge_.min() > 100


def test_the_solver_for_many_rows_agrees_with_newton(monkeypatch):
    u, y = draw(3000, 4)
    newton = VectorCalibrator(ridge=2.0).fit(u, y)
    monkeypatch.setattr(vector_likelihood, "_HESSIAN_MULTIPLICATIONS", 500 * 16)
    sampled = VectorCalibrator(ridge=2.0).fit(u, y)
    np.testing.assert_allclose(fitted(sampled), fitted(newton), atol=1e-6)
    ridge = VectorCalibrator().fit(u, y).ridge_  # chosen on 500 rows
    monkeypatch.undo()
    assert (np.abs(np.log(ridge / VectorCalibrator().fit(u, y).ridge_)) < 1.5).all()


def test_probabilities_are_the_softmax_of_the_map():
    u, y = draw(50, 3)
    model = VectorCalibrator().fit(u, y)
    np.testing.assert_allclose(
        model.predict_proba(u), softmax(model.slope_ * u + model.bias_, axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("kind", [VectorCalibrator, MatrixCalibrator])
def test_without_a_ridge_few_rows_do_not_crash(kind):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([3, 10, 30]))
        scores, y = rng.normal(size=(n, 3)), rng.integers(3, size=n)
        proba = kind(ridge=0, classes=[0, 1, 2]).fit(scores, y).predict_proba(scores)
        assert np.isfinite(proba).all()
