"""Joint bounds of more than two classes at a level: by a generic optimiser, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import chi2

from dubito.calibration import EvidentialJointCalibrator, EvidentialMultinomialCalibrator

from reference.joint import near_copies


def draw(n, n_classifiers, n_classes, *, slopes=1.0, seed=0):
    """Scores whose utilities, `slopes` times their sum, are the truth."""
    rng = np.random.default_rng([seed, n, n_classifiers, n_classes])
    scores = rng.normal(size=(n, n_classifiers, n_classes))
    utilities = slopes * scores.sum(axis=1)
    return scores, np.argmax(utilities + rng.gumbel(size=utilities.shape), axis=1)


def fitted(scores, y, **options):
    model = EvidentialJointCalibrator(classes=range(scores.shape[2]), n_jobs=1, **options)
    return model.fit(scores, y)


FINE = {"maxiter": 500, "ftol": 1e-12}
TIGHT = {
    "method": "L-BFGS-B",
    "options": {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000, "maxfun": 10_000},
}


def greatest(scores, y, pseudo, query, k, start):  # noqa: PLR0917
    """Maximise log p_k where the likelihood with pseudo-observations is high, by SLSQP."""
    n, n_classifiers, n_classes = scores.shape
    fraction = pseudo / (n + pseudo)
    target = (1 - fraction) * np.eye(n_classes)[y] + fraction / n_classes

    def loss(a):
        log_p = log_softmax(np.einsum("j,ijk->ik", a, scores), axis=1)
        return -np.sum(target * log_p), np.einsum("ijk,ik->j", scores, np.exp(log_p) - target)

    def utility(a):
        log_p = log_softmax(a @ query)
        return -log_p[k], query @ np.exp(log_p) - query[:, k]

    limits = [(0, None)] * n_classifiers
    best = min(minimize(loss, start, jac=True, bounds=limits, **TIGHT).fun, loss(start)[0])
    depth = best + 0.5 * chi2.ppf(0.9, 1)
    inside = {
        "type": "ineq",
        "fun": lambda a: depth - 1e-9 - loss(a)[0],
        "jac": lambda a: -loss(a)[1],
    }
    found = minimize(utility, start, jac=True, bounds=limits, constraints=[inside], options=FINE)
    a = np.maximum(found.x, 0)
    return np.exp(-utility(a)[0]) if loss(a)[0] <= depth + 1e-9 else 0.0


PROBLEMS = {
    "ordinary": lambda seed: draw(12, 2, 3, seed=seed),
    "separable": lambda seed: near_copies(seed, n=5, n_classifiers=3, noise=0.7),
    "near copies": near_copies,
    "open directions": lambda seed: near_copies(seed, n=4, noise=0.1),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_upper_bounds_are_never_below_the_maximum(kind):
    """80 problems: no likelihood allows a greater probability, found from two starts."""
    excess = []
    for seed in range(20):
        scores, y = PROBLEMS[kind](seed)
        model = fitted(scores, y)
        query = scores[0] + np.random.default_rng(seed).normal(size=scores[0].shape)
        k = seed % 3
        bounds = model.predict_bounds(query[None], level=0.9)
        scale = model.model_.scale
        within = scores / scale[:, None]
        n_seen = np.linalg.matrix_rank(
            (within - within[:, :, :1]).transpose(1, 0, 2).reshape(len(scale), -1)
        )
        truth = max(
            greatest(within, y, pseudo, query / scale[:, None], k, start)
            for pseudo in (0.0, 0.5 * n_seen)
            for start in (model.model_.level_likelihoods.light.coef, 0.5 * model.model_.fit.coef)
        )
        truth = max(truth, model.predict_proba(query[None])[0, k])
        assert bounds.upper[0, k] >= truth - 1e-6
        excess.append(bounds.upper[0, k] - truth)
    assert np.median(excess) < 1e-4


def test_lower_bounds_are_never_above_the_minimum():
    """By random coefficients inside the level sets, pushed to their edges."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        scores, y = draw(15, 2, 3, seed=seed)
        model = fitted(scores, y)
        query = rng.normal(size=(1, 2, 3))
        lower, upper = model.predict_bounds(query, level=0.9)
        for pseudo in (0.0, 1.0):
            fraction = pseudo / (15 + pseudo)
            target = (1 - fraction) * np.eye(3)[y] + fraction / 3
            slopes = np.vstack([rng.uniform(0, 6, size=(20_000, 2)), model.slope_[None]])
            log_p = log_softmax(np.einsum("mj,ijk->mik", slopes, scores), axis=2)
            loss = -np.einsum("mik,ik->m", log_p, target)

            def value(a, target=target, scores=scores):
                return -np.sum(target * log_softmax(np.einsum("j,ijk->ik", a, scores), axis=1))

            start = model.slope_
            least = minimize(value, start, bounds=[(0, None)] * 2, **TIGHT).fun
            inside = slopes[loss <= least + 0.5 * chi2.ppf(0.9, 1)]
            p = softmax(inside @ query[0], axis=1)
            assert (lower <= p.min(axis=0) + 1e-6).all()
            assert (upper >= p.max(axis=0) - 1e-6).all()


def test_one_classifier_agrees_with_one_slope():
    """Upper bounds are those of `EvidentialMultinomialCalibrator`; lower ones are not above."""
    scores, y = draw(25, 1, 4)
    rows = np.random.default_rng(1).normal(size=(10, 1, 4))
    alone = EvidentialMultinomialCalibrator(classes=range(4)).fit(scores[:, 0], y)
    one = alone.predict_bounds(rows[:, 0], level=0.9)
    joint = fitted(scores, y, targets="light").predict_bounds(rows, level=0.9)
    np.testing.assert_allclose(joint.upper, one.upper, rtol=0, atol=1e-6)
    assert (joint.lower <= one.lower + 1e-6).all()


@pytest.mark.parametrize("likelihood", ["exact", "quadratic"])
def test_bounds_are_nested_permuted_and_hold_the_probability(likelihood):
    scores, y = draw(30, 2, 3)
    rows = np.random.default_rng(1).normal(size=(8, 2, 3))
    model = fitted(scores, y, likelihood=likelihood, ridge=1.0)
    proba = model.predict_proba(rows)
    inner = model.predict_bounds(rows, level=0.3)
    assert (inner.lower <= proba).all()
    assert (proba <= inner.upper).all()
    for level in (0.8, 0.95, 0.999):
        outer = model.predict_bounds(rows, level=level)
        assert (outer.lower <= inner.lower + 1e-9).all()
        assert (outer.upper >= inner.upper - 1e-9).all()
        inner = outer
    order = np.array([2, 0, 1])
    other = fitted(scores[:, :, order], np.argsort(order)[y], likelihood=likelihood, ridge=1.0)
    permuted = other.predict_bounds(rows[:, :, order], level=0.999)
    np.testing.assert_allclose(permuted.lower, inner.lower[:, order], rtol=0, atol=1e-7)
    np.testing.assert_allclose(permuted.upper, inner.upper[:, order], rtol=0, atol=1e-7)


def test_labels_that_scores_separate_leave_the_far_side_open():
    scores = 3 * np.eye(3)[np.arange(9) % 3][:, None, :] + 0.1 * draw(9, 2, 3)[0]
    bounds = fitted(scores, np.arange(9) % 3).predict_bounds(scores[:1], level=0.9)
    assert bounds.upper[0, 0] == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(bounds.lower[0, 1:], 0.0, atol=1e-9)
    assert bounds.lower[0, 0] > 0.3


# The guard of the form is a test of its own: among so many draws it may raise a false alarm.
@pytest.mark.filterwarnings("ignore::dubito.calibration.errors.MisfitWarning")
@pytest.mark.parametrize(
    ("n", "n_classes"),
    [
        (10, 3),
        (30, 5),
        pytest.param(100, 3, marks=pytest.mark.slow),
        pytest.param(30, 10, marks=pytest.mark.slow),
    ],
)
def test_the_level_is_kept(n, n_classes):
    """Coverage of the true probability by 60 fits; their error is about 0.03."""
    held = []
    for seed in range(60):
        scores, y = draw(n, 2, n_classes, seed=seed)
        rows = np.random.default_rng(seed).normal(size=(2, 2, n_classes))
        truth = softmax(rows.sum(axis=1), axis=1)
        lower, upper = fitted(scores, y).predict_bounds(rows, level=0.9)
        held.append(((lower <= truth) & (truth <= upper)).mean())
    assert np.mean(held) > 0.87
