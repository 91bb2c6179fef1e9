"""Properties of the predictions of every estimator.

The probability lies between the bounds. Bounds at confidence levels are nested, or the level is
refused with an alternative. Parameters changed after `fit` have no effect before the next one.
"""

import importlib
import inspect
import re
from copy import deepcopy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import dubito
from dubito import NotSupportedError, calibration
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialIsotonicCalibrator,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
)
from dubito.calibration.base import BaseCalibrator
from dubito.conformal import ConformalClassifier, NoveltyAwareClassifier
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.pipeline import CautiousPipeline, RejectClassifier
from dubito.testing.calibrators import draw_scores

#: Number of rows by number of classes: many, few, and very few for each class.
PROBLEMS = {2: 80, 3: 60, 6: 48}
LEVELS = (0.5, 0.9, 0.99)
ROUNDING = 1e-9


def linear():
    return LogisticRegression(max_iter=1000)


def members():
    return [("linear", linear()), ("bayes", GaussianNB())]


CALIBRATORS = {
    name: kind
    for name, kind in vars(calibration).items()
    if inspect.isclass(kind) and issubclass(kind, BaseCalibrator)
}

CLASSIFIERS = {
    "calibrated": lambda: CalibratedClassifier(linear()),
    "calibrated folds": lambda: CalibratedClassifier(
        GaussianNB(), EvidentialIsotonicCalibrator(), cv=3, ensemble=True
    ),
    "joint": lambda: EvidentialFusion(members(), cv=3),
    "independent": lambda: EvidentialFusion(members(), method="independent", cv=3),
    "dempster": lambda: EvidentialFusion(
        members(), method="independent", rule="dempster", cv=3, discount=0.1
    ),
    "masses": lambda: EvidentialFusion(
        [("a", EvidentialClassifier(linear())), ("b", EvidentialClassifier(linear()))],
        method="masses",
    ),
    "evidence": lambda: EvidentialClassifier(linear()),
    "reject": lambda: RejectClassifier(CalibratedClassifier(linear(), "platt")),
    "discriminant": ImpreciseGaussianDiscriminant,
    "nested": lambda: NestedDichotomyClassifier(random_state=0),
    "nested, nodes": lambda: NestedDichotomyClassifier(
        internal=EvidentialLogisticCalibrator(), random_state=0
    ),
    "nested, whole tree": lambda: NestedDichotomyClassifier(external="vector", random_state=0),
    "nested, several": lambda: NestedDichotomyEnsemble(n_estimators=2, random_state=0),
    "nested, means": lambda: NestedDichotomyEnsemble(
        NestedDichotomyClassifier(internal=EvidentialLogisticCalibrator()),
        n_estimators=2,
        pooling="arithmetic",
        external=None,
        random_state=0,
    ),
    "conformal": lambda: ConformalClassifier(linear()),
    "conformal by class": lambda: ConformalClassifier(
        GaussianNB(), score="cumulative", class_conditional=True
    ),
    "conformal, random": lambda: ConformalClassifier(
        GaussianNB(), score="cumulative", randomized=True, random_state=0
    ),
    "conformal, full": lambda: ConformalClassifier(GaussianNB(), cv="full"),
    "novelty": lambda: NoveltyAwareClassifier(linear(), rate=0.2),
    "novelty, calibrated": lambda: NoveltyAwareClassifier(
        CalibratedClassifier(linear(), EvidentialMultinomialCalibrator()), rate=0.2
    ),
    "novelty, conformal": lambda: NoveltyAwareClassifier(ConformalClassifier(linear()), rate=0.2),
    "pipeline": lambda: CautiousPipeline(
        [
            ("scale", StandardScaler()),
            ("model", CalibratedClassifier(linear(), EvidentialMultinomialCalibrator())),
        ]
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore")  # very few rows: many warnings


def features(n_classes):
    """Return rows and labels of overlapping classes, and rows to predict, near and far."""
    X, y = make_classification(
        PROBLEMS[n_classes], 4, n_informative=4, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, class_sep=0.8, random_state=0,
    )  # fmt: skip
    return X, y, np.concatenate([X[:10], 5 * X[10:13]])


def scores(name, n_classes):
    """Return scores and labels, and scores to predict, near and far."""
    drawn, y = draw_scores(PROBLEMS[n_classes], n_classes)
    if name == EvidentialJointCalibrator.__name__:
        drawn = np.stack([drawn, draw_scores(len(y), n_classes, seed=1)[0]], axis=1)
    return drawn, y, np.concatenate([drawn[:10], 4 * drawn[10:13]])


@cache
def fitted(name, n_classes):
    if name in CALIBRATORS:
        X, y, new = scores(name, n_classes)
        return CALIBRATORS[name]().fit(X, y), new
    X, y, new = features(n_classes)
    return CLASSIFIERS[name]().fit(X, y), new


def predicted(name, n_classes, level):
    """Return bounds at a level and the probabilities."""
    model, new = fitted(name, n_classes)
    return model.predict_bounds(new, level=level), model.predict_proba(new)


everywhere = pytest.mark.parametrize("n_classes", PROBLEMS)
every_model = pytest.mark.parametrize("name", [*CALIBRATORS, *CLASSIFIERS])


@everywhere
@every_model
def test_the_probability_lies_between_the_bounds(name, n_classes):
    (lower, upper), proba = predicted(name, n_classes, None)
    assert (lower <= proba + ROUNDING).all()
    assert (proba <= upper + ROUNDING).all()


#: Parameters that predictions read, by class, and why a change of them acts without a new fit.
READ_BY_PREDICTIONS = {
    **{kind: {"input"} for kind in CALIBRATORS.values()},  # says what the given scores are
    EvidentialJointCalibrator: {"input", "n_jobs"},
    CautiousPipeline: {"steps"},  # scikit-learn's pipelines hold the fitted steps there
    RejectClassifier: {"cost", "loss", "strategy", "reject_label"},  # nothing is fitted to them
    NoveltyAwareClassifier: {"rate"},  # nothing is fitted to it
    # How long, and with how many jobs, a prediction may take:
    ConformalClassifier: {"max_refits", "n_jobs"},
    ImpreciseGaussianDiscriminant: {"max_subproblems", "n_jobs"},
    NestedDichotomyClassifier: {"n_jobs"},
    NestedDichotomyEnsemble: {"n_jobs"},
}

#: Other values of parameters whose tags are read whenever those of the model are.
OTHER_VALUES = {
    "estimator": BaseEstimator(),
    "detector": BaseEstimator(),
    "estimators": [("other", BaseEstimator())],
}


def predictions(model, new):
    """Return all predictions of a model, as arrays by the name of the method."""
    found = {"tag": model.__sklearn_tags__().has_bounds}
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_set",
                   "predict_contour", "familiarity", "critical_c", "conflict"):  # fmt: skip
        if hasattr(model, method):
            found[method] = np.asarray(getattr(model, method)(new))
    for level in (None, 0.9):
        try:
            found[f"bounds {level}"] = np.stack([*model.predict_bounds(new, level=level)])
        except NotSupportedError:
            found[f"bounds {level}"] = None
    if hasattr(model, "predict_mass"):
        found["mass"] = model.predict_mass(new).mass
    if not isinstance(model, BaseCalibrator):
        found["maximal"] = model.predict_set(new, "maximality")
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@every_model
def test_parameters_changed_after_fit_do_not_change_predictions(name, n_classes):
    model, new = fitted(name, n_classes)
    expected = predictions(model, new)
    parameters = set(inspect.signature(type(model).__init__).parameters) - {"self"}
    changed = deepcopy(model)
    for parameter in parameters - READ_BY_PREDICTIONS.get(type(model), set()):
        setattr(changed, parameter, OTHER_VALUES.get(parameter, object()))
    found = predictions(changed, new)
    assert found.keys() == expected.keys()
    for method, values in expected.items():
        np.testing.assert_array_equal(found[method], values, err_msg=method)


@everywhere
@every_model
def test_bounds_at_levels_are_nested_or_refused_with_an_alternative(name, n_classes):
    try:
        found = [predicted(name, n_classes, level) for level in LEVELS]
    except NotSupportedError as error:
        assert re.search(r"\bUse \w|level=None|coverage=", str(error)), str(error)  # noqa: PT017
        return
    for (bounds, proba), level in zip(found, LEVELS, strict=True):
        assert bounds.level == level
        assert (bounds.lower <= proba + ROUNDING).all()
        assert (proba <= bounds.upper + ROUNDING).all()
    for (inner, _), (outer, _) in pairwise(found):
        assert (outer.lower <= inner.lower + ROUNDING).all()
        assert (inner.upper <= outer.upper + ROUNDING).all()


def test_every_estimator_with_bounds_is_tested():
    public = {
        thing
        for package in dubito._PACKAGES
        for thing in vars(importlib.import_module(f"dubito.{package}")).values()
        if inspect.isclass(thing) and hasattr(thing, "predict_bounds")
    }
    listed = {type(make()) for make in CLASSIFIERS.values()} | set(CALIBRATORS.values())
    assert {kind for kind in public if kind.__module__.startswith("dubito.")} <= listed | {
        BaseCalibrator
    }
