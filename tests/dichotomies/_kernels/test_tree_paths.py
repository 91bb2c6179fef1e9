"""Kernels of tree paths, compared with products leaf by leaf and enumeration of interval ends."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit

from dubito.dichotomies._kernels.tree_paths import (
    class_bounds,
    class_proba,
    group_sums,
    log_class_proba,
    maximal_classes,
)


def draw_tree(rng, n_classes):
    """Return left and right children in preorder, and a column for each leaf."""
    left, right = [], []

    def grow(start, stop):
        if stop - start == 1:
            return -1 - start
        node = len(left)
        left.append(None)
        right.append(None)
        split = rng.integers(start + 1, stop)
        left[node] = grow(start, split)
        right[node] = grow(split, stop)
        return node

    grow(0, n_classes)
    return np.array(left, dtype=int), np.array(right, dtype=int), rng.permutation(n_classes)


def chain(n_classes):
    """Return a tree that sends one class to the left at each node."""
    left = -1 - np.arange(n_classes - 1)
    right = np.append(np.arange(1, n_classes - 1), -n_classes)
    return left, right, np.arange(n_classes)


def paths(tree):
    """Return (node, goes right) along the path to each column."""
    left, right, order = tree
    found = [[] for _ in order]
    todo = [(0, [])] if len(left) else []
    while todo:
        node, path = todo.pop()
        for side, child in enumerate((left[node], right[node])):
            here = [*path, (node, side)]
            if child < 0:
                found[order[-1 - child]] = here
            else:
                todo.append((child, here))
    return found


def slow_log_proba(log_odds, tree):
    """Return log-probabilities class by class."""
    columns = [
        sum((log_expit(log_odds[:, t] if side else -log_odds[:, t]) for t, side in path), 0.0)
        for path in paths(tree)
    ]
    return np.column_stack([np.broadcast_to(column, len(log_odds)) for column in columns])


def draw_bounds(rng, n, n_nodes):
    """Return intervals with ends among few numbers, so that ties, zeros and ones are common."""
    ends = rng.choice([0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0], size=(2, n, n_nodes))
    free = rng.random(size=(2, n, n_nodes))
    return np.sort(np.where(rng.random(n_nodes) < 0.3, free, ends), axis=0)


def vertices(lower, upper, tree):
    """Return class probabilities at all ends of the node intervals, (vertices, K)."""
    corners = np.array(list(product(*zip(lower, upper, strict=True))))
    columns = [
        np.prod([corners[:, t] if side else 1 - corners[:, t] for t, side in path], axis=0)
        for path in paths(tree)
    ]
    return np.column_stack([np.broadcast_to(column, len(corners)) for column in columns])


TREES = st.tuples(st.integers(1, 40), st.integers(0, 2**32 - 1))


@given(TREES, st.sampled_from([0.1, 3.0, 1e3, 1e306]))
def test_log_probabilities_are_sums_along_paths(drawn, scale):
    n_classes, seed = drawn
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_classes)
    log_odds = scale * rng.normal(size=(5, n_classes - 1))
    ours, theirs = log_class_proba(log_odds, *tree), slow_log_proba(log_odds, tree)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(
        class_proba(log_odds, *tree), np.exp(theirs), rtol=1e-12, atol=1e-300
    )
    np.testing.assert_allclose(np.exp(ours).sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(class_proba(log_odds, *tree).sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("log_odds", [1e4, np.inf])
def test_very_large_log_odds_give_certainty(log_odds):
    tree = chain(3)
    for sign, certain in ((1, 2), (-1, 0)):
        given_log_odds = sign * np.full((1, 2), log_odds)
        logs = log_class_proba(given_log_odds, *tree)[0]
        assert logs[certain] == 0
        assert np.all(np.delete(logs, certain) <= -log_odds)
        np.testing.assert_array_equal(class_proba(given_log_odds, *tree)[0], np.eye(3)[certain])


def test_infinite_odds_at_one_node():
    logs = log_class_proba(np.array([[np.inf, 1.0], [-np.inf, 1.0]]), *chain(3))
    np.testing.assert_allclose(logs[0], [-np.inf, log_expit(-1.0), log_expit(1.0)])
    np.testing.assert_array_equal(logs[1], [0.0, -np.inf, -np.inf])


def test_nan_odds_give_nan():
    log_odds = np.array([[0.0, np.nan]])
    for function in (log_class_proba, class_proba):
        unknown = np.isnan(function(log_odds, *chain(3))[0])
        assert not unknown[0]
        assert unknown[1:].any()


def test_chains_of_thousands_do_not_underflow():
    log_odds = np.full((1, 4_999), np.log(3))
    logs = log_class_proba(log_odds, *chain(5_000))[0]
    np.testing.assert_allclose(logs[-1], 4_999 * np.log(0.75), rtol=1e-11)
    np.testing.assert_allclose(logs[:3], np.log([0.25, 0.75 * 0.25, 0.75**2 * 0.25]), rtol=1e-13)


@pytest.mark.parametrize("function", [log_class_proba, class_proba])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_independent(function, dtype):
    rng = np.random.default_rng(2)
    tree = draw_tree(rng, 77)
    log_odds = rng.normal(size=(9, 76)).astype(dtype)
    whole = function(log_odds, *tree)
    for i in range(9):
        np.testing.assert_array_equal(function(log_odds[i : i + 1], *tree)[0], whole[i])
    np.testing.assert_array_equal(function(np.asfortranarray(log_odds)[::2], *tree), whole[::2])
    np.testing.assert_array_equal(function(log_odds.astype(float), *tree), whole)


def test_one_class_is_certain():
    tree = draw_tree(np.random.default_rng(0), 1)
    empty = np.empty((2, 0))
    np.testing.assert_array_equal(log_class_proba(empty, *tree), np.zeros((2, 1)))
    np.testing.assert_array_equal(class_bounds(empty, empty, *tree), np.ones((2, 2, 1)))
    np.testing.assert_array_equal(maximal_classes(empty, empty, *tree), np.ones((2, 1)))


@settings(max_examples=200)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_bounds_and_maximal_classes_equal_enumeration(n_classes, seed):
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_classes)
    lower, upper = draw_bounds(rng, 4, n_classes - 1)
    bounds, kept = class_bounds(lower, upper, *tree), maximal_classes(lower, upper, *tree)
    for i in range(4):
        p = vertices(lower[i], upper[i], tree)
        np.testing.assert_allclose(bounds[0][i], p.min(axis=0), rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(bounds[1][i], p.max(axis=0), rtol=1e-14, atol=1e-300)
        np.testing.assert_array_equal(kept[i], undominated(p))


def undominated(p):
    """Return which classes no other exceeds at all vertices where not both are 0."""
    kept = np.ones(p.shape[1], dtype=bool)
    for a, b in product(range(p.shape[1]), repeat=2):
        either = (p[:, a] > 0) | (p[:, b] > 0)
        if a != b and either.any():
            kept[b] &= not np.all(p[either, a] > p[either, b] * (1 + 1e-10))
    return kept


@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_maximal_classes_are_a_subset_of_interval_dominance(n_classes, seed):
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_classes)
    lower, upper = draw_bounds(rng, 8, n_classes - 1)
    kept = maximal_classes(lower, upper, *tree)
    smallest, largest = class_bounds(lower, upper, *tree)
    assert np.all(kept.any(axis=1))
    assert np.all(smallest <= largest)
    assert not np.any(kept & (largest < smallest.max(axis=1, keepdims=True) * (1 - 1e-10)))


@given(TREES)
def test_precise_nodes_keep_the_most_probable_classes(drawn):
    n_classes, seed = drawn
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_classes)
    log_odds = rng.choice([-2.0, 0.0, 1.0], size=(6, n_classes - 1))
    node = 1 / (1 + np.exp(-log_odds))
    p = class_proba(log_odds, *tree)
    np.testing.assert_array_equal(
        maximal_classes(node, node, *tree), p >= p.max(axis=1, keepdims=True) * (1 - 1e-10)
    )
    for bound in class_bounds(node, node, *tree):
        np.testing.assert_allclose(bound, p, rtol=1e-12)


def test_vacuous_nodes_keep_every_class():
    none, all_of_it = np.zeros((1, 9)), np.ones((1, 9))
    tree = draw_tree(np.random.default_rng(1), 10)
    assert maximal_classes(none, all_of_it, *tree).all()
    np.testing.assert_array_equal(class_bounds(none, all_of_it, *tree)[0], np.zeros((1, 10)))
    np.testing.assert_array_equal(class_bounds(none, all_of_it, *tree)[1], np.ones((1, 10)))


def test_classes_are_compared_below_their_common_node():
    # The edge above classes 1 and 2 is in [0, 0.9]; below it, 2 is nine times as probable as 1.
    kept = maximal_classes(np.array([[0.0, 0.9]]), np.array([[0.9, 0.9]]), *chain(3))
    np.testing.assert_array_equal(kept, [[True, False, True]])


def test_bounds_that_underflow_are_rounded_outwards():
    node = np.full((1, 4_999), 0.5)
    lower, upper = class_bounds(node, node, *chain(5_000))
    assert lower[0, -1] == 0
    assert 0 < upper[0, -1] < 1e-300
    impossible = class_bounds(np.zeros((1, 2)), np.array([[1.0, 0.0]]), *chain(3))[1]
    np.testing.assert_array_equal(impossible, [[1.0, 1.0, 0.0]])


def test_ties_are_kept_in_deep_trees():
    """4,096 classes are equally probable: rounding must not exclude any."""
    n_classes = 4_096
    left, right, order = chain(n_classes)
    fraction = 1 / np.arange(n_classes, 1, -1.0)[None]
    assert maximal_classes(1 - fraction, 1 - fraction, left, right, order).all()


def test_sums_of_groups():
    rng = np.random.default_rng(4)
    proba, group = rng.dirichlet(np.ones(6), size=4), np.array([2, 0, 1, 0, 2, 2])
    expected = np.column_stack([proba[:, group == g].sum(axis=1) for g in range(3)])
    np.testing.assert_allclose(group_sums(proba, group), expected, rtol=1e-15)
