"""Joint calibration of more than two classes against its definition, identities and edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from dubito.calibration import (
    CalibrationInputError,
    EvidentialJointCalibrator,
    EvidentialMultinomialCalibrator,
    LabelMismatchWarning,
)

from reference.joint import JointMultinomial


def draw(n, n_scores, n_classes, *, seed=0, worst=0.2):
    """Classifiers of which the first is the best; the last may be worthless, or worse."""
    rng = np.random.default_rng([seed, n, n_scores, n_classes])
    y = rng.permutation(np.arange(n) % n_classes)
    scores = rng.normal(size=(n, n_scores, n_classes))
    scores[np.arange(n), :, y] += np.linspace(1.2, worst, n_scores)
    return scores, y


def rows_like(scores, count=6, seed=1):
    return 1.5 * np.random.default_rng(seed).normal(size=(count, *scores.shape[1:]))


def assert_same(one, other, atol=1e-7):
    np.testing.assert_allclose(one.lower, other.lower, rtol=0, atol=atol)
    np.testing.assert_allclose(one.upper, other.upper, rtol=0, atol=atol)


def assert_sound(model, rows):
    proba, bounds = model.predict_proba(rows), model.predict_bounds(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert (bounds.lower >= 0).all()
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert (bounds.upper <= 1).all()
    assert (bounds.lower.sum(axis=1) <= 1 + 1e-12).all()
    assert (bounds.upper.sum(axis=1) >= 1 - 1e-12).all()
    return bounds


CASES = {
    "12 rows": ((12, 2, 3), {}),
    "a slope at 0": ((30, 2, 3), {"bias": True}),
    "three classifiers": ((30, 3, 3), {"targets": "raw"}),
    "weights": ((45, 2, 3), {"targets": "light"}),
    "four classes": ((60, 2, 4), {}),
}


#: Cases whose slow reference takes seconds.
SLOW_CASES = ("a slope at 0", "three classifiers", "four classes")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c in SLOW_CASES else c for c in CASES]
)
def test_bounds_are_those_of_the_definition(case):
    shape, options = CASES[case]
    scores, y = draw(*shape, worst=-0.2 if case == "a slope at 0" else 0.3)
    weight = np.random.default_rng(2).uniform(0.2, 3, size=len(y)) if case == "weights" else None
    model = EvidentialJointCalibrator(likelihood="exact", **options)
    model.fit(scores, y, sample_weight=weight)
    reference = JointMultinomial(scores, y, weight=weight, **options)
    np.testing.assert_allclose(model.slope_, reference.best[: shape[1]], atol=1e-9)
    assert model.gradient_norm_ < 1e-10
    row = rows_like(scores)[0]
    np.testing.assert_allclose(model.predict_proba([row])[0], reference.proba(row), atol=1e-9)
    lower, upper = reference.bounds(row)
    bounds = model.predict_bounds([row])
    np.testing.assert_allclose(bounds.lower[0], lower, rtol=0, atol=1e-7)
    np.testing.assert_allclose(bounds.upper[0], upper, rtol=0, atol=1e-7)


def test_the_definition_on_a_grid_of_slopes():
    """The reference itself, where one slope leaves nothing to optimise."""
    scores, y = draw(30, 1, 3)
    reference = JointMultinomial(scores, y)
    slopes = np.linspace(0, 8, 40_001)
    rise = np.array([reference.likelihood(np.array([a]))[0] for a in slopes]) - reference.least
    row = rows_like(scores)[0]
    fraction = softmax(slopes[:, None] * row[0], axis=1)
    r, weight = np.polynomial.legendre.leggauss(60)
    r, weight = 4 * (r + 1), 4 * weight
    lower, upper = np.zeros(3), np.zeros(3)
    for at, mass in zip(r, weight * r * np.exp(-0.5 * r**2), strict=True):
        inside = np.flatnonzero(rise <= 0.5 * at**2)
        ends = slopes[inside[[0, -1]]]
        lead = np.max(ends[:, None, None] * (row[0] - row[0][:, None]), axis=0)
        upper += mass * fraction[inside].max(axis=0)
        lower += mass / np.exp(lead).sum(axis=1)
    ours = reference.bounds(row)
    # Half a step of the grid moves a probability by no more than this.
    np.testing.assert_allclose(ours[0], lower, atol=2e-4)
    np.testing.assert_allclose(ours[1], upper, atol=2e-4)


@pytest.mark.parametrize("targets", ["smoothed", "light", "raw"])
@pytest.mark.parametrize(("n", "n_classes"), [(12, 3), (60, 4), (300, 12)])
def test_one_classifier_is_evidential_multinomial_calibration(n, n_classes, targets):
    scores, y = draw(n, 1, n_classes)
    rows = np.concatenate([rows_like(scores), 1e3 * rows_like(scores, 2)])
    joint = EvidentialJointCalibrator(targets=targets, likelihood="exact").fit(scores, y)
    envelope = EvidentialMultinomialCalibrator(coupling="envelope", targets=targets)
    gumbel = EvidentialMultinomialCalibrator(coupling="gumbel", targets=targets)
    bounds = joint.predict_bounds(rows)
    upper = envelope.fit(scores[:, 0], y).predict_bounds(rows[:, 0]).upper
    lower = gumbel.fit(scores[:, 0], y).predict_bounds(rows[:, 0]).lower
    np.testing.assert_allclose(bounds.upper, upper, rtol=0, atol=1e-6)
    np.testing.assert_allclose(bounds.lower, lower, rtol=0, atol=1e-6)
    np.testing.assert_allclose(joint.slope_, gumbel.slope_, rtol=1e-6)


def sampled_extremes(reference, row, rng):
    """Least and greatest probabilities over points of each level set, averaged over the levels."""
    table = reference.features(np.asarray(row)[None])[0]
    away = rng.normal(size=(200, len(reference.best)))
    away @= np.linalg.inv(np.linalg.cholesky(reference.likelihood(reference.best)[2]))
    # How far each ray may go before a slope is negative.
    falling = np.where(away < 0, away, -1e-300)[:, reference.bounded]
    limit = np.min(-reference.best[reference.bounded] / falling, axis=1)
    nodes, weight = np.polynomial.legendre.leggauss(16)
    r, weight = 4 * (nodes + 1), 4 * weight
    least, greatest = np.zeros(len(table)), np.zeros(len(table))
    for at, mass in zip(r, weight * r * np.exp(-0.5 * r**2), strict=True):
        low, high = np.zeros(len(away)), np.minimum(limit, 100.0 * at)
        for _ in range(30):
            middle = 0.5 * (low + high)
            points = reference.best + middle[:, None] * away
            utility = np.einsum("ikp,mp->mik", reference.design, points)
            top = utility.max(axis=2)
            total = top + np.log(np.exp(utility - top[..., None]).sum(axis=2))
            value = total.sum(axis=1) - (utility * reference.target).sum(axis=(1, 2))
            inside = value <= reference.least + 0.5 * at**2
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        fraction = softmax((reference.best + low[:, None] * away) @ table.T, axis=1)
        least, greatest = (
            least + mass * fraction.min(axis=0),
            greatest + mass * fraction.max(axis=0),
        )
    return least, greatest


@pytest.mark.parametrize("bias", [False, True])
def test_bounds_hold_every_point_of_the_level_sets(bias):
    scores, y = draw(30, 2, 3)
    model = EvidentialJointCalibrator(bias=bias, likelihood="exact").fit(scores, y)
    reference = JointMultinomial(scores, y, bias=bias)
    rows = rows_like(scores, 3)
    bounds, rng = model.predict_bounds(rows), np.random.default_rng(0)
    for row, lower, upper in zip(rows, bounds.lower, bounds.upper, strict=True):
        least, greatest = sampled_extremes(reference, row, rng)
        # The rule's own error, at kinks that it does not know of, is below this.
        assert (lower <= least + 2e-4).all()
        assert (upper >= greatest - 2e-4).all()
        # So many points come close to the greatest.
        np.testing.assert_allclose(upper, greatest, atol=0.02)


@pytest.mark.parametrize("times", [30.0, 1e3])
def test_bounds_of_far_rows_include_uncertain_slopes(times):
    scores, y = draw(12, 2, 3)
    row = times * rows_like(scores, 2)[1]
    bounds = EvidentialJointCalibrator(likelihood="exact").fit(scores, y).predict_bounds([row])
    lower, upper = JointMultinomial(scores, y).bounds(row)
    np.testing.assert_allclose(bounds.lower[0], lower, rtol=0, atol=1e-7)
    np.testing.assert_allclose(bounds.upper[0], upper, rtol=0, atol=1e-7)


@pytest.mark.parametrize("bias", [False, True])
def test_order_of_labels_and_of_classifiers_does_not_matter(bias):
    scores, y = draw(45, 3, 4)
    rows = rows_like(scores)
    order, rank = np.array([2, 0, 3, 1]), np.array([1, 3, 0, 2])
    plain = EvidentialJointCalibrator(bias=bias).fit(scores, y)
    bounds = plain.predict_bounds(rows)
    other = clone(plain).fit(scores[:, :, order], rank[y]).predict_bounds(rows[:, :, order])
    np.testing.assert_allclose(other.lower, bounds.lower[:, order], rtol=0, atol=1e-7)
    np.testing.assert_allclose(other.upper, bounds.upper[:, order], rtol=0, atol=1e-7)
    turned = clone(plain).fit(scores[:, ::-1], y)
    np.testing.assert_allclose(turned.slope_, plain.slope_[::-1], atol=1e-8)
    assert_same(turned.predict_bounds(rows[:, ::-1]), bounds)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("likelihood", ["exact", "quadratic"])
def test_scales_and_shifts_of_a_row_do_not_matter(likelihood, ridge):
    scores, y = draw(45, 3, 3)
    rows = rows_like(scores)
    plain = EvidentialJointCalibrator(likelihood=likelihood, ridge=ridge).fit(scores, y)
    bounds = plain.predict_bounds(rows)
    scale = np.array([1e-6, 1e6, 3.0])[:, None]
    scaled = clone(plain).fit(scale * scores, y)
    np.testing.assert_allclose(scaled.slope_ * scale[:, 0], plain.slope_, rtol=1e-6)
    assert_same(scaled.predict_bounds(scale * rows), bounds)
    shift = np.random.default_rng(3).normal(scale=100, size=(45, 3, 1))
    moved = clone(plain).fit(scores + shift, y)
    assert_same(moved.predict_bounds(rows + shift[:6]), bounds)


def test_a_strong_ridge_gives_even_probabilities():
    scores, y = draw(45, 2, 3)
    rows = rows_like(scores)
    slopes = []
    for ridge in (0.0, 10.0, 1e3, 1e9):
        model = EvidentialJointCalibrator(ridge=ridge).fit(scores, y)
        assert_sound(model, rows)
        slopes.append(model.slope_.sum())
    assert slopes[0] > slopes[1] > slopes[2] > slopes[3]
    np.testing.assert_allclose(model.predict_proba(rows), 1 / 3, atol=1e-6)


def test_slopes_of_useless_and_of_contradicting_classifiers():
    scores, y = draw(2_000, 3, 3)
    scores[:, 1] = np.random.default_rng(4).normal(size=(2_000, 3))
    scores[:, 2] = np.random.default_rng(5).normal(size=(2_000, 3)) - 0.5 * np.eye(3)[y]
    with pytest.warns(LabelMismatchWarning, match="scores of classifier 2"):
        model = EvidentialJointCalibrator().fit(scores, y)
    assert model.slope_[0] > 1
    assert 0 <= model.slope_[1] < 0.1
    assert model.slope_[2] == 0
    assert (model.intercept_ == 0).all()
    alone = EvidentialJointCalibrator().fit(scores[:, :1], y)
    np.testing.assert_allclose(model.slope_[0], alone.slope_[0], rtol=0.05)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
@pytest.mark.parametrize("bias", [False, True])
def test_weights_are_repetitions(bias, targets):
    scores, y = draw(60, 2, 3)
    weight, rows = np.arange(60) % 3, rows_like(scores)
    model = EvidentialJointCalibrator(bias=bias, targets=targets, ridge=0.5)
    repeated = clone(model).fit(np.repeat(scores, weight, axis=0), np.repeat(y, weight))
    weighted = model.fit(scores, y, sample_weight=weight)
    assert_same(weighted.predict_bounds(rows), repeated.predict_bounds(rows))


def test_more_rows_narrow_the_bounds():
    scores, y = draw(45, 2, 3)
    rows = rows_like(scores)
    widths = []
    for times in (1.0, 4.0, 16.0, 40_000.0):
        model = EvidentialJointCalibrator(targets="raw", likelihood="exact")
        model.fit(scores, y, sample_weight=np.full(45, times))
        widths.append(assert_sound(model, rows).width)
    assert (widths[1] < widths[0]).all()
    assert (widths[2] < widths[1]).all()
    assert widths[3].max() < 0.01


@pytest.mark.parametrize("bias", [False, True])
def test_quadratic_likelihood_comes_closer_with_more_rows(bias):
    gaps = []
    for n in (60, 600, 6_000):
        scores, y = draw(n, 2, 3)
        rows = rows_like(scores)
        exact, near = (
            EvidentialJointCalibrator(bias=bias, likelihood=kind).fit(scores, y)
            for kind in ("exact", "quadratic")
        )
        assert (exact.likelihood_, near.likelihood_) == ("exact", "quadratic")
        np.testing.assert_array_equal(exact.predict_proba(rows), near.predict_proba(rows))
        exact, near = assert_sound(exact, rows), assert_sound(near, rows)
        gaps.append(
            max(np.abs(exact.lower - near.lower).max(), np.abs(exact.upper - near.upper).max())
        )
    assert 0 < gaps[2] < gaps[1] / 3 < gaps[0] / 9
    assert gaps[2] < 1e-3


def test_the_choice_of_auto_is_an_attribute():
    scores, y = draw(45, 2, 3)
    rows = rows_like(scores)
    auto = EvidentialJointCalibrator().fit(scores, y)
    assert auto.likelihood_ == "exact"
    named = EvidentialJointCalibrator(likelihood="exact").fit(scores, y)
    np.testing.assert_array_equal(auto.predict_bounds(rows).lower, named.predict_bounds(rows).lower)


def test_bias_and_a_missing_class():
    scores, y = draw(60, 2, 3)
    wider = np.concatenate([scores, scores[:, :, :1]], axis=2)
    model = EvidentialJointCalibrator(bias=True, classes=list("abcd"))
    model.fit(wider, np.array(list("abc"))[y])
    assert model.intercept_.shape == (4,)
    assert model.intercept_[3] < model.intercept_[:3].min() - 1
    bounds = assert_sound(model, rows_like(wider))
    assert (bounds.width > 0).all()
    assert np.median(bounds.upper[:, 3]) < 0.3
    plain = EvidentialJointCalibrator(classes=range(4)).fit(wider, y)
    np.testing.assert_array_equal(plain.intercept_, np.zeros(4))
    assert_sound(plain, rows_like(wider))


def test_separated_classes_have_no_raw_estimate():
    scores, _ = draw(30, 3, 3)
    y = scores.sum(axis=1).argmax(axis=1)
    raw = EvidentialJointCalibrator(targets="raw", classes=range(3))
    with pytest.raises(CalibrationInputError, match='targets="light"'):
        raw.fit(scores, y)
    # Separated only by weights of which one is negative: no obstacle to slopes that are not.
    other = (scores * [[1], [1], [-1]]).sum(axis=1).argmax(axis=1)
    assert_sound(clone(raw).fit(scores, other), scores[:4])
    for targets in ("smoothed", "light"):
        bounds = assert_sound(clone(raw).set_params(targets=targets).fit(scores, y), scores)
        assert (bounds.width > 0).all()


@pytest.mark.parametrize(("n", "n_scores"), [(1, 2), (5, 3), (5, 50), (200, 50)])
@pytest.mark.parametrize("bias", [False, True])
def test_few_rows_and_many_classifiers(n, n_scores, bias):
    scores, y = draw(n, n_scores, 3)
    model = EvidentialJointCalibrator(bias=bias, classes=range(3)).fit(scores, y)
    assert (model.slope_ >= 0).all()
    assert_sound(model, scores[:3])
    assert_sound(model, rows_like(scores, 3))


def test_a_constant_classifier_is_left_out():
    scores, y = draw(45, 2, 3)
    rows = rows_like(scores)
    silent = np.random.default_rng(0).normal(size=(45, 1, 1)) + np.zeros((1, 1, 3))
    plain = EvidentialJointCalibrator().fit(scores, y)
    model = EvidentialJointCalibrator().fit(np.concatenate([scores, silent], axis=1), y)
    assert model.slope_[2] == 0
    wider = np.concatenate([rows, 7 * np.eye(3)[[0] * len(rows)][:, None]], axis=1)
    assert_same(model.predict_bounds(wider), plain.predict_bounds(rows))


def test_copies_share_a_slope_and_extreme_rows_stay_finite():
    scores, y = draw(45, 1, 3)
    rows = rows_like(scores)
    plain = EvidentialJointCalibrator().fit(scores, y)
    copied = EvidentialJointCalibrator().fit(np.repeat(scores, 2, axis=1), y)
    assert_same(copied.predict_bounds(np.repeat(rows, 2, axis=1)), plain.predict_bounds(rows))
    assert_sound(plain, 1e12 * rows)
    assert_sound(plain, 0 * rows)


def test_kinds_of_input():
    scores, y = draw(45, 2, 3)
    p, rows = softmax(scores, axis=2), softmax(rows_like(scores), axis=2)
    plain = EvidentialJointCalibrator().fit(np.log(p), y).predict_bounds(np.log(rows))
    proba = EvidentialJointCalibrator(input="proba").fit(p, np.array(list("xyz"))[y])
    assert_same(proba.predict_bounds(rows), plain)
    assert set(proba.predict(rows)) <= set("xyz")
    mixed = EvidentialJointCalibrator(input=["logits", "proba"])
    first, second = np.stack([scores[:, 0], p[:, 1]], axis=1), np.log(rows)
    second[:, 1] = rows[:, 1]
    assert_same(mixed.fit(first, y).predict_bounds(second), plain)
    single = EvidentialJointCalibrator().fit(np.log(p).astype(np.float32), y)
    assert_same(single.predict_bounds(np.log(rows).astype(np.float32)), plain, atol=1e-5)


def test_what_two_classes_have_and_more_do_not():
    scores, y = draw(30, 2, 3)
    model = EvidentialJointCalibrator().fit(scores, y)
    for name in ("contour", "predict_mass"):
        with pytest.raises(AttributeError) as raised:
            getattr(model, name)
        reason = str(raised.value.__cause__)
        assert "two" in reason
        assert "3" in reason
    sets = model.predict_set(scores)
    assert sets.shape == (30, 3)
    assert sets.any(axis=1).all()


def test_scores_of_another_shape():
    scores, y = draw(30, 2, 3)
    model = EvidentialJointCalibrator().fit(scores, y)
    for wrong in (scores[:, :1], scores[:, :, :2], scores[:, 0], scores[:, :, 0], scores[0, 0]):
        with pytest.raises(CalibrationInputError, match="fitted on"):
            model.predict_bounds(wrong)
    with pytest.raises(CalibrationInputError, match="nan"):
        model.predict_proba(np.full((1, 2, 3), np.nan))
    with pytest.raises(ValueError, match="3"):
        EvidentialJointCalibrator().fit(scores, y + (y == 2) * np.arange(30))
