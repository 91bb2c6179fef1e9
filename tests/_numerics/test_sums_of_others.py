"""Sums and maxima of the other entries of a row, compared with leaving each entry out."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dubito._numerics.sums_of_others import log_sums_of_others, maxima_of_others, sums_of_others

REFERENCES = {
    sums_of_others: np.sum,
    log_sums_of_others: logsumexp,
    maxima_of_others: np.max,
}


@pytest.mark.parametrize("n_classes", [2, 3, 40])
@pytest.mark.parametrize("function", REFERENCES, ids=lambda function: function.__name__)
def test_entries_are_left_out(function, n_classes):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, n_classes)) * np.logspace(-2, 2, 50)[:, None]
    values[0] = 1.0  # ties
    expected = [
        [REFERENCES[function](np.delete(row, k)) for k in range(n_classes)] for row in values
    ]
    np.testing.assert_allclose(function(values), expected, rtol=1e-13, atol=1e-13)


def test_a_dominant_entry_does_not_hide_the_others():
    values = np.array([[800.0, -3.0, -4.0], [1e18, 1.0, 2.0]])
    assert log_sums_of_others(values)[:, 0] == pytest.approx(
        [np.logaddexp(-3, -4), np.logaddexp(1, 2)], rel=1e-15
    )
    assert sums_of_others(values)[1, 0] == 3.0


def test_entries_of_no_weight():
    none = -np.inf
    values = np.array([[none, none, 2.0], [none, none, none]])
    np.testing.assert_array_equal(
        log_sums_of_others(values), [[2.0, 2.0, none], [none, none, none]]
    )
