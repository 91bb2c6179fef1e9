"""Bounds at a confidence level of logistic maps of two classes: definition, edges, coverage."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dubito._numerics import logistic_fit as logistic_fits
from dubito._numerics import logistic_level, logistic_profile
from dubito.calibration import (
    BetaCalibrator,
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    PlattCalibrator,
)
from dubito.calibration._kernels import joint_logistic_level

from reference.levels import joint_bounds, one_score_bounds

LEVELS = (0.5, 0.8, 0.95, 0.99)


def draw(n, n_scores, seed=0, prior=0.5, gap=1.0):
    """Draw scores whose log-odds are exactly linear, with the true probability of class 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    scores = rng.normal(size=(n, n_scores)) + gap * (y[:, None] - 0.5)
    return scores, y, expit(logit(prior) + gap * scores.sum(axis=1))


def joint(**options):
    return EvidentialJointCalibrator(**{"classes": [0, 1], "n_jobs": 1, **options})


def logistic(**options):
    return EvidentialLogisticCalibrator(classes=[0, 1], **options)


def assert_holds(model, rows, lower, upper, level, *, atol=1e-8):
    """Compare bounds of class 1 with a reference, widened to hold the estimate."""
    bounds = model.predict_bounds(rows, level=level)
    estimate = model.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(bounds.lower[:, 1], np.minimum(lower, estimate), atol=atol)
    np.testing.assert_allclose(bounds.upper[:, 1], np.maximum(upper, estimate), atol=atol)
    np.testing.assert_allclose(bounds.lower[:, 0], 1 - bounds.upper[:, 1], atol=1e-15)
    np.testing.assert_allclose(bounds.upper[:, 0], 1 - bounds.lower[:, 1], atol=1e-15)
    assert bounds.level == level


@pytest.mark.parametrize("level", [0.3, 0.9, 0.999])
@pytest.mark.parametrize(("n", "n_scores"), [(30, 1), (40, 2), (60, 3), (300, 3)])
def test_bounds_are_those_of_the_definition(n, n_scores, level):
    scores, y, _ = draw(n, n_scores)
    rows = np.vstack([scores[:4], 4 * scores[4:6]])
    lower, upper = np.transpose([joint_bounds(scores, y, row, level) for row in rows])
    assert_holds(joint(likelihood="exact").fit(scores, y), rows, lower, upper, level)
    assert_holds(joint(targets="smoothed", ridge=3.0).fit(scores, y), rows, lower, upper, level)
    if n_scores == 1:
        assert_holds(logistic().fit(scores, y), rows, lower, upper, level)


SEPARATED = {
    "apart": ([-2.0, -1.5, -1.0, 0.5, 0.7, 2.0, 2.2], [0, 0, 0, 1, 1, 1, 1]),
    "falling": ([-2.0, -1.5, -1.0, 0.5, 0.7, 2.0, 2.2], [1, 1, 1, 1, 0, 0, 0]),
    "touching": ([-1.0, 0.0, 0.0, 1.0, 1.5], [0, 0, 1, 1, 1]),
    "one class": ([-1.0, 0.0, 0.3, 1.0], [1, 1, 1, 1]),
    "one of a class": ([-1.0, 0.0, 0.3, 1.0, 2.0], [0, 0, 0, 0, 1]),
    "constant": ([1.0, 1.0, 1.0, 1.0], [0, 1, 1, 0]),
    "constant, one class": ([1.0, 1.0, 1.0], [0, 0, 0]),
    "one row": ([0.5], [1]),
}


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("case", SEPARATED)
def test_separated_classes_have_open_ends(case, level):
    s, y = (np.asarray(part) for part in SEPARATED[case])
    rows = np.array([-3.0, -1.0, -0.1, 0.3, 1.8]) if np.ptp(s) > 0 else s[:1]
    lower, upper = np.transpose([one_score_bounds(s, y, row, level) for row in rows])
    for model in (logistic(), logistic(targets="smoothed"), joint()):
        assert_holds(model.fit(s, y), rows, lower, upper, level, atol=1e-7)


def test_bounds_in_a_gap_between_the_classes_are_wide():
    s, y = np.array([-2.0, -1.0, 1.0, 3.0]), [0, 0, 1, 1]
    for model in (logistic(), joint()):
        bounds = model.fit(s, y).predict_bounds([-0.9, 0.0, 0.9, 5.0], level=0.9)
        np.testing.assert_allclose(bounds.lower[:3], 0, atol=1e-12)
        np.testing.assert_allclose(bounds.upper[:3], 1, atol=1e-12)
        assert bounds.lower[3, 1] > 0.1
        assert bounds.upper[3, 1] == 1


@pytest.mark.parametrize("n", [1, 3, 20])
def test_one_class_and_constant_scores_are_a_proportion(n):
    # One coefficient is seen: half a row beside the n, a quarter of it of the other class.
    model = logistic().fit(np.ones(n), np.ones(n, dtype=int))
    drop = 0.5 * chi2.ppf(0.9, 1)
    target = 1 - 0.25 / (n + 0.5)

    def excess(theta):
        def value(p):
            return n * (target * np.log(p) + (1 - target) * np.log1p(-p))

        return value(target) - value(theta) - drop

    lower = min(np.exp(-drop / n), brentq(excess, 1e-12, target))
    assert_holds(model, [1.0], [lower], [1.0], 0.9)


def test_three_scores_separated_by_their_sum():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(40, 3))
    y = (scores.sum(axis=1) > 0).astype(int)
    bounds = joint().fit(scores, y).predict_bounds([[1.0, 1, 1], [-1, -1, -1]], level=0.9)
    assert bounds.upper[0, 1] == 1
    assert 0.5 < bounds.lower[0, 1] < 1
    assert bounds.lower[1, 1] == 0
    assert 0 < bounds.upper[1, 1] < 0.5


@pytest.mark.parametrize("n_scores", [1, 3])
def test_levels_are_nested_and_hold_the_estimate(n_scores):
    for n, gap in ((8, 1.0), (15, 3.0), (100, 0.3)):
        scores, y, _ = draw(n, n_scores, gap=gap)
        rows, _, _ = draw(30, n_scores, seed=1, gap=2 * gap)
        model = (logistic() if n_scores == 1 else joint()).fit(scores, y)
        estimate = model.predict_proba(rows)
        last_lower, last_upper = estimate, estimate
        for level in (1e-6, *LEVELS, 1 - 1e-9):
            lower, upper = model.predict_bounds(rows, level=level)
            assert (lower <= last_lower + 1e-9).all()
            assert (upper >= last_upper - 1e-9).all()
            last_lower, last_upper = lower, upper


def test_weights_are_repetitions():
    scores, y, _ = draw(25, 2)
    weight = np.array([0, 1, 2, 3, 2] * 5)
    again = np.repeat(np.arange(25), weight)
    for model, columns in ((joint(), [0, 1]), (logistic(), [0])):
        weighted = model.fit(scores[:, columns], y, weight).predict_bounds(
            scores[:, columns], level=0.9
        )
        repeated = model.fit(scores[again][:, columns], y[again]).predict_bounds(
            scores[:, columns], level=0.9
        )
        np.testing.assert_allclose(weighted.lower, repeated.lower, atol=1e-9)
        np.testing.assert_allclose(weighted.upper, repeated.upper, atol=1e-9)


def test_one_score_either_way():
    for n in (1, 12, 200, 1_000):
        scores, y, _ = draw(n, 1, gap=1.5)
        rows = np.r_[np.linspace(-6, 6, 31), 100.0, -1e4]
        one, other = (
            model.fit(scores, y).predict_bounds(rows, level=0.9) for model in (joint(), logistic())
        )
        np.testing.assert_allclose(one.lower, other.lower, atol=1e-9)
        np.testing.assert_allclose(one.upper, other.upper, atol=1e-9)


def test_copied_scores_and_rows_off_the_span():
    scores, y, _ = draw(40, 1)
    copied = np.hstack([scores, scores])
    plain = joint().fit(scores, y).predict_bounds(scores[:5], level=0.9)
    for ridge in (0.0, 1.0):  # no ridge decides on what the rows do not see
        model = joint(ridge=ridge).fit(copied, y)
        bounds = model.predict_bounds(copied[:5], level=0.9)
        np.testing.assert_allclose(bounds.lower, plain.lower, atol=1e-6)
        np.testing.assert_allclose(bounds.upper, plain.upper, atol=1e-6)
        unknown = model.predict_bounds([[1.0, -1.0]], level=0.9)
        np.testing.assert_array_equal(unknown.lower, [[0, 0]])
        np.testing.assert_array_equal(unknown.upper, [[1, 1]])


def test_fewer_rows_than_classifiers():
    scores, y, _ = draw(4, 6)
    y[:2] = [0, 1]
    bounds = joint().fit(scores, y).predict_bounds(np.vstack([scores, 1 - scores]), level=0.9)
    assert (bounds.lower <= bounds.upper).all()
    np.testing.assert_array_equal(bounds.upper[np.arange(4), y], 1)
    np.testing.assert_array_equal(bounds.lower[4:], 0)


def test_without_a_bias_scores_of_zero_are_a_coin():
    scores, y, _ = draw(40, 2)
    model = joint(bias=False).fit(scores, y)
    bounds = model.predict_bounds([[0.0, 0.0], [1.0, 0.5]], level=0.9)
    np.testing.assert_array_equal(bounds.lower[0], [0.5, 0.5])
    assert bounds.width[1, 0] > 0.01
    nothing = joint(bias=False).fit(np.zeros((6, 2)), [0, 1] * 3)
    np.testing.assert_array_equal(
        nothing.predict_bounds([[0.0, 0.0]], level=0.9).upper, [[0.5] * 2]
    )


def test_the_quadratic_is_the_hull_of_two_normal_intervals_and_near_with_many_rows():
    scores, y, _ = draw(4_000, 3)
    rows = scores[:50]
    exact, quadratic = (
        joint(likelihood=kind).fit(scores, y).predict_bounds(rows, level=0.9)
        for kind in ("exact", "quadratic")
    )
    np.testing.assert_allclose(quadratic.lower, exact.lower, atol=2e-3)
    np.testing.assert_allclose(quadratic.upper, exact.upper, atol=2e-3)
    few, labels, _ = draw(40, 2)
    model = joint(likelihood="quadratic", targets="raw").fit(few, labels)
    design = np.column_stack([np.ones(40), few])
    ends = []
    for targets, pseudo in (("raw", 0.0), ("light", 1.5)):
        fraction = pseudo / (40 + pseudo)
        target = (1 - fraction) * labels + fraction / 2
        coef = np.zeros(3)
        for _ in range(30):
            p = expit(design @ coef)
            hessian = (design * (p * (1 - p))[:, None]).T @ design
            coef += np.linalg.solve(hessian, design.T @ (target - p))
        assert targets == "light" or np.allclose(coef[1:], model.slope_)
        spread = np.sqrt(np.sum(design * np.linalg.solve(hessian, design.T).T, axis=1))
        t = np.sqrt(chi2.ppf(0.9, 1))
        ends.append((design @ coef - t * spread, design @ coef + t * spread))
    lower = expit(np.minimum(ends[0][0], ends[1][0]))
    upper = expit(np.maximum(ends[0][1], ends[1][1]))
    assert_holds(model, few, lower, upper, 0.9, atol=1e-6)


def test_the_quadratic_of_separated_classes_is_open_on_their_side():
    scores, _, _ = draw(60, 2)
    y = (scores.sum(axis=1) > 0).astype(int)
    bounds = (
        joint(likelihood="quadratic")
        .fit(scores, y)
        .predict_bounds([[2.0, 2.0], [-2.0, -2.0]], level=0.9)
    )
    assert bounds.upper[0, 1] == 1
    assert bounds.lower[0, 1] > 0.5
    assert bounds.lower[1, 1] == 0
    assert bounds.upper[1, 1] < 0.5


@pytest.mark.parametrize("gap", [1.0, 6.0])
def test_many_queries_are_as_good_as_few(gap, monkeypatch):
    scores, y, _ = draw(60, 1, gap=gap)
    rows = np.sort(np.random.default_rng(5).normal(size=1_500) * 4)
    model = logistic().fit(scores, y)
    many = model.predict_bounds(rows, level=0.9)
    monkeypatch.setattr(logistic_profile, "_DEGREE", 1_000)  # so that every query is exact
    few = model.predict_bounds(rows, level=0.9)
    np.testing.assert_allclose(many.lower, few.lower, atol=1e-8)
    np.testing.assert_allclose(many.upper, few.upper, atol=1e-8)


def test_prediction_leaves_the_model_as_it_was():
    scores, y, _ = draw(30, 2)
    model = joint().fit(scores, y)
    before = pickle.dumps(model)
    model.predict_bounds(scores, level=0.9)
    assert pickle.dumps(model) == before


def coverage(n, n_scores, prior, gap, repeats=120):
    """Return how often bounds contain the truth, for each level and repetition, and widths at 0.9.

    Widths are relative to the Laplace interval, the estimate's log-odds ± t standard errors.
    """
    held, widths = [], []
    for seed in range(repeats):
        scores, y, _ = draw(n, n_scores, seed=seed, prior=prior, gap=gap)
        rows, _, truth = draw(8, n_scores, seed=10_000 + seed, prior=prior, gap=gap)
        model = (logistic() if n_scores == 1 else joint()).fit(scores, y)
        pairs = [model.predict_bounds(rows, level=level) for level in LEVELS]
        held.append([np.mean((b.lower[:, 1] <= truth) & (truth <= b.upper[:, 1])) for b in pairs])
        p = model.predict_proba(scores)[:, 1]
        design, there = (np.column_stack([np.ones(len(s)), s]) for s in (scores, rows))
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        spread = np.sqrt(np.sum(there * np.linalg.solve(hessian, there.T).T, axis=1))
        at = logit(model.predict_proba(rows)[:, 1])
        t = np.sqrt(chi2.ppf(LEVELS[2], 1))
        laplace = expit(at + t * spread) - expit(at - t * spread)
        widths.append((pairs[2].width[:, 1], laplace))
    ratio = np.median([w for w, _ in widths]) / np.median([w for _, w in widths])
    return np.array(held), ratio


@pytest.mark.parametrize("prior", [0.5, 0.15])
@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize(("n_scores", "gap"), [(1, 3.0), (3, 1.5)])
def test_bounds_hold_the_truth_as_often_as_promised(n, n_scores, gap, prior):
    held, ratio = coverage(n, n_scores, prior, gap)
    error = held.std(axis=0) / np.sqrt(len(held))
    assert (held.mean(axis=0) >= np.array(LEVELS) - 0.03 - 2.0 * error).all()
    if n >= 100:
        assert ratio < 1.3


def test_a_calibrated_classifier_passes_the_level_on():
    scores, y, _ = draw(120, 2, gap=1.5)
    for calibrator in (logistic(), joint()):
        model = CalibratedClassifier(LogisticRegression(), calibrator, cv=4).fit(scores, y)
        narrow, wide = (model.predict_bounds(scores[:9], level=level) for level in (0.5, 0.95))
        estimate = model.predict_proba(scores[:9])
        assert wide.level == 0.95
        assert ((wide.lower <= narrow.lower) & (narrow.lower <= estimate)).all()
        assert ((estimate <= narrow.upper) & (narrow.upper <= wide.upper)).all()
        assert (wide.width > narrow.width).all()


def test_joint_fusion_has_the_bounds_of_joint_calibration():
    scores, y, _ = draw(200, 2, gap=1.2)
    fit, rest = slice(0, 80), slice(80, 200)
    members = [LogisticRegression().fit(scores[fit, [j]].reshape(-1, 1), y[fit]) for j in (0, 1)]
    named = [(str(j), FrozenEstimator(m), [j]) for j, m in enumerate(members)]
    fusion = EvidentialFusion(named).fit(scores[rest], y[rest])
    margins = np.column_stack([m.decision_function(scores[:, [j]]) for j, m in enumerate(members)])
    same = joint(ridge=1.0).fit(margins[rest], y[rest])
    ours, theirs = fusion.predict_bounds(scores, level=0.9), same.predict_bounds(margins, level=0.9)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-9)
    assert ours.level == 0.9


FITS = [
    PlattCalibrator(),
    PlattCalibrator(ridge="auto"),
    BetaCalibrator(),
    EvidentialLogisticCalibrator(),
    EvidentialJointCalibrator(),
]


@pytest.mark.parametrize("calibrator", FITS, ids=repr)
def test_a_fit_that_stops_too_early_warns(calibrator, monkeypatch):
    scores, y, _ = draw(40, 1)
    fit = clone(calibrator).fit(scores, y)
    assert np.max(fit.gradient_norm_) < 1e-9
    monkeypatch.setattr(logistic_fits, "_MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=f"{type(calibrator).__name__} stopped before"):
        clone(calibrator).fit(scores, y)


def test_likelihoods_behind_a_level_have_certificates_too(monkeypatch):
    scores, y = np.array([-1.0, 1.0, -1.0, 1.0, 3.0]), np.array([0, 0, 1, 1, 1])
    real = logistic_level.fit_logistic

    def unfinished(*args, **options):
        return real(*args, **options)._replace(gradient_norm=1e-3)

    for module, model in ((logistic_level, logistic()), (joint_logistic_level, joint())):
        with monkeypatch.context() as patch:
            patch.setattr(module, "fit_logistic", unfinished)
            with pytest.warns(ConvergenceWarning, match="the gradient is 1.0e-03"):
                model.fit(scores, y)
