"""Class centroids: weighted, standardised or of unit length, whatever the units and blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from dubito.dichotomies import DichotomyTree
from dubito.dichotomies._kernels.balanced_means import balanced_tree
from dubito.dichotomies._kernels.class_centroids import class_centroids, half_of_features


def rng(seed=0):
    return np.random.default_rng(seed)


def clustered_tree(classes, points, source):
    order, left_sizes = balanced_tree(points, source)
    return DichotomyTree(classes[order], left_sizes)


def test_centroids_are_weighted_standardised_means():
    source = rng(0)
    X, column = source.normal(3.0, [1, 10, 100], size=(200, 3)), source.integers(7, size=200)
    weight = source.integers(1, 4, size=200).astype(float)
    twice = np.repeat(np.arange(200), weight.astype(int))
    rows, of = X[twice], column[twice]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    expected = np.array([scaled[of == k].mean(axis=0) for k in range(7)])
    np.testing.assert_allclose(class_centroids(X, column, weight, 7), expected, rtol=1e-10)


def test_the_block_size_does_not_matter(monkeypatch):
    X, column = rng(0).normal(size=(500, 4)), rng(1).permutation(np.arange(500) % 9)
    whole = class_centroids(X, column, np.ones(500), 9)
    monkeypatch.setattr("dubito.dichotomies._kernels.class_centroids._CHUNK_ENTRIES", 64)
    np.testing.assert_allclose(class_centroids(X, column, np.ones(500), 9), whole, rtol=1e-12)


def test_units_of_dense_features_do_not_matter():
    X, column = rng(0).normal(size=(300, 5)), np.arange(300) % 30
    stretched = X * [1, 1e3, 1e-3, 7, 1] + [0, 5, 0, -1e4, 0]
    one, other = (
        clustered_tree(np.arange(30), class_centroids(data, column, np.ones(300), 30), rng(1))
        for data in (X, stretched)
    )
    assert one == other


@pytest.mark.parametrize("value", [0.1, -1e8, 0.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_are_ignored(value, dtype):
    X = np.full((90, 2), value, dtype=dtype)
    X[:, 1] = np.arange(90)
    centroids = class_centroids(X, np.arange(90) % 9, rng(0).random(90) + 0.1, 9)
    assert (centroids[:, 0] == 0).all()
    assert np.isfinite(centroids).all()


def texts(n, p, seed=0):
    source = rng(seed)
    X = source.random((n, p)) * (source.random((n, p)) < 0.1)
    return sp.csr_array(X), np.arange(n) % 11


def test_sparse_centroids_are_dense_ones_of_unit_length():
    X, column = texts(120, 50)
    weight = rng(3).random(120) + 0.5
    centroids = class_centroids(X, column, weight, 11)
    assert centroids.format == "csr"
    sums = np.eye(11)[column].T @ (weight[:, None] * X.toarray())
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(centroids.toarray(), expected, rtol=1e-12)


def test_classes_without_entries():
    X, column = texts(120, 50)
    empty = sp.diags_array((column % 3 > 0).astype(float)).tocsr() @ X  # explicit zeros remain
    blank = empty.copy()
    blank.eliminate_zeros()
    for data in (empty, blank):
        centroids = class_centroids(data, column, np.ones(120), 11)
        lengths = np.linalg.norm(centroids.toarray(), axis=1)
        np.testing.assert_allclose(lengths, np.arange(11) % 3 > 0, rtol=1e-12)
        assert clustered_tree(np.arange(11), centroids, rng(0)).n_classes == 11
    nothing = class_centroids(sp.csr_array((12, 5)), np.arange(12) % 3, np.ones(12), 3)
    assert clustered_tree(np.arange(3), nothing, rng(0)).n_classes == 3


@pytest.mark.parametrize(("width", "kept"), [(1, 1), (2, 1), (7, 3)])
def test_half_of_the_features(width, kept):
    centroids = np.arange(3 * width).reshape(3, width)
    found = half_of_features(centroids, np.random.default_rng(0))
    assert found.shape == (3, kept)
    assert {tuple(column) for column in found.T} <= {tuple(column) for column in centroids.T}
