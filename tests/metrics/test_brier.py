"""The Brier decomposition: its whole is scikit-learn's score, its parts are Murphy's."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from dubito.metrics import brier_decomposition

seeds = st.integers(0, 2**32 - 1)
options = st.fixed_dictionaries(
    {"n_bins": st.integers(1, 20), "strategy": st.sampled_from(["uniform", "quantile"])}
)
quick = settings(deadline=None, max_examples=60)
several_classes = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7),
    reason="brier_score_loss takes (n, K) since scikit-learn 1.7",
)


@given(seed=seeds, n=st.integers(2, 40), grain=st.sampled_from([4, 10**6]), options=options)
@quick
def test_two_classes_sum_to_the_brier_score(seed, n, grain, options):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, grain, n, endpoint=True) / grain
    y, weight = rng.integers(0, 2, n), rng.random(n) + 0.01
    parts = brier_decomposition(y, p, sample_weight=weight, **options)
    expected = brier_score_loss(y, p, sample_weight=weight, pos_label=1)
    assert parts.brier == pytest.approx(expected, abs=1e-12)
    both = np.column_stack((1 - p, p))
    assert brier_decomposition(y, both, sample_weight=weight, **options) == parts


@several_classes
@given(seed=seeds, k=st.integers(2, 6), options=options)
@quick
def test_several_classes_sum_to_the_brier_score(seed, k, options):
    rng = np.random.default_rng(seed)
    proba, weight = rng.dirichlet(np.ones(k), 30), rng.random(30)
    names = np.array([f"class {j}" for j in range(k)])
    y = names[rng.integers(0, k, 30)]
    expected = brier_score_loss(y, proba, labels=names, sample_weight=weight)
    parts = brier_decomposition(y, proba, classes=names, sample_weight=weight, **options)
    assert parts.brier == pytest.approx(expected, abs=1e-12)


@given(seed=seeds)
@quick
def test_one_forecast_per_bin_is_murphys_partition(seed):
    rng = np.random.default_rng(seed)
    forecasts = np.array([0.05, 0.25, 0.55, 0.95])
    of_row = np.append(np.arange(4), rng.integers(0, 4, 40))
    p, y = forecasts[of_row], rng.integers(0, 2, 44)
    counts = np.bincount(of_row)
    frequency = np.bincount(of_row, weights=y) / counts
    reliability, resolution, uncertainty = brier_decomposition(y, p, n_bins=10)
    assert reliability == pytest.approx(counts @ (forecasts - frequency) ** 2 / 44, abs=1e-12)
    assert resolution == pytest.approx(counts @ (frequency - y.mean()) ** 2 / 44, abs=1e-12)
    assert uncertainty == pytest.approx(y.mean() * (1 - y.mean()), abs=1e-12)


def test_parts_of_known_forecasts():
    # Forecasts of the base rate have uncertainty alone; forecasts that are right resolve all of it.
    y = [0, 0, 0, 1]
    assert brier_decomposition(y, [0.25] * 4) == pytest.approx((0, 0, 0.1875))
    assert brier_decomposition(y, y) == pytest.approx((0, 0.1875, 0.1875))
    assert brier_decomposition(y, [1, 1, 1, 0]) == pytest.approx((1, 0.1875, 0.1875))
    assert brier_decomposition(y, [1, 1, 1, 0]).brier == pytest.approx(1)


def test_parts_are_plain_floats():
    parts = brier_decomposition([0, 1, 2], np.eye(3))
    assert parts._fields == ("reliability", "resolution", "uncertainty")
    assert all(type(part) is float for part in parts)
    assert parts.brier == pytest.approx(0, abs=1e-15)


def test_spread_in_vain_lowers_resolution():
    # The forecasts in the single bin vary independently of the outcome.
    parts = brier_decomposition([0, 1, 0, 1], [0.4, 0.4, 0.6, 0.6], n_bins=1)
    assert parts.resolution == pytest.approx(-0.01)
    assert parts.reliability == pytest.approx(0, abs=1e-15)
