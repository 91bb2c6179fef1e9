"""Inputs of nested dichotomies: rows, labels and parameters of all kinds, and errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.calibration import VectorCalibrator
from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier, NestedDichotomyEnsemble

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = np.array(["barolo", "grignolino", "barbera"])
METHODS = ["predict", "predict_proba", "predict_log_proba"]


class Uncalibrated(NestedDichotomyClassifier):
    """A tree without the parameter `cv`, to which a check of sample weights would pass splits."""

    def __init__(self, random_state=None):
        super().__init__(internal=None, external=None, random_state=random_state)


def expected_failures(estimator):
    """Return checks that cannot pass: copies of a row may be on both sides of a hold-out."""
    if isinstance(estimator, NestedDichotomyEnsemble):
        drawn = estimator.external is not None
    else:
        drawn = estimator.external is not None or estimator.internal is not None
    checks = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
    reason = "a row of weight 2 is in one fold, its two copies may be in two"
    return dict.fromkeys(checks, reason) if drawn else {}


@parametrize_with_checks(
    [
        NestedDichotomyClassifier(),
        Uncalibrated(),
        NestedDichotomyClassifier(structure="random", internal="platt"),
        NestedDichotomyClassifier(structure="random_pair", internal="isotonic"),
        NestedDichotomyClassifier(internal="platt", external="vector"),
        NestedDichotomyClassifier(GaussianNB(), structure="data_balanced"),
        NestedDichotomyClassifier(
            DecisionTreeClassifier(max_depth=3, random_state=0), structure="class_balanced"
        ),
        NestedDichotomyEnsemble(n_estimators=2),
        NestedDichotomyEnsemble(
            NestedDichotomyClassifier(internal=None, external=None),
            n_estimators=2,
            pooling="arithmetic",
            external=None,
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return NestedDichotomyClassifier(random_state=0).fit(X, NAMES[Y])


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames(library, fitted):
    columns = [f"measure {j}" for j in range(X.shape[1])]
    frame = library.DataFrame(dict(zip(columns, X.T, strict=True)))
    labels = library.Series(NAMES[Y].tolist())
    model = NestedDichotomyClassifier(random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == columns
    np.testing.assert_array_equal(model.classes_, fitted.classes_)
    np.testing.assert_allclose(model.predict_proba(frame), fitted.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(model.predict_topk(frame[:2], 2), fitted.predict_topk(X[:2], 2))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(frame[columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict_proba(X)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES[Y],
        NAMES[Y].astype(object),
        NAMES[Y].tolist(),
        pd.Categorical(NAMES[Y]),
        Y.astype(np.int8) - 1,
        Y * 1.0,
        (Y > 0),
    ],
    ids=["str", "object", "list", "categorical", "int8", "float", "bool"],
)
def test_labels_of_any_kind(labels):
    model = NestedDichotomyClassifier(random_state=0).fit(X, labels)
    flat = np.asarray(labels)
    np.testing.assert_array_equal(model.classes_, np.unique(flat))
    assert (model.predict(X) == flat).mean() > 0.95
    assert set(np.unique(model.tree_.leaves)) == set(np.unique(flat))
    assert model.predict(X).dtype == model.classes_.dtype


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("container", ["matrix", "array"])
@pytest.mark.parametrize("estimator", [None, MultinomialNB()], ids=["logistic", "counts"])
def test_sparse_forms(form, container, estimator):
    counts = np.maximum(np.round(3 * X), 0)
    model = NestedDichotomyClassifier(estimator, random_state=0)
    plain = model.fit(sparse.csr_matrix(counts), Y).predict_proba(counts)
    thin = getattr(sparse, f"{form}_{container}")(counts)
    found = NestedDichotomyClassifier(estimator, random_state=0).fit(thin, Y)
    np.testing.assert_array_equal(found.predict_proba(thin), plain)


def test_untidy_sparse_rows():
    counts = sparse.csr_matrix(np.maximum(np.round(3 * X), 0))
    tidy = NestedDichotomyClassifier(random_state=0).fit(counts, Y)
    wide = counts.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    zeros = counts.tocoo()
    zeros = sparse.coo_matrix(
        (
            np.append(zeros.data, [0.0, 0.0]),
            (np.append(zeros.row, [0, 5]), np.append(zeros.col, [0, 1])),
        ),
        shape=counts.shape,
    ).tocsr()
    halves = counts.tocoo()
    twice = [np.concatenate([part, part]) for part in (halves.data / 2, halves.row, halves.col)]
    order = np.argsort(twice[1], kind="stable")
    doubled = sparse.csr_matrix(
        (twice[0][order], twice[2][order], 2 * counts.indptr), shape=counts.shape
    )
    backwards = counts.copy()
    for i in range(len(Y)):
        row = slice(*counts.indptr[i : i + 2])
        backwards.indices[row] = counts.indices[row][::-1]
        backwards.data[row] = counts.data[row][::-1]
    backwards.has_sorted_indices = False
    for rows in (wide, zeros, doubled, backwards):
        before = rows.copy()
        model = NestedDichotomyClassifier(random_state=0).fit(rows, Y)
        # The order of entries changes the rounding of sums, and with it the last step of a solver.
        np.testing.assert_allclose(
            model.predict_proba(counts), tidy.predict_proba(counts), rtol=1e-5, atol=1e-9
        )
        np.testing.assert_allclose(tidy.predict_proba(rows), tidy.predict_proba(counts))
        np.testing.assert_array_equal(rows.data, before.data)
        np.testing.assert_array_equal(rows.indices, before.indices)


def test_read_only_arrays():
    rows, labels, weight = X.copy(), Y.copy(), np.ones(len(Y))
    for array in (rows, labels, weight):
        array.flags.writeable = False
    model = NestedDichotomyClassifier(internal="platt", external="vector", random_state=0)
    model.fit(rows, labels, sample_weight=weight)
    assert model.predict_proba(rows).shape == (len(Y), 3)
    thin = sparse.csr_matrix(X)
    for array in (thin.data, thin.indices, thin.indptr):
        array.flags.writeable = False
    NestedDichotomyClassifier(random_state=0).fit(thin, Y).predict_topk(thin, 2)


@pytest.mark.parametrize(
    "rows",
    [X.tolist(), X[::2].repeat(2, axis=0)[::2], X.astype(np.float16), (10 * X).astype(int), X > 0],
    ids=["list", "strided", "float16", "int", "bool"],
)
def test_numbers_of_any_kind(rows):
    n = len(rows)
    model = NestedDichotomyClassifier(random_state=0).fit(rows, Y[::2] if n < len(Y) else Y)
    plain = np.asarray(rows, dtype=float)
    np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(plain))


def test_one_row_for_each_class():
    rows, labels = 10 * np.eye(5), np.arange(5)
    for options in ({}, {"internal": None}, {"internal": "platt"}, {"internal": "isotonic"}):
        model = NestedDichotomyClassifier(random_state=0, **options).fit(rows, labels)
        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
        assert (model.predict_proba(rows) > 0).all()
    plain = NestedDichotomyClassifier(random_state=0).fit(rows, labels)
    np.testing.assert_array_equal(plain.predict(rows), labels)
    lower, upper = plain.predict_bounds(rows)  # no row can be held out to calibrate on
    assert (lower == 0).all()
    assert (upper == 1).all()
    with pytest.raises(ValueError, match="no row can be set aside"):
        NestedDichotomyClassifier(external="vector").fit(rows, labels)


@pytest.mark.parametrize("structure", ["clustered", "random", "random_pair", (1, 0)])
def test_two_classes(structure):
    model = NestedDichotomyClassifier(structure=structure, internal=None, random_state=0)
    model.fit(X, Y > 0)
    plain = LogisticRegression(tol=1e-10).fit(X, Y > 0)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert model.tree_.n_nodes == 1


def test_one_class_raises():
    for model in (NestedDichotomyClassifier(), NestedDichotomyEnsemble()):
        with pytest.raises(ValueError, match="class"):
            model.fit(X, np.zeros(len(X)))
    weight = np.where(Y == 0, 1.0, 0.0)
    with pytest.raises(ValueError, match="class"):
        NestedDichotomyClassifier().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", METHODS)
class TestBadRows:
    def test_missing_and_infinite_numbers(self, fitted, method, form):
        for bad in (np.nan, np.inf):
            rows = X.copy()
            rows[3, 2] = bad
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                getattr(fitted, method)(form(rows))
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                NestedDichotomyClassifier().fit(form(rows), Y)

    def test_another_width(self, fitted, method, form):
        with pytest.raises(ValueError, match="13 features"):
            getattr(fitted, method)(form(X[:, :5]))

    def test_no_rows(self, fitted, method, form):
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            getattr(fitted, method)(form(X[:0]))
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            NestedDichotomyClassifier().fit(form(X[:0]), Y[:0])


@pytest.mark.parametrize("model", [NestedDichotomyClassifier(), NestedDichotomyEnsemble()])
@pytest.mark.parametrize("method", METHODS)
def test_prediction_before_fit_raises(model, method):
    with pytest.raises(NotFittedError):
        getattr(model, method)(X)
    with pytest.raises(NotFittedError):
        model.predict_topk(X, 2)


def test_rows_and_labels_must_match():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        NestedDichotomyClassifier().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        NestedDichotomyClassifier().fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match=r"sample_weight|[Nn]egative"):
        NestedDichotomyClassifier().fit(X, Y, sample_weight=-np.ones(len(Y)))
    with pytest.raises(ValueError, match=r"[Uu]nknown label type"):
        NestedDichotomyClassifier().fit(X, np.linspace(0, 1, len(Y)))
    with pytest.raises(ValueError, match="y"):
        NestedDichotomyClassifier().fit(X, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"structure": "ballanced"}, "'structure' parameter.*'ballanced'"),
        ({"structure": 3}, "'structure' parameter"),
        ({"internal": "sigmoid"}, "'internal' parameter.*'sigmoid'"),
        ({"external": "matrixx"}, "'external' parameter.*'matrixx'"),
        ({"cv": 1, "internal": "platt"}, "'cv' parameter.*Got 1"),
        ({"holdout_size": 1.5, "external": "vector"}, "'holdout_size' parameter.*Got 1.5"),
        ({"holdout_size": 0.0, "external": "vector"}, "'holdout_size' parameter.*Got 0.0"),
        ({"dtype": "int8"}, "dtype"),
        ({"estimator": "logistic"}, "'estimator' parameter"),
        ({"structure": (0, 1)}, "2"),
        ({"structure": (0, (1, 1))}, "1"),
        ({"structure": DichotomyTree.from_nested((0, 1))}, "2"),
        ({"structure": ((0, 1), ())}, "empty"),
    ],
    ids=str,
)
def test_invalid_parameters_raise(options, words):
    with pytest.raises(ValueError, match=words):
        NestedDichotomyClassifier(**options).fit(X, Y)


def test_unsuitable_estimators_raise_or_warn():
    frozen = FrozenEstimator(LogisticRegression(max_iter=1000).fit(X, Y))
    for model in (NestedDichotomyClassifier(frozen), NestedDichotomyEnsemble(frozen)):
        with pytest.raises(TypeError, match="without FrozenEstimator"):
            model.fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=r"predict_proba|decision_function"):
        NestedDichotomyClassifier(_LabelsOnly()).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=r"GaussianNB|[Ss]parse|dense"):
        NestedDichotomyClassifier(GaussianNB()).fit(sparse.csr_matrix(X), Y)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        NestedDichotomyClassifier(MultinomialNB()).fit(X, Y)
    with pytest.warns(UserWarning, match="KNeighborsClassifier.fit takes no sample_weight"):
        NestedDichotomyClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=1.0 + Y)


def test_margins_need_a_calibrator():
    with pytest.raises((TypeError, ValueError), match="internal"):
        NestedDichotomyClassifier(LinearSVC(), internal=None).fit(X, Y)
    for options in ({}, {"internal": "platt"}, {"external": "vector"}):
        model = NestedDichotomyClassifier(LinearSVC(), random_state=0, **options).fit(X, Y)
        assert model.score(X, Y) > 0.95


def test_a_calibrator_parameter_is_cloned():
    model = NestedDichotomyClassifier(external=VectorCalibrator(input="logits"), random_state=0)
    assert model.fit(X, Y).external_ is not model.external


class _LabelsOnly(BaseEstimator):
    """A classifier with labels only: no probabilities, no margins."""

    _estimator_type = "classifier"

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])
