"""Joint calibration of two classes against its definition, and the identities it must keep."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit
from sklearn.base import clone

from dubito.calibration import EvidentialJointCalibrator, EvidentialLogisticCalibrator

from reference.joint import JointLogistic


def draw(n, n_scores, seed=7):
    """Scores with some noise in common, the first better than the last; the last may mislead."""
    rng = np.random.default_rng([seed, n, n_scores])
    scores = rng.normal(size=(n, n_scores)) + 0.5 * rng.normal(size=(n, 1))
    y = (rng.random(n) < expit(scores @ np.linspace(1.5, -0.5, n_scores))).astype(int)
    return scores, y


def nearly_separable(n_scores):
    """Fifteen rows of which one, amid the other class, keeps a plane from separating them."""
    scores = np.random.default_rng(n_scores).normal(size=(14, n_scores))
    scores = scores[np.argsort(scores.sum(axis=1))]
    amid = scores[6 - n_scores : 7].mean(axis=0)
    return np.vstack([scores, amid]), np.repeat([0, 1], [7, 8])


def queries(scores):
    """A row of the fit, one between rows, one beyond them and one where slopes disagree."""
    reach = np.abs(scores).max()
    contrast = np.resize([2.0, -2.0], scores.shape[1])
    return np.vstack([scores[0], scores[:3].mean(axis=0), 0 * scores[0] + 1.5 * reach, contrast])


def assert_matches(model, reference, rows, atol=1e-8):
    bounds = model.predict_bounds(rows)
    expected = np.array([reference.bounds(row) for row in rows])
    np.testing.assert_allclose(bounds.lower[:, 1], expected[:, 0], rtol=0, atol=atol)
    np.testing.assert_allclose(bounds.upper[:, 1], expected[:, 1], rtol=0, atol=atol)
    np.testing.assert_allclose(bounds.lower[:, 0], 1 - expected[:, 1], rtol=0, atol=atol)
    np.testing.assert_allclose(bounds.upper[:, 0], 1 - expected[:, 0], rtol=0, atol=atol)
    estimate = expit([reference.estimate(row)[0] for row in rows])
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], estimate, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.slope_, reference.slope, rtol=1e-6, atol=1e-9)
    assert model.intercept_ == pytest.approx(reference.intercept, rel=1e-6, abs=1e-9)
    assert model.gradient_norm_ < 1e-10


def assert_same(one, other, atol=1e-9):
    """Compare bounds."""
    np.testing.assert_allclose(one.lower, other.lower, rtol=0, atol=atol)
    np.testing.assert_allclose(one.upper, other.upper, rtol=0, atol=atol)


@pytest.mark.parametrize("n_scores", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [12, 45, 150, 500])
def test_bounds_are_those_of_the_definition(n, n_scores):
    scores, y = draw(n, n_scores)
    model = EvidentialJointCalibrator().fit(scores, y)
    assert_matches(model, JointLogistic(scores, y), queries(scores)[:3])


@pytest.mark.parametrize(("n", "n_scores"), [(12, 1), (45, 2), (45, 5), (150, 3), (500, 5)])
@pytest.mark.parametrize("targets", ["raw", "smoothed"])
def test_other_targets(n, n_scores, targets):
    scores, y = draw(n, n_scores)
    model = EvidentialJointCalibrator(targets=targets).fit(scores, y)
    assert_matches(model, JointLogistic(scores, y, targets=targets), queries(scores)[1:])


@pytest.mark.parametrize("n_scores", [1, 2, 3])
def test_heavy_tails_of_nearly_separable_rows(n_scores):
    scores, y = nearly_separable(n_scores)
    model = EvidentialJointCalibrator(targets="raw").fit(scores, y)
    rows = np.vstack([queries(scores), 0 * scores[0]])
    assert_matches(model, JointLogistic(scores, y, targets="raw"), rows)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
@pytest.mark.parametrize("ridge", [0.3, 20.0])
@pytest.mark.parametrize("n", [12, 150])
def test_ridge_on_standardised_slopes(n, ridge, targets):
    scores, y = draw(n, 3)
    scores = scores * [1.0, 1e3, 1e-2] + [0.0, 50.0, -1.0]
    model = EvidentialJointCalibrator(targets=targets, ridge=ridge).fit(scores, y)
    reference = JointLogistic(scores, y, targets=targets, ridge=ridge)
    assert_matches(model, reference, scores[:3] * [1, 1, 2])


@pytest.mark.parametrize("ridge", [0.0, 1.5])
def test_weights_that_are_no_counts(ridge):
    scores, y = draw(45, 2)
    weight = np.random.default_rng(1).uniform(0.2, 3, size=45)
    model = EvidentialJointCalibrator(ridge=ridge).fit(scores, y, sample_weight=weight)
    assert_matches(model, JointLogistic(scores, y, weight=weight, ridge=ridge), queries(scores))


@pytest.mark.parametrize("n_scores", [1, 2, 4])
def test_without_intercept(n_scores):
    scores, y = draw(45, n_scores)
    model = EvidentialJointCalibrator(bias=False).fit(scores, y)
    assert model.intercept_ == 0
    assert_matches(model, JointLogistic(scores, y, bias=False), queries(scores)[1:])


def test_bounds_of_far_rows_include_an_uncertain_sign():
    scores, y = draw(45, 3)
    model, reference = EvidentialJointCalibrator().fit(scores, y), JointLogistic(scores, y)
    rows = np.array([[1e4, 1e4, 1e4], [-1e6, 2e6, 0.0], [30.0, 30.0, -80.0]])
    assert_matches(model, reference, rows, atol=1e-7)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
@pytest.mark.parametrize(("n", "n_scores"), [(12, 1), (45, 3), (150, 5)])
def test_contour_is_the_profile_likelihood(n, n_scores, targets):
    scores, y = draw(n, n_scores)
    model = EvidentialJointCalibrator(targets=targets).fit(scores, y)
    reference = JointLogistic(scores, y, targets=targets)
    rows, theta = queries(scores), np.array([0, 1e-6, 0.02, 0.3, 0.5, 0.9, 1 - 1e-9, 1])
    contour = model.contour(rows, theta)
    assert contour.shape == (4, 8)
    assert (contour[:, [0, -1]] == 0).all()
    expected = np.array([reference.contour(row, theta) for row in rows])
    np.testing.assert_allclose(contour, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("n", "n_scores"), [(12, 2), (12, 5), (500, 3)])
def test_level_sets_are_nested_intervals_about_the_estimate(n, n_scores):
    scores, y = draw(n, n_scores)
    model = EvidentialJointCalibrator(targets="smoothed").fit(scores, y)
    rows = queries(scores)
    for row, fraction in zip(rows, model.predict_proba(rows)[:, 1], strict=True):
        below, above = (
            fraction * np.linspace(0, 1, 101),
            1 - (1 - fraction) * np.linspace(1, 0, 101),
        )
        values = model.contour([row], np.r_[below, above[1:]])[0]
        assert values[100] == pytest.approx(1, abs=1e-10)
        assert values.max() <= 1
        assert (np.diff(values[:101]) >= -1e-12).all()
        assert (np.diff(values[100:]) <= 1e-12).all()


def test_bounds_are_integrals_of_the_contour():
    scores, y = draw(45, 2)
    model = EvidentialJointCalibrator().fit(scores, y)
    rows = queries(scores)
    theta = np.linspace(0, 1, 20_001)
    contour = model.contour(rows, theta)
    fraction = model.predict_proba(rows)[:, 1]
    below = trapezoid(contour * (theta <= fraction[:, None]), theta, axis=1)
    above = trapezoid(contour * (theta > fraction[:, None]), theta, axis=1)
    bounds = model.predict_bounds(rows)
    # The grid's own error where the two sides meet is half a step.
    np.testing.assert_allclose(bounds.lower[:, 1], fraction - below, atol=5e-5)
    np.testing.assert_allclose(bounds.upper[:, 1], fraction + above, atol=5e-5)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
@pytest.mark.parametrize("n", [12, 150])
def test_one_score_is_evidential_logistic_calibration(n, targets):
    scores, y = draw(n, 1)
    rows = np.r_[np.linspace(-3, 3, 13), 1e3, -1e6]
    theta = np.linspace(0, 1, 21)
    joint = EvidentialJointCalibrator(targets=targets).fit(scores, y)
    alone = EvidentialLogisticCalibrator(targets=targets).fit(scores[:, 0], y)
    assert_same(joint.predict_bounds(rows), alone.predict_bounds(rows), atol=1e-8)
    np.testing.assert_allclose(joint.predict_proba(rows), alone.predict_proba(rows), atol=1e-8)
    np.testing.assert_allclose(joint.contour(rows, theta), alone.contour(rows, theta), atol=1e-8)
    np.testing.assert_allclose(joint.slope_, alone.slope_)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_constant_scores_give_the_frequency_of_the_class(targets):
    y = np.array([1, 1, 1, 0, 0])
    joint = EvidentialJointCalibrator(targets=targets).fit(np.full((5, 2), 7.3), y)
    alone = EvidentialLogisticCalibrator(targets=targets).fit(np.full(5, 7.3), y)
    theta = np.linspace(0, 1, 11)
    assert (joint.slope_ == 0).all()
    assert_same(joint.predict_bounds([[7.3, 7.3]]), alone.predict_bounds([7.3]), atol=1e-8)
    np.testing.assert_allclose(
        joint.contour([[7.3, 7.3]], theta), alone.contour([7.3], theta), atol=1e-8
    )


AFFINE = {
    "tiny and huge": ([1e-6, 1e6, 1.0], [0.0, 0.0, 0.0]),
    "far off": ([1.0, 1.0, 1.0], [1e8, -1e8, 1e5]),
    "far off and huge": ([1e6, -1e6, 1e-6], [1e8, 1e8, 0.0]),
    "turned round": ([-1.0, 2.0, -3e-6], [0.0, 5.0, 1.0]),
}


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("case", AFFINE)
def test_units_of_the_scores_do_not_matter(case, ridge):
    scale, shift = AFFINE[case]
    # Dyadic scores keep eight digits beside an offset of 1e8, so that the rows are the same ones.
    scores, y = draw(45, 3)
    scores = np.round(scores * 2**12) / 2**12
    rows = np.round(queries(scores) * 2**12) / 2**12
    plain = EvidentialJointCalibrator(ridge=ridge).fit(scores, y)
    moved = clone(plain).fit(scores * scale + shift, y)
    assert_same(moved.predict_bounds(rows * scale + shift), plain.predict_bounds(rows), atol=1e-7)
    np.testing.assert_allclose(
        moved.contour(rows * scale + shift, [0.1, 0.6]), plain.contour(rows, [0.1, 0.6]), atol=1e-6
    )


def test_order_of_the_classifiers_does_not_matter():
    scores, y = draw(45, 5)
    rows, order = queries(scores), [3, 0, 4, 2, 1]
    plain = EvidentialJointCalibrator().fit(scores, y)
    other = EvidentialJointCalibrator().fit(scores[:, order], y)
    np.testing.assert_allclose(other.slope_, plain.slope_[order], atol=1e-10)
    assert_same(other.predict_bounds(rows[:, order]), plain.predict_bounds(rows))


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
def test_linear_mixtures_of_the_scores_change_nothing(noise):
    scores, y = draw(45, 3)
    # The last mixture is the second score with some noise: nearly a copy.
    mix = np.array([[1.0, 0.5, 0.0], [-2.0, 1.0, 1.0], [0.0, 0.0, noise]])
    rows = queries(scores)
    plain = EvidentialJointCalibrator().fit(scores, y)
    mixed = EvidentialJointCalibrator().fit(scores @ mix, y)
    assert_same(mixed.predict_bounds(rows @ mix), plain.predict_bounds(rows), atol=1e-7)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_swapped_classes_are_the_mirror_image(targets):
    scores, y = draw(45, 3)
    rows = queries(scores)
    plain = EvidentialJointCalibrator(targets=targets).fit(scores, y)
    mirror = clone(plain).fit(-scores, 1 - y)
    bounds, reflected = plain.predict_bounds(rows), mirror.predict_bounds(-rows)
    np.testing.assert_allclose(reflected.lower[:, ::-1], bounds.lower, atol=1e-9)
    np.testing.assert_allclose(reflected.upper[:, ::-1], bounds.upper, atol=1e-9)
    same = clone(plain).fit(scores, 1 - y)
    np.testing.assert_allclose(same.slope_, -plain.slope_, atol=1e-10)
    theta = np.array([0.1, 0.4, 0.8])
    np.testing.assert_allclose(same.contour(rows, 1 - theta), plain.contour(rows, theta), atol=1e-9)


@pytest.mark.parametrize("targets", ["smoothed", "light", "raw"])
def test_weights_are_repetitions(targets):
    scores, y = draw(150, 3)
    weight = np.arange(150) % 3
    rows = queries(scores)
    weighted = EvidentialJointCalibrator(targets=targets, ridge=0.5)
    repeated = clone(weighted).fit(np.repeat(scores, weight, axis=0), np.repeat(y, weight))
    weighted.fit(scores, y, sample_weight=weight)
    assert_same(weighted.predict_bounds(rows), repeated.predict_bounds(rows))


def test_more_rows_narrow_the_bounds():
    scores, y = draw(45, 3)
    rows = queries(scores)
    widths = []
    for times in (1, 4, 16, 4_000):
        model = EvidentialJointCalibrator(targets="raw")
        model.fit(scores, y, sample_weight=np.full(45, float(times)))
        widths.append(model.predict_bounds(rows).width)
    assert (widths[1] < widths[0]).all()
    assert (widths[2] < widths[1]).all()
    # The width falls as one over the square root of the rows.
    np.testing.assert_allclose(widths[3].max(), widths[2].max() / np.sqrt(250), rtol=0.2)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_quadratic_likelihood_comes_closer_with_more_rows(n_scores):
    gaps = []
    for n in (50, 500, 5_000):
        scores, y = draw(n, n_scores, seed=1)
        rows = np.random.default_rng(2).normal(size=(20, n_scores))
        exact = EvidentialJointCalibrator(likelihood="exact").fit(scores, y).predict_bounds(rows)
        near = EvidentialJointCalibrator(likelihood="quadratic").fit(scores, y).predict_bounds(rows)
        gaps.append(
            max(np.abs(near.lower - exact.lower).max(), np.abs(near.upper - exact.upper).max())
        )
    assert 0 < gaps[2] < gaps[1] / 3 < gaps[0] / 9
    assert gaps[2] < 1e-3


@pytest.mark.parametrize("n", [45, 500])
def test_many_rows_at_once_are_as_good_as_one(n):
    scores, y = draw(n, 3)
    model = EvidentialJointCalibrator(targets="raw").fit(scores, y)
    rows = np.random.default_rng(0).standard_t(2, size=(700, 3))
    many = model.predict_bounds(rows)
    for picked in (0, 311, 699):
        few = model.predict_bounds(rows[[picked]])
        np.testing.assert_allclose(many.lower[[picked]], few.lower, rtol=0, atol=1e-10)
        np.testing.assert_allclose(many.upper[[picked]], few.upper, rtol=0, atol=1e-10)
    alone = clone(model).set_params(n_jobs=1).fit(scores, y).predict_bounds(rows)
    np.testing.assert_array_equal(alone.lower, many.lower)
