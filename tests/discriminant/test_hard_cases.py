"""Cases that once went wrong: rounding taken for proof, corners without slope, priors of zero."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dubito._kernels.box_farthest_compiled import farthest
from dubito._kernels.box_nearest_compiled import nearest
from dubito._kernels.diagonal_majorant import diagonal_majorants
from dubito._kernels.diagonal_share_compiled import share_needed
from dubito.discriminant import UnsettledWarning

from reference.published import published


def at(model, c, rows):
    """Sets of a fitted model at another c."""
    kept = model.c_
    model.c_ = c
    sets = model.predict_set(rows, "maximality")
    model.c_ = kept
    return sets


@pytest.mark.parametrize("seed", [2271, *range(60)])
def test_critical_c_of_rows_at_a_class_mean(seed):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 2, 8)]
    X = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 3)) + rng.normal(size=(2, 3))[y]
    model = published(box="scaled", priors=[0.2, 0.8]).fit(X, y)
    mean = model.means_[1:]
    for k, critical in enumerate(model.critical_c(mean)[0]):
        if critical > 0:
            assert not at(model, critical * (1 - 1e-6), mean)[0, k]
            assert at(model, critical * (1 + 1e-6), mean)[0, k]


def test_a_corner_along_which_nothing_grows_is_not_the_last_word():
    values = np.random.default_rng(0).normal(size=40) + np.arange(40) % 2
    X = np.column_stack([values, -values])
    model = published(priors=[0.2, 0.8]).fit(X, np.arange(40) % 2)
    mean = model.means_[1:]
    entry = model.critical_c(mean)
    assert np.isfinite(entry).all()
    np.testing.assert_allclose(entry, model.critical_c(mean, max_c=1e4), rtol=1e-9)


@pytest.mark.parametrize("lower", np.arange(1, 100, 7) / 100)
def test_a_lower_prior_of_zero_stays_zero(lower):
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 2)) + 12 * y[:, None]
    model = published(priors=[[0, 1 - lower], [lower, 1]]).fit(X, y)
    assert model.prior_bounds_.lower[0, 0] == 0
    assert model.predict_set(X[:1], "maximality").all()
    assert model.predict_set(X[:1], "maximality", loss=1 - np.eye(2)).all()
    np.testing.assert_array_equal(model.predict_bounds(X[:1]).upper, 1)


@pytest.mark.parametrize("p", [20, 60, 120])
@pytest.mark.parametrize("singular", [False, True])
def test_nearest_points_of_many_features(p, singular):
    rng = np.random.default_rng(p)
    for _ in range(8):
        turned = np.linalg.qr(rng.normal(size=(p, p)))[0]
        spread = np.geomspace(1, 10 ** rng.uniform(0, 4), p)
        spread[: p // 3 if singular else 0] = np.inf
        root = (turned / np.sqrt(spread)).T
        quad, point = root.T @ root, rng.normal(size=p) * rng.choice([0.3, 1, 3, 30])
        pull, distance = quad @ point, float(point @ quad @ point)
        half_width = 10 ** rng.uniform(-1.5, 0.8)
        largest = (distance**0.5 + half_width * np.abs(quad).sum() ** 0.5) ** 2
        y, slope = np.empty(p), np.empty(p)
        value, gap = nearest(
            distance, pull, quad, half_width, largest, y, slope,
            np.empty((p + 4, p)), np.empty(p, dtype=np.intp),
        )  # fmt: skip
        known = lsq_linear(root, root @ point, bounds=(-half_width, half_width), method="bvls")
        assert np.abs(y).max() <= half_width
        assert gap <= 1e-11 * (1 + value)
        assert abs(value - 2 * known.cost) <= 1e-9 * (1 + value)


def test_a_search_given_up_enters_a_class_too_early_rather_than_too_late():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 30)) @ (np.eye(30) + 0.3 * rng.normal(size=(30, 30)))
    X += np.eye(3, 30)[y]
    exact = published(max_nodes=100_000).fit(X, y)
    hasty = published(max_nodes=1).fit(X, y)
    known = exact.critical_c(X[:10])
    assert exact.n_unsettled_ == 0
    with pytest.warns(UnsettledWarning, match="ran into max_nodes=1"):
        early = hasty.critical_c(X[:10])
    assert (early <= known * (1 + 1e-9)).all()
    assert (early < known * 0.999).any()


def far_corner(distance, pull, quad, half_width, target=np.inf):
    """Ask the kernel for the farthest corner."""
    p = len(pull)
    others = np.abs(quad).sum(axis=1) - np.diagonal(quad)
    guards = np.stack([others, diagonal_majorants(quad[None])[0]])
    return farthest(
        distance, pull, quad, guards, half_width, target, 10_000, np.empty(p),
        np.empty((p + 6, p)), np.empty((p, p + 2)), np.empty((p + 2, p), dtype=np.int8),
    )  # fmt: skip


def test_farthest_corners_of_features_that_cancel():
    # Each feature with its opposite: all sums of rows are zero, and Q is singular.
    rng = np.random.default_rng(5)
    for _ in range(2000):
        q = int(rng.integers(1, 4))
        half = np.round(rng.normal(size=(q, q)), rng.integers(0, 4))
        root = np.vstack([half, -half, *([rng.normal(size=(1, q))] * rng.integers(0, 2))])
        root = root[rng.permutation(len(root))]
        quad, place = root @ root.T, rng.normal(size=q) * rng.choice([0, 1e-6, 0.1, 1])
        pull, distance, half_width = root @ place, float(place @ place), 10 ** rng.uniform(-1, 2)
        corners = half_width * np.array(list(itertools.product([-1.0, 1.0], repeat=len(root))))
        known = (distance - 2 * corners @ pull + ((corners @ quad) * corners).sum(axis=1)).max()
        value, bound, _ = far_corner(distance, pull, quad, half_width)
        assert abs(value - known) <= 1e-11 * known
        assert bound >= known * (1 - 1e-12)
        assert far_corner(distance, pull, quad, half_width, target=known * (1 - 1e-6))[0] >= (
            known * (1 - 1e-6)
        )


def test_a_share_of_the_diagonal_is_above_what_is_open():
    rng = np.random.default_rng(0)
    two = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert share_needed(two, np.full(2, 2.1), np.zeros(2, np.int8), np.empty((4, 2))) >= 1 / 1.05
    for _ in range(300):
        p = int(rng.integers(2, 12))
        root = rng.normal(size=(p, int(rng.integers(1, p + 1)))) * 10 ** rng.uniform(-2, 2, (p, 1))
        quad = root @ root.T
        lift = diagonal_majorants(quad[None])[0]
        side = rng.integers(-1, 2, size=p).astype(np.int8)
        share = share_needed(quad, lift, side, np.empty((p + 2, p)))
        assert 0 < share <= 1
        left = side == 0
        if left.any():
            scale = np.sqrt(lift[left])
            relative = quad[np.ix_(left, left)] / np.outer(scale, scale)
            assert np.linalg.eigvalsh(relative)[-1] <= share * (1 + 1e-12)


def test_a_loss_among_many_classes_is_settled_like_the_classes_themselves():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(40), 12)
    X = rng.normal(size=(40, 5))[y] * 2 + rng.normal(size=(480, 5))
    for options in ({}, {"prior_imprecision": 1.0}):
        model = published(c=1.0, **options).fit(X, y)
        by_loss = model.predict_set(X[:60], "maximality", loss=1 - np.eye(40))
        np.testing.assert_array_equal(by_loss, model.predict_set(X[:60], "maximality"))
