"""Tree structures: the distribution of splits, and what they depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dubito.dichotomies._kernels.balanced_means import balanced_tree
from dubito.dichotomies._structures import (
    class_balanced_split,
    class_centroids,
    clustered_tree,
    data_balanced_split,
    grow_tree,
    random_pair_split,
    random_split,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def is_partition(sides, members):
    return sorted(np.concatenate(sides).tolist()) == sorted(members) and all(map(len, sides))


def by_parity(first, second, others):  # noqa: ARG001 - the arguments of the callback
    return others % 2 == 1


MAKERS = {
    "random": random_split,
    "class_balanced": class_balanced_split,
    "data_balanced": lambda source: data_balanced_split(source, np.arange(1.0, 41.0)),
    "random_pair": lambda source: random_pair_split(source, by_parity),
}


def planted(n_clusters, each, *, n_features=6, seed=0):
    """Return points in well separated clusters, shuffled, and the cluster of each."""
    source = rng(seed)
    cluster = source.permutation(np.repeat(np.arange(n_clusters), each))
    centres = 10 * np.eye(n_clusters, n_features)
    return centres[cluster] + source.normal(scale=0.5, size=(len(cluster), n_features)), cluster


@pytest.mark.parametrize("name", MAKERS)
@given(n_classes=st.integers(2, 40), seed=st.integers(0, 1_000))
def test_every_split_is_a_partition(name, n_classes, seed):
    members = rng(seed).permutation(40)[:n_classes]
    assert is_partition(MAKERS[name](rng(seed))(members), members.tolist())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 40])
def test_trees_have_every_class_once_and_depend_on_the_seed(name, n_classes):
    classes = np.array([f"c{k}" for k in range(n_classes)])
    tree = grow_tree(classes, MAKERS[name](rng(3)))
    assert sorted(tree.leaves.tolist()) == sorted(classes.tolist())
    assert tree == grow_tree(classes, MAKERS[name](rng(3)))
    if n_classes == 40:
        assert tree != grow_tree(classes, MAKERS[name](rng(4)))


def test_nodes_come_in_preorder_and_chains_need_no_recursion():
    tree = grow_tree(np.arange(3_000), lambda members: (members[1:], members[:1]))
    assert tree.depth == 2_999
    assert tree.leaves.tolist() == list(range(2_999, -1, -1))


def counts_of_splits(split, n_classes, times):
    """Return the frequency of each split, named by the side without class 0."""
    seen = {}
    for _ in range(times):
        sides = split(np.arange(n_classes))
        away = next(frozenset(side.tolist()) for side in sides if 0 not in side)
        seen[away] = seen.get(away, 0) + 1
    return seen


def test_random_splits_are_uniform():
    seen = counts_of_splits(random_split(rng(1)), 4, 3_500)
    assert len(seen) == 2**3 - 1
    assert chisquare(list(seen.values())).pvalue > 0.01


def test_random_halves_are_uniform():
    seen = counts_of_splits(class_balanced_split(rng(1)), 4, 1_500)
    assert {len(away) for away in seen} == {2}
    assert len(seen) == 3
    assert chisquare(list(seen.values())).pvalue > 0.01


@pytest.mark.parametrize("n_classes", [2, 3, 8, 9])
def test_class_balanced_sides_differ_by_one_at_most(n_classes):
    left, right = class_balanced_split(rng())(np.arange(n_classes))
    assert len(left) - len(right) == n_classes % 2


def test_data_balanced_left_side_just_reaches_half():
    weight = rng(5).integers(1, 100, size=30).astype(float)
    split = data_balanced_split(rng(), weight)
    for _ in range(50):
        left, right = split(np.arange(30))
        assert weight[left].sum() >= weight.sum() / 2 or len(right) == 1
        assert weight[left[:-1]].sum() < weight.sum() / 2


def test_data_balanced_right_side_is_not_empty():
    split = data_balanced_split(rng(), np.array([1.0, 1.0, 1_000.0]))
    for _ in range(20):
        left, right = split(np.arange(3))
        assert len(left) in {1, 2}
        assert len(right) == 3 - len(left)


def test_random_pair_splits_as_the_model_decides():
    calls = []

    def decide(first, second, others):
        calls.append((first, second, others.tolist()))
        return np.isin(others, [0, 1])

    left, right = random_pair_split(rng(2), decide)(np.arange(6))
    ((first, second, others),) = calls
    assert sorted([first, second, *others]) == list(range(6))
    assert left[0] == first
    assert right[0] == second
    assert set(right.tolist()) == {second} | ({0, 1} - {first})


def test_all_pairs_are_equally_likely():
    seen = {}

    def decide(first, second, others):
        pair = frozenset((first, second))
        seen[pair] = seen.get(pair, 0) + 1
        return np.zeros(len(others), dtype=bool)

    split = random_pair_split(rng(7), decide)
    for _ in range(1_200):
        split(np.arange(4))
    assert len(seen) == 6
    assert chisquare(list(seen.values())).pvalue > 0.01


@pytest.mark.parametrize("n_clusters", [2, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_clustered_trees_recover_planted_clusters(n_clusters, sparse):
    points, cluster = planted(n_clusters, 8)
    tree = clustered_tree(np.arange(len(points)), sp.csr_array(points) if sparse else points, rng())
    found = tree.cut(n_clusters // 2)
    for group in range(n_clusters):
        assert len(set(cluster[tree.leaves[found == group]])) == 1


@settings(deadline=None)  # the first call compiles
@given(n_classes=st.integers(2, 70), seed=st.integers(0, 1_000))
def test_clustered_trees_are_balanced(n_classes, seed):
    tree = clustered_tree(np.arange(n_classes), rng(seed).normal(size=(n_classes, 3)), rng(seed))
    on_right = tree.stop - tree.split
    assert ((tree.left_sizes - on_right == 0) | (tree.left_sizes - on_right == 1)).all()
    assert tree.depth == int(np.ceil(np.log2(n_classes)))
    assert sorted(tree.leaves.tolist()) == list(range(n_classes))


def test_halves_are_fixed_points_of_2_means():
    """The points of each half are nearer to its mean than those of the other half."""
    points = rng(3).normal(size=(60, 4))
    tree = clustered_tree(np.arange(60), points, rng(4))
    for start, split, stop in zip(tree.start, tree.split, tree.stop, strict=True):
        first, second = points[tree.leaves[start:split]], points[tree.leaves[split:stop]]
        direction = first.mean(axis=0) - second.mean(axis=0)
        assert (first @ direction).min() >= (second @ direction).max() - 1e-12


def test_more_starts_give_better_halves():
    def gap(n_starts, seed):
        points = rng(8).normal(size=(31, 8))
        order, sizes = balanced_tree(points, rng(seed), n_starts=n_starts)
        means = points[order[: sizes[0]]].mean(axis=0) - points[order[sizes[0] :]].mean(axis=0)
        return means @ means

    one, many = (np.mean([gap(n, seed) for seed in range(20)]) for n in (1, 8))
    assert many > 1.02 * one


@pytest.mark.parametrize("n_classes", [2, 3, 41])
def test_sparse_and_dense_points_give_the_same_tree(n_classes):
    points = rng(1).normal(size=(n_classes, 30)) * (rng(2).random((n_classes, 30)) < 0.3)
    classes = np.arange(n_classes)
    dense = balanced_tree(points, rng(5), n_starts=2)
    for form in (sp.csr_array, sp.csr_matrix):
        sparse = balanced_tree(form(points), rng(5), n_starts=2)
        assert all(map(np.array_equal, dense, sparse))
    assert np.array_equal(np.sort(dense[0]), classes)


class Shuffled:
    """A random generator whose permutations are those of another one, renamed."""

    def __init__(self, seed, names):
        self._source, self._names = rng(seed), names

    def permutation(self, n):
        return self._names[self._source.permutation(n)]

    def random(self, shape):
        return self._source.random(shape)


def test_class_numbers_do_not_matter():
    """The same points in another order give the same tree, also with equal points."""
    points = np.repeat(rng(1).normal(size=(12, 3)), 2, axis=0)
    names = rng(2).permutation(24)
    renamed = np.empty_like(points)
    renamed[names] = points
    order, sizes = balanced_tree(points, rng(3))
    other, other_sizes = balanced_tree(renamed, Shuffled(3, names))
    assert np.array_equal(names[order], other)
    assert np.array_equal(sizes, other_sizes)


def test_equal_points_are_split_at_random():
    trees = [clustered_tree(np.arange(4), np.ones((4, 2)), rng(seed)) for seed in range(60)]
    assert len({frozenset(tree.leaves[:2].tolist()) for tree in trees}) == 6


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
    monkeypatch.setattr("dubito.dichotomies._structures._BLOCK", 64)
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


def test_classes_on_a_line_are_split_into_intervals():
    """Groups of a clustered tree are neighbours, so that deep nodes split similar classes."""
    points = np.arange(64.0)[:, None]
    tree = clustered_tree(np.arange(64), points, rng(0))
    groups = [tree.leaves[tree.cut(3) == g] for g in range(8)]
    assert all(np.ptp(group) == 7 for group in groups)
    assert sorted(min(group) for group in groups) == list(range(0, 64, 8))
