"""Bounds at a level where scores, levels or likelihoods are extreme."""

from __future__ import annotations

import numpy as np
import pytest

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito.belief import Bounds
from dubito.calibration import (
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    VennAbersCalibrator,
)
from dubito.calibration._kernels import joint_softmax_level as softmax_level
from dubito.calibration.errors import MisfitWarning

ALMOST_ONE = 1 - 1e-15


def draw(n, n_classes, *, seed):
    rng = np.random.default_rng([seed, n, n_classes])
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y], y


def test_scores_far_beyond_tiny_ones_have_bounds():
    """Standardised they overflow; they are as far out as can be."""
    scores = np.array([-2.0, -1.0, 0.5, -0.5, 1.0, 2.0]) * 1e-300
    model = EvidentialLogisticCalibrator().fit(scores, [0, 0, 0, 1, 1, 1])
    far = model.predict_bounds([-1e300, 1e300], level=0.9)
    nearer = model.predict_bounds([-1e-200, 1e-200], level=0.9)
    np.testing.assert_allclose(far.lower, nearer.lower, atol=1e-12)
    np.testing.assert_allclose(far.upper, nearer.upper, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-120, 1e120, 1e300])
def test_units_do_not_matter_to_one_slope(unit):
    """The envelope of huge and tiny scores is that of the same scores in other units."""
    scores, y = draw(6, 10, seed=0)
    classes = range(10)
    plain = EvidentialMultinomialCalibrator(classes=classes).fit(scores, y)
    other = EvidentialMultinomialCalibrator(classes=classes).fit(scores * unit, y)
    for level in (0.5, 0.9, 0.999):
        wanted = plain.predict_bounds(scores, level=level)
        got = other.predict_bounds(scores * unit, level=level)
        np.testing.assert_allclose(got.lower, wanted.lower, atol=1e-7)
        np.testing.assert_allclose(got.upper, wanted.upper, atol=1e-7)


def test_a_weight_that_leaves_no_slope_but_zero():
    """The level sets are then narrower than rounding."""
    scores, y = np.eye(3)[[0, 1, 2, 0, 1]], [0, 1, 2, 1, 1]
    weight = [1, 1, 1, 1e12, 1]
    model = EvidentialMultinomialCalibrator().fit(scores, y, sample_weight=weight)
    with pytest.warns(MisfitWarning):
        at_level = model.predict_bounds(scores, level=0.9)
    for lower, upper in (model.predict_bounds(scores), at_level):
        np.testing.assert_allclose(lower, 1 / 3, atol=1e-5)
        np.testing.assert_allclose(upper, 1 / 3, atol=1e-5)


def test_a_level_divided_among_many_stays_below_one():
    scores, y = draw(40, 30, seed=1)
    model = VennAbersCalibrator(multiclass="ovo", classes=range(30)).fit(scores, y)
    lower, upper = model.predict_bounds(scores[:3], level=ALMOST_ONE)
    narrower = model.predict_bounds(scores[:3], level=0.9)
    assert (lower <= narrower.lower).all()
    assert (upper >= narrower.upper).all()


def test_no_level_below_one_is_shown_as_one():
    assert repr(Bounds([[0.1, 0.2]], [[0.8, 0.9]], 0.9999999)).endswith("level 0.9999999)")


@pytest.mark.parametrize("bias", [False, True])
def test_joint_bounds_of_two_rows_are_numbers(bias):
    """Where a path of maxima ends in nan, anything is possible."""
    rng = np.random.default_rng(0)
    scores, queries = rng.normal(size=(2, 2, 3)), rng.normal(size=(6, 2, 3))
    scores[np.arange(2), :, np.arange(2)] += 30
    model = EvidentialJointCalibrator(bias=bias, classes=range(3)).fit(scores, [0, 1])
    proba = model.predict_proba(queries)
    for level in (0.1, 0.9, 0.9999999):
        lower, upper = model.predict_bounds(queries, level=level)
        assert (lower <= proba).all()
        assert (upper >= proba).all()


def test_a_path_lost_at_one_depth_is_looked_for_deeper():
    """What is left is between the bounds at the given depth and those found deeper."""
    seen = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=25)
        scores = rng.normal(size=(25, 3, 3)) + 3 * np.eye(3)[y][:, None, :]
        model = EvidentialJointCalibrator(classes=range(3), n_jobs=1).fit(scores, y)
        queries = model.model_._queries(rng.normal(size=(6, 3, 3)))
        likelihood, t = model.model_.level_likelihoods.raw, root_chi2_quantile(0.9)
        once = softmax_level._bounds_at(likelihood, t, queries, 1)
        deeper = softmax_level._bounds_at(likelihood, 1.03 * t, queries, 1)
        level_sets = [(likelihood, t), (likelihood, 1.03 * t)]
        lower, upper = softmax_level._narrowest(level_sets, queries, 1)
        assert (lower >= once[0]).all()
        assert (upper <= once[1]).all()
        lost = (once[1] > 1 - 1e-12) & (deeper[1] < 0.99)
        seen += int(lost.sum())
        np.testing.assert_array_equal(upper[lost], deeper[1][lost])
    assert seen > 0
