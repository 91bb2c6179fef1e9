"""Errors of the imprecise discriminant, and their messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from dubito import NotSupportedError

from reference.discriminant import draw_classes
from reference.published import published

X, Y = draw_classes(np.random.default_rng(0), 4, (40, 50, 60), condition=100)


REFUSED = {
    "nan": ([[0.0, np.nan], [1.0, 2.0], [3.0, 4.0]], [0, 1, 0], "NaN"),
    "infinite": ([[0.0, 1.0], [np.inf, 2.0], [3.0, 4.0]], [0, 1, 0], "infinity"),
    "one class": ([[0.0], [1.0]], ["a", "a"], "one class, .*'a'.*at least two"),
    "no rows": (np.zeros((0, 2)), [], "0 sample"),
    "no features": (np.zeros((3, 0)), [0, 1, 0], "0 feature"),
    "lengths": ([[0.0], [1.0], [2.0]], [0, 1], "inconsistent"),
    "a real target": ([[0.0], [1.0], [2.0]], [0.5, 1.5, 2.25], "continuous"),
    "flat": ([0.0, 1.0, 2.0], [0, 1, 0], "Reshape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_cannot_be_fitted(case):
    rows, labels, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        published().fit(rows, labels)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        published().fit(csr_matrix(X), Y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        published().fit(X, Y).predict_set(csr_matrix(X), "maximality")


METHODS = ["predict", "predict_proba", "predict_log_proba", "predict_bounds", "predict_set"]
METHODS += ["log_density_bounds", "critical_c"]


@pytest.mark.parametrize("name", METHODS)
def test_rows_that_cannot_be_predicted_for(name):
    model = published()
    with pytest.raises(NotFittedError):
        getattr(model, name)(X)
    ask = getattr(model.fit(X, Y), name)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        ask(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        ask(np.where(X.mean() < X, np.nan, X))
    with pytest.raises(ValueError, match="infinity"):
        ask(np.where(X.mean() < X, np.inf, X))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("c", -0.1),
        ("c", "best"),
        ("c", None),
        ("c", np.nan),
        ("c", [-1.0, 2.0]),
        ("c", []),
        ("box", "round"),
        ("covariance_type", "linear"),
        ("prior_imprecision", -1.0),
        ("covariance_imprecision", -1.0),
        ("shrinkage", 1.5),
        ("shrinkage", "oas"),
        ("tol", -1e-4),
        ("divisor", "n"),
        ("scoring", "accuracy"),
        ("max_subproblems", 0),
        ("n_jobs", "all"),
        ("priors", [0.5, 0.5]),
        ("priors", [0.5, 0.3, 0.1]),
        ("priors", [1.5, -0.3, -0.2]),
        ("priors", [[0.5, 0.4], [0.1, 0.9], [0.1, 0.9]]),
        ("priors", [[0.5, 0.6], [0.4, 0.9], [0.3, 0.9]]),
        ("priors", [[0.0, 0.2], [0.0, 0.3], [0.1, 0.4]]),
        ("priors", "uniform"),
        ("priors", {0: 0.5, 1: 0.5}),
    ],
)
def test_parameters_that_make_no_sense(parameter, value):
    with pytest.raises((ValueError, TypeError), match=parameter.replace("priors", "prior")):
        published(**{parameter: value}).fit(X, Y)


def test_rules_losses_and_paths_that_make_no_sense():
    model = published().fit(X, Y)
    with pytest.raises(ValueError, match=r"rule must be one of .*'maximality'.*'majority'"):
        model.predict_set(X, rule="majority")
    with pytest.raises(TypeError, match="rule"):
        model.predict_set(X, rule=3)
    with pytest.raises(ValueError, match="loss"):
        model.predict_set(X, "maximality", loss=np.eye(4))
    with pytest.raises(ValueError, match="loss"):
        model.predict_set(X, rule="maximality", loss=[[0, np.nan, 1]])
    with pytest.raises(TypeError, match="cost"):
        model.predict_set(X, cost=3)
    for cs in ([-1.0], [], [np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="cs"):
            model.c_path(X, Y, cs)
    with pytest.raises(ValueError, match="rows"):
        model.c_path(X, Y[:-1])
    for limit in (-1.0, np.nan):
        with pytest.raises(ValueError, match="max_c"):
            model.critical_c(X, max_c=limit)


def test_a_level_is_refused_with_the_way_out():
    model = published().fit(X, Y)
    for ask in (model.predict_bounds, model.predict_set):
        with pytest.raises(NotSupportedError, match=r"c standard errors.*CalibratedClassifier"):
            ask(X, level=0.9)
        with pytest.raises(ValueError, match=r"For 90 % pass 0.9"):
            ask(X, level=90)


def test_weights_that_make_no_sense():
    model = published()
    for weight in (-np.ones(len(Y)), np.ones(3), np.full(len(Y), np.nan), np.zeros(len(Y))):
        with pytest.raises(ValueError, match="weight"):
            model.fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"weight.*class|class.*weight"):
        model.fit(X, Y, sample_weight=Y != 1)
