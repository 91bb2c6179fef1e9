"""Every node of the default classifier equals scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dubito.dichotomies import NestedDichotomyClassifier

from reference.dichotomies import (
    NestedDichotomy,
    in_pairs,
    log_odds,
    newton_logistic,
    node_log_odds,
    nodes,
    tight_logistic,
)

TREE = ((0, (1, 2)), (3, (4, 5)))


def rows_of(n, p, seed, *, distance=1.5, n_classes=6):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.normal(size=(n, p)) + rng.normal(size=(n_classes, p))[y] * distance, y


def more_rows_than_columns():
    return rows_of(240, 7, 0)


def more_columns_than_rows():
    return rows_of(60, 90, 1, distance=0.5)


def separable():
    return rows_of(90, 12, 2, distance=20.0)


def constant_and_duplicate_columns():
    X, y = rows_of(150, 5, 3)
    return np.column_stack([X, X[:, :2], np.zeros(150), np.full(150, 3.0)]), y


def one_row_for_some_classes():
    X, y = rows_of(120, 4, 4)
    kept = ~np.isin(y, [2, 5])
    kept[[np.flatnonzero(y == 2)[0], np.flatnonzero(y == 5)[0]]] = True
    return X[kept], y[kept]


def identical_rows():
    X, y = rows_of(60, 3, 5)
    return np.ones_like(X), y


def text_like():
    X, y = rows_of(150, 200, 6, distance=1.0)
    X[X < 1.5] = 0.0
    return sparse.csr_matrix(X), y


def wide_text():
    X, y = rows_of(60, 500, 7, distance=1.0)
    X[X < 2.0] = 0.0
    return sparse.csr_matrix(X / (1e-9 + np.linalg.norm(X, axis=1, keepdims=True))), y


CASES = [
    more_rows_than_columns,
    more_columns_than_rows,
    separable,
    constant_and_duplicate_columns,
    one_row_for_some_classes,
    identical_rows,
    text_like,
    wide_text,
]


@pytest.fixture(params=CASES, ids=lambda case: case.__name__)
def case(request):
    return request.param()


def log_odds_of(model, X):
    """Return the log-odds at each node, computed from the probabilities of classes."""
    log_proba = dict(zip(model.classes_.tolist(), model.predict_log_proba(X).T, strict=True))
    return node_log_odds(in_pairs(model.tree_.to_nested()), log_proba)


def assert_same_nodes(model, by_hand, X, atol=1e-5):
    """Node probabilities agree, and log-odds within ten times the tolerance."""
    found = log_odds_of(model, X)
    assert found.keys() == by_hand.models.keys()
    for name, node in by_hand.models.items():
        wanted = log_odds(node, X)
        np.testing.assert_allclose(expit(found[name]), expit(wanted), rtol=0, atol=atol)
        np.testing.assert_allclose(found[name], wanted, rtol=10 * atol, atol=10 * atol)


def test_nodes_are_logistic_regressions(case):
    X, y = case
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, y)
    assert_same_nodes(model, NestedDichotomy(TREE, tight_logistic()).fit(X, y), X)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "case", [more_rows_than_columns, more_columns_than_rows, text_like], ids=lambda c: c.__name__
)
def test_strength_and_intercept(case, C, fit_intercept):
    X, y = case()
    options = {"C": C, "fit_intercept": fit_intercept}
    model = NestedDichotomyClassifier(
        LogisticRegression(**options), structure=TREE, internal=None
    ).fit(X, y)
    assert_same_nodes(model, NestedDichotomy(TREE, tight_logistic(**options)).fit(X, y), X)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_columns_of_any_scale(C):
    X, y = rows_of(200, 13, 8)
    X *= np.geomspace(1e-6, 1e6, 13)
    model = NestedDichotomyClassifier(LogisticRegression(C=C), structure=TREE, internal=None).fit(
        X, y
    )
    found = log_odds_of(model, X)
    for name, left, right in nodes(TREE):
        here = np.isin(y, left + right)
        event = np.isin(y[here], right)
        coef, intercept = newton_logistic(X[here], event, C=C)
        wanted = X @ coef + intercept
        np.testing.assert_allclose(expit(found[name][here]), expit(wanted[here]), atol=1e-5)
        # With a smaller total loss the optimum is flat, and log-odds of other rows vary.
        if np.logaddexp(0, np.where(event, -1, 1) * wanted[here]).sum() > 1e-6:
            np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_shifts_of_columns_do_not_matter(offset):
    X, y = rows_of(200, 5, 9)
    shift = offset * np.array([1.0, -1.0, 0.5, 0.0, 2.0])
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X + shift, y)
    by_hand = NestedDichotomy(TREE, tight_logistic()).fit(X, y)
    found = log_odds_of(model, X + shift)
    for name, node in by_hand.models.items():
        np.testing.assert_allclose(found[name], log_odds(node, X), rtol=1e-5, atol=1e-5)


def test_weights(case):
    X, y = case
    weight = np.random.default_rng(10).gamma(1.0, size=len(y)) + 0.01
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, y, sample_weight=weight)
    assert_same_nodes(model, NestedDichotomy(TREE, tight_logistic()).fit(X, y, weight), X)


def test_a_row_of_weight_two_is_two_rows(case):
    X, y = case
    count = np.random.default_rng(11).integers(0, 3, size=len(y))
    count[np.unique(y, return_index=True)[1]] = 1  # every class stays
    twice = np.repeat(np.arange(len(y)), count)
    weighted = NestedDichotomyClassifier(structure=TREE, internal=None).fit(
        X, y, sample_weight=count
    )
    repeated = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X[twice], y[twice])
    np.testing.assert_allclose(
        weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-5, atol=1e-5
    )


def test_dense_and_sparse_rows_give_the_same_model():
    X, y = text_like()
    thin = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, y)
    full = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X.toarray(), y)
    for model in (thin, full):
        np.testing.assert_allclose(
            model.predict_log_proba(X), full.predict_log_proba(X.toarray()), rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(
            model.predict_log_proba(X.toarray()), model.predict_log_proba(X), rtol=1e-9, atol=1e-12
        )


def test_columns_absent_at_a_node_have_no_effect_there():
    X, y = text_like()
    X = sparse.hstack([X, sparse.csr_matrix((len(y), 40))]).tocsr()
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, y)
    other = X[:5].toarray()
    other[:, -40:] = 1e3
    np.testing.assert_allclose(model.predict_proba(other), model.predict_proba(X[:5]))


@pytest.mark.parametrize("case", [more_rows_than_columns, text_like], ids=lambda c: c.__name__)
def test_single_precision_is_close(case):
    X, y = case()
    model = NestedDichotomyClassifier(
        structure=TREE, dtype=np.float32, random_state=0, internal=None
    ).fit(X, y)
    exact = NestedDichotomy(TREE, tight_logistic()).fit(X, y)
    assert model.predict_proba(X).dtype == np.float64
    assert_same_nodes(model, exact, X, atol=2e-3)
    # Rows given in single precision are the same rows.
    again = NestedDichotomyClassifier(
        structure=TREE, dtype=np.float32, random_state=0, internal=None
    ).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(
        again.predict_proba(X.astype(np.float32)), model.predict_proba(X.astype(np.float32))
    )


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": "balanced"},
        {"solver": "liblinear", "intercept_scaling": 2.0},
        {"solver": "newton-cholesky"},
        {"penalty": "l1", "solver": "liblinear"},
    ],
    ids=str,
)
# scikit-learn deprecates `penalty`.
@pytest.mark.filterwarnings("ignore:'penalty' was deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:Inconsistent values:UserWarning")
def test_other_parameters_are_used(options):
    X, y = more_rows_than_columns()
    estimator = LogisticRegression(random_state=0, tol=1e-8, max_iter=10_000)
    estimator.set_params(**options)
    model = NestedDichotomyClassifier(estimator, structure=TREE, internal=None).fit(X, y)
    by_hand = NestedDichotomy(TREE, estimator).fit(X, y)
    # Rows are in another order, which changes where a solver stops.
    assert_same_nodes(model, by_hand, X, atol=1e-4)


def test_two_classes_are_one_logistic_regression():
    X, y = rows_of(100, 6, 12, n_classes=2)
    model = NestedDichotomyClassifier(random_state=0, internal=None).fit(X, y)
    plain = tight_logistic().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_rows_far_from_the_training_rows_have_finite_log_probabilities():
    X, y = separable()
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, y)
    log_proba = model.predict_log_proba(X[:4] * 1e4)
    assert np.isfinite(log_proba).all()
    assert log_proba.min() < -1e4
    np.testing.assert_allclose(model.predict_proba(X[:4] * 1e4).sum(axis=1), 1.0)
    found = log_odds_of(model, X)
    assert all((expit(np.abs(there)) < 1).all() for there in found.values())
