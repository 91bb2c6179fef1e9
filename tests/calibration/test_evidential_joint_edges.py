"""Joint calibration at its edges: no estimate, too many classifiers, odd input, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dubito.calibration import (
    CalibrationInputError,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
)


def draw(n, n_scores, seed=0):
    rng = np.random.default_rng([seed, n, n_scores])
    scores = rng.normal(size=(n, n_scores))
    y = (rng.random(n) < expit(scores @ np.linspace(1.5, -0.5, n_scores))).astype(int)
    return scores, y


def assert_sound(model, rows):
    proba, bounds = model.predict_proba(rows), model.predict_bounds(rows)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert (bounds.lower >= 0).all()
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert (bounds.upper <= 1).all()
    return bounds


def assert_same(one, other, atol=1e-9):
    np.testing.assert_allclose(one.lower, other.lower, rtol=0, atol=atol)
    np.testing.assert_allclose(one.upper, other.upper, rtol=0, atol=atol)


def separable(scores, y):
    """Whether some plane has each class on its own side, rows upon it allowed, but not all of them.

    This is when raw targets have no estimate (Albert and Anderson, 1984).
    """
    signed = np.column_stack([np.ones(len(y)), scores]) * np.where(y, 1, -1)[:, None]
    best = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(y)), bounds=(-1, 1))
    return -best.fun > 1e-7


def xor_and_a_plane():
    """Three scores: none, and no two of them, separate what their sum does."""
    scores = np.random.default_rng(3).normal(size=(30, 3))
    return scores, (scores.sum(axis=1) > 0).astype(int)


SEPARATED = {
    "apart": ([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]], [0, 0, 1, 1]),
    "falling": ([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]], [1, 1, 0, 0]),
    "ties on the plane": ([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.0, 1.0]], [0, 0, 1, 1]),
    "all but one on a plane": ([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1, 1]),
    "one class": ([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]], [1, 1, 1]),
    "only by all three": xor_and_a_plane(),
}
OVERLAPPING = {
    "exclusive or": ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]),
    "barely": ([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.1, 0.1], [3.0, 3.0]], [0, 0, 0, 1, 1]),
    "same rows": ([[0.0, 1.0], [1.0, 3.0], [0.0, 1.0], [1.0, 3.0]], [0, 0, 1, 1]),
    "a copy, overlapping": ([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0], [3.0, 3.0]], [0, 0, 1, 1]),
    "constant": ([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], [0, 1, 1]),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_separated_classes_have_no_raw_estimate(case):
    scores, y = np.array(SEPARATED[case][0]), np.array(SEPARATED[case][1])
    assert separable(scores, y)
    raw = EvidentialJointCalibrator(targets="raw", classes=[0, 1])
    with pytest.raises(CalibrationInputError, match='targets="light"'):
        raw.fit(scores, y)
    for targets in ("smoothed", "light"):
        model = clone(raw).set_params(targets=targets).fit(scores, y)
        bounds = assert_sound(model, np.vstack([scores, -5 * scores, [0 * scores[0]]]))
        assert (bounds.width > 0).all()


def test_no_two_of_the_three_scores_separate():
    scores, y = xor_and_a_plane()
    for pair in ([0, 1], [0, 2], [1, 2]):
        assert not separable(scores[:, pair], y)
        model = EvidentialJointCalibrator(targets="raw").fit(scores[:, pair], y)
        assert_sound(model, scores[:, pair])


@pytest.mark.parametrize("case", OVERLAPPING)
def test_overlapping_classes_have_a_raw_estimate(case):
    scores, y = np.array(OVERLAPPING[case][0]), np.array(OVERLAPPING[case][1])
    assert not separable(scores, y)
    model = EvidentialJointCalibrator(targets="raw").fit(scores, y)
    assert model.gradient_norm_ < 1e-9
    assert_sound(model, scores)
    # The first condition of the maximum, in probabilities: residuals are orthogonal to scores.
    residual = model.predict_proba(scores)[:, 1] - y
    np.testing.assert_allclose(residual @ np.column_stack([np.ones(len(y)), scores]), 0, atol=1e-7)


@settings(max_examples=60)
@given(
    arrays(float, st.tuples(st.integers(2, 9), st.integers(1, 3)), elements=st.integers(-2, 2)),
    st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_raw_targets_are_refused_where_no_estimate_exists_and_only_there(scores, labels):
    y = np.array(labels[: len(scores)], dtype=int)
    model = EvidentialJointCalibrator(targets="raw", classes=[0, 1])
    if separable(scores, y):
        with pytest.raises(CalibrationInputError, match='targets="light"'):
            model.fit(scores, y)
    else:
        assert_sound(model.fit(scores, y), scores)


def test_a_ridge_gives_separated_classes_an_estimate_but_not_one_class():
    scores, y = xor_and_a_plane()
    assert_sound(EvidentialJointCalibrator(targets="raw", ridge=0.1).fit(scores, y), scores)
    with pytest.raises(CalibrationInputError, match='targets="light"'):
        EvidentialJointCalibrator(targets="raw", ridge=0.1, classes=[0, 1]).fit(scores, 0 * y)


@settings(max_examples=40)
@given(
    arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.floats(-50, 50)),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.floats(-1e6, 1e6),
)
def test_probability_lies_within_bounds(scores, labels, far):
    y = np.array(labels[: len(scores)], dtype=int)
    model = EvidentialJointCalibrator(classes=[0, 1]).fit(scores, y)
    bounds = assert_sound(model, np.vstack([scores, -scores[:1], np.full_like(scores[:1], far)]))
    assert (bounds.width > 0).all()


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_a_copied_score_adds_nothing_and_rows_off_the_span_are_unknown(targets):
    scores, y = draw(60, 2)
    copied = np.column_stack([scores, 3 * scores[:, 1] - 2])
    plain = EvidentialJointCalibrator(targets=targets).fit(scores, y)
    model = clone(plain).fit(copied, y)
    assert_same(model.predict_bounds(copied[:5]), plain.predict_bounds(scores[:5]), atol=1e-8)
    np.testing.assert_allclose(
        model.contour(copied[:5], [0.2, 0.7]), plain.contour(scores[:5], [0.2, 0.7]), atol=1e-8
    )
    np.testing.assert_allclose(
        model.predict_proba(copied), plain.predict_proba(scores), rtol=0, atol=1e-8
    )
    off = assert_sound(model, copied[:4] + np.array([0, 0, 0.5]))
    np.testing.assert_array_equal(off.lower, 0)
    np.testing.assert_array_equal(off.upper, 1)


def test_a_ridge_bounds_rows_off_the_span():
    scores, y = draw(60, 2)
    copied = np.column_stack([scores, scores[:, 1]])
    model = EvidentialJointCalibrator(ridge=1.0).fit(copied, y)
    np.testing.assert_allclose(model.slope_[1], model.slope_[2], atol=1e-10)
    width = assert_sound(model, copied[:4] + np.array([0, 0, 0.5])).width
    assert (width < 0.99).all()


def test_a_constant_score_is_left_out():
    scores, y = draw(60, 2)
    wider = np.insert(scores, 1, 3.25, axis=1)
    plain, model = (EvidentialJointCalibrator().fit(s, y) for s in (scores, wider))
    assert model.slope_[1] == 0
    np.testing.assert_allclose(model.slope_[[0, 2]], plain.slope_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    # Left out, so that its value at a new row changes nothing either.
    for value in (3.25, 100.0):
        rows = np.insert(scores[:4], 1, value, axis=1)
        assert_same(model.predict_bounds(rows), plain.predict_bounds(scores[:4]))


@pytest.mark.parametrize(("n", "n_scores"), [(5, 3), (5, 50), (200, 50), (1, 2), (2, 1)])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_few_rows_and_many_classifiers(n, n_scores, ridge):
    scores, y = draw(n, n_scores, seed=4)
    model = EvidentialJointCalibrator(ridge=ridge, classes=[0, 1]).fit(scores, y)
    assert model.slope_.shape == (n_scores,)
    bounds = assert_sound(model, scores)
    assert (bounds.width > 0).all()
    elsewhere = assert_sound(model, draw(4, n_scores, seed=9)[0])
    if 1 < n <= n_scores and ridge == 0:  # one row has constant scores, which are left out
        np.testing.assert_array_equal(elsewhere.width, 1)


def test_mass_and_sets_hold_the_bounds():
    scores, y = draw(30, 3)
    model = EvidentialJointCalibrator().fit(scores, np.array(["no", "yes"])[y])
    mass, bounds = model.predict_mass(scores), model.predict_bounds(scores)
    assert mass.frame.labels == ("no", "yes")
    np.testing.assert_allclose(mass.mass.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(mass.mass[:, :2], bounds.lower, atol=1e-12)
    np.testing.assert_allclose(mass.mass[:, 2], bounds.width[:, 1], atol=1e-12)
    sets = model.predict_set(scores)
    np.testing.assert_array_equal(sets, bounds.upper >= bounds.lower[:, ::-1])
    assert sets.any(axis=1).all()
    assert sets.all(axis=1).any()
    assert set(model.predict(scores)) == {"no", "yes"}
    picked = model.predict_set(scores, rule="maximality")
    assert picked.any(axis=1).all()


def test_frames_single_precision_and_read_only_scores():
    scores, y = draw(45, 3)
    plain = EvidentialJointCalibrator().fit(scores, y).predict_bounds(scores[:6])
    frame = pd.DataFrame(scores, columns=["svm", "bayes", "forest"])
    framed = EvidentialJointCalibrator().fit(frame, pd.Series(y))
    assert list(framed.feature_names_in_) == ["svm", "bayes", "forest"]
    assert_same(framed.predict_bounds(frame[:6]), plain, atol=1e-14)
    with pytest.raises(ValueError, match="feature names"):
        framed.predict_bounds(frame[["bayes", "svm", "forest"]])
    single = scores.astype(np.float32)
    single.flags.writeable = y.flags.writeable = False
    assert_same(
        EvidentialJointCalibrator().fit(single, y).predict_bounds(single[:6]), plain, atol=1e-5
    )


def test_two_columns_for_each_classifier_are_their_differences():
    scores, y = draw(45, 3)
    common = np.random.default_rng(1).normal(size=(45, 3))
    pairs = np.stack([common, common + scores], axis=2)
    one, other = EvidentialJointCalibrator().fit(scores, y), EvidentialJointCalibrator()
    other.fit(pairs, y)
    np.testing.assert_allclose(other.slope_, one.slope_)
    assert_same(other.predict_bounds(pairs[:5]), one.predict_bounds(scores[:5]))
    assert other.n_features_in_ == one.n_features_in_ == 3


def test_probabilities_are_log_odds():
    scores, y = draw(45, 2)
    p = expit(scores)
    plain = EvidentialJointCalibrator().fit(logit(p), y).predict_bounds(scores[:5])
    proba = EvidentialJointCalibrator(input="proba").fit(p, y)
    assert_same(proba.predict_bounds(p[:5]), plain)
    pairs = np.stack([1 - p, p], axis=2)
    assert_same(clone(proba).fit(pairs, y).predict_bounds(pairs[:5]), plain)
    mixed = EvidentialJointCalibrator(input=["margin", "proba"])
    table = np.column_stack([scores[:, 0], p[:, 1]])
    assert_same(mixed.fit(table, y).predict_bounds(table[:5]), plain)
    logits = EvidentialJointCalibrator(input="logits").fit(scores, y)
    assert_same(logits.predict_bounds(scores[:5]), plain)


def test_floor_of_impossible_probabilities():
    p = np.array([[0.0, 0.1], [0.2, 0.3], [0.7, 0.6], [1.0, 0.8], [0.4, 0.9]])
    y = [0, 1, 0, 1, 1]
    given = EvidentialJointCalibrator(input="proba", floor=0.05).fit(p, y)
    raised = np.log(np.maximum(p, 0.05)) - np.log(np.maximum(1 - p, 0.05))
    np.testing.assert_allclose(
        given.slope_, EvidentialJointCalibrator().fit(raised, y).slope_, rtol=1e-9
    )
    assert_sound(EvidentialJointCalibrator(input="proba").fit(p, y), [[0.0, 0.0], [1.0, 0.5]])


def test_one_score_in_any_shape():
    scores, y = draw(30, 1)
    flat = EvidentialJointCalibrator().fit(scores[:, 0], y)
    column = EvidentialJointCalibrator().fit(scores, y)
    assert flat.n_features_in_ == 1
    assert_same(flat.predict_bounds(scores[:, 0]), column.predict_bounds(scores))
    alone = EvidentialLogisticCalibrator().fit(scores[:, 0], y)
    assert_same(flat.predict_bounds([0.3]), alone.predict_bounds([0.3]), atol=1e-8)


REFUSED = {
    "three labels": (np.zeros((6, 2)), [0, 1, 2, 0, 1, 2], r"y shows 3.*\(n, J, K\)"),
    "nan": ([[0.0, np.nan], [1.0, 2.0]], [0, 1], r"1 row with nan \(first: row 0\)"),
    "infinite": ([[0.0, 1.0], [np.inf, 2.0]], [0, 1], r"infinite values \(first: row 1\)"),
    "no rows": (np.zeros((0, 3)), [], "empty"),
    "no classifiers": (np.zeros((3, 0)), [0, 1, 0], "empty"),
    "four dimensions": (np.zeros((4, 2, 2, 2)), [0, 1, 0, 1], r"shape \(4, 2, 2, 2\)"),
    "too few labels": (np.zeros((4, 2)), [0, 1, 0], "4 rows but y has 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_scores_that_cannot_be_fitted(case):
    scores, y, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        EvidentialJointCalibrator().fit(scores, y)


def test_scores_that_cannot_be_predicted_for():
    scores, y = draw(20, 3)
    model = EvidentialJointCalibrator()
    for method in (model.predict_bounds, model.predict_proba, model.predict_mass):
        with pytest.raises(NotFittedError):
            method(scores)
    with pytest.raises(NotFittedError):
        model.contour(scores, [0.5])
    model.fit(scores, y)
    with pytest.raises(
        CalibrationInputError,
        match=r"\(20, 2\).*3 classifiers of 2 classes; pass scores of shape \(n, 3\)",
    ):
        model.predict_bounds(scores[:, :2])
    with pytest.raises(CalibrationInputError, match="nan"):
        model.predict_proba(np.full((1, 3), np.nan))
    with pytest.raises(CalibrationInputError, match=r"\(4, 3, 3\).*2 classes"):
        model.predict_bounds(np.zeros((4, 3, 3)))
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]; got 0.5 to 1.5"):
        model.contour(scores, [0.5, 1.5])
    with pytest.raises(ValueError, match="theta"):
        model.contour(scores, [np.nan])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("targets", "smooth"),
        ("ridge", -1.0),
        ("bias", "yes"),
        ("likelihood", "laplace"),
        ("input", "odds"),
        ("input", ["margin"]),
        ("input", ["margin", "odds"]),
        ("floor", 0.7),
        ("n_jobs", "all"),
    ],
)
def test_parameters_that_make_no_sense(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        EvidentialJointCalibrator(**{parameter: value}).fit(*draw(20, 2))
