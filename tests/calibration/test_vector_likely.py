"""Vector scaling of very many scores: the start is found on likely classes, all classes decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from dubito.calibration import VectorCalibrator
from dubito.calibration._kernels import vector_likelihood
from dubito.calibration._kernels import vector_scaling as kernels
from dubito.calibration._kernels.vector_scaling import (
    diagonal_value_and_blocks,
    likely_scores,
    likely_value_and_blocks,
)

N_CLASSES = 250


def sharp(n, *, seed=0):
    """Scores that leave the ten classes of a group likely, distorted class by class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n)
    u = 1.5 * rng.normal(size=(n, N_CLASSES))
    u[np.arange(n), y] += 2
    u[y[:, None] // 10 == np.arange(N_CLASSES) // 10] += 40
    distortion = np.random.default_rng(7)
    u += 0.5 * distortion.normal(size=N_CLASSES)
    return u * np.exp(0.02 * distortion.normal(size=N_CLASSES)), y


def test_likely_scores_are_those_above_the_fraction_and_the_labels():
    u, y = sharp(60)
    slope, fraction = 0.8, 1e-3
    likely = likely_scores(u, y, slope, fraction)
    proba = softmax(slope * u, axis=1)
    listed = proba > fraction
    listed[np.arange(60), y] = True
    row = np.repeat(np.arange(60), np.diff(likely.start))
    np.testing.assert_array_equal(np.argwhere(listed), np.column_stack([row, likely.column]))
    np.testing.assert_array_equal(likely.score, u[listed])
    others = np.where(listed, 0.0, np.exp(slope * u)).sum(axis=1)
    np.testing.assert_allclose(np.exp(likely.rest), others, rtol=1e-9)


def test_flat_scores_are_not_listed():
    y = np.arange(50)
    assert likely_scores(np.zeros((50, N_CLASSES)), y, 1.0, 1e-3) is None


def test_all_classes_listed_give_the_sums_over_all(monkeypatch):
    monkeypatch.setattr(kernels, "_LARGEST_LISTED_FRACTION", 1.0)
    u, y = sharp(40)
    rng = np.random.default_rng(1)
    weight, slope = rng.uniform(0.5, 2, 40), rng.uniform(0.5, 1, N_CLASSES)
    bias = rng.normal(size=N_CLASSES)
    likely = likely_scores(u, y, 0.01, 1e-12)
    assert likely.start[-1] == u.size
    assert (likely.rest == -np.inf).all()
    found = likely_value_and_blocks(likely, weight, slope, bias)
    expected = diagonal_value_and_blocks(u, weight, slope, bias)
    for ours, theirs in zip([*found[:3], *found[3]], [*expected[:3], *expected[3]], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_at_the_temperature_map_the_value_is_that_of_all_classes():
    u, y = sharp(40)
    weight, slope, bias = np.ones(40), np.full(N_CLASSES, 0.8), np.full(N_CLASSES, 0.3)
    likely = likely_scores(u, y, 0.8, 1e-5)
    value = likely_value_and_blocks(likely, weight, slope, bias)[0]
    assert value == pytest.approx(diagonal_value_and_blocks(u, weight, slope, bias)[0], rel=1e-12)


def test_gradient_agrees_with_differences_of_the_value():
    u, y = sharp(40)
    weight = np.linspace(0.5, 2, 40)
    likely = likely_scores(u, y, 0.8, 1e-3)
    rng = np.random.default_rng(2)
    x = np.concatenate([np.full(N_CLASSES, 0.8), np.zeros(N_CLASSES)])
    direction = rng.normal(size=2 * N_CLASSES)

    def sums(x):
        return likely_value_and_blocks(likely, weight, x[:N_CLASSES], x[N_CLASSES:])

    step = 1e-6 * direction
    difference = (sums(x + step)[0] - sums(x - step)[0]) / 2e-6
    gradient = np.concatenate(sums(x)[1:3])
    assert gradient @ direction == pytest.approx(difference, rel=1e-6)
    # A constant added to all biases changes no probability.
    assert gradient[N_CLASSES:].sum() == pytest.approx(weight.sum(), rel=1e-12)


@pytest.mark.parametrize("ridge", ["auto", 2.0])
def test_the_start_does_not_change_the_fit(monkeypatch, ridge):
    u, y = sharp(1500)
    plain = VectorCalibrator(ridge=ridge).fit(u, y)
    listed = []

    def watched(*arguments):
        listed.append(likely_scores(*arguments))
        return listed[-1]

    monkeypatch.setattr(vector_likelihood, "_ALL_SCORES", 0)
    monkeypatch.setattr(vector_likelihood, "likely_scores", watched)
    model = VectorCalibrator(ridge=ridge).fit(u, y)
    assert listed
    assert listed[0] is not None
    assert model.gradient_norm_ <= 1e-8
    # The ridge is final where its next change would be below a twentieth.
    assert (np.abs(np.log(model.ridge_ / plain.ridge_)) < 0.1).all()
    tolerance = 1e-5 if ridge == 2.0 else 0.01
    np.testing.assert_allclose(model.slope_, plain.slope_, atol=tolerance)
    np.testing.assert_allclose(model.bias_, plain.bias_, atol=5 * tolerance)


def test_few_passes_are_over_all_scores(monkeypatch):
    u, y = sharp(1500)
    passes = []

    def counted(*arguments):
        passes.append(None)
        return diagonal_value_and_blocks(*arguments)

    monkeypatch.setattr(vector_likelihood, "diagonal_value_and_blocks", counted)
    VectorCalibrator().fit(u, y)
    before = len(passes)
    passes.clear()
    monkeypatch.setattr(vector_likelihood, "_ALL_SCORES", 0)
    VectorCalibrator().fit(u, y)
    assert len(passes) <= before / 2
