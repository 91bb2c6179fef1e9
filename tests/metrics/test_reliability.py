"""The reliability curve against scikit-learn, scipy and loops, and the coverage of its band."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from sklearn.calibration import calibration_curve

from dubito.belief import Frame
from dubito.metrics import (
    AmbiguousLabelWarning,
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from dubito.metrics.intervals import fraction_interval

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=40)
strategies = pytest.mark.parametrize("strategy", ["uniform", "quantile"])


def draw(seed, n=60, k=3):
    """Forecasts on a coarse grid, so that ties and edges are common, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, (n, k)) + np.eye(k, dtype=int)[rng.integers(0, k, n)]
    proba = counts / counts.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), proba, rng


@strategies
@given(seed=seeds, n_bins=st.integers(1, 20))
@quick
def test_the_curve_gives_the_expected_calibration_error(strategy, seed, n_bins):
    y, proba, rng = draw(seed)
    bins = {"n_bins": n_bins, "strategy": strategy, "sample_weight": rng.integers(1, 4, 60)}
    for forecast, labels in ((proba, y), (proba[:, 0], y == 0)):
        curve = reliability_curve(labels, forecast, **bins)
        error = curve.weight @ np.abs(curve.frequency - curve.mean_probability)
        assert error == pytest.approx(expected_calibration_error(labels, forecast, **bins), abs=0)


@given(seed=seeds, n_bins=st.integers(1, 20))
@quick
def test_uniform_bins_against_scikit_learn(seed, n_bins):
    rng = np.random.default_rng(seed)  # no ties with edges: scikit-learn closes bins on the right
    p = rng.random(80)
    y = rng.random(80) < p
    frequency, forecast = calibration_curve(y, p, n_bins=n_bins)
    curve = reliability_curve(y, p, n_bins=n_bins, strategy="uniform")
    np.testing.assert_allclose(curve.frequency, frequency, atol=1e-12)
    np.testing.assert_allclose(curve.mean_probability, forecast, atol=1e-12)


def test_quantile_bins_against_scikit_learn():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    y = rng.random(200) < p
    frequency, forecast = calibration_curve(y, p, n_bins=8, strategy="quantile")
    curve = reliability_curve(y, p, n_bins=8)
    np.testing.assert_allclose(curve.frequency, frequency, atol=1e-12)
    np.testing.assert_allclose(curve.mean_probability, forecast, atol=1e-12)
    assert curve.n_rows.tolist() == [25] * 8


@given(seed=seeds, confidence_level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@quick
def test_the_band_is_scipys_exact_interval(seed, confidence_level):
    y, proba, _ = draw(seed)
    curve = reliability_curve(y, proba, n_bins=6, confidence_level=confidence_level)
    for frequency, n, low, high in zip(
        curve.frequency, curve.n_rows, curve.lower, curve.upper, strict=True
    ):
        exact = binomtest(round(frequency * n), int(n)).proportion_ci(
            confidence_level, method="exact"
        )
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 200])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_band_has_its_coverage_at_every_probability(n, confidence):
    # Not a simulation: the sum over all outcomes. The bound is the stated confidence itself.
    hits = np.arange(n + 1)
    low, high = fraction_interval(hits / n, np.full(n + 1, n), confidence)
    for p in np.concatenate((np.linspace(0, 1, 101), [0.001, 0.005, 0.995, 0.999])):
        held = binom.pmf(hits, n, p)[(low <= p) & (p <= high)].sum()
        assert held >= confidence - 1e-9


def test_wilsons_interval_would_not():
    # The reason for the choice, given in the docstring.
    n, p = 30, 0.995
    wilson = [binomtest(k, n).proportion_ci(method="wilson") for k in range(n + 1)]
    held = sum(binom.pmf(k, n, p) for k, ci in enumerate(wilson) if ci.low <= p <= ci.high)
    assert held == pytest.approx(0.86, abs=0.005)


@strategies
def test_the_band_has_its_coverage_where_probabilities_differ_within_a_bin(strategy):
    # 400 samples of 8 bins: 3,200 bands with standard error 0.004 around at least 0.9.
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.5, 120)
    held = []
    for _ in range(400):
        y = rng.random(120) < p
        curve = reliability_curve(y, p, n_bins=8, strategy=strategy, confidence_level=0.9)
        held += (
            (curve.lower <= curve.mean_probability) & (curve.mean_probability <= curve.upper)
        ).tolist()
    assert np.mean(held) > 0.9 - 0.012


@given(seed=seeds, n_bins=st.integers(1, 20))
@quick
def test_bins_are_in_order_and_bands_hold_their_frequency(seed, n_bins):
    y, proba, rng = draw(seed)
    for strategy in ("uniform", "quantile"):
        curve = reliability_curve(
            y, proba, n_bins=n_bins, strategy=strategy, sample_weight=rng.random(60) + 0.1
        )
        assert (curve.lower <= curve.frequency).all()
        assert (curve.frequency <= curve.upper).all()
        assert (np.diff(curve.mean_probability) > 0).all()
        assert curve.n_rows.sum() == 60
        assert (curve.n_rows > 0).all()
        assert curve.weight.sum() == pytest.approx(1)
        low, high = curve.edges.T
        assert (low <= curve.mean_probability + 1e-12).all()
        assert (curve.mean_probability <= high + 1e-12).all()
        assert (high[:-1] <= low[1:] + 1e-12).all()
        assert len(curve.edges) <= n_bins


def test_edges_are_those_of_the_bins():
    p = [0.05, 0.29, 0.3, 0.31, 1.0]
    curve = reliability_curve([0, 0, 0, 1, 1], p, n_bins=10, strategy="uniform")
    np.testing.assert_allclose(curve.edges, [[0, 0.1], [0.2, 0.3], [0.3, 0.4], [0.9, 1]])
    curve = reliability_curve([0, 0, 0, 1, 1], p, n_bins=2)
    np.testing.assert_array_equal(curve.edges, [[0.05, 0.29], [0.3, 1.0]])


@given(seed=seeds)
@quick
def test_weights_are_repetitions_in_the_means_but_not_in_the_band(seed):
    y, proba, rng = draw(seed)
    weight = rng.integers(0, 4, 60)
    weight[0] = 2
    rows = np.repeat(np.arange(60), weight)
    score = partial(reliability_curve, classes=range(3), n_bins=5)
    weighted, repeated = score(y, proba, sample_weight=weight), score(y[rows], proba[rows])
    for field in ("mean_probability", "frequency", "weight", "edges"):
        one, other = getattr(weighted, field), getattr(repeated, field)
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert (repeated.upper - repeated.lower <= weighted.upper - weighted.lower + 1e-12).all()
    assert weighted.n_rows.sum() == (weight > 0).sum()


def test_the_band_of_weights_is_that_of_kishs_number_of_rows():
    y, p, weight = [1, 0, 1, 1], [0.5] * 4, np.array([1.0, 2.0, 3.0, 2.0])
    curve = reliability_curve(y, p, sample_weight=weight)
    low, high = fraction_interval(6 / 8, 64 / 18, 0.95)
    assert (curve.lower[0], curve.upper[0]) == pytest.approx((float(low), float(high)))
    in_pounds = reliability_curve(y, p, sample_weight=weight * 2.2)
    for one, other in zip(curve, in_pounds, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    unweighted = reliability_curve(y, p)
    doubled = reliability_curve(y, p, sample_weight=[2] * 4)
    np.testing.assert_array_equal(doubled.lower, unweighted.lower)


WORDS = np.array(["cod", "eel", "ray"])


@pytest.mark.parametrize("k", [0, 1, 2])
def test_one_class_is_a_forecast_of_two(k):
    y, proba, _ = draw(5)
    expected = reliability_curve(y == k, proba[:, k], n_bins=7)
    options = (
        reliability_curve(y, proba, class_=k, n_bins=7),
        reliability_curve(WORDS[y], proba, class_=WORDS[k], n_bins=7),
        reliability_curve(WORDS[y], proba, of="class", class_=WORDS[k], classes=WORDS, n_bins=7),
        reliability_curve(
            WORDS[y], proba, class_=WORDS[k], classes=Frame(WORDS.tolist()), n_bins=7
        ),
        reliability_curve(y + 1, proba, class_=k + 1, n_bins=7),
    )
    for curve in options:
        for one, other in zip(curve, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_class_without_rows_never_comes_true():
    _, proba, _ = draw(6)
    y = np.zeros(60, dtype=int)
    assert not reliability_curve(y, proba, class_=2).frequency.any()
    curve = reliability_curve(WORDS[y], proba, class_="ray", classes=WORDS)
    assert not curve.frequency.any()


def test_two_classes():
    p, y = np.array([0.2, 0.7, 0.9, 0.4]), np.array(["no", "yes", "yes", "yes"])
    both = np.column_stack((1 - p, p))
    second = reliability_curve(y, p)
    assert second.mean_probability.tolist() == [0.2, 0.4, 0.7, 0.9]
    assert second.frequency.tolist() == [0, 1, 1, 1]
    for curve in (
        reliability_curve(y, both, class_="yes"),
        reliability_curve(y, both, of="class"),
        reliability_curve(y, p, class_="yes"),
        reliability_curve(y, p, of="top"),
        reliability_curve(y, p, of="class"),
    ):
        np.testing.assert_allclose(curve.frequency, second.frequency)
        np.testing.assert_allclose(curve.mean_probability, second.mean_probability)
    first = reliability_curve(y, p, class_="no")
    np.testing.assert_allclose(first.mean_probability, 1 - second.mean_probability[::-1])
    np.testing.assert_allclose(first.frequency, 1 - second.frequency[::-1])
    top = reliability_curve(y, both)
    np.testing.assert_allclose(top.mean_probability, [0.6, 0.7, 0.8, 0.9])
    assert top.frequency.tolist() == [0, 1, 1, 1]


def test_one_row_and_equal_forecasts():
    for strategy in ("uniform", "quantile"):
        one = reliability_curve([1], [0.7], strategy=strategy)
        assert isinstance(one, ReliabilityCurve)
        assert [field.shape for field in one] == [(1,)] * 6 + [(1, 2)]
        assert (one.frequency[0], one.lower[0], one.upper[0]) == pytest.approx((1, 0.025, 1))
        same = reliability_curve([1, 0, 0, 1, 0], [0.3] * 5, strategy=strategy)
        assert same.mean_probability == pytest.approx([0.3])
        assert same.frequency == pytest.approx([0.4])
        assert same.n_rows.tolist() == [5]


def test_a_frequency_of_none_or_all_has_a_band_that_ends_there():
    curve = reliability_curve([0] * 40 + [1] * 40, [0.1] * 40 + [0.9] * 40)
    assert (curve.lower[0], curve.upper[1]) == (0, 1)
    # The "rule of three", here for a two-sided interval: 1 - 0.025^(1/n).
    assert curve.upper[0] == pytest.approx(1 - 0.025 ** (1 / 40))
    assert curve.lower[1] == pytest.approx(0.025 ** (1 / 40))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"of": "all"}, "of must be one of 'top', 'class'. Got 'all'"),
        ({"of": "top", "class_": 1}, "class_=1 asks for one class and of='top'"),
        ({"of": "class"}, "of='class' needs class_, one of the 3 classes"),
        ({"class_": 3}, "class_ must be one of the classes 0, 1, 2. Got 3 instead"),
        ({"class_": [0, 1]}, r"Got \[0, 1\] instead"),
        ({"class_": "cod"}, "class_ must be one of the classes 0, 1, 2. Got 'cod'"),
        (
            {"class_": "hen", "classes": ["cod", "eel", "ray"], "y_true": ["cod", "ray"]},
            "'cod', 'eel'",
        ),
        (
            {"confidence_level": 1},
            "confidence_level must be a number between 0 and 1.*Got 1 instead",
        ),
        ({"confidence_level": "high"}, "Got 'high' instead"),
        ({"n_bins": 0}, "n_bins must be an integer of at least 1"),
        ({"strategy": "kmeans"}, "strategy must be one of"),
        ({"y_true": [0]}, "y_true has 1 rows but y_proba has 2"),
        ({"sample_weight": [0, 0]}, "all zero"),
    ],
)
def test_wrong_questions_are_refused(wrong, words):
    given_well = {"y_true": [0, 2], "y_proba": [[0.2, 0.3, 0.5]] * 2}
    with pytest.raises(ValueError, match=words):
        reliability_curve(**{**given_well, **wrong})


def test_many_classes_are_not_all_listed_in_a_refusal():
    with pytest.raises(ValueError, match=r"8, 9 and 2 more\. Got 99"):
        reliability_curve([0], np.full((1, 12), 1 / 12), class_=99)


def test_a_warning_about_labels_points_at_its_caller():
    with pytest.warns(AmbiguousLabelWarning) as caught:
        reliability_curve([1, 2], [[0.2, 0.3, 0.5]] * 2)
    assert caught[0].filename == __file__
