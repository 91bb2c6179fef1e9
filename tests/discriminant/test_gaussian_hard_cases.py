"""Cases that once went wrong: rounding taken for proof, corners without slope, priors of zero."""

import numpy as np
import pytest

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


def test_a_corner_without_growth_does_not_end_the_search():
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


def test_an_unsettled_search_enters_a_class_too_early_rather_than_too_late():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 30)) @ (np.eye(30) + 0.3 * rng.normal(size=(30, 30)))
    X += np.eye(3, 30)[y]
    exact = published(max_subproblems=100_000).fit(X, y)
    hasty = published(max_subproblems=1).fit(X, y)
    known = exact.critical_c(X[:10])
    assert exact.n_unsettled_ == 0
    with pytest.warns(UnsettledWarning, match="ran into max_subproblems=1"):
        early = hasty.critical_c(X[:10])
    assert (early <= known * (1 + 1e-9)).all()
    assert (early < known * 0.999).any()


def test_a_loss_among_many_classes_is_settled_like_the_classes_themselves():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(40), 12)
    X = rng.normal(size=(40, 5))[y] * 2 + rng.normal(size=(480, 5))
    for options in ({}, {"prior_imprecision": 1.0}):
        model = published(c=1.0, **options).fit(X, y)
        by_loss = model.predict_set(X[:60], "maximality", loss=1 - np.eye(40))
        np.testing.assert_array_equal(by_loss, model.predict_set(X[:60], "maximality"))
