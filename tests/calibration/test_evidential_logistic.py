"""Evidential logistic calibration against brute force, identities and its own limits."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit
from sklearn.base import clone

from dubito._numerics import logistic_profile
from dubito.calibration import (
    CalibrationInputError,
    EvidentialLogisticCalibrator,
    PlattCalibrator,
)


def draw(n, slope=1.5, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = rng.random(n) < expit(slope * s + shift)
    return s, y


def platt_targets(y):
    positive, negative = y.sum(), (~y).sum()
    return np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))


def light_targets(y):
    fraction = 0.25 / (len(y) + 0.25)
    return (1 - fraction) * y + fraction / 2


class BruteForce:
    """The definition, by generic optimisers and quadrature."""

    def __init__(self, s, y, targets):
        self.s = s
        self.t = {"smoothed": platt_targets, "light": light_targets, "raw": np.float64}[targets](y)
        start = minimize(lambda c: self.nll(*c), [0.0, 1.0], method="BFGS").x
        for _ in range(50):
            eta = start[0] + start[1] * s
            design = np.column_stack([np.ones_like(s), s])
            curvature = (design * (expit(eta) * expit(-eta))[:, None]).T @ design
            start = start - np.linalg.solve(curvature, design.T @ (expit(eta) - self.t))
        self.best = start

    def nll(self, intercept, slope):
        eta = intercept + slope * self.s
        return np.sum(np.logaddexp(0, eta) - self.t * eta)

    def contour(self, s, eta):
        """Profile by the root of the derivative in the slope."""
        centred = self.s - s

        def derivative(slope):
            return centred @ (expit(eta + slope * centred) - self.t)

        low, high = self.best[1] - 1.0, self.best[1] + 1.0
        while derivative(low) > 0:
            low -= 2 * (high - low)
        while derivative(high) < 0:
            high += 2 * (high - low)
        slope = brentq(derivative, low, high, xtol=1e-13, rtol=1e-14)
        return np.exp(self.nll(*self.best) - self.nll(eta - slope * s, slope))

    def bounds(self, s):
        eta = self.best[0] + self.best[1] * s
        theta = expit(eta)

        def integrand(u):
            return self.contour(s, u) * expit(u) * expit(-u)

        def area(a, b):
            cuts = np.linspace(a, b, 9)
            return sum(
                quad(integrand, p, q, epsabs=1e-11, epsrel=1e-10, limit=200)[0]
                for p, q in pairwise(cuts)
            )

        # Beyond 30 the logistic density is below 1e-13.
        return theta - area(min(-30.0, eta - 1), eta), theta + area(eta, max(30.0, eta + 1))


def nearly_separable():
    s = np.linspace(-2, 2, 15)
    y = s > 0.1
    y[[7, 8]] = y[[8, 7]]
    return s, y


CASES = {
    "n=12": draw(12, seed=3),
    "n=60": draw(60, seed=1),
    "n=60, imbalanced": draw(60, shift=-2.5, seed=2),
    "n=500": draw(500, seed=4),
    "nearly separable": nearly_separable(),
}


@pytest.mark.parametrize("targets", ["light", "smoothed", "raw"])
@pytest.mark.parametrize("case", CASES)
def test_bounds_are_those_of_brute_force(case, targets):
    s, y = CASES[case]
    reference = BruteForce(s, y, targets)
    query = np.array([-1.3, 0.2, 4.0])
    bounds = EvidentialLogisticCalibrator(targets=targets).fit(s, y).predict_bounds(query)
    expected = np.array([reference.bounds(q) for q in query])
    np.testing.assert_allclose(bounds.lower[:, 1], expected[:, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(bounds.upper[:, 1], expected[:, 1], rtol=0, atol=1e-8)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_contour_is_the_constrained_optimum(targets):
    s, y = CASES["n=60"]
    theta = np.array([0.05, 0.3, 0.6, 0.99])
    contour = EvidentialLogisticCalibrator(targets=targets).fit(s, y).contour([-1.0, 0.4], theta)
    reference = BruteForce(s, y, targets)
    least = reference.nll(*reference.best)
    for row, query in enumerate([-1.0, 0.4]):
        for column, eta in enumerate(logit(theta)):
            profile = minimize_scalar(
                lambda slope, eta=eta, query=query: reference.nll(eta - slope * query, slope)
            )
            assert contour[row, column] == pytest.approx(np.exp(least - profile.fun), abs=1e-9)


def test_contour_is_one_at_the_estimate_and_zero_at_certainty():
    calibrator = EvidentialLogisticCalibrator().fit(*CASES["n=60"])
    theta = calibrator.predict_proba([0.7])[0, 1]
    values = calibrator.contour([0.7], [0.0, theta / 2, theta, (1 + theta) / 2, 1.0])[0]
    assert values[0] == values[-1] == 0
    assert values[2] == pytest.approx(1, abs=1e-12)
    assert 0 < values[1] < 1
    assert 0 < values[3] < 1


def test_contours_fall_outward():
    calibrator = EvidentialLogisticCalibrator().fit(*CASES["n=12"])
    theta = np.linspace(0.001, 0.999, 301)
    for query in (-2.0, 0.0, 50.0):
        values = calibrator.contour([query], theta)[0]
        best = np.argmax(values)
        assert (np.diff(values[: best + 1]) >= -1e-13).all()
        assert (np.diff(values[best:]) <= 1e-13).all()


def test_contour_of_three_classes_is_each_against_the_rest():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    scores = rng.normal(size=(60, 3)) + 1.5 * np.eye(3)[y]
    theta = [0.2, 0.5]
    contour = EvidentialLogisticCalibrator().fit(scores, y).contour(scores[:4], theta)
    alone = EvidentialLogisticCalibrator().fit(scores[:, 2], y == 2).contour(scores[:4, 2], theta)
    assert contour.shape == (4, 3, 2)
    np.testing.assert_allclose(contour[:, 2], alone, atol=1e-12)


def test_theta_outside_the_unit_interval_is_refused():
    calibrator = EvidentialLogisticCalibrator().fit(*CASES["n=12"])
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]; got 0.5 to 1.5"):
        calibrator.contour([0.0], [0.5, 1.5])


def test_probability_is_platts_own():
    s, y = CASES["n=60"]
    calibrator = EvidentialLogisticCalibrator(targets="smoothed").fit(s, y)
    platt = PlattCalibrator(ridge=0).fit(s, y)
    np.testing.assert_allclose(calibrator.predict_proba(s), platt.predict_proba(s), atol=1e-12)
    np.testing.assert_allclose(calibrator.slope_, platt.slope_)
    np.testing.assert_allclose(calibrator.intercept_, platt.intercept_)
    assert calibrator.gradient_norm_[0] < 1e-13


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-50, 50), st.booleans()), min_size=1, max_size=12),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4),
)
def test_probability_lies_within_bounds(rows, query):
    s, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    calibrator = EvidentialLogisticCalibrator(classes=[False, True]).fit(s, y)
    proba = calibrator.predict_proba(query)
    bounds = calibrator.predict_bounds(query)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert (bounds.upper - bounds.lower > 0).all()


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (3.0, 1e5)])
def test_scale_and_shift_of_scores_do_not_matter(scale, shift):
    s, y = CASES["n=60"]
    plain = EvidentialLogisticCalibrator().fit(s, y).predict_bounds(s)
    other = EvidentialLogisticCalibrator().fit(scale * s + shift, y)
    moved = other.predict_bounds(scale * s + shift)
    np.testing.assert_allclose(moved.lower, plain.lower, atol=1e-9)
    np.testing.assert_allclose(moved.upper, plain.upper, atol=1e-9)


def test_mirror_image():
    s, y = CASES["n=60, imbalanced"]
    bounds = EvidentialLogisticCalibrator().fit(s, y).predict_bounds(s)
    mirror = EvidentialLogisticCalibrator().fit(-s, ~y).predict_bounds(-s)
    np.testing.assert_allclose(mirror.lower[:, ::-1], bounds.lower, atol=1e-10)
    np.testing.assert_allclose(mirror.upper[:, ::-1], bounds.upper, atol=1e-10)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_weights_are_repetitions(targets):
    s, y = CASES["n=60"]
    weight = np.arange(60) % 3
    weighted = EvidentialLogisticCalibrator(targets=targets).fit(s, y, sample_weight=weight)
    repeated = EvidentialLogisticCalibrator(targets=targets).fit(
        np.repeat(s, weight), np.repeat(y, weight)
    )
    a, b = weighted.predict_bounds(s), repeated.predict_bounds(s)
    np.testing.assert_allclose(a.lower, b.lower, atol=1e-10)
    np.testing.assert_allclose(a.upper, b.upper, atol=1e-10)


def test_more_rows_tighten_to_the_precise_calibrator():
    query = np.linspace(-2, 2, 9)
    widths = []
    for n in (50, 5_000, 500_000):
        calibrator = EvidentialLogisticCalibrator().fit(*draw(n, seed=6))
        widths.append(calibrator.predict_bounds(query).width.max())
    # The width falls as one over the square root of the rows.
    assert widths[0] > 7 * widths[1] > 49 * widths[2]
    assert widths[2] < 0.01


def test_evidence_at_infinity_is_that_for_the_sign_of_the_slope():
    s, y = draw(25, slope=0.3, seed=8)
    reference = BruteForce(s, y, "light")
    null = minimize_scalar(lambda level: reference.nll(level, 0.0)).fun
    plausibility_of_no_slope = np.exp(reference.nll(*reference.best) - null)
    bounds = EvidentialLogisticCalibrator().fit(s, y).predict_bounds([1e12, -1e12])
    positive = np.array([1.0, 0.0]) if reference.best[1] > 0 else np.array([0.0, 1.0])
    certain = np.abs(positive - plausibility_of_no_slope)
    np.testing.assert_allclose(
        np.where(positive == 1, bounds.lower[:, 1], bounds.upper[:, 1]),
        np.where(positive == 1, certain, plausibility_of_no_slope),
        atol=1e-9,
    )


def test_many_rows_compressed_are_as_good_as_all():
    s, y = draw(3_000, slope=4.0, shift=1.0, seed=9)
    fitted = EvidentialLogisticCalibrator(targets="raw").fit(s, y).maps_[0]
    assert fitted.belief_likelihood.points.shape[1] < 1_000
    x = (s - fitted.centre) / fitted.scale
    whole = logistic_profile._with_curvature(
        np.stack([x, np.ones(3_000)]), fitted.belief_likelihood.totals, fitted.fit.coef
    )
    query = np.array([-3.0, -0.4, 0.0, 0.1, 2.0])
    ours = logistic_profile.belief_and_plausibility(fitted.belief_likelihood, query)
    theirs = logistic_profile.belief_and_plausibility(whole, query)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize(
    "rows",
    [CASES["n=12"], CASES["n=500"], CASES["nearly separable"], draw(1_000, slope=60.0)],
    ids=["n=12", "n=500", "nearly separable", "steep"],
)
def test_many_queries_are_as_good_as_few(rows):
    calibrator = EvidentialLogisticCalibrator(targets="raw").fit(*rows)
    query = np.random.default_rng(0).standard_t(2, size=2_000)
    many = calibrator.predict_bounds(query)
    # The nearest to the threshold, where a steep curve has all its doubt, and some others.
    order = np.argsort(np.abs(calibrator.predict_proba(query)[:, 1] - 0.5))
    picked = np.concatenate([order[:10], order[::240]])
    few = calibrator.predict_bounds(query[picked])
    np.testing.assert_allclose(many.lower[picked], few.lower, atol=3e-9)
    np.testing.assert_allclose(many.upper[picked], few.upper, atol=3e-9)


SEPARATED = {
    "apart": ([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1]),
    "apart, falling": ([0.0, 1.0, 2.0, 3.0], [1, 1, 0, 0]),
    "touching": ([0.0, 1.0, 1.0, 2.0], [0, 0, 1, 1]),
    "two values": ([0.0, 0.0, 1.0], [0, 1, 1]),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_separated_scores_have_no_raw_estimate(case):
    s, y = SEPARATED[case]
    with pytest.raises(CalibrationInputError, match=r'separates the classes.*targets="light"'):
        EvidentialLogisticCalibrator(targets="raw").fit(s, y)
    bounds = EvidentialLogisticCalibrator().fit(s, y).predict_bounds(s)
    assert (bounds.width > 0.05).all()


def test_one_class_has_no_raw_estimate():
    with pytest.raises(CalibrationInputError, match="one class has no estimate"):
        EvidentialLogisticCalibrator(targets="raw", classes=[0, 1]).fit([0.0, 1.0], [1, 1])


def test_barely_overlapping_scores_have_a_raw_estimate():
    s = np.array([0.0, 1.0, 1.0 + 1e-4, 2.0])
    calibrator = EvidentialLogisticCalibrator(targets="raw").fit(s, [0, 1, 0, 1])
    assert calibrator.gradient_norm_[0] < 1e-10
    reference = BruteForce(s, np.array([False, True, False, True]), "raw")
    np.testing.assert_allclose(calibrator.slope_, reference.best[1], rtol=1e-6)


@pytest.mark.parametrize("targets", ["smoothed", "raw"])
def test_constant_scores_give_the_bounds_of_a_proportion(targets):
    y = np.array([1, 1, 1, 0, 0])
    calibrator = EvidentialLogisticCalibrator(targets=targets).fit(np.full(5, 7.3), y)
    assert calibrator.slope_[0] == 0
    bounds = calibrator.predict_bounds([7.3, 1e6])
    successes = platt_targets(y == 1).sum() if targets == "smoothed" else 3
    fraction = successes / 5
    peak = fraction**successes * (1 - fraction) ** (5 - successes)

    def contour(u):
        return u**successes * (1 - u) ** (5 - successes) / peak

    below, above = quad(contour, 0, fraction)[0], quad(contour, fraction, 1)[0]
    np.testing.assert_allclose(bounds.lower[:, 1], fraction - below, atol=1e-9)
    np.testing.assert_allclose(bounds.upper[:, 1], fraction + above, atol=1e-9)


@pytest.mark.parametrize(
    ("targets", "fraction"), [("smoothed", 21 / 22), ("light", 20.125 / 20.25)]
)
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_still_has_an_estimate(label, targets, fraction):
    calibrator = EvidentialLogisticCalibrator(targets=targets, classes=[0, 1])
    calibrator.fit(np.linspace(-1, 1, 20), np.full(20, label))
    np.testing.assert_allclose(calibrator.slope_, 0, atol=1e-12)
    np.testing.assert_allclose(calibrator.predict_proba([0.0])[0, label], fraction)
    near, far = calibrator.predict_bounds([0.0, 100.0]).width[:, 1]
    assert near < far


def test_extreme_scores_stay_finite():
    s, y = CASES["n=60"]
    calibrator = EvidentialLogisticCalibrator().fit(1e6 * s, y)
    bounds = calibrator.predict_bounds(np.array([-1e300, -1e12, 0.0, 1e12, 1e300]))
    assert np.isfinite(bounds.lower).all()
    assert np.isfinite(bounds.upper).all()
    assert (np.diff(bounds.upper[:, 1]) >= -1e-9).all()


def test_single_precision_and_read_only_scores():
    s, y = CASES["n=60"]
    scores = s.astype(np.float32)
    scores.flags.writeable = False
    single = EvidentialLogisticCalibrator().fit(scores, y).predict_bounds(scores)
    double = EvidentialLogisticCalibrator().fit(s, y).predict_bounds(s)
    np.testing.assert_allclose(single.lower, double.lower, atol=1e-5)


def test_three_classes_one_of_them_missing():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 3))
    y = np.argmax(scores[:, :2], axis=1)
    calibrator = EvidentialLogisticCalibrator(classes=[0, 1, 2]).fit(scores, y)
    proba, bounds = calibrator.predict_proba(scores), calibrator.predict_bounds(scores)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert ((bounds.lower <= proba) & (proba <= bounds.upper)).all()
    assert np.median(proba[:, 2]) < 0.05


def test_mass_holds_the_bounds():
    calibrator = EvidentialLogisticCalibrator().fit(*CASES["n=12"])
    mass = calibrator.predict_mass([0.3])
    bounds = calibrator.predict_bounds([0.3])
    np.testing.assert_allclose(mass.mass[0, :2], bounds.lower[0])
    np.testing.assert_allclose(mass.mass[0, 2], bounds.width[0, 1])


def test_clone_and_pickle():
    calibrator = EvidentialLogisticCalibrator(targets="raw", floor=1e-9)
    assert clone(calibrator).get_params() == calibrator.get_params()
    s, y = CASES["n=60"]
    fitted = calibrator.fit(s, y)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.predict_bounds(s).lower, fitted.predict_bounds(s).lower)
