"""Many classes in groups: the samples agree with the docstring.

Means are compared in units of their standard error, as in `test_simulators.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse as sp

from dubito.datasets import make_many_classes

LIMIT = 5.0


def assert_mean(values, expected):
    values = np.asarray(values, dtype=float)
    error = values.std() / np.sqrt(values.size)
    assert abs(values.mean() - expected) < LIMIT * error


def same(first, second):
    if sp.issparse(first):
        return (first != second).nnz == 0
    return np.array_equal(first, second)


def class_means(X, y, n_classes):
    sums = np.zeros((n_classes, X.shape[1]))
    np.add.at(sums, y, X)
    return sums / np.bincount(y, minlength=n_classes)[:, None]


def test_classes_scatter_around_groups_and_rows_around_classes():
    X, y = make_many_classes(10_000, 100, 400, n_groups=10, random_state=0)
    centres, size = class_means(X, y, 100), np.bincount(y)
    # Rows have unit variance about the mean of their class, which is estimated from the same rows.
    assert_mean((X - centres[y]) ** 2 / (1 - 1 / size[y])[:, None], 1.0)
    # Two classes of one group differ by 1.2 (v - v'), of two groups by 0.9 (u - u') besides.
    first, second = np.triu_indices(100, 1)
    gap = (
        ((centres[first] - centres[second]) ** 2).mean(axis=1) - 1 / size[first] - 1 / size[second]
    )
    inside, across = 2 * 1.2**2, 2 * (1.2**2 + 0.9**2)
    near = gap < (inside + across) / 2
    assert gap[near].mean() == pytest.approx(inside, rel=0.02)
    assert gap[~near].mean() == pytest.approx(across, rel=0.05)
    assert near.mean() == pytest.approx(0.1, abs=0.03)


def test_numbers_of_classes_say_nothing_of_their_groups():
    X, y = make_many_classes(5_000, 200, 60, n_groups=2, random_state=1)
    centred = X - X.mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    side = class_means(centred, y, 200) @ direction > 0
    assert 0.3 < side.mean() < 0.7
    assert 60 < (side[1:] != side[:-1]).sum() < 140


@pytest.mark.parametrize("sparse", [False, True])
def test_labels_are_equiprobable(sparse):
    y = make_many_classes(50_000, 20, 30, sparse=sparse, random_state=2)[1]
    counts = np.bincount(y, minlength=20)
    assert np.abs(counts - 2_500).max() < LIMIT * np.sqrt(2_500 * 0.95)


def test_texts_hold_common_words_and_words_of_their_class_and_group():
    n_classes, n_words = 30, 100_000
    X, y = make_many_classes(6_000, n_classes, n_words, sparse=True, n_groups=3, random_state=3)
    assert X.format == "csr"
    assert X.has_canonical_format
    np.testing.assert_allclose(np.sqrt((X**2).sum(axis=1)), 1.0, rtol=1e-12)
    # Divided by a row's smallest value, its values are counts again.
    counts = X.copy()
    counts.data /= np.repeat(np.minimum.reduceat(X.data, X.indptr[:-1]), np.diff(X.indptr))
    np.testing.assert_allclose(counts.data, np.round(counts.data), atol=1e-9)
    # A row whose rarest word occurs twice or more looks shorter than it is; such rows are rare.
    assert counts.sum(axis=1).mean() == pytest.approx(30 + 10 + 15, rel=0.01)
    # The most common word: Zipf's fraction of the words that all classes have.
    fraction = 1 / (1 / np.arange(1, n_words + 1)).sum()
    assert_mean(counts[:, [0]].toarray(), 30 * fraction)
    # A class draws 15 times among ten words; common words apart, no other is in half of its rows.
    for k in range(n_classes):
        own = np.flatnonzero((X[y == k] > 0).mean(axis=0) > 0.5)
        own = own[own > 100]
        assert 9 <= len(own) <= 10
        assert_mean(counts[y == k][:, own].sum(axis=1), 1.5 * len(own))


def test_separation_zero_makes_rows_independent_of_the_class():
    X, y = make_many_classes(20_000, 10, 5, separation=0, random_state=4)
    assert_mean(X, 0.0)
    assert_mean(X**2, 1.0)
    texts, y = make_many_classes(20_000, 2, 1_000, sparse=True, separation=0, random_state=4)
    first = texts[:, [0]].toarray()[:, 0]
    gap = first[y == 0].mean() - first[y == 1].mean()
    assert abs(gap) < LIMIT * first.std() * np.sqrt(4 / 20_000)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("source", [int, np.random.RandomState, np.random.default_rng])
def test_same_seed_same_data(sparse, source):
    first, again, other = (
        make_many_classes(50, 10, 300, sparse=sparse, random_state=source(seed))
        for seed in (7, 7, 8)
    )
    assert same(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not same(first[0], other[0])


@pytest.mark.parametrize("sparse", [False, True])
def test_float32_rounds_the_same_rows(sparse):
    double = make_many_classes(50, 10, 30, sparse=sparse, random_state=5)[0]
    single = make_many_classes(50, 10, 30, sparse=sparse, dtype="float32", random_state=5)[0]
    assert double.dtype == np.float64
    assert single.dtype == np.float32
    assert same(single, double.astype(np.float32))


@pytest.mark.parametrize("sparse", [False, True])
def test_one_of_everything(sparse):
    X, y = make_many_classes(1, 1, 1, sparse=sparse, n_groups=1, random_state=6)
    assert X.shape == (1, 1)
    assert y.tolist() == [0]


def test_defaults_are_the_dense_problem_of_the_benchmarks():
    X, y = make_many_classes(random_state=7)
    assert X.shape == (40_000, 128)
    assert y.max() == 999


@pytest.mark.parametrize("name", ["n_samples", "n_classes", "n_features", "n_groups"])
def test_counts_are_checked(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        make_many_classes(**{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be an integer; got 2.5"):
        make_many_classes(**{name: 2.5})


@pytest.mark.parametrize("separation", [-0.1, np.inf, np.nan])
def test_separation_is_checked(separation):
    with pytest.raises(ValueError, match="separation must be finite and not negative"):
        make_many_classes(5, separation=separation)


@pytest.mark.parametrize("separation", ["far", None, True])
def test_separation_is_a_number(separation):
    with pytest.raises(TypeError, match="separation must be a number"):
        make_many_classes(5, separation=separation)


@pytest.mark.parametrize("dtype", ["float16", int])
def test_other_types_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        make_many_classes(5, dtype=dtype)
