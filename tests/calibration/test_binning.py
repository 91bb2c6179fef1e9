"""Binning: where edges fall, probabilities of bins, and how many there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dubito.calibration import BinningCalibrator
from dubito.calibration.binning import ScoreBinner

ROWS = st.lists(
    st.tuples(st.integers(-8, 8), st.booleans(), st.floats(0.1, 4)), min_size=1, max_size=40
)


def arrays(rows):
    score, event, weight = map(np.array, zip(*rows, strict=True))
    return score * 1.0, event, weight * 1.0


def sigmoid_data(n, slope, seed):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    return score, (rng.random(n) < expit(slope * score)).astype(int)


@settings(deadline=None, max_examples=40)
@given(ROWS, st.integers(1, 12), st.sampled_from(["quantile", "uniform"]))
def test_probabilities_are_smoothed_frequencies_of_the_bins(rows, n_bins, strategy):
    score, event, weight = arrays(rows)
    fitted = BinningCalibrator(n_bins=n_bins, strategy=strategy, classes=[False, True])
    fitted.fit(score, event, weight)
    edges = fitted.maps_[0].bins.edges
    assert (np.diff(edges) > 0).all()
    assert len(edges) + 1 == fitted.n_bins_[0] <= n_bins
    place = np.array([(edges <= s).sum() for s in score])
    for b in range(len(edges) + 1):
        k, n = weight[(place == b) & event].sum(), weight[place == b].sum()
        if strategy == "quantile":
            assert n > 0
        expected = (k + 1) / (n + 2)
        inside = score[place == b]
        got = fitted.predict_proba(inside)[:, 1] if len(inside) else fitted.maps_[0].values[b]
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_quantile_bins_are_of_equal_weight():
    rng = np.random.default_rng(0)
    score, event = rng.normal(size=100), rng.random(100) < 0.5
    bins = ScoreBinner(10, "quantile", False).count(score, event, np.ones(100))
    np.testing.assert_array_equal(bins.successes + bins.failures, 10)
    ordered = np.sort(score)
    np.testing.assert_allclose(bins.edges, (ordered[9:99:10] + ordered[10:100:10]) / 2)
    # Two rows of weight 4 weigh as much as eight others.
    bins = ScoreBinner(2, "quantile", False).count(
        np.arange(10.0), np.zeros(10, dtype=bool), np.repeat([4.0, 1.0], [2, 8])
    )
    np.testing.assert_array_equal(bins.edges, [1.5])


def test_ties_stay_together():
    score = np.repeat([0.0, 1.0, 2.0], [5, 90, 5])
    bins = ScoreBinner(10, "quantile", False).count(score, score > 0, np.ones(100))
    np.testing.assert_array_equal(bins.successes + bins.failures, [5, 90, 5])
    np.testing.assert_array_equal(bins.successes, [0, 90, 5])


def test_neighbouring_floats_are_in_different_bins():
    above = np.nextafter(1.0, 2.0)
    fitted = BinningCalibrator(n_bins=2, smoothing=0).fit([1.0, above], [0, 1])
    np.testing.assert_array_equal(fitted.predict_proba([1.0, above])[:, 1], [0, 1])


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("n_bins", [1, 10, "auto"])
def test_constant_scores_are_one_bin(strategy, n_bins):
    fitted = BinningCalibrator(n_bins=n_bins, strategy=strategy).fit(
        [2.0] * 8, [0, 0, 1] * 2 + [0] * 2
    )
    assert fitted.n_bins_.tolist() == [1]
    np.testing.assert_allclose(fitted.predict_proba([-9, 2, 9])[:, 1], 0.3)


def test_scores_beyond_those_seen_are_in_the_end_bins():
    score, event = sigmoid_data(200, 2.0, 0)
    for strategy in ("quantile", "uniform"):
        fitted = BinningCalibrator(n_bins=5, strategy=strategy).fit(score, event)
        inside = fitted.predict_proba([score.min(), score.max()])
        np.testing.assert_array_equal(fitted.predict_proba([-1e300, 1e300]), inside)


def test_uniform_bins():
    fitted = BinningCalibrator(n_bins=4, strategy="uniform").fit([0, 0.1, 8], [0, 1, 1])
    np.testing.assert_allclose(fitted.maps_[0].bins.edges, [2, 4, 6])
    np.testing.assert_allclose(fitted.predict_proba([1, 3, 5, 7])[:, 1], [0.5, 0.5, 0.5, 2 / 3])
    # Those of probabilities divide [0, 1], whatever was seen.
    proba = [0.3, 0.45, 0.8, 0.81]
    fitted = BinningCalibrator(n_bins=5, strategy="uniform", input="proba").fit(proba, [0, 1, 1, 1])
    np.testing.assert_allclose(expit(fitted.maps_[0].bins.edges), [0.2, 0.4, 0.6, 0.8])
    ends = fitted.predict_proba([0.0, 0.39, 0.41, 0.7, 1.0])[:, 1]
    np.testing.assert_allclose(ends, [1 / 2, 1 / 3, 2 / 3, 1 / 2, 3 / 4])


def test_without_smoothing_frequencies_and_a_half_for_nothing():
    fitted = BinningCalibrator(n_bins=4, strategy="uniform", smoothing=0)
    fitted.fit([0, 0.1, 8], [0, 1, 1])
    np.testing.assert_array_equal(fitted.predict_proba([1, 3, 7])[:, 1], [0.5, 0.5, 1.0])


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_leave_one_out_loss_is_that_of_leaving_out(rows):
    score, event, _ = arrays(rows)
    bins = ScoreBinner(4, "quantile", False).count(score, event, np.ones(len(score)))
    place = bins.find(score)
    loss = 0.0
    for i in range(len(score)):
        rest = (place == place[i]) & (np.arange(len(score)) != i)
        proba = (event[rest].sum() + 1) / (rest.sum() + 2)
        loss -= np.log(proba if event[i] else 1 - proba)
    assert bins.leave_one_out_loss() == pytest.approx(loss, abs=1e-9)


def test_auto_grows_with_what_there_is_to_see():
    flat = BinningCalibrator().fit(*sigmoid_data(2_000, 0.0, 0)).n_bins_[0]
    few = BinningCalibrator().fit(*sigmoid_data(100, 2.0, 0)).n_bins_[0]
    many = BinningCalibrator().fit(*sigmoid_data(50_000, 2.0, 0)).n_bins_[0]
    assert flat <= 2
    assert 2 <= few <= 12
    assert 15 <= many <= 150


def test_auto_is_as_good_as_the_best_number():
    losses = {n_bins: [] for n_bins in ("auto", 2, 5, 10, 20, 50)}
    for seed in range(20):
        score, event = sigmoid_data(500, 3.0, seed)
        new = np.random.default_rng(100 + seed).normal(size=2_000)
        truth = expit(3 * new)
        for n_bins, collected in losses.items():
            p = BinningCalibrator(n_bins=n_bins).fit(score, event).predict_proba(new)[:, 1]
            collected.append(-np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p)))
    mean = {n_bins: np.mean(collected) for n_bins, collected in losses.items()}
    assert mean["auto"] < min(value for n, value in mean.items() if n != "auto") + 0.01
    assert mean["auto"] < mean[2]
    assert mean["auto"] < mean[50]


@pytest.mark.parametrize("options", [{"n_bins": 0}, {"n_bins": "many"}, {"strategy": "equal"}])
def test_refusals(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        BinningCalibrator(**options).fit([0.0, 1.0], [0, 1])
