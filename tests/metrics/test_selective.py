"""Error-reject curves and the area under them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.metrics import aurc, error_reject_curve

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


@given(seed=seeds, n=st.integers(1, 30), grain=st.sampled_from([2, 6, 10**9]))
@quick
def test_every_point_by_its_definition(seed, n, grain):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 3, (2, n))
    confidence, weight = rng.integers(0, grain, n) / grain, rng.random(n) + 0.01
    curve = error_reject_curve(y, y_pred, confidence, sample_weight=weight)
    assert curve.threshold.tolist() == sorted(set(confidence.tolist()))
    area = 0.0
    for rejection, error, accuracy, threshold in zip(*curve, strict=True):
        accepted = confidence >= threshold
        wrong = weight[accepted & (y != y_pred)].sum()
        assert rejection == pytest.approx(weight[~accepted].sum() / weight.sum(), abs=1e-12)
        assert error == pytest.approx(wrong / weight[accepted].sum(), abs=1e-12)
        assert accuracy == 1 - error
        area += weight[confidence == threshold].sum() / weight.sum() * error
    assert aurc(y, y_pred, confidence, sample_weight=weight) == pytest.approx(area, abs=1e-12)


@given(seed=seeds, n=st.integers(1, 40))
@quick
def test_without_ties_the_area_is_the_mean_of_selective_risks(seed, n):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 2, (2, n))
    confidence = rng.permutation(n)
    wrong = (y != y_pred)[np.argsort(-confidence)]
    risks = np.cumsum(wrong) / np.arange(1, n + 1)
    assert aurc(y, y_pred, confidence) == pytest.approx(risks.mean(), abs=1e-12)


@given(seed=seeds, n=st.integers(1, 30))
@quick
def test_only_the_order_of_confidences_matters(seed, n):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 2, (2, n))
    confidence = rng.integers(0, 5, n)
    stretched = np.exp(confidence) - 100
    assert aurc(y, y_pred, confidence) == aurc(y, y_pred, stretched)
    one, other = (error_reject_curve(y, y_pred, c) for c in (confidence, stretched))
    np.testing.assert_array_equal(one.error, other.error)
    np.testing.assert_array_equal(one.rejection, other.rejection)


def test_first_and_last_point():
    y, y_pred = np.array([0, 0, 0, 0, 0]), np.array([1, 0, 0, 0, 1])
    curve = error_reject_curve(y, y_pred, [3, 2, 1, 3, 1])
    assert curve.rejection[0] == 0
    assert curve.error[0] == np.mean(y != y_pred)
    assert curve.threshold.tolist() == [1, 2, 3]
    assert curve.rejection[-1] == pytest.approx(3 / 5)
    assert curve.error[-1] == 1 / 2


def test_equal_confidences_leave_one_point():
    curve = error_reject_curve([0, 1, 1], [0, 1, 0], [0.5, 0.5, 0.5])
    assert [values.tolist() for values in curve] == [[0], [1 / 3], [1 - 1 / 3], [0.5]]
    assert aurc([0, 1, 1], [0, 1, 0], [0.5, 0.5, 0.5]) == 1 / 3


def test_perfect_and_worst():
    assert aurc([0, 1], [0, 1], [0.3, 0.9]) == 0
    assert aurc([0, 1], [1, 0], [0.3, 0.9]) == 1
    assert aurc(["a"], ["b"], [0.0]) == 1


def test_best_ranking_nears_its_limit():
    n, rate = 20000, 0.3
    wrong = np.arange(n) < rate * n
    best = aurc(np.zeros(n), wrong, np.arange(n))
    assert best == pytest.approx(rate + (1 - rate) * math.log(1 - rate), abs=1e-3)


def test_tables_are_matched_row_by_row_not_by_index():
    y = pd.Series(["a", "b"], index=[0, 1])
    y_pred = pd.Series(["a", "b"], index=[1, 0])
    assert aurc(y, y_pred, pd.Series([0.4, 0.9], index=[5, 6])) == 0


@pytest.mark.parametrize("metric", [aurc, error_reject_curve])
def test_unfit_input_is_refused(metric):
    with pytest.raises(ValueError, match="y_true has 2 rows but y_pred has 1"):
        metric([0, 1], [0], [0.1, 0.2])
    with pytest.raises(ValueError, match="y_true has 2 rows but confidence has 1"):
        metric([0, 1], [0, 1], [0.1])
    with pytest.raises(ValueError, match="confidence has nan in row 1"):
        metric([0, 1], [0, 1], [0.1, np.nan])
    with pytest.raises(ValueError, match="confidence must be 1-dimensional"):
        metric([0, 1], [0, 1], [[0.1, 0.9], [0.2, 0.8]])
    with pytest.raises(ValueError, match="y_true has no rows"):
        metric([], [], [])
    with pytest.raises(TypeError, match=r"y_true\[0\] is 'a', y_pred\[0\] is 0.*same kind"):
        metric(["a", "b"], [0, 1], [0.1, 0.2])
    with pytest.raises(TypeError, match="same kind"):
        metric([0, 1], pd.Series(["0", "1"]), [0.1, 0.2])
