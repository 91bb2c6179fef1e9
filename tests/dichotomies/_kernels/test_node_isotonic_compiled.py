"""Isotonic fits of packed nodes: against scipy, whatever the unit of the weights."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from dubito.dichotomies._kernels.node_isotonic_compiled import isotonic_knots, pool_ties_of_nodes


def packed_nodes(rng, sizes, unit=1.0):
    """Return nodes of rounded scores, the left half of each on the left side."""
    sizes = np.asarray(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    scores = np.round(rng.normal(size=start[-1]), 1)
    weight = unit * rng.uniform(0.5, 2, start[-1])
    return scores, start, sizes // 2, weight, start[:-1].copy()


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e150])
def test_values_are_those_of_isotonic_regression(unit):
    packed = packed_nodes(np.random.default_rng(0), [1, 2, 9, 60, 400], unit)
    pools, count = pool_ties_of_nodes(packed)
    knots, used = isotonic_knots(pools, packed[1], count, 0.0)
    for t, start in enumerate(packed[1][:-1]):
        scores, k, r = pools[:, start : start + count[t]]
        fitted = isotonic_regression(k / (k + r), weights=(k + r) / unit).x
        ends = knots[:, start : start + used[t]]
        np.testing.assert_allclose(np.interp(scores, *ends), fitted, atol=1e-12)
        assert np.isin(ends[0], scores).all()


def test_smoothing_adds_a_success_to_the_first_score_and_a_failure_to_the_last():
    packed = (np.array([0.0, 1.0]), np.array([0, 2]), np.array([1]), np.ones(2), np.array([0]))
    pools, count = pool_ties_of_nodes(packed)
    knots, used = isotonic_knots(pools, packed[1], count, 0.5)
    assert used[0] == 2
    np.testing.assert_allclose(knots[1], [0.5 / 1.5, 1 / 1.5])


def test_nodes_with_nan_have_no_knots():
    packed = (np.array([0.0, np.nan, 1.0, 2.0]), np.array([0, 2, 4]), np.array([1, 1]))
    pools, count = pool_ties_of_nodes((*packed, np.ones(4), np.array([0, 2])))
    assert count.tolist() == [0, 2]
    assert isotonic_knots(pools, packed[1], count, 0.0)[1].tolist() == [0, 2]
