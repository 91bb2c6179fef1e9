"""Reading scores: log scores and log-odds of whatever was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import log_softmax, logit, softmax

from dubito.calibration import CalibrationInputError, PlattCalibrator
from dubito.calibration.one_vs_rest import normalise_bounds, normalise_proba
from dubito.calibration.scores import (
    binary_log_odds,
    choose_floor,
    class_log_odds,
    log_scores,
    read_scores,
)

LOGITS = hnp.arrays(np.float64, (3, 4), elements=st.floats(-30, 30))


@given(LOGITS)
def test_log_odds_of_logits_are_those_of_their_softmax(logits):
    log_odds = class_log_odds(logits, "logits", 1e-12)
    others = np.array(
        [[np.log(np.exp(np.delete(row, k) - row[k]).sum()) for k in range(4)] for row in logits]
    )
    np.testing.assert_allclose(log_odds, -others, rtol=1e-9, atol=1e-9)


@given(LOGITS)
def test_shifting_logits_changes_nothing(logits):
    shifted = logits + np.array([[1.0], [-500.0], [1e4]])
    for kind in (class_log_odds, lambda *a: log_scores(*a, normalised=True)):
        np.testing.assert_allclose(
            kind(shifted, "logits", 1e-12), kind(logits, "logits", 1e-12), atol=1e-8
        )


def test_probabilities_become_logs_above_the_floor():
    proba = np.array([[0.0, 0.25, 0.75], [0.2, 0.3, 0.5]])
    logs = log_scores(proba, "proba", 1e-5, normalised=False)
    assert logs[0, 0] == np.log(1e-5)
    np.testing.assert_allclose(logs[1], np.log(proba[1]))
    log_odds = class_log_odds(proba, "proba", 1e-5)
    np.testing.assert_allclose(log_odds[1], logit(proba[1]))
    assert log_odds[0, 0] == np.log(1e-5)


def test_logits_and_margins_as_log_scores():
    logits = np.array([[1.0, 2.0, 4.0]])
    np.testing.assert_allclose(
        log_scores(logits, "logits", 1e-9, normalised=True), log_softmax(logits, axis=1)
    )
    assert log_scores(logits, "margin", 1e-9, normalised=True) is logits
    assert class_log_odds(logits, "margin", 1e-9) is logits


def test_two_classes_have_one_margin():
    margin = np.array([[-1.0], [2.0]])
    np.testing.assert_array_equal(binary_log_odds(margin, "margin", 1e-9), [-1, 2])
    two = np.hstack([np.zeros((2, 1)), margin])
    np.testing.assert_array_equal(binary_log_odds(two, "logits", 1e-9), [-1, 2])
    proba = softmax(two, axis=1)
    np.testing.assert_allclose(binary_log_odds(proba, "proba", 1e-9), [-1, 2])
    np.testing.assert_allclose(binary_log_odds(proba[:, 1:], "proba", 1e-9), [-1, 2])
    np.testing.assert_allclose(
        log_scores(margin, "margin", 1e-9, normalised=False), [[0.5, -0.5], [-1, 1]]
    )


def floor_of(proba):
    y, weight = np.zeros(len(proba), dtype=int), np.ones(len(proba))
    return choose_floor(proba, "proba", y, weight)


def test_the_floor_follows_the_smallest_probability():
    forest = np.array([[0.0, 1.0], [0.01, 0.99]])
    assert floor_of(forest) == 0.005
    assert floor_of(forest[:, 1:]) == pytest.approx(0.005)
    assert floor_of(np.eye(2)) == 0.01
    assert floor_of(np.array([[1e-200, 1.0]])) == 1e-16
    fitted = PlattCalibrator(input="proba").fit(forest, [0, 1])
    assert fitted.floor_ == 0.005
    assert PlattCalibrator(input="proba", floor=1e-3).fit(forest, [0, 1]).floor_ == 1e-3


def test_certain_probabilities_stay_finite():
    log_odds = binary_log_odds(np.array([[0.0], [1.0]]), "proba", 1e-300)
    np.testing.assert_allclose(log_odds, [np.log(1e-300), -np.log(1e-300)])


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        ([[0.2, 0.9]], "proba", r"sum to 1.*input=\"margin\""),
        ([0.2, 1.5], "proba", r"\[0, 1\]; not so in row 1"),
        ([[1.0, np.inf]], "margin", "1 row with infinite values"),
        (np.empty((0, 3)), "margin", r"empty, of shape \(0, 3\)"),
        (np.empty((3, 0)), "margin", r"empty, of shape \(3, 0\)"),
        (np.zeros((2, 2, 2)), "margin", "1-dimensional or 2-dimensional"),
        ([[1.0, 2.0], [3.0]], "margin", "rows of unequal length"),
    ],
)
def test_what_is_refused(scores, kind, message):
    with pytest.raises(CalibrationInputError, match=message):
        read_scores(scores, kind)


def test_strings_are_no_scores():
    with pytest.raises(TypeError, match="must hold numbers"):
        read_scores(["high", "low"], "margin")


@given(
    hnp.arrays(np.float64, (2, 4), elements=st.floats(0, 1)),
    hnp.arrays(np.float64, (2, 4), elements=st.floats(0, 1)),
    hnp.arrays(np.float64, (2, 4), elements=st.floats(0, 1)),
)
def test_lifted_bounds_hold_the_lifted_probabilities(one, other, fraction):
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    low, high = normalise_bounds(lower, upper)
    proba = normalise_proba(lower + fraction * (upper - lower))
    assert (low <= proba + 1e-12).all()
    assert (proba <= high + 1e-12).all()


def test_lifted_bounds_of_one_class_that_outweighs_the_rest():
    tiny = 1.84574578e-15
    lower, upper = np.full((1, 4), tiny), np.array([[1.0, tiny, tiny, tiny]])
    np.testing.assert_allclose(normalise_bounds(lower, upper)[0][0, 0], 0.25)


def test_lifted_bounds_are_reached():
    lower, upper = np.array([[0.1, 0.2, 0.3]]), np.array([[0.2, 0.5, 0.4]])
    low, high = normalise_bounds(lower, upper)
    corners = np.array([[[a, b, c] for a in (0.1, 0.2) for b in (0.2, 0.5) for c in (0.3, 0.4)]])
    shares = normalise_proba(corners[0])
    np.testing.assert_allclose(low[0], shares.min(axis=0))
    np.testing.assert_allclose(high[0], shares.max(axis=0))
    np.testing.assert_allclose(normalise_proba(np.zeros((1, 4))), 0.25)
