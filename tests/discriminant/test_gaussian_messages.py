"""Warnings of the imprecise discriminant."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from dubito.discriminant import (
    SingularCovarianceWarning,
    WideBoxWarning,
)

from reference.published import published

X, y = load_iris(return_X_y=True)


def fitted(**options):
    return published(**options).fit(X, y)


def said_in_fit(rows, labels, **options):
    """Return the kinds of warnings that fit gives."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        published(**options).fit(rows, labels)
    return [warning.category for warning in said]


def test_a_raw_box_wider_than_a_feature_warns():
    tumours = load_breast_cancer(as_frame=True)
    with pytest.warns(WideBoxWarning, match="'fractal dimension error'.* consider box='"):
        published().fit(tumours.data, tumours.target)


@pytest.mark.parametrize(
    "options", [{"box": "scaled"}, {"box": "standard_error"}, {"c": 0.0}, {"c": "auto"}]
)
def test_other_boxes_are_not(options):
    tumours = load_breast_cancer()
    assert said_in_fit(tumours.data, tumours.target, **options) == []


@pytest.mark.parametrize("kind", ["tied", "full", "diag"])
def test_a_left_out_feature_that_separates_classes_is_named(kind):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(known=y)
    with pytest.warns(SingularCovarianceWarning, match="feature 'known' without spread"):
        published(covariance_type=kind).fit(frame, y)


def test_a_constant_feature_gives_no_warning():
    assert said_in_fit(np.column_stack([X, np.ones(len(X))]), y) == []


def test_an_option_of_another_rule_is_refused():
    with pytest.raises(TypeError, match="'maximality' takes loss= alone; got utility"):
        fitted().predict_set(X, "maximality", utility="u65")
    assert fitted().predict_set(X, "set_utility", utility="u65").any(axis=1).all()


def test_a_class_without_weight_is_named():
    labels = np.array(["a", "b", "c"])[y]
    with pytest.raises(ValueError, match="all rows of class 'b' have weight 0"):
        published().fit(X, labels, sample_weight=1.0 * (labels != "b"))


@pytest.mark.parametrize("max_c", [-1, np.nan])
def test_a_largest_c_must_be_a_number_not_negative(max_c):
    with pytest.raises(ValueError, match="max_c must be a number that is not negative"):
        fitted().critical_c(X, max_c=max_c)


@pytest.mark.parametrize(
    "options", [{"tol": 1.0}, {"n_jobs": 0}, {"c": -1.0}, {"c": [1.0, -2.0]}, {"c": []}]
)
def test_parameters_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=r"tol|n_jobs|c"):
        fitted(**options)


def test_priors_by_label_may_be_numbers_and_intervals():
    mixed = fitted(priors={0: 0.3, 1: (0.2, 0.5), 2: (0.2, 0.5)})
    np.testing.assert_allclose(mixed.prior_bounds_.lower, [[0.3, 0.2, 0.2]])
    np.testing.assert_allclose(mixed.prior_bounds_.upper, [[0.3, 0.5, 0.5]])


@pytest.mark.parametrize("kind", ["tied", "full", "diag", "spherical"])
def test_rows_too_far_for_floats_have_vacuous_bounds(kind):
    model = fitted(covariance_type=kind)
    beyond = np.full((1, 4), 1e200)
    bounds = model.predict_bounds(beyond)
    assert (bounds.lower == 0).all()
    assert (bounds.upper == 1).all()
    assert model.predict_set(beyond, "maximality").all()
    assert (model.critical_c(beyond) == 0).all()
