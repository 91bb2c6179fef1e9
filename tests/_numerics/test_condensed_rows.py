"""Few points in place of many rows: the same logistic likelihood."""

import numpy as np
import pytest

from dubito._numerics.condensed_rows import fewer_rows
from dubito._numerics.condensed_rows_compiled import condense


@pytest.mark.parametrize("slope", [0.5, 3.0, -8.0])
def test_few_stored_rows_have_the_likelihood_of_all(slope):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=20_000), rng.uniform(0.5, 2, 20_000)
    event = rng.random(20_000) < 1 / (1 + np.exp(0.3 - slope * x))
    few = fewer_rows(x, event, weight, (-0.3, slope))
    assert 10 * len(few[0]) < len(x)

    def loss(rows, intercept, steepness):
        z, y, w = rows
        eta = intercept + steepness * z
        return w @ (np.logaddexp(0, eta) - y * eta)

    for intercept, steepness in [(-0.3, slope), (0.2, 1.1 * slope), (-1.0, 0.9 * slope)]:
        many = loss((x, event, weight), intercept, steepness)
        np.testing.assert_allclose(loss(few, intercept, steepness), many, rtol=1e-11)


def test_rows_that_say_little_of_the_slope_are_kept():
    x = np.linspace(-1, 1, 5000)
    event, weight = x > 0, np.full(5000, 1e-6)
    kept = fewer_rows(x, event, weight, (0.0, 1.0))
    assert kept[0] is x
    assert kept[1] is event
    assert kept[2] is weight


def test_a_group_without_weight_stays_without():
    x = np.sort(np.random.default_rng(0).normal(size=100))
    weight = np.where(x < 0, 0.0, 1.0)
    few = condense(np.stack([x, weight]), 40.0)
    assert np.isfinite(few).all()
    np.testing.assert_allclose(few[1].sum(), weight.sum())
