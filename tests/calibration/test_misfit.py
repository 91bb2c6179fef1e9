"""Whether a wrong form is distinguished from a right one."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax

from dubito.calibration import (
    EvidentialIsotonicCalibrator,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    MisfitWarning,
)
from dubito.calibration._kernels.misfit import misfit_fraction


def draw(n, probability, seed):
    """Draw scores and events, at least one of each kind."""
    rng = np.random.default_rng(seed)
    while True:
        score = rng.normal(size=n)
        event = rng.random(n) < probability(score)
        if event.any() and not event.all():
            return score, event.astype(int)


def flagged(kind, n, probability, rounds, reshape=lambda s: s):
    """Return how often a calibrator warns of a wrong form."""
    found = []
    for seed in range(rounds):
        score, event = draw(n, probability, seed)
        found.append(kind().fit(reshape(score), event).misfit_ > 1 / 6)
    return np.mean(found)


def steep(s):
    return 0.1 + 0.8 * expit(8 * s)


def cubic(s):
    return expit(3 * s**3)


RIGHT = {
    "weak": expit,
    "strong": lambda s: expit(4 * s + 1),
    "rare": lambda s: expit(1.5 * s - 2.5),
    "flat": lambda s: np.full_like(s, 0.3),
}


@pytest.mark.parametrize("n", [10, 100, 1000])
@pytest.mark.parametrize("name", RIGHT)
def test_the_right_form_is_left_alone(name, n):
    assert flagged(EvidentialLogisticCalibrator, n, RIGHT[name], 60) <= 1 / 60


@pytest.mark.parametrize("probability", [steep, cubic])
def test_a_wrong_link_is_seen_at_a_thousand_rows(probability):
    assert flagged(EvidentialLogisticCalibrator, 1000, probability, 30) >= 0.9
    joint = flagged(EvidentialJointCalibrator, 1000, probability, 5, lambda s: s[:, None])
    assert joint >= 0.8


def test_one_slope_without_an_intercept_is_seen_on_shifted_scores():
    def shifted(s):
        return expit(2 * s - 1.5)

    assert flagged(EvidentialMultinomialCalibrator, 300, shifted, 20) == 1
    assert flagged(EvidentialMultinomialCalibrator, 300, lambda s: expit(2 * s), 20) == 0


@pytest.mark.parametrize("n", [30, 500])
def test_more_classes_by_the_most_probable(n):
    rng = np.random.default_rng(0)
    right, wrong = [], []
    for _ in range(20):
        scores = rng.normal(size=(n, 4))
        proba = softmax(2 * scores, axis=1)
        y = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1)
        calibrator = EvidentialMultinomialCalibrator(classes=range(4))
        right.append(calibrator.fit(scores, y).misfit_)
        wrong.append(calibrator.fit(scores + np.array([0, 0, 0, 3]), y).misfit_)
    assert np.mean(np.array(right) > 1 / 6) <= 0.05
    if n == 500:
        assert np.mean(np.array(wrong) > 1 / 6) >= 0.9


def test_offsets_of_classes_are_seen_though_the_most_probable_fits():
    rng = np.random.default_rng(1)
    wrong = []
    for _ in range(15):
        scores = 1.5 * rng.normal(size=(300, 5))
        proba = softmax(1.2 * scores + np.array([1, -1, 0.5, 1, -1]), axis=1)
        y = (rng.random((300, 1)) > proba.cumsum(axis=1)).sum(axis=1)
        wrong.append(EvidentialMultinomialCalibrator(classes=range(5)).fit(scores, y).misfit_)
    assert np.mean(np.array(wrong) > 1 / 6) >= 0.9


def test_bounds_at_a_level_come_with_a_warning():
    score, event = draw(1000, steep, 0)
    fitted = EvidentialLogisticCalibrator(targets="light").fit(score, event)
    with pytest.warns(MisfitWarning, match="Use IsotonicCalibrator") as caught:
        fitted.predict_bounds(score[:5], level=0.9)
    assert "EvidentialLogisticCalibrator: in" in str(caught[0].message)
    assert "targets" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict_bounds(score[:5])  # belief and plausibility promise no level
        EvidentialIsotonicCalibrator().fit(score, event).predict_bounds(score[:5], level=0.9)


def test_smoothed_targets_are_named_as_a_cause():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 10))
    y = (rng.random((60, 1)) > softmax(4 * scores, axis=1).cumsum(axis=1)).sum(axis=1)
    fitted = EvidentialMultinomialCalibrator(targets="smoothed", classes=range(10)).fit(scores, y)
    with pytest.warns(MisfitWarning, match='Try targets="light" first'):
        fitted.predict_bounds(scores, level=0.9)


def test_lifted_maps_are_checked_each_against_the_rest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 3))
    y = scores.argmax(axis=1)
    fitted = EvidentialLogisticCalibrator(targets="light").fit(scores, y)
    alone = [
        EvidentialLogisticCalibrator(targets="light").fit(scores[:, k], y == k).misfit_
        for k in range(3)
    ]
    assert fitted.misfit_ == pytest.approx(np.mean(alone))


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e12])
def test_edges_of_probabilities_and_weights(scale):
    proba = np.array([0.0, 1.0, 0.5, 1e-20, 1 - 1e-16])
    event = np.array([False, True, True, False, True])
    assert misfit_fraction(proba, event, np.full(5, scale)) <= 0.4
    assert misfit_fraction(proba[:1], event[:1], np.full(1, scale)) == 0


def test_a_weight_of_two_is_a_row_twice():
    score, event = draw(300, steep, 0)
    proba, twice = expit(score), np.full(300, 2.0)
    repeated = misfit_fraction(np.repeat(proba, 2), np.repeat(event == 1, 2), np.ones(600))
    assert misfit_fraction(proba, event == 1, twice) == repeated > 0
