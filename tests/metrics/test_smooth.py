"""The smooth calibration error against a linear programme, and its properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import eye_array, vstack

from dubito.metrics import expected_calibration_error, smooth_calibration_error

seeds = st.integers(0, 2**32 - 1)


def smooth_error_by_programme(y, p, weight=None):
    """Maximise the mean of omega(p)(y - p) over the values of omega at the rows."""
    p = np.asarray(p, dtype=float)
    weight = np.ones(len(p)) if weight is None else weight
    order = np.argsort(p)
    p, gain = p[order], (weight * (y - p))[order] / np.sum(weight)
    if len(p) == 1:
        return abs(gain[0])
    step = eye_array(len(p) - 1, len(p), k=1) - eye_array(len(p) - 1, len(p))
    gaps = np.diff(p)
    solution = linprog(
        -gain,
        A_ub=vstack([step, -step]).tocsr(),
        b_ub=np.concatenate([gaps, gaps]),
        bounds=(-1, 1),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0
    return -solution.fun


@given(
    seed=seeds,
    n=st.integers(1, 30),
    grain=st.sampled_from([2, 5, 20, 10**9]),
    skew=st.sampled_from([0.2, 1.0, 5.0]),
    weighted=st.booleans(),
)
@settings(deadline=None, max_examples=300)
def test_equals_the_linear_programme(seed, n, grain, skew, weighted):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, grain, n, endpoint=True) / grain
    y = (rng.random(n) < p**skew).astype(int)
    weight = rng.exponential(size=n) ** 3 if weighted else None
    exact = smooth_error_by_programme(y, p, weight)
    assert smooth_calibration_error(y, p, sample_weight=weight) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_linear_programme_on_many_rows(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.5, 1500)
    y = (rng.random(1500) < 0.5 + 0.4 * np.sin(9 * p)).astype(int)
    exact = smooth_error_by_programme(y, p)
    assert smooth_calibration_error(y, p) == pytest.approx(exact, abs=1e-9)


def test_weights_that_swing_ever_wider():
    # Every step changes the optimum of the one before: a wrong order of updates would fail here
    # or become slow.
    p = np.linspace(0, 1, 400)
    y = np.arange(400) % 2
    weight = 1.0 + np.arange(400) ** 2
    exact = smooth_error_by_programme(y, p, weight)
    assert smooth_calibration_error(y, p, sample_weight=weight) == pytest.approx(exact, abs=1e-9)


@given(seed=seeds, n=st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_lies_between_bias_and_unbinned_error(seed, n):
    rng = np.random.default_rng(seed)
    p, y = rng.integers(0, 8, n) / 7, rng.integers(0, 2, n)
    smooth = smooth_calibration_error(y, p)
    unbinned = expected_calibration_error(y, p, n_bins=200)
    assert abs(np.mean(y - p)) - 1e-12 <= smooth <= unbinned + 1e-12


@given(seed=seeds, n=st.integers(1, 60), size=st.floats(0, 0.3))
@settings(deadline=None, max_examples=60)
def test_moves_little_when_forecasts_move_little(seed, n, size):
    rng = np.random.default_rng(seed)
    p, y = rng.random(n), rng.integers(0, 2, n)
    moved = np.clip(p + rng.uniform(-size, size, n), 0, 1)
    change = smooth_calibration_error(y, p) - smooth_calibration_error(y, moved)
    assert abs(change) <= 2 * np.mean(np.abs(p - moved)) + 1e-12


@given(seed=seeds, n=st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_either_class_gives_the_same_error(seed, n):
    rng = np.random.default_rng(seed)
    p, y = rng.random(n), rng.integers(0, 2, n)
    mirrored = smooth_calibration_error(1 - y, 1 - p)
    assert smooth_calibration_error(y, p) == pytest.approx(mirrored, abs=1e-12)


def test_top_label_of_several_classes():
    rng = np.random.default_rng(2)
    proba, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    exact = smooth_error_by_programme(y == proba.argmax(axis=1), proba.max(axis=1))
    assert smooth_calibration_error(y, proba) == pytest.approx(exact, abs=1e-9)


def test_calibrated_forecasts_have_no_error():
    p = np.repeat([0.25, 0.5, 0.75], 4)
    y = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0])
    assert smooth_calibration_error(y, p) == pytest.approx(0, abs=1e-15)
