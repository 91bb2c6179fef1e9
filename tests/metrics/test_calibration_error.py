"""Binned calibration errors against plain loops and known cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.metrics import (
    classwise_calibration_error,
    expected_calibration_error,
    smooth_calibration_error,
)
from dubito.metrics.binning import bin_event
from dubito.metrics.forecasts import Event

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=40)


def ece_by_loop(happened, p, n_bins):
    """Guo et al.'s sum, bin after bin, in exact hundredths, so that edges are exact."""
    hundredths = np.rint(np.asarray(p) * 100).astype(int)
    total = 0.0
    for b in range(n_bins):
        inside = (hundredths * n_bins >= b * 100) & (hundredths * n_bins < (b + 1) * 100)
        if b == n_bins - 1:
            inside |= hundredths == 100
        if inside.any():
            total += inside.mean() * abs(happened[inside].mean() - p[inside].mean())
    return total


@given(seed=seeds, n_bins=st.integers(1, 30))
@quick
def test_uniform_bins_against_a_loop(seed, n_bins):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 101, 60) / 100
    y = rng.integers(0, 2, 60)
    expected = ece_by_loop(y, p, n_bins)
    assert expected_calibration_error(y, p, n_bins=n_bins) == pytest.approx(expected, abs=1e-12)


@given(seed=seeds, n_bins=st.integers(1, 8), k=st.integers(2, 5))
@quick
def test_top_label_and_classwise_are_binary_errors(seed, n_bins, k):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), 30)
    y = rng.integers(0, k, 30)
    top = (y == proba.argmax(axis=1)).astype(int)
    binary = expected_calibration_error(top, proba.max(axis=1), n_bins=n_bins)
    assert expected_calibration_error(y, proba, n_bins=n_bins) == pytest.approx(binary, abs=1e-12)
    columns = [
        expected_calibration_error((y == j).astype(int), proba[:, j], n_bins=n_bins)
        for j in range(k)
    ]
    classwise = classwise_calibration_error(y, proba, n_bins=n_bins)
    assert classwise == pytest.approx(np.mean(columns), abs=1e-12)


@given(seed=seeds, per_bin=st.integers(1, 6), n_bins=st.integers(1, 6))
@quick
def test_quantile_bins_without_ties_are_equal_blocks(seed, per_bin, n_bins):
    rng = np.random.default_rng(seed)
    p = np.sort(rng.random(per_bin * n_bins))
    y = rng.integers(0, 2, len(p))
    blocks = np.abs((y - p).reshape(n_bins, per_bin).mean(axis=1)).mean()
    error = expected_calibration_error(y, p, n_bins=n_bins, strategy="quantile")
    assert error == pytest.approx(blocks, abs=1e-12)


def test_quantile_bins_keep_ties_together():
    # Ten equal forecasts fill most of two bins; split, their errors would not cancel.
    p = np.array([0.5] * 10 + [0.9] * 2)
    y = np.array([0] * 5 + [1] * 5 + [1] * 2)
    for rows in (slice(None), slice(None, None, -1)):
        error = expected_calibration_error(y[rows], p[rows], n_bins=4, strategy="quantile")
        assert error == pytest.approx(0.1 * 2 / 12)


def test_a_last_row_of_hardly_any_weight_opens_no_bin_of_its_own():
    event = Event(np.array([0.1, 0.9]), np.array([False, True]), np.array([1.0, 1e-12]))
    assert bin_event(event, 1, "quantile").fraction.tolist() == [1]


@pytest.mark.parametrize("n", [11, 13, 15, 21, 31])
def test_a_middle_row_stays_in_the_upper_half_in_any_unit_of_weight(n):
    # The middle row's weight is centred on the edge; sums of tenths may round to either side.
    p = np.linspace(0.1, 0.9, n)
    event = Event(p, p > 0.5, np.ones(n))
    in_tenths = event._replace(weight=np.full(n, 0.1))
    expected = [0] * (n // 2) + [1] * (n // 2 + 1)
    assert bin_event(event, 2, "quantile").of_row.tolist() == expected
    assert bin_event(in_tenths, 2, "quantile").of_row.tolist() == expected


def test_more_quantile_bins_than_rows_leave_each_row_alone():
    y, p = [1, 0, 1], [0.2, 0.5, 0.9]
    error = expected_calibration_error(y, p, n_bins=50, strategy="quantile")
    assert error == pytest.approx((0.8 + 0.5 + 0.1) / 3)


def test_edges_belong_to_the_upper_bin_and_one_to_the_last():
    # 0.29 and 0.295 are in the bin from 0.29 to 0.30; in binary 0.29 * 100 is below 29.
    together = expected_calibration_error([1, 0], [0.29, 0.295], n_bins=100)
    assert together == pytest.approx(abs(1 - 0.29 - 0.295) / 2)
    last = expected_calibration_error([0, 1], [1.0, 0.95], n_bins=10)
    assert last == pytest.approx(0.95 / 2)


def test_perfect_and_worst():
    perfect, y = np.eye(3)[[0, 1, 2, 1]], np.array([0, 1, 2, 1])
    wrong = np.eye(3)[[1, 2, 0, 0]]
    assert expected_calibration_error(y, perfect) == 0
    assert classwise_calibration_error(y, perfect) == 0
    assert smooth_calibration_error(y, perfect) == 0
    assert expected_calibration_error(y, wrong) == 1
    assert smooth_calibration_error(y, wrong) == 1
    assert expected_calibration_error([1, 0], [0.0, 1.0]) == 1
    assert classwise_calibration_error([1, 0], [0.0, 1.0]) == 1


def test_one_row():
    assert expected_calibration_error([1], [0.7]) == pytest.approx(0.3)
    top_label_wrong = expected_calibration_error(["b"], [[0.7, 0.3]], classes=["a", "b"])
    assert top_label_wrong == pytest.approx(0.7)
    assert smooth_calibration_error([0], [0.7]) == pytest.approx(0.7)


def test_equal_top_probabilities_go_to_the_lowest_column():
    proba = [[0.4, 0.4, 0.2]]
    assert expected_calibration_error([0], proba) == pytest.approx(0.6)
    assert expected_calibration_error([1], proba) == pytest.approx(0.4)


def test_two_columns_are_judged_classwise_like_one():
    rng = np.random.default_rng(1)
    p = rng.integers(0, 11, 50) / 10
    y = rng.integers(0, 2, 50)
    both = np.column_stack((1 - p, p))
    for strategy in ("uniform", "quantile"):
        one = classwise_calibration_error(y, p, n_bins=10, strategy=strategy)
        assert classwise_calibration_error(y, both, n_bins=10, strategy=strategy) == one
        assert expected_calibration_error(y, p, n_bins=10, strategy=strategy) == one


@given(seed=seeds, n_bins=st.integers(1, 10))
@quick
def test_merging_bins_can_only_lower_the_error(seed, n_bins):
    rng = np.random.default_rng(seed)
    p, y = rng.random(40), rng.integers(0, 2, 40)
    fine = expected_calibration_error(y, p, n_bins=2 * n_bins)
    assert expected_calibration_error(y, p, n_bins=n_bins) <= fine + 1e-12
