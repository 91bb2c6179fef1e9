"""The paper's simulation agrees with the integrals, within its own error."""

from __future__ import annotations

import numpy as np
import pytest

from dubito.calibration import EvidentialMultinomialCalibrator

from reference.monte_carlo import monte_carlo_bounds


@pytest.mark.parametrize("coupling", ["gumbel", "inverse_cdf", "envelope"])
@pytest.mark.parametrize(("n", "n_classes"), [(3, 2), (10, 4), (100, 6)])
def test_simulation_agrees_within_four_standard_errors(coupling, n, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y]
    model = EvidentialMultinomialCalibrator(coupling=coupling, classes=range(n_classes))
    rows = 2 * rng.normal(size=(4, n_classes))
    exact = model.fit(scores, y).predict_bounds(rows)
    draws = 20_000
    estimate = monte_carlo_bounds(model, rows, draws=draws, random_state=1)
    for bound, guess in ((exact.lower, estimate.lower), (exact.upper, estimate.upper)):
        error = np.sqrt(bound * (1 - bound) / draws)
        assert (np.abs(bound - guess) <= 4 * error + 1e-6).all()
        if coupling != "envelope":  # that one averages and has less noise
            assert np.abs(bound - guess).max() > 1e-5


@pytest.mark.parametrize(
    ("coupling", "n", "n_classes", "most"),
    [
        ("gumbel", 300, 10, 1e-8),
        ("inverse_cdf", 300, 10, 1e-6),
        ("inverse_cdf", 3, 5, 2e-5),
        ("inverse_cdf", 1, 3, 2e-5),
    ],
)
def test_integrals_are_at_least_a_hundred_times_as_accurate(coupling, n, n_classes, most):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[y]
    rows = 2 * rng.normal(size=(40, n_classes))
    options = {"coupling": coupling, "classes": range(n_classes)}
    model = EvidentialMultinomialCalibrator(**options).fit(scores, y)
    finer = EvidentialMultinomialCalibrator(**options, n_points=256).fit(scores, y)
    truth, ours = finer.predict_bounds(rows), model.predict_bounds(rows)
    paper = monte_carlo_bounds(model, rows, draws=10_000, random_state=0)
    for bound in ("lower", "upper"):
        exact = getattr(truth, bound)
        error = np.abs(getattr(ours, bound) - exact).max()
        assert error <= most
        assert 100 * error <= np.abs(getattr(paper, bound) - exact).max()


def test_draws_are_reproducible_and_constant_scores_are_drawn_too():
    model = EvidentialMultinomialCalibrator(classes=range(3)).fit(np.ones((4, 3)), [0, 1, 2, 0])
    rows = [[2.0, 1.0, 0.0]]
    first, second = (monte_carlo_bounds(model, rows, draws=5000, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.upper, second.upper)
    np.testing.assert_allclose(first.upper, model.predict_bounds(rows).upper, atol=0.03)


def test_many_draws_and_classes_come_in_blocks():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(50, 200)), np.arange(50) % 20
    model = EvidentialMultinomialCalibrator(coupling="inverse_cdf", classes=range(200))
    model.fit(scores, y)
    exact = model.predict_bounds(scores[:2])
    estimate = monte_carlo_bounds(model, scores[:2], draws=4000, random_state=0)
    assert np.abs(exact.upper - estimate.upper).max() < 4 * np.sqrt(exact.upper.max() / 4000)
