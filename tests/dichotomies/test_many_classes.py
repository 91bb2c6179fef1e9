"""predict_topk: the k largest probabilities, computed without the whole distribution."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dubito.calibration import EvidentialLogisticCalibrator
from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier, NestedDichotomyEnsemble

from reference.dichotomies import best_first

CLASSES = 23


def make_rows(seed=0, n=230, p=8):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    return rng.normal(size=(n, p)) + 1.5 * rng.normal(size=(CLASSES, p))[y], y


X, Y = make_rows()
COUNTS = np.random.default_rng(1).poisson(np.exp(X)).astype(float)
THIN = sparse.csr_matrix(COUNTS)

MODELS = {
    "default": (NestedDichotomyClassifier(random_state=0), X),
    "logistic": (NestedDichotomyClassifier(internal=None, random_state=0), X),
    "random tree": (
        NestedDichotomyClassifier(structure="random", internal=None, random_state=0),
        X,
    ),
    "float32": (NestedDichotomyClassifier(internal=None, dtype=np.float32, random_state=0), X),
    "sparse": (NestedDichotomyClassifier(internal=None, random_state=0), THIN),
    "platt": (NestedDichotomyClassifier(internal="platt", random_state=0), X),
    "isotonic": (NestedDichotomyClassifier(internal="isotonic", random_state=0), X),
    "vector": (NestedDichotomyClassifier(external="vector", random_state=0), X),
    "both": (
        NestedDichotomyClassifier(internal="platt", external="vector", random_state=0),
        X,
    ),
    "evidential": (
        NestedDichotomyClassifier(internal=EvidentialLogisticCalibrator(), random_state=0),
        X,
    ),
    "bayes": (NestedDichotomyClassifier(GaussianNB(), internal=None, random_state=0), X),
    "counts": (NestedDichotomyClassifier(MultinomialNB(), internal=None, random_state=0), THIN),
    "trees": (
        NestedDichotomyClassifier(DecisionTreeClassifier(max_depth=2), random_state=0),
        X,
    ),
    "geometric": (NestedDichotomyEnsemble(n_estimators=3, random_state=0), X),
    "arithmetic": (
        NestedDichotomyEnsemble(n_estimators=3, pooling="arithmetic", random_state=0),
        X,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, rows = MODELS[request.param]
    return model.fit(rows, Y), rows


@pytest.mark.parametrize("k", [1, 2, 5, CLASSES - 1, CLASSES])
def test_topk_are_the_largest_probabilities(fitted, k):
    model, rows = fitted
    labels, values = model.predict_topk(rows, k, return_proba=True)
    proba = model.predict_proba(rows)
    assert labels.shape == values.shape == (len(Y), k)
    assert (np.diff(values, axis=1) <= 0).all()
    columns = np.searchsorted(model.classes_, labels)
    np.testing.assert_allclose(
        values, np.take_along_axis(proba, columns, axis=1), rtol=1e-9, atol=1e-300
    )
    wanted = -np.sort(-proba, axis=1)[:, :k]
    np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-300)
    assert all(len(set(row)) == k for row in labels.tolist())
    np.testing.assert_array_equal(model.predict_topk(rows, k), labels)


def test_the_first_is_the_prediction(fitted):
    model, rows = fitted
    np.testing.assert_array_equal(model.predict_topk(rows, 1)[:, 0], model.predict(rows))


def test_smaller_k_is_a_prefix_of_larger_k(fitted):
    model, rows = fitted
    everything = model.predict_topk(rows, CLASSES)
    for k in (1, 3, 10):
        np.testing.assert_array_equal(model.predict_topk(rows, k), everything[:, :k])


def test_a_row_does_not_depend_on_others(fitted):
    model, rows = fitted
    labels, values = model.predict_topk(rows, 4, return_proba=True)
    for i in (0, 7, 229):
        alone, value = model.predict_topk(rows[i : i + 1], 4, return_proba=True)
        np.testing.assert_array_equal(alone[0], labels[i])
        np.testing.assert_array_equal(value[0], values[i])


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("leaves", [list(range(6)), [3, 5, 1, 0, 4, 2]], ids=["sorted", "mixed"])
def test_ties_are_ordered_as_classes(leaves, k):
    # Constant rows, equally many of each class: both sides of a node are equally likely.
    tree = DichotomyTree.from_nested(((leaves[0], leaves[1]), (leaves[2], leaves[3])))
    tree = DichotomyTree.from_nested((tree.to_nested(), (leaves[4], leaves[5])))
    y = np.repeat(np.arange(6), [2, 2, 2, 2, 2, 2])
    model = NestedDichotomyClassifier(structure=tree, internal=None).fit(np.zeros((12, 2)), y)
    proba = model.predict_proba(np.zeros((2, 2)))
    np.testing.assert_allclose(proba, 1 / 6)
    labels = model.predict_topk(np.zeros((2, 2)), k)
    for row, values in zip(labels, proba, strict=True):
        assert row.tolist() == best_first(values.tolist(), k)


def test_string_labels():
    names = np.array([f"class {i:02d}" for i in range(CLASSES)], dtype=object)
    model = NestedDichotomyClassifier(random_state=0).fit(X, names[Y])
    plain = NestedDichotomyClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict_topk(X, 3), names[plain.predict_topk(X, 3)])


@settings(max_examples=25)
@given(st.integers(2, 12), st.integers(0, 10_000), st.data())
def test_any_tree(n_classes, seed, data):
    rng = np.random.default_rng(seed)
    y = np.arange(3 * n_classes) % n_classes
    rows = rng.normal(size=(len(y), 3)) + 2 * rng.normal(size=(n_classes, 3))[y]
    k = data.draw(st.integers(1, n_classes))
    model = NestedDichotomyClassifier(structure="random", random_state=seed).fit(rows, y)
    labels, values = model.predict_topk(rows, k, return_proba=True)
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(values, -np.sort(-proba, axis=1)[:, :k], rtol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(proba, labels, axis=1), values, rtol=1e-9)


@pytest.mark.parametrize("k", [0, -1, CLASSES + 1, 2.5, "three", None, True])
def test_invalid_k_raises(fitted, k):
    model, rows = fitted
    with pytest.raises((ValueError, TypeError), match="k"):
        model.predict_topk(rows, k)


def test_k_may_be_a_numpy_integer(fitted):
    model, rows = fitted
    np.testing.assert_array_equal(
        model.predict_topk(rows, np.int64(2)), model.predict_topk(rows, 2)
    )


@pytest.mark.parametrize("external", [None, "vector"])
def test_memory_is_bounded(external):
    n, n_classes = 120_000, 400
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(n_classes), 4)
    centres = rng.normal(size=(n_classes, 6)) * 3
    train = centres[y] + rng.normal(size=(len(y), 6))
    model = NestedDichotomyClassifier(
        LogisticRegression(C=1.0), external=external, holdout_size=0.25, random_state=0
    ).fit(train, y)
    rows = centres[rng.integers(n_classes, size=n)]
    model.predict_topk(rows[:10], 5)  # compiles
    tracemalloc.start()
    model.predict_topk(rows, 5, return_proba=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * n * n_classes * 8  # of the whole distribution
