"""Defaults: which calibrators are used, bounds for decisions, trees of an ensemble."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from dubito.calibration import EvidentialMultinomialCalibrator, PlattCalibrator
from dubito.datasets import make_many_classes
from dubito.decision import reject
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.metrics import expected_calibration_error

from reference.dichotomies import RowRecorder

DIGITS, DIGIT = load_digits(return_X_y=True)
TRAIN, REST = np.arange(0, 1797, 6), np.arange(1, 1797, 3)


def many(n_classes=200, n_rows=10, separation=0.6, seed=0):
    """Return `n_rows` rows of each class, and 1,000 test rows."""
    X, y = make_many_classes(
        4 * n_classes * n_rows, n_classes, 64, separation=separation, random_state=seed
    )
    order = np.argsort(y, kind="stable")
    rank = np.arange(len(y)) - np.searchsorted(y[order], y[order])
    few, rest = order[rank < n_rows], order[rank >= n_rows]
    rest = np.random.default_rng(seed).permutation(rest)[:1000]
    return X[few], y[few], X[rest], y[rest]


# Held-out rows


def test_every_row_is_scored_by_a_tree_fitted_without_it():
    rng = np.random.default_rng(3)
    y = np.arange(90) % 3
    X = np.column_stack([np.arange(90), rng.normal(size=(90, 4)) + np.eye(3, 4)[y]])
    RowRecorder.fitted_rows.clear()
    NestedDichotomyEnsemble(
        NestedDichotomyClassifier(RowRecorder(), structure=(0, (1, 2)), internal=None),
        n_estimators=1,
        random_state=0,
    ).fit(X, y)
    roots = [seen for seen in RowRecorder.fitted_rows if len(seen) > 60]
    assert len(roots) == 6  # one fit to all rows, and five without a fold
    left_out = [set(range(90)) - seen for seen in roots]
    assert sorted(map(len, left_out)) == [0, 18, 18, 18, 18, 18]
    assert set().union(*left_out) == set(range(90))


# A single tree


@pytest.mark.parametrize(
    ("options", "internal", "external"),
    [
        ({}, PlattCalibrator, EvidentialMultinomialCalibrator),
        ({"internal": None}, type(None), type(None)),
        ({"external": None}, type(None), type(None)),
        ({"internal": "platt"}, PlattCalibrator, type(None)),
        (
            {"external": EvidentialMultinomialCalibrator()},
            type(None),
            EvidentialMultinomialCalibrator,
        ),
        (
            {"estimator": LinearSVC(), "external": EvidentialMultinomialCalibrator()},
            PlattCalibrator,
            EvidentialMultinomialCalibrator,
        ),
    ],
    ids=str,
)
def test_naming_one_calibrator_omits_the_other(options, internal, external):
    found = NestedDichotomyClassifier(**options)._calibrators()
    assert type(found.internal) is internal
    assert type(found.external) is external
    assert found.both_auto is (not options)


def test_the_external_slope_is_nearly_optimal():
    """The folds are not known here, but all folds give nearly the same slope."""
    model = NestedDichotomyClassifier(random_state=0).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    scores = model._tree_model.log_proba(DIGITS[REST])

    def loss(slope):
        return -log_softmax(slope * scores, axis=1)[np.arange(len(REST)), DIGIT[REST]].mean()

    best = minimize_scalar(loss, bounds=(0.01, 10), method="bounded").fun
    assert loss(model.external_.slope_) < best + 0.05
    np.testing.assert_allclose(
        model.predict_log_proba(DIGITS[REST]),
        log_softmax(model.external_.slope_ * scores, axis=1),
        rtol=1e-9,
        atol=1e-9,
    )


def test_nodes_are_calibrated_if_the_loss_of_held_out_rows_decreases():
    bayes = NestedDichotomyClassifier(GaussianNB(), random_state=0)
    assert repr(bayes.fit(DIGITS[TRAIN], DIGIT[TRAIN]).internal_) == "SigmoidMaps()"
    X, y, new, truth = many(50, 3, separation=1.0)
    model = NestedDichotomyClassifier(random_state=0).fit(X, y)
    assert repr(model.internal_) == "IdentityMaps()"
    assert expected_calibration_error(truth, model.predict_proba(new), classes=model.classes_) < 0.1


@pytest.mark.parametrize("estimator", [None, GaussianNB()], ids=["logistic", "bayes"])
def test_calibrated_by_default(estimator):
    plain = NestedDichotomyClassifier(estimator, internal=None, random_state=0)
    model = NestedDichotomyClassifier(estimator, random_state=0)
    if estimator is None:
        X, y, new, truth = many()
    else:
        X, y, new, truth = DIGITS[TRAIN], DIGIT[TRAIN], DIGITS[REST], DIGIT[REST]
    errors = [
        expected_calibration_error(truth, one.fit(X, y).predict_proba(new), classes=one.classes_)
        for one in (plain, model)
    ]
    assert errors[0] > 0.15
    assert errors[1] < 0.4 * errors[0]


# Ensembles


def test_two_hundred_classes_of_ten_rows():
    X, y, new, truth = many()
    model = NestedDichotomyEnsemble(random_state=0).fit(X, y)
    proba, bounds = model.predict_proba(new), model.predict_bounds(new)
    right = model.classes_[proba.argmax(axis=1)] == truth
    assert expected_calibration_error(truth, proba, classes=model.classes_) <= 0.03
    for strategy, most in (("pignistic", 0.10), ("pessimistic", 0.15)):
        declined = reject(bounds, 0.2, strategy=strategy)
        assert declined.mean() <= most
        assert (~right[~declined]).mean() < 0.02
        assert (~right[declined]).mean() > 0.2  # the uncertain ones
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()


@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
def test_bounds_are_those_of_the_calibrator_of_the_mean(pooling):
    model = NestedDichotomyEnsemble(n_estimators=3, pooling=pooling, random_state=0)
    model.fit(DIGITS[TRAIN], DIGIT[TRAIN])
    logs = [tree.predict_log_proba(DIGITS[REST]) for tree in model.estimators_]
    pool = np.mean(logs, axis=0)
    if pooling == "arithmetic":
        pool = np.log(np.mean(np.exp(logs), axis=0))
    for level in (None, 0.9):
        bounds = model.predict_bounds(DIGITS[REST], level=level)
        expected = model.external_.predict_bounds(pool, level=level)
        np.testing.assert_allclose(bounds.lower, expected.lower, atol=1e-9)
        np.testing.assert_allclose(bounds.upper, expected.upper, atol=1e-9)


def test_auto_parameters_of_trees_are_chosen_for_the_ensemble():
    few = NestedDichotomyEnsemble(n_estimators=2, random_state=0).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    assert {tree.structure for tree in few.estimators_} == {"centroid_pair"}
    assert all(tree.external_ is None for tree in few.estimators_)
    rows, classes = np.tile(np.eye(201), (2, 1)), np.tile(np.arange(201), 2)
    for structure, chosen in (("auto", "clustered_half"), ("random", "random")):
        tree = NestedDichotomyClassifier(structure=structure)
        many_classes = NestedDichotomyEnsemble(tree, n_estimators=1, temperature=1.0)
        assert many_classes.fit(rows, classes).estimators_[0].structure == chosen
    named = NestedDichotomyClassifier(structure="clustered", internal="platt")
    kept = NestedDichotomyEnsemble(named, n_estimators=2, random_state=0)
    kept.fit(DIGITS[TRAIN], DIGIT[TRAIN])
    assert {tree.structure for tree in kept.estimators_} == {"clustered"}
    assert repr(kept.estimators_[0].internal_) == "SigmoidMaps()"
    bayes = NestedDichotomyEnsemble(GaussianNB(), n_estimators=2, random_state=0)
    assert repr(bayes.fit(DIGITS[TRAIN], DIGIT[TRAIN]).estimators_[0].internal_) == "SigmoidMaps()"


def test_no_row_can_be_held_out():
    X, y = np.eye(6), np.arange(6)
    model = NestedDichotomyEnsemble(n_estimators=2, random_state=0).fit(X, y)
    lower, upper = model.predict_bounds(X)
    assert model.temperature_ == 1.0
    assert (lower == 0).all()
    assert (upper == 1).all()


def test_more_trees_reduce_the_loss():
    X, y, new, truth = many()
    codes = np.searchsorted(np.unique(y), truth)

    def loss(n_trees, structure):
        tree = NestedDichotomyClassifier(structure=structure)
        model = NestedDichotomyEnsemble(tree, n_estimators=n_trees, random_state=0).fit(X, y)
        return -model.predict_log_proba(new)[np.arange(len(codes)), codes].mean()

    five, ten = loss(5, "auto"), loss(10, "auto")
    assert ten < 0.7 * five
    assert ten < 0.6 * loss(10, "clustered")
