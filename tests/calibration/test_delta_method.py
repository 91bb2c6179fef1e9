"""Bounds of vector and matrix scaling: quadrature, delta method, structures, edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logsumexp

from dubito._numerics.softmax import softmax_in_place
from dubito.calibration import (
    EvidentialLogisticCalibrator,
    MatrixCalibrator,
    VectorCalibrator,
)
from dubito.calibration._kernels import matrix_likelihood, vector_likelihood
from dubito.calibration._kernels.log_odds_bounds import belief_of_log_odds
from dubito.calibration._kernels.softmax_covariance import (
    ClassBlocks,
    DenseDiagonal,
    DenseMatrix,
    KroneckerMatrix,
    LogitCovariances,
)

KINDS = [VectorCalibrator, MatrixCalibrator]


def draw(n, n_classes, *, seed=0, size=1.5):
    rng = np.random.default_rng(seed)
    scores = size * rng.normal(size=(n, n_classes))
    return scores, np.argmax(
        scores + 0.3 * np.roll(scores, 1, 1) + rng.gumbel(size=scores.shape), 1
    )


def positive(size, rng):
    root = rng.normal(size=(size, size))
    return root @ root.T / size


@pytest.mark.parametrize("eta", [-30.0, -3.0, 0.0, 0.7, 12.0])
@pytest.mark.parametrize("deviation", [0.0, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 50.0])
def test_belief_is_the_integral_of_the_contour(eta, deviation):
    lower, upper = belief_of_log_odds(*np.full((3, 1), [[eta], [deviation], [deviation]]))
    for side, found in ((-1, lower), (1, upper)):
        # Where the curve is steep, quad gets break points.
        breaks = sorted({min(abs(eta) / max(deviation, 1e-9), 7.9), 1.0, 3.0})
        wanted, _ = quad(
            lambda r, s=side: expit(eta + s * deviation * r) * r * np.exp(-(r**2) / 2),
            *(0, 9),
            points=breaks,
            limit=500,
            epsabs=1e-12,
        )
        assert found[0] == pytest.approx(wanted, abs=1.5e-7)


def matrix_logits(parameters, scores, n_classes):
    table = parameters.reshape(n_classes, n_classes + 1)
    return scores @ table[:, :-1].T + table[:, -1]


def diagonal_logits(parameters, scores, n_classes):
    return parameters[:n_classes] * scores + parameters[n_classes:]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["matrix", "diagonal"])
def test_variances_are_those_of_numerical_gradients(kind, n_classes):
    rng = np.random.default_rng(n_classes)
    of, logits_of = {
        "matrix": (DenseMatrix.from_covariance, matrix_logits),
        "diagonal": (DenseDiagonal.from_covariance, diagonal_logits),
    }[kind]
    size = n_classes * (n_classes + 1) if kind == "matrix" else 2 * n_classes
    x, covariance = 2 * rng.normal(size=size), positive(size, rng)
    direction, scores = rng.normal(size=size), rng.normal(size=(7, n_classes))

    def log_odds(parameters):
        z = logits_of(parameters, scores, n_classes)
        rest = [logsumexp(np.delete(z, k, axis=1), axis=1) for k in range(n_classes)]
        return z - np.column_stack(rest)

    gradient = np.stack(
        [(log_odds(x + 1e-5 * e) - log_odds(x - 1e-5 * e)) / 2e-5 for e in np.eye(size)]
    )
    along = logits_of(direction, scores, n_classes)
    covariances = of(covariance, n_classes).of_rows(scores)
    found = covariances.log_odds(logits_of(x, scores, n_classes), along)
    np.testing.assert_allclose(found.value, log_odds(x), rtol=1e-9, atol=1e-9)
    wanted = np.einsum("pnk,pq,qnk->nk", gradient, covariance, gradient)
    np.testing.assert_allclose(found.variance, wanted, rtol=1e-6)
    np.testing.assert_allclose(
        found.along, np.einsum("pnk,p->nk", gradient, direction), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("n_classes", [2, 6])
def test_compiled_and_plain_formulas_agree(n_classes):
    rng = np.random.default_rng(0)
    covariance = DenseMatrix.from_covariance(positive(n_classes * (n_classes + 1), rng), n_classes)
    scores, along = rng.normal(size=(2, 9, n_classes))
    logits = 5 * rng.normal(size=(9, n_classes))
    logits[0] = 0.0  # ties
    logits[1, 0] = 900.0
    rows = covariance.of_rows(scores)
    for one, other in zip(
        rows.log_odds(logits, along), LogitCovariances.log_odds(rows, logits, along), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_variances_are_right_where_a_probability_rounds_to_one():
    rng = np.random.default_rng(0)
    covariance = positive(12, rng)
    scores = rng.normal(size=(1, 3))
    logits = np.array([[60.0, 1.0, 0.0]])
    found = (
        DenseMatrix.from_covariance(covariance, 3)
        .of_rows(scores)
        .log_odds(logits, np.zeros((1, 3)))
    )
    rest = np.exp([1.0, 0.0]) / np.exp([1.0, 0.0]).sum()
    c = np.array([1.0, *-rest])
    gradient = np.outer(c, [*scores[0], 1.0]).ravel()
    assert found.variance[0, 0] == pytest.approx(gradient @ covariance @ gradient, rel=1e-12)
    assert found.value[0, 0] == pytest.approx(60 - np.log(np.e + 1))


def test_kronecker_covariance_is_the_dense_one_where_both_are_possible():
    rng = np.random.default_rng(0)
    n_classes = 4
    a, c = positive(n_classes, rng), positive(n_classes + 1, rng)
    (values, left), (others, right) = np.linalg.eigh(a), np.linalg.eigh(c)
    nothing = np.zeros(n_classes)
    structured = KroneckerMatrix(
        1 / (np.outer(others, values) + 0.5), left, right, ClassBlocks(*(nothing,) * 5)
    )
    dense = DenseMatrix.from_covariance(np.linalg.inv(np.kron(a, c) + 0.5 * np.eye(20)), n_classes)
    scores, logits = rng.normal(size=(6, n_classes)), 2 * rng.normal(size=(6, n_classes))
    one, other = (
        form.of_rows(scores).log_odds(logits, np.zeros_like(logits)).variance
        for form in (structured, dense)
    )
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_class_blocks_are_the_dense_covariance_of_independent_classes():
    rng = np.random.default_rng(1)
    slope, bias = rng.uniform(1, 2, 3), rng.uniform(1, 2, 3)
    both, fixed = rng.uniform(-0.5, 0.5, 3), rng.normal(size=6) / 4
    full = np.block([[np.diag(slope), np.diag(both)], [np.diag(both), np.diag(bias)]])
    dense = DenseDiagonal.from_covariance(full - np.outer(fixed, fixed), 3)
    blocks = ClassBlocks(slope, both, bias, fixed[:3], fixed[3:])
    scores, logits = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    one, other = (
        form.of_rows(scores).log_odds(logits, np.zeros_like(logits)).variance
        for form in (blocks, dense)
    )
    np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_shared_slope_is_free_and_others_are_not(kind):
    """One row does not determine the slope: bounds of a far row are wide, of equal scores not."""
    model = kind(classes=[0, 1, 2]).fit([[1.0, 0.0, -1.0]], [0])
    far, near = model.predict_bounds([[3.0, 0.0, -3.0], [0.0, 0.0, 0.0]], level=0.9).width
    assert far[0] > 0.9
    assert 0.3 < near[0] < 0.99


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slope", [1.0, 6.0])
@pytest.mark.parametrize(("n", "apart"), [(30, 0.12), (3000, 0.012)])
def test_two_classes_have_the_bounds_of_the_exact_profile_likelihood(kind, slope, n, apart):
    """With two classes the map is a sigmoid, whose likelihood is followed exactly there."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=n)
    y = (rng.random(n) < expit(slope * scores + 0.5)).astype(int)
    query = np.linspace(-2, 2, 9)
    exact = EvidentialLogisticCalibrator(classes=[0, 1]).fit(scores, y)
    found = kind(classes=[0, 1]).fit(scores, y).predict_bounds(query, level=0.9)
    wanted = exact.predict_bounds(query, level=0.9)
    np.testing.assert_allclose(found.lower, wanted.lower, atol=apart)
    np.testing.assert_allclose(found.upper, wanted.upper, atol=apart)


@pytest.mark.parametrize("kind", KINDS)
def test_separable_rows_bound_the_slope_from_below_alone(kind):
    scores = np.linspace(-3, 3, 20)
    y = (scores > 0).astype(int)
    bounds = kind(classes=[0, 1]).fit(scores, y).predict_bounds([-6.0, 0.0, 6.0], level=0.9)
    assert bounds.lower[2, 1] > 0.9
    assert bounds.upper[0, 1] < 0.1
    assert bounds.width[1, 1] > 0.3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [None, 0.5, 0.9])
@pytest.mark.parametrize("n_classes", [2, 3, 26, 210])
def test_bounds_hold_the_probability(kind, level, n_classes):
    scores, y = draw(3 * n_classes, n_classes)
    y[y == 1] = 0  # a class without rows
    model = kind(classes=np.arange(n_classes)).fit(scores, y)
    rows = np.vstack([scores[:50], 20 * scores[:20], np.zeros((1, n_classes))])
    proba, bounds = model.predict_proba(rows), model.predict_bounds(rows, level=level)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert bounds.width[-1].max() > 0.001


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [None, 0.9])
def test_weight_two_is_the_row_twice(kind, level):
    scores, y = draw(60, 3)
    twice = np.arange(60) % 3 == 0
    weighted = kind().fit(scores, y, sample_weight=1.0 + twice)
    repeated = kind().fit(np.vstack([scores, scores[twice]]), np.append(y, y[twice]))
    for one, other in zip(
        weighted.predict_bounds(scores, level=level),
        repeated.predict_bounds(scores, level=level),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [4, 27])
def test_order_and_unit_of_scores_do_not_matter(kind, n_classes):
    scores, y = draw(200, n_classes)
    order = np.random.default_rng(0).permutation(n_classes)
    one = kind(classes=np.arange(n_classes)).fit(scores, y)
    back = np.argsort(order)
    other = kind(classes=np.arange(n_classes)).fit(1000 * scores[:, order], back[y])
    for level in (None, 0.9):
        bounds = other.predict_bounds(1000 * scores[:, order], level=level)
        for side, own in zip(bounds, one.predict_bounds(scores, level=level), strict=True):
            np.testing.assert_allclose(side[:, back], own, atol=1e-5)


def test_a_level_is_wider_than_belief_and_closes_as_rows_are_added():
    widths = []
    for n in (40, 400, 4000):
        scores, y = draw(n, 4)
        model = MatrixCalibrator(classes=range(4)).fit(scores, y)
        level, belief = (
            model.predict_bounds(scores[:40], level=t).width.mean() for t in (0.9, None)
        )
        assert level > belief
        widths.append(level)
    assert widths[0] > 1.5 * widths[1] > 3 * widths[2]


@pytest.mark.parametrize("kind", KINDS)
def test_many_classes_agree_with_the_dense_covariance(kind, monkeypatch):
    """Structures for many classes, forced on a problem that both can do."""
    n_classes = 6
    scores, y = draw(600, n_classes)
    dense = kind(ridge=3.0).fit(scores, y).predict_bounds(scores, level=0.9).width
    monkeypatch.setattr(matrix_likelihood, "_COVARIANCE_CLASSES", 3)
    monkeypatch.setattr(vector_likelihood, "_DENSE_CLASSES", 3)
    structured = kind(ridge=3.0).fit(scores, y).predict_bounds(scores, level=0.9).width
    ratio = structured.mean() / dense.mean()
    assert 0.9 < ratio < 1.6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_level_covers_truths_off_the_temperature_map(kind, n_classes):
    """The simulation itself is in experiments/validity."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(40):
        truth = np.diag(1 + 0.5 * rng.normal(size=n_classes))
        if kind is MatrixCalibrator:
            truth += 0.3 * rng.normal(size=truth.shape) * (1 - np.eye(n_classes))
        offset = 0.5 * rng.normal(size=n_classes)
        scores = 1.5 * rng.normal(size=(80, n_classes))
        p = softmax_in_place(scores @ truth.T + offset)
        y = (p[:60].cumsum(axis=1) < rng.random((60, 1))).sum(axis=1).clip(0, n_classes - 1)
        if n_classes == 2:  # the map sees the difference of the scores alone
            scores = scores - scores.mean(axis=1, keepdims=True)
            p = softmax_in_place(scores @ truth.T + offset)
            y = (p[:60].cumsum(axis=1) < rng.random((60, 1))).sum(axis=1).clip(0, 1)
        model = kind(classes=range(n_classes)).fit(scores[:60], y)
        lower, upper = model.predict_bounds(scores[60:], level=0.9)
        held.append(((lower <= p[60:]) & (p[60:] <= upper)).mean())
    assert np.mean(held) > 0.87
