"""Logistic nodes in numerically hard cases, each of which once made a solver fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from dubito.datasets import make_many_classes
from dubito.dichotomies import NestedDichotomyClassifier

from reference.dichotomies import newton_logistic


def draw(n=60, p=80, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.integers(0, 2, n)


def deviation(X, y, **options):
    """Return the largest difference of probabilities from those at the optimum."""
    model = NestedDichotomyClassifier(structure=(0, 1), internal=None, **options).fit(X, y)
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    coef, intercept = newton_logistic(dense, y == 1)
    return np.abs(model.predict_proba(X)[:, 1] - expit(dense @ coef + intercept)).max()


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", [(60, 80), (300, 20), (50, 5)])
def test_rows_of_any_scale(shape, scale):
    X, y = draw(*shape)
    assert deviation(X * scale, y) < 1e-5


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("n", [30, 90])
def test_sparse_rows_of_any_scale(n, scale):
    X, y = draw(n, 70)
    X *= np.random.default_rng(0).random(X.shape) < 0.3
    assert deviation(sparse.csr_array(X * scale), y) < 1e-5


def test_an_outlying_row_and_distant_clusters():
    X, y = draw(40, 60, seed=2)
    outlying = X.copy()
    outlying[0] = 1e8
    assert deviation(outlying, y) < 1e-5
    assert deviation(X + 1e5 * (np.arange(40) % 2)[:, None], y) < 1e-4


def test_sparse_rows_with_a_column_far_from_zero():
    X, y = draw(30, 50, seed=3)
    X *= np.random.default_rng(0).random(X.shape) < 0.3
    X[:, 0] = 1e4 + np.random.default_rng(1).normal(size=30)
    assert deviation(sparse.csr_array(X), y) < 1e-4


@pytest.mark.parametrize("internal", [None, "platt"])
def test_single_precision_with_large_columns(internal):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 80)), rng.integers(0, 5, 60)
    times = np.column_stack([X, 1.6e9 + 1e7 * rng.normal(size=60)])
    factor = X + 1e3 * rng.normal(size=(60, 1))
    for rows in (times, X * 1e5, factor):
        model = NestedDichotomyClassifier(internal=internal, random_state=0)
        proba = model.fit(rows.astype(np.float32), y).predict_proba(rows)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_values_whose_squares_are_not_finite():
    X, y = draw()
    with pytest.raises(ValueError, match="StandardScaler"):
        NestedDichotomyClassifier().fit(X * 1e160, y)


@pytest.mark.parametrize("cv", [2, 3, 5])
@pytest.mark.parametrize("n", [10_000, 20_000])
def test_every_large_node_is_calibrated(n, cv):
    """The rows from which a Hessian is estimated must not be those of the held-out fold only."""
    X, y = make_many_classes(n, n_classes=20, n_features=20, random_state=0)
    model = NestedDichotomyClassifier(internal="platt", cv=cv, random_state=0)
    slope = model.fit(X, y).internal_.affine[0]
    assert (slope != 1).all()
