"""The imprecise discriminant at its edges: few rows, no spread, far rows, odd arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dubito.discriminant import (
    SingularCovarianceWarning,
    UnsettledWarning,
    WideBoxWarning,
)

from reference.discriminant import ImpreciseGaussians, draw_between, draw_classes
from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
BOXES = ["raw", "scaled", "standard_error"]


def draw(seed=0, n_features=4, counts=(8, 11, 9)):
    rng = np.random.default_rng([seed, n_features])
    X, y = draw_classes(rng, n_features, counts, condition=100)
    return X, y, draw_between(rng, X, y, 12)


def quietly(model, X, y, **options):
    """Fit where singular covariances are meant to be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularCovarianceWarning)
        return model.fit(X, y, **options)


def assert_sound(model, rows):
    """Nothing is nan, bounds hold the probabilities, sets the most probable class."""
    proba, bounds, density = (
        model.predict_proba(rows),
        model.predict_bounds(rows),
        model.log_density_bounds(rows),
    )
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-9)
    assert (bounds.lower >= 0).all()
    assert (bounds.lower <= proba + 1e-9).all()
    assert (proba <= bounds.upper + 1e-9).all()
    assert (bounds.upper <= 1).all()
    assert np.isfinite(density.lower).all()
    assert (density.lower <= density.upper).all()
    assert not np.isnan(model.predict_log_proba(rows)).any()
    sets, critical = model.predict_set(rows, "maximality"), model.critical_c(rows)
    assert sets[np.arange(len(proba)), proba.argmax(axis=1)].all()
    assert (critical >= 0).all()
    np.testing.assert_array_equal(critical.min(axis=1), 0)
    assert (
        model.predict_set(rows, "maximality", loss=1 - np.eye(len(model.classes_)))
        .any(axis=1)
        .all()
    )


def assert_as_enumerated(model, X, y, rows, **options):
    reference = ImpreciseGaussians(X, y, **options)
    lower, upper = zip(*(reference.log_densities(x) for x in rows), strict=True)
    ours = model.log_density_bounds(rows)
    np.testing.assert_allclose(ours.lower, lower, rtol=1e-8)
    np.testing.assert_allclose(ours.upper, upper, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(
        model.predict_set(rows, "maximality"), [reference.maximal(x) for x in rows]
    )


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_one_row(kind, box):
    X, y, rows = draw()
    X, y = np.vstack([X, X[:1] + 1]), np.r_[y, 3]
    options = {"covariance_type": kind, "box": box, "c": 0.8}
    model = published(**options)
    if kind == "tied":
        model.fit(X, y)
    else:
        with pytest.warns(SingularCovarianceWarning, match="class 3 without spread"):
            model.fit(X, y)
    assert_sound(model, rows)
    assert_as_enumerated(model, X, y, rows, **options)
    if box != "standard_error":
        np.testing.assert_allclose(model.half_widths_[3], 10 * model.half_widths_[1] * 1.1)
    else:  # pooled standard errors, of a class of one row
        assert (model.half_widths_[3] > 2 * model.half_widths_[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_equal_rows(kind):
    X, y, rows = draw()
    X = np.where((y == 1)[:, None], X[y == 1][:1], X)
    options = {"covariance_type": kind, "box": "scaled"}
    model = quietly(published(**options), X, y)
    assert_sound(model, rows)
    assert_as_enumerated(model, X, y, rows, **options)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", ["tied", "full", "diag"])
def test_a_constant_feature_is_nothing(kind, box):
    X, y, rows = draw()
    model = published(covariance_type=kind, box=box, c=2.0).fit(X, y)
    constant = clone(model).fit(np.insert(X, 2, 0.1, axis=1), y)
    assert (constant.rank_ == 4).all()
    for value in (0.1, -7.0, 1e6):  # whatever a new row has there
        wider = np.insert(rows, 2, value, axis=1)
        np.testing.assert_allclose(
            constant.log_density_bounds(wider), model.log_density_bounds(rows), rtol=1e-9
        )
        np.testing.assert_array_equal(
            constant.predict_set(wider, "maximality"), model.predict_set(rows, "maximality")
        )
        np.testing.assert_allclose(
            constant.critical_c(wider), model.critical_c(rows), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("box", BOXES)
def test_a_constant_feature_counts_in_a_sphere(box):
    X, y, rows = draw()
    X = np.insert(X, 2, 3.0, axis=1)
    options = {"covariance_type": "spherical", "box": box}
    model = published(**options).fit(X, y)
    assert_as_enumerated(model, X, y, np.insert(rows, 2, 3.0, axis=1), **options)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_constant_in_one_class(kind, box):
    X, y, rows = draw(1)
    X[y == 0, 1] = 0.5
    options = {"covariance_type": kind, "box": box, "c": 0.5}
    model = published(**options)
    if kind in ("full", "diag"):
        with pytest.warns(SingularCovarianceWarning, match="class 0 has rank 3 of 4"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.rank_, [3, 4, 4])
    else:
        model.fit(X, y)
    assert_sound(model, rows)
    assert_as_enumerated(model, X, y, rows, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", BOXES)
def test_a_copied_feature(kind, box):
    X, y, rows = draw(2)
    X, rows = (np.column_stack([part, 3 * part[:, 0] - 1]) for part in (X, rows))
    options = {"covariance_type": kind, "box": box, "c": 0.5}
    model = quietly(published(**options), X, y)
    assert_as_enumerated(model, X, y, rows, **options)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_more_features_than_rows(kind, box):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(9, 11)), np.repeat([0, 1, 2], 3)
    rows = rng.normal(size=(8, 11))
    options = {"covariance_type": kind, "box": box, "c": 0.4}
    model = quietly(published(**options), X, y)
    if kind in ("tied", "full"):
        np.testing.assert_array_equal(model.rank_, 6 if kind == "tied" else 2)
    assert_sound(model, rows)
    assert_as_enumerated(model, X, y, rows, **options)


def test_hundreds_of_features_and_few_rows():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 200)), np.repeat([0, 1, 2], 10)
    for kind in KINDS:
        for options in ({}, {"shrinkage": "auto"}):
            model = published(
                covariance_type=kind, box="scaled", c=0.01, max_subproblems=5, **options
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsettledWarning)  # boxes of 2**200 vertices
                assert_sound(quietly(model, X, y), X[::10])


def test_no_spread_at_all_leaves_the_priors():
    X, y = np.repeat([[1.0, 2.0], [3.0, 4.0]], [3, 2], axis=0), [0, 0, 0, 1, 1]
    for kind in KINDS:
        model = published(covariance_type=kind)
        with pytest.warns(SingularCovarianceWarning, match="spread"):
            model.fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), [[0.6, 0.4]] * 5)
        np.testing.assert_array_equal(model.predict_set(X, "maximality"), [[True, False]] * 5)
        assert np.isinf(model.critical_c(X)[:, 1]).all()
        even = quietly(clone(model).set_params(priors=[0.5, 0.5]), X, y)
        assert even.predict_set(X, "maximality").all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_between_two_others_of_one_feature(kind):
    X = np.array([[-4.0], [-3.0], [-0.5], [0.5], [3.0], [4.0]])
    model = published(covariance_type=kind, c=1.0).fit(X, [0, 0, 1, 1, 2, 2])
    rows = np.linspace(-5, 5, 41)[:, None]
    assert_sound(model, rows)
    sets = model.predict_set(rows, "maximality")
    np.testing.assert_array_equal(sets, sets[::-1, ::-1])
    assert sets[20].tolist() == [False, True, False]
    np.testing.assert_allclose(
        model.critical_c(rows), model.critical_c(rows)[::-1, ::-1], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_many_classes(kind):
    rng = np.random.default_rng(5)
    X, y = draw_classes(rng, 3, [9] * 25, condition=10)
    rows = draw_between(rng, X, y, 30)
    model = published(covariance_type=kind, c=1.0, box="scaled").fit(X, y)
    assert_sound(model, rows)
    lower, upper = model.log_density_bounds(rows)  # the priors are all alike
    others = np.array([np.delete(lower, k, axis=1).max(axis=1) for k in range(25)]).T
    sets = model.predict_set(rows, "maximality")
    np.testing.assert_array_equal(sets, upper >= others)
    assert 1 < sets.sum(axis=1).mean() < 24


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", BOXES)
def test_rows_far_from_every_class(kind, box):
    X, y, rows = draw(6)
    model = published(covariance_type=kind, box=box, c=2.0).fit(X, y)
    for far in (1e6, 1e30, 1e100):
        beyond = X.mean(axis=0) + far * (rows - X.mean(axis=0))
        assert_sound(model, beyond)
        bounds = model.predict_bounds(beyond)
        assert (bounds.lower.sum(axis=1) <= 1 + 1e-9).all()
        assert (bounds.upper.sum(axis=1) >= 1 - 1e-9).all()
    away = X.mean(axis=0) + 1e4 * X.std(axis=0) * np.sign(rows)
    options = {"covariance_type": kind, "box": box, "c": 2.0}
    reference = ImpreciseGaussians(X, y, **options)
    np.testing.assert_array_equal(
        model.predict_set(away, "maximality"), [reference.maximal(x) for x in away]
    )
    critical = model.critical_c(away)
    assert np.isfinite(critical).all()
    for x, entry in zip(away[:4], critical, strict=False):
        for k in np.flatnonzero(entry):
            assert not reference.at(entry[k] * (1 - 1e-6)).maximal(x)[k]
            assert reference.at(entry[k] * (1 + 1e-6)).maximal(x)[k]


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_and_huge_imprecision(kind):
    X, y, rows = draw(7)
    precise = published(covariance_type=kind, c=0.0).fit(X, y)
    for c in (1e-300, 1e-100, 1e-15):
        model = clone(precise).set_params(c=c).fit(X, y)
        assert_sound(model, rows)
        np.testing.assert_array_equal(
            model.predict_set(rows, "maximality"), precise.predict_set(rows, "maximality")
        )
    for c in (1e15, 1e100):
        model = clone(precise).set_params(c=c).fit(X, y)
        assert_sound(model, rows)
        assert model.predict_set(rows, "maximality").all()


@pytest.mark.parametrize("unit", [1e-100, 1e-20, 1e20, 1e100])
def test_units_out_of_all_proportion(unit):
    X, y, rows = draw(8)
    for kind in KINDS:
        model = published(covariance_type=kind, box="scaled").fit(X, y)
        other = clone(model).fit(X * unit, y)
        assert_sound(other, rows * unit)
        np.testing.assert_array_equal(
            other.predict_set(rows * unit, "maximality"), model.predict_set(rows, "maximality")
        )


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_order_in_memory_and_read_only_arrays(kind):
    X, y, rows = draw()
    model = published(covariance_type=kind, box="scaled").fit(X, y)
    plain = model.predict_bounds(rows)
    for part in (X, y, rows):
        part.flags.writeable = False
    locked = clone(model).fit(np.asfortranarray(X), y)
    np.testing.assert_array_equal(
        locked.predict_set(rows, "maximality"), model.predict_set(rows, "maximality")
    )
    np.testing.assert_allclose(
        locked.predict_bounds(np.asfortranarray(rows)).lower, plain.lower, atol=1e-12
    )
    strided = np.repeat(rows, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(model.predict_bounds(strided).lower, plain.lower)
    single = clone(model).fit(X.astype(np.float32), y).predict_bounds(rows.astype(np.float32))
    assert single.lower.dtype == np.float64
    np.testing.assert_allclose(single.lower, plain.lower, atol=1e-3)
    listed = clone(model).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(
        listed.predict_set(rows.tolist(), "maximality"), model.predict_set(rows, "maximality")
    )


def test_whole_numbers_and_truth_values():
    X = np.array([[0, 1], [1, 3], [2, 0], [5, 6], [6, 4], [8, 8]])
    model = published().fit(X, [False, False, False, True, True, True])
    assert model.predict(X).dtype == bool
    np.testing.assert_array_equal(
        model.predict_set(X, "maximality"),
        clone(model).fit(1.0 * X, [0, 0, 0, 1, 1, 1]).predict_set(X, "maximality"),
    )


def test_weights_between_whole_numbers_and_rows_left_out():
    X, y, rows = draw()
    weight = np.random.default_rng(0).uniform(0.5, 3, size=len(y))
    weight[::5] = 0
    options = {"covariance_type": "full", "box": "scaled", "c": 2.0}
    model = published(**options).fit(X, y, sample_weight=weight)
    assert_as_enumerated(model, X, y, rows, weight=weight, **options)
    kept = weight > 0
    less = clone(model).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(
        less.log_density_bounds(rows), model.log_density_bounds(rows), rtol=1e-9
    )


@pytest.mark.filterwarnings("error::dubito.discriminant.WideBoxWarning")
def test_a_box_wider_than_its_class_warns():
    X, y, _ = draw(9)
    X = (X - X.mean(axis=0)) / X.std(axis=0) * [1e-3, 1.0, 1.0, 1.0]
    model = published(c=1.0)
    with pytest.warns(WideBoxWarning, match=r"feature 0: .*box='inscribed'") as caught:
        model.fit(X, y)
    assert "np." not in str(caught[0].message)
    frame = pd.DataFrame(X, columns=["length", "b", "c", "d"])
    with pytest.warns(WideBoxWarning, match=r"feature 'length': .* for 'length'"):
        model.fit(frame, y)
    for quiet in ({"box": "scaled"}, {"c": "auto"}, {"c": 1e-4}):
        clone(model).set_params(**quiet).fit(X, y)
