"""The simulators against the theory of what they draw.

Moments are compared in units of their standard error. The seeds are fixed; a limit of 5 would be
passed by chance about once in two million comparisons.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from dubito.datasets import (
    make_gaussian_pair,
    make_gaussian_trio,
    make_many_classes,
    make_waveform,
)

LIMIT = 5.0
SIMULATORS = [
    make_waveform,
    make_gaussian_trio,
    make_gaussian_pair,
    partial(make_many_classes, n_classes=9, n_features=4),
]

PAIR = [([-1, 0], [[1, 0.5], [0.5, 1]]), ([1, 1], [[1, 0.5], [0.5, 1]])]
TRIO = [
    ([0, 0], [[0.1, 0], [0, 0.1]]),
    ([0, 0], [[0.5, 0], [0, 0.5]]),
    ([1, -1], [[0.3, -0.15], [-0.15, 0.3]]),
]


def waveform_moments():
    """Means and covariances of the three classes: u has mean 1/2 and variance 1/12."""
    triangle = np.convolve(np.ones(6), np.ones(6))
    # Peaks at 7, 11 and 15 of 21 places.
    left, middle, right = (np.pad(triangle, (start, 10 - start)) for start in (1, 5, 9))
    pairs = [(left, right), (left, middle), (middle, right)]
    return [((a + b) / 2, np.outer(a - b, a - b) / 12 + np.eye(21)) for a, b in pairs]


def assert_moments(X, y, moments):
    n, n_classes = len(y), len(moments)
    spread = np.sqrt(n * (1 / n_classes) * (1 - 1 / n_classes))
    counts = np.bincount(y, minlength=n_classes)
    assert np.abs(counts - n / n_classes).max() < LIMIT * spread
    for label, (mean, covariance) in enumerate(moments):
        centred = X[y == label] - mean
        products = centred[:, :, None] * centred[:, None, :]
        for found, expected in ((centred, 0.0), (products, np.asarray(covariance))):
            error = found.std(axis=0) / np.sqrt(len(found))
            assert (np.abs(found.mean(axis=0) - expected) < LIMIT * error).all()


def bayes_error_of_sample(X, y, moments):
    densities = [multivariate_normal(mean, covariance).pdf(X) for mean, covariance in moments]
    return np.mean(np.argmax(densities, axis=0) != y)


@pytest.mark.parametrize(
    ("simulate", "moments"),
    [(make_waveform, waveform_moments()), (make_gaussian_trio, TRIO), (make_gaussian_pair, PAIR)],
)
def test_moments(simulate, moments):
    X, y = simulate(30_000, random_state=1)
    assert_moments(X, y, moments)


def test_trio_has_the_papers_bayes_error():
    n = 200_000
    found = bayes_error_of_sample(*make_gaussian_trio(n, random_state=2), TRIO)
    # Denœux 2019, section 5.2: 24.6 % estimated on 15,000 draws, so two sampling errors and a
    # rounding error.
    published, draws = 0.246, 15_000
    error = np.sqrt(published * (1 - published) * (1 / n + 1 / draws))
    assert abs(found - published) < 3 * error + 0.0005
    # Much closer: the integral of the largest joint density over a fine grid.
    axis = np.linspace(-6, 6, 601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    joint = [multivariate_normal(mean, covariance).pdf(grid) / 3 for mean, covariance in TRIO]
    exact = 1 - np.max(joint, axis=0).sum() * (axis[1] - axis[0]) ** 2
    assert exact == pytest.approx(0.2455, abs=5e-5)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / n)


def test_pair_has_the_bayes_error_of_two_gaussians_at_distance_two():
    n = 200_000
    found = bayes_error_of_sample(*make_gaussian_pair(n, random_state=3), PAIR)
    exact = norm.cdf(-1)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / n)


def test_noise_features_are_pure_noise_beside_the_same_waves():
    X, y = make_waveform(20_000, noise_features=19, random_state=4)
    assert X.shape == (20_000, 40)
    waves, labels = make_waveform(20_000, random_state=4)
    np.testing.assert_array_equal(X[:, :21], waves)
    np.testing.assert_array_equal(y, labels)
    standard_normal = (np.zeros(19), np.eye(19))
    assert_moments(X[:, 21:], y, [standard_normal] * 3)


@pytest.mark.parametrize(
    ("simulate", "shape"),
    [(make_waveform, (5000, 21)), (make_gaussian_trio, (900, 2)), (make_gaussian_pair, (290, 2))],
)
def test_defaults(simulate, shape):
    X, y = simulate()
    assert X.shape == shape
    assert X.dtype == np.float64
    assert y.shape == shape[:1]
    assert y.dtype.kind == "i"


@pytest.mark.parametrize("simulate", SIMULATORS)
@pytest.mark.parametrize("source", [int, np.random.RandomState, np.random.default_rng])
def test_same_seed_same_data(simulate, source):
    first, again, other = (simulate(40, random_state=source(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("simulate", SIMULATORS)
@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_a_generator_moves_on(simulate, source):
    rng = source(0)
    assert not np.array_equal(simulate(40, random_state=rng)[0], simulate(40, random_state=rng)[0])


@pytest.mark.parametrize("simulate", SIMULATORS)
@pytest.mark.parametrize("n_samples", [0, -3])
def test_too_few_samples(simulate, n_samples):
    with pytest.raises(ValueError, match=f"n_samples must be at least 1; got {n_samples}"):
        simulate(n_samples)


@pytest.mark.parametrize("simulate", SIMULATORS)
@pytest.mark.parametrize("n_samples", [10.0, "10", None, True])
def test_samples_must_be_an_integer(simulate, n_samples):
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        simulate(n_samples)


def test_numpy_integers_are_integers():
    assert make_gaussian_pair(np.int32(5), random_state=0)[0].shape == (5, 2)


def test_noise_features_are_checked():
    with pytest.raises(ValueError, match="noise_features must be at least 0; got -1"):
        make_waveform(5, noise_features=-1)
    with pytest.raises(TypeError, match="noise_features must be an integer"):
        make_waveform(5, noise_features=1.5)


@pytest.mark.parametrize("simulate", SIMULATORS)
def test_bad_seed(simulate):
    with pytest.raises(ValueError, match="seed"):
        simulate(5, random_state="seven")
