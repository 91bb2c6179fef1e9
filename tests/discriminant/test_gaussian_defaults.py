"""The defaults: the inscribed box, automatic shrinkage, sets by interval dominance."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import OneHotEncoder

from dubito.decision import interval_dominance, set_utility
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.metrics import u65, u80

KINDS = ("tied", "full", "diag", "spherical")
X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_inscribed_box_is_that_of_standard_errors_over_the_root_of_the_features(kind):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    inscribed = ImpreciseGaussianDiscriminant(covariance_type=kind).fit(X, Y, weight)
    coordinate = clone(inscribed).set_params(box="standard_error").fit(X, Y, weight)
    assert inscribed.box == "inscribed"
    np.testing.assert_allclose(inscribed.half_widths_ * 2, coordinate.half_widths_, rtol=1e-13)


def test_its_corners_lie_at_c_standard_errors():
    model = ImpreciseGaussianDiscriminant(covariance_type="diag", shrinkage=None, c=1.3)
    model.fit(X, Y)
    corners = model.half_widths_ / np.sqrt(model.covariance_ / model.class_counts_[:, None])
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 1.3)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_units_and_constant_features_do_not_matter(kind):
    model = ImpreciseGaussianDiscriminant(covariance_type=kind).fit(X, Y)
    units = np.array([1e-3, 1.0, 50.0, 7.0])
    other = clone(model).fit(np.column_stack([X * units, np.full(len(X), 3.0)]), Y)
    rows = np.column_stack([X * units, np.full(len(X), 3.0)])
    np.testing.assert_allclose(
        other.predict_bounds(rows).lower, model.predict_bounds(X).lower, atol=1e-9
    )
    np.testing.assert_array_equal(other.predict_set(rows), model.predict_set(X))


@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_those_of_interval_dominance(kind):
    model = ImpreciseGaussianDiscriminant(covariance_type=kind, c=2.0).fit(X[::3], Y[::3])
    sets, published = model.predict_set(X), model.predict_set(X, "maximality")
    np.testing.assert_array_equal(sets, interval_dominance(model.predict_bounds(X)))
    assert (published <= sets).all()
    np.testing.assert_array_equal(published, model.critical_c(X) <= model.c_)


def test_maximality_is_interval_dominance_for_two_classes():
    rows, labels = load_breast_cancer(return_X_y=True)
    model = ImpreciseGaussianDiscriminant(c=2.0).fit(rows[:60], labels[:60])
    sets = model.predict_set(rows)
    assert 1.02 < sets.sum(axis=1).mean() < 1.5
    np.testing.assert_array_equal(sets, model.predict_set(rows, "maximality"))


@pytest.mark.parametrize("kind", KINDS)
def test_more_features_than_rows_give_no_warning(kind):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 5)
    rows = rng.normal(size=(15, 40)) + 1.5 * labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ImpreciseGaussianDiscriminant(covariance_type=kind).fit(rows, labels)
        bounds, proba = model.predict_bounds(rows), model.predict_proba(rows)
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()
    assert model.score(rows, labels) > 0.9


def test_one_hot_features_and_a_class_of_one_row():
    rng = np.random.default_rng(1)
    labels = np.append(rng.integers(2, size=80), 2)
    words = np.column_stack([(labels + (rng.random(81) < 0.3)) % 3, rng.integers(4, size=81)])
    rows = np.hstack([OneHotEncoder(sparse_output=False).fit_transform(words), words[:, :1] * 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ImpreciseGaussianDiscriminant().fit(rows, labels)
    bounds = model.predict_bounds(rows)
    assert np.isfinite(bounds.upper).all()
    assert model.score(rows, labels) > 0.6
    # The class of one row is known least: its mean has the widest box.
    assert model.half_widths_[2].max() > 5 * model.half_widths_[:2].max()


def test_a_search_may_take_less_with_many_features():
    model = ImpreciseGaussianDiscriminant()
    for features, most in ((3, 1000), (64, 1000), (640, 10), (5000, 1)):
        model.n_features_in_ = features
        assert model._search_limits().max_subproblems == most
    assert model.set_params(max_subproblems=7)._search_limits().max_subproblems == 7


@pytest.mark.parametrize("load", [load_digits, load_breast_cancer, load_wine])
def test_sets_are_worth_those_of_shrunken_lda(load):
    rows, labels = load(return_X_y=True)
    worth = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[: len(labels) // 4], order[len(labels) // 4 :][:400]
        model = ImpreciseGaussianDiscriminant().fit(rows[train], labels[train])
        rival = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        proba = rival.fit(rows[train], labels[train]).predict_proba(rows[test])
        worth.append(
            [
                u(labels[test], sets)
                for u in (u65, u80)
                for sets in (
                    model.predict_set(rows[test]),
                    model.predict_set(rows[test], "set_utility", utility=u.__name__),
                    set_utility(proba, u.__name__),
                )
            ]
        )
    plain_65, ours_65, theirs_65, plain_80, ours_80, theirs_80 = np.mean(worth, axis=0)
    assert min(plain_65, ours_65) > theirs_65 - 0.008
    assert min(plain_80, ours_80) > theirs_80 - 0.008
