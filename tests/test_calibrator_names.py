"""A parameter that takes a calibrator takes its name too, everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dubito import (
    CalibratedClassifier,
    EvidentialFusion,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
)
from dubito.calibration import BetaCalibrator, EvidentialJointCalibrator

X, Y = load_iris(return_X_y=True)
MEMBERS = [("bayes", GaussianNB()), ("linear", LogisticRegression(max_iter=1000))]

#: A model for a calibrator or its name; the second is that calibrator as an object.
MODELS = {
    "calibrated": (lambda c: CalibratedClassifier(GaussianNB(), c), BetaCalibrator()),
    "independent": (
        lambda c: EvidentialFusion(MEMBERS, method="independent", calibrator=c),
        BetaCalibrator(),
    ),
    "joint": (lambda c: EvidentialFusion(MEMBERS, calibrator=c), EvidentialJointCalibrator()),
    "internal": (
        lambda c: NestedDichotomyClassifier(internal=c, random_state=0),
        BetaCalibrator(),
    ),
    "external": (
        lambda c: NestedDichotomyClassifier(external=c, random_state=0),
        BetaCalibrator(input="logits"),
    ),
    "ensemble": (
        lambda c: NestedDichotomyEnsemble(external=c, n_estimators=2, random_state=0),
        BetaCalibrator(input="logits"),
    ),
}
NAMES = {BetaCalibrator: "beta", EvidentialJointCalibrator: "evidential-joint"}


@pytest.mark.parametrize("kind", MODELS)
def test_a_name_is_the_calibrator_with_its_defaults(kind):
    model, calibrator = MODELS[kind]
    by_name = model(NAMES[type(calibrator)]).fit(X, Y)
    by_object = model(calibrator).fit(X, Y)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_object.predict_proba(X))


@pytest.mark.parametrize("kind", MODELS)
def test_unknown_names_are_refused_with_the_known_ones(kind):
    model, _ = MODELS[kind]
    with pytest.raises(ValueError, match=r"'evidential-bins', .*'platt', .*Got 'bayes' instead"):
        model("bayes").fit(X, Y)
