"""`predict_set` uses the same default rule in every class: interval dominance on its bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from dubito import NotSupportedError
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    VennAbersCalibrator,
)
from dubito.conformal import ConformalClassifier, NoveltyAwareClassifier
from dubito.decision import choose_set, interval_dominance
from dubito.decision.rules import RULES
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.pipeline import CautiousPipeline

X, Y = load_iris(return_X_y=True)
TRAIN = np.arange(len(Y)) % 3 == 0
LOSS = [[0, 1, 5], [1, 0, 1], [5, 1, 0], [0.7, 0.7, 0.7]]
INNER = EvidentialLogisticCalibrator()
TREE = NestedDichotomyClassifier(internal=INNER, random_state=0)

MODELS = {
    "calibrated": CalibratedClassifier(GaussianNB()),
    "calibrated-multinomial": CalibratedClassifier(GaussianNB(), EvidentialMultinomialCalibrator()),
    "calibrated-venn-abers": CalibratedClassifier(GaussianNB(), VennAbersCalibrator()),
    "fusion": EvidentialFusion([("b", GaussianNB()), ("l", LogisticRegression(max_iter=500))]),
    "fusion-independent": EvidentialFusion(
        [("b", GaussianNB()), ("l", LogisticRegression(max_iter=500))], method="independent"
    ),
    "evidential": EvidentialClassifier(LogisticRegression(max_iter=500)),
    "discriminant": ImpreciseGaussianDiscriminant(c=2.0),
    "discriminant-full": ImpreciseGaussianDiscriminant(c=2.0, covariance_type="full"),
    "tree": TREE,
    "tree-external": NestedDichotomyClassifier(
        external=EvidentialMultinomialCalibrator(), random_state=0
    ),
    "ensemble": NestedDichotomyEnsemble(TREE, n_estimators=2, pooling="arithmetic", random_state=0),
    "novelty": NoveltyAwareClassifier(ImpreciseGaussianDiscriminant(c=2.0)),
    "pipeline": CautiousPipeline(
        [("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=2.0))]
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param].fit(X[TRAIN], Y[TRAIN])


def test_the_default_is_interval_dominance_on_the_bounds(fitted):
    rows = X[~TRAIN]
    bounds = fitted.predict_bounds(rows)
    expected = interval_dominance(bounds)
    np.testing.assert_array_equal(fitted.predict_set(rows), expected)
    np.testing.assert_array_equal(fitted.predict_set(rows, rule="interval_dominance"), expected)
    np.testing.assert_array_equal(
        fitted.predict_set(rows, loss=LOSS), interval_dominance(bounds, LOSS)
    )


def test_named_rules_are_those_of_choose_set(fitted):
    rows = X[~TRAIN][::5]
    bounds = fitted.predict_bounds(rows)
    for name in RULES:
        by_name = fitted.predict_set(rows, rule=name)
        if name == "maximality":  # some models use more information than their bounds
            assert (by_name <= choose_set(bounds, name)).all()
            assert by_name.any(axis=1).all()
        else:
            np.testing.assert_array_equal(by_name, choose_set(bounds, name))


def test_a_loss_is_read_by_the_names_of_its_columns_and_rows(fitted):
    rows = X[~TRAIN][::5]
    loss = pd.DataFrame(LOSS, index=["a", "b", "c", "d"], columns=[0, 1, 2])
    np.testing.assert_array_equal(
        fitted.predict_set(rows, loss=loss[[2, 0, 1]]), fitted.predict_set(rows, loss=LOSS)
    )
    naming = loss.iloc[:3].set_axis([0, 1, 2])
    for rule in ("interval_dominance", "maximality"):
        np.testing.assert_array_equal(
            fitted.predict_set(rows, rule, loss=naming.loc[[1, 2, 0], [0, 2, 1]]),
            fitted.predict_set(rows, rule, loss=LOSS[:3]),
        )
    with pytest.raises(ValueError, match="the columns of loss are 0, 1, 3; name them after"):
        fitted.predict_set(rows, loss=loss.set_axis([0, 1, 3], axis=1))
    with pytest.raises(TypeError, match=r"Pass the array loss.to_numpy\(\)"):
        interval_dominance(fitted.predict_bounds(rows), naming.loc[[1, 2, 0]])


def test_a_coverage_needs_conformal_p_values(fitted):
    with pytest.raises(NotSupportedError, match=r"ConformalClassifier\(model\)"):
        fitted.predict_set(X, coverage=0.9)


def test_calibrators_use_the_same_default():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1, 2], 20)
    scores = rng.normal(size=(60, 2, 3)) + 2 * np.eye(3)[labels][:, None, :]
    for calibrator, table in (
        (EvidentialJointCalibrator(), scores),
        (EvidentialMultinomialCalibrator(), scores[:, 0]),
    ):
        model = calibrator.fit(table, labels)
        expected = interval_dominance(model.predict_bounds(table))
        np.testing.assert_array_equal(model.predict_set(table), expected)


def test_conformal_sets_have_coverage_unless_a_rule_is_named():
    model = ConformalClassifier(GaussianNB()).fit(X[TRAIN], Y[TRAIN])
    rows = X[~TRAIN]
    np.testing.assert_array_equal(model.predict_set(rows), model.predict_set(rows, coverage=0.9))
    np.testing.assert_array_equal(
        model.predict_set(rows, rule="interval_dominance"),
        interval_dominance(model.predict_bounds(rows)),
    )
