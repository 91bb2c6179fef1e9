"""Trees by balanced 2-means: balance, fixed points, ties, and what they depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.dichotomies import DichotomyTree
from dubito.dichotomies._kernels.balanced_means import balanced_tree


def rng(seed=0):
    return np.random.default_rng(seed)


def clustered_tree(classes, points, source):
    order, left_sizes = balanced_tree(points, source)
    return DichotomyTree(classes[order], left_sizes)


def planted(n_clusters, each, *, n_features=6, seed=0):
    """Return points in well separated clusters, shuffled, and the cluster of each."""
    source = rng(seed)
    cluster = source.permutation(np.repeat(np.arange(n_clusters), each))
    centres = 10 * np.eye(n_clusters, n_features)
    return centres[cluster] + source.normal(scale=0.5, size=(len(cluster), n_features)), cluster


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


def test_classes_on_a_line_are_split_into_intervals():
    """Groups of a clustered tree are neighbours, so that deep nodes split similar classes."""
    points = np.arange(64.0)[:, None]
    tree = clustered_tree(np.arange(64), points, rng(0))
    groups = [tree.leaves[tree.cut(3) == g] for g in range(8)]
    assert all(np.ptp(group) == 7 for group in groups)
    assert sorted(min(group) for group in groups) == list(range(0, 64, 8))
