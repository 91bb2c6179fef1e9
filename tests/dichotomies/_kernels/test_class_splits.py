"""Splits of classes: their distribution, and the trees that they grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chisquare

from dubito.dichotomies import DichotomyTree
from dubito.dichotomies._kernels.class_splits import (
    centroid_pair_split,
    class_balanced_split,
    data_balanced_split,
    grow_tree,
    random_pair_split,
    random_split,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def tree_of(classes, split):
    order, left_sizes = grow_tree(len(classes), split)
    return DichotomyTree(classes[order], left_sizes)


def is_partition(sides, classes):
    return sorted(np.concatenate(sides).tolist()) == sorted(classes) and all(map(len, sides))


def by_parity(first, second, others):  # noqa: ARG001 - the arguments of the callback
    return others % 2 == 1


MAKERS = {
    "random": random_split,
    "class_balanced": class_balanced_split,
    "data_balanced": lambda source: data_balanced_split(source, np.arange(1.0, 41.0)),
    "random_pair": lambda source: random_pair_split(source, by_parity),
}


@pytest.mark.parametrize("name", MAKERS)
@given(n_classes=st.integers(2, 40), seed=st.integers(0, 1_000))
def test_every_split_is_a_partition(name, n_classes, seed):
    classes = rng(seed).permutation(40)[:n_classes]
    assert is_partition(MAKERS[name](rng(seed))(classes), classes.tolist())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 40])
def test_trees_have_every_class_once_and_depend_on_the_seed(name, n_classes):
    classes = np.array([f"c{k}" for k in range(n_classes)])
    tree = tree_of(classes, MAKERS[name](rng(3)))
    assert sorted(tree.leaves.tolist()) == sorted(classes.tolist())
    assert tree == tree_of(classes, MAKERS[name](rng(3)))
    if n_classes == 40:
        assert tree != tree_of(classes, MAKERS[name](rng(4)))


def test_nodes_come_in_preorder_and_chains_need_no_recursion():
    tree = tree_of(np.arange(3_000), lambda classes: (classes[1:], classes[:1]))
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


@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
def test_a_class_goes_to_the_nearer_of_two_centroids(sparse_rows):
    rng = np.random.default_rng(0)
    centroids = rng.normal(size=(40, 5))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    given = sparse.csr_array(centroids) if sparse_rows else centroids
    left, right = centroid_pair_split(rng, given)(np.arange(5, 40))
    assert sorted([*left, *right]) == list(range(5, 40))
    first, second = centroids[left[0]], centroids[right[0]]
    for side, own, other in ((left, first, second), (right, second, first)):
        to_own = np.linalg.norm(centroids[side] - own, axis=1)
        assert (to_own <= np.linalg.norm(centroids[side] - other, axis=1) + 1e-12).all()


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_classes_at_equal_distance_are_split_at_random(value):
    split = centroid_pair_split(np.random.default_rng(0), np.full((1000, 2), value))
    left, right = split(np.arange(1000))
    assert 400 < len(left) < 600
    assert sorted([*left, *right]) == list(range(1000))
