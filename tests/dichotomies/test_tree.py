"""DichotomyTree: construction, derived arrays, text, and errors."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.dichotomies.tree import DichotomyTree

PETS = ((("cat", "dog"), "cow"), ("car", "bus"))
CHAIN = 5_000


@st.composite
def trees(draw, most=12):
    """Draw trees of any shape, with strings or integers as labels."""
    labels = draw(
        st.lists(st.integers(-50, 50), min_size=1, max_size=most, unique=True)
        | st.lists(st.text("abc", min_size=1), min_size=1, max_size=most, unique=True)
    )
    left_sizes, waiting = [], [len(labels)]
    while waiting:
        size = waiting.pop()
        if size > 1:
            left_sizes.append(draw(st.integers(1, size - 1)))
            waiting += [size - left_sizes[-1], left_sizes[-1]]
    return DichotomyTree.from_splits(labels, left_sizes)


def chain(n_classes):
    nested = 0
    for label in range(1, n_classes):
        nested = (nested, label)
    return nested


def described(nested):
    """Return leaves and node arrays of nested pairs, by recursion."""
    leaves, rows = [], []

    def visit(part, parent, depth):
        if not isinstance(part, tuple):
            leaves.append(part)
            return -len(leaves)
        node, start = len(rows), len(leaves)
        rows.append({"parent": parent, "depths": depth, "start": start})
        left = visit(part[0], node, depth + 1)
        split = len(leaves)
        right = visit(part[1], node, depth + 1)
        rows[node] |= {"left": left, "right": right, "split": split, "stop": len(leaves)}
        rows[node]["left_sizes"] = split - start
        return node

    visit(nested, -1, 0)
    return leaves, rows


@given(trees())
def test_arrays_equal_a_recursion(tree):
    nested = tree.to_nested()
    leaves, rows = described(nested if len(nested) > 1 else nested[0])
    assert tree.leaves.tolist() == leaves
    assert tree.n_classes == len(leaves) == tree.n_nodes + 1
    assert tree.depth == max((row["depths"] + 1 for row in rows), default=0)
    for name in ("left_sizes", "start", "split", "stop", "left", "right", "parent", "depths"):
        assert getattr(tree, name).tolist() == [row[name] for row in rows]


@given(trees())
def test_nested_round_trip(tree):
    assert DichotomyTree.from_nested(tree.to_nested()) == tree
    assert hash(DichotomyTree.from_nested(tree.to_nested())) == hash(tree)


@given(trees())
def test_text_round_trip(tree):
    """The depth of a line is its indentation, three characters per depth."""
    stack = []
    for line in reversed(tree.to_text().splitlines()):
        indent, name = re.fullmatch(r"((?:│  |   |├─ |└─ )*)(.*)", line).groups()
        if re.fullmatch(r"\d+ classes", name):
            left, right = stack.pop(), stack.pop()
            assert left[0] == right[0] == len(indent) + 3
            stack.append((len(indent), (left[1], right[1])))
        else:
            stack.append((len(indent), name))
    ((_, read),) = stack
    names = DichotomyTree.from_splits([str(label) for label in tree.leaves], tree.left_sizes)
    assert (read if tree.n_nodes else (read,)) == names.to_nested()


@given(trees())
def test_paths_lead_to_their_leaves(tree):
    for position, label in enumerate(tree.leaves):
        node = 0 if tree.n_nodes else -1
        for at, side in tree.path(label):
            assert at == node
            node = (tree.left, tree.right)[side][node]
        assert node == -1 - position


@given(trees(), st.integers(0, 12))
def test_a_cut_groups_leaves_with_the_same_first_steps(tree, depth):
    first_steps = [tuple(tree.path(label)[:depth]) for label in tree.leaves]
    groups = tree.cut(depth)
    expected = list(dict.fromkeys(first_steps))
    assert groups.tolist() == [expected.index(steps) for steps in first_steps]


@given(trees(), st.data())
def test_a_restriction_keeps_the_splits_of_its_classes(tree, data):
    kept = data.draw(st.lists(st.sampled_from(tree.leaves.tolist()), min_size=1, unique=True))
    small = tree.restrict(kept)
    assert small.leaves.tolist() == [label for label in tree.leaves.tolist() if label in set(kept)]
    assert small == DichotomyTree.from_nested([pruned(tree.to_nested(), set(kept))])


def pruned(nested, kept):
    if not isinstance(nested, tuple):
        return nested if nested in kept else None
    parts = [part for part in (pruned(part, kept) for part in nested) if part is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return tuple(parts)


@given(trees())
def test_restricting_to_all_classes_returns_an_equal_tree(tree):
    assert tree.restrict(tree.leaves) == tree


@given(trees(), st.integers(0, 8))
def test_a_shallow_text_counts_every_class_once(tree, max_depth):
    lines = tree.to_text(max_depth).splitlines()
    ends = [line for line in lines if not re.search(r"(?<!… )\b\d+ classes$", line)]
    collapsed = [int(match[1]) for line in ends if (match := re.search(r"… (\d+) classes$", line))]
    assert sum(collapsed) + len(ends) - len(collapsed) == tree.n_classes


def test_large_groups_are_halved_in_their_order():
    nested = [["a", "b", "c", "d", "e"], [["f"]], ("g", ["h", "i"])]
    expected = (((("a", "b"), "c"), ("d", "e")), "f"), ("g", ("h", "i"))
    assert DichotomyTree.from_nested(nested).to_nested() == expected


def test_a_single_class_is_a_tree():
    tree = DichotomyTree.from_nested([["only"]])
    assert (tree.n_classes, tree.n_nodes, tree.depth) == (1, 0, 0)
    assert tree.path("only") == []
    assert tree.cut(3).tolist() == [0]
    assert str(tree) == "only"
    assert tree.to_nested() == ("only",)
    assert tree == DichotomyTree.from_splits(["only"], [])


def test_a_long_chain_needs_no_recursion():
    tree = DichotomyTree.from_nested(chain(CHAIN))
    assert tree.depth == CHAIN - 1
    assert tree.left_sizes.tolist() == list(range(CHAIN - 1, 0, -1))
    assert len(tree.path(0)) == CHAIN - 1
    assert tree.path(CHAIN - 1) == [(0, 1)]
    assert DichotomyTree.from_nested(tree.to_nested()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301 - our own bytes
    assert tree.restrict(range(0, CHAIN, 2)).depth == CHAIN // 2 - 1
    assert tree.cut(CHAIN).tolist() == list(range(CHAIN))
    assert tree.to_text(2).splitlines() == [
        "5000 classes",
        "├─ 4999 classes",
        "│  ├─ … 4998 classes",
        "│  └─ 4998",
        "└─ 4999",
    ]


def test_large_trees_have_a_short_text():
    tree = DichotomyTree.from_nested(list(range(1_000)))
    assert len(str(tree).splitlines()) == 2**6 - 1
    assert repr(tree) == "DichotomyTree(1000 classes, depth 10)"
    assert len(str(DichotomyTree.from_nested(list(range(100)))).splitlines()) == 199


def test_trees_are_immutable():
    tree = DichotomyTree.from_nested(PETS)
    for name in ("leaves", "left_sizes", "start", "split", "stop", "left", "right", "depths"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 0
    with pytest.raises(AttributeError, match="leaves cannot be set; build another"):
        tree.leaves = np.arange(5)
    assert copy.deepcopy(tree) is tree
    assert copy.copy(tree) is tree


def test_arguments_are_copied():
    leaves, sizes = np.array(["a", "b", "c"]), np.array([1, 1])
    tree = DichotomyTree.from_splits(leaves, sizes)
    leaves[0], sizes[0] = "z", 2
    assert tree.to_nested() == ("a", ("b", "c"))


def test_equality_is_of_labels_and_shape():
    tree = DichotomyTree.from_nested(PETS)
    assert tree == DichotomyTree.from_nested([[["cat", "dog"], "cow"], ["car", "bus"]])
    assert tree != DichotomyTree.from_nested(((("dog", "cat"), "cow"), ("car", "bus")))
    assert tree != DichotomyTree.from_nested((("cat", ("dog", "cow")), ("car", "bus")))
    assert tree != "clustered"
    assert DichotomyTree.from_nested((1, 2)) != DichotomyTree.from_nested(("1", "2"))
    small = DichotomyTree.from_splits(np.array([1, 2], dtype=np.int8), [1])
    assert small == DichotomyTree.from_nested((1, 2))
    assert hash(small) == hash(DichotomyTree.from_nested((1, 2)))


def test_labels_keep_their_type():
    assert DichotomyTree.from_nested((1, (2, 3))).leaves.dtype.kind == "i"
    assert DichotomyTree.from_nested(("a", ("b", "c"))).leaves.dtype.kind == "U"
    assert DichotomyTree.from_nested(("a", ("b", 3))).leaves.tolist() == ["a", "b", 3]
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
    tree = DichotomyTree.from_splits(days, [1])
    assert tree.path(days[1]) == [(0, 1)]
    assert DichotomyTree.from_nested(tree.to_nested()) == tree
    assert DichotomyTree.from_nested((np.int64(3), 4)).path(3) == [(0, 0)]


@pytest.mark.parametrize(
    ("nested", "error", "message"),
    [
        ((), ValueError, "a group of classes is empty"),
        (("a", ("b", [])), ValueError, "a group of classes is empty"),
        (("a", ("b", "a"), ["b"]), ValueError, "more than once: 'a', 'b'"),
        ("ab", TypeError, "nested tuples or lists of labels; got 'ab'"),
        (("a", {"b", "c"}), TypeError, "a group a tuple or a list; got .*, a set"),
        (("a", np.array(["b"])), TypeError, "got .*, a ndarray"),
        (("a", None), ValueError, "leaves has no label in row 1"),
    ],
)
def test_invalid_nested_groups_raise(nested, error, message):
    with pytest.raises(error, match=message):
        DichotomyTree.from_nested(nested)


@pytest.mark.parametrize(
    ("leaves", "left_sizes", "error", "message"),
    [
        ([], [], ValueError, "at least one class; got none"),
        (["a", "b"], [], ValueError, "2 classes has 1 node; left_sizes has 0 entries"),
        (["a", "b", "c"], [3, 1], ValueError, r"left side has 1 to 2; left_sizes\[0\] is 3"),
        (["a", "b", "c"], [2, 0], ValueError, r"node 1 covers 2 classes.*left_sizes\[1\] is 0"),
        (["a", "b"], [1.0], TypeError, "whole numbers.* type float64"),
        (["a", "b"], [[1]], TypeError, r"shape \(1, 1\)"),
        ([["a", "b"]], [1], ValueError, "1-dimensional"),
        (["a", "a"], [1], ValueError, "more than once: 'a'"),
    ],
)
def test_invalid_splits_raise(leaves, left_sizes, error, message):
    with pytest.raises(error, match=message):
        DichotomyTree.from_splits(leaves, left_sizes)


def test_invalid_labels_and_depths_raise():
    tree = DichotomyTree.from_nested(PETS)
    with pytest.raises(
        ValueError, match=r"'cart' not among the classes of the tree \('cat', 'dog'"
    ):
        tree.path("cart")
    with pytest.raises(ValueError, match="'x', 'y' not among the classes"):
        tree.restrict(["cat", "x", "y"])
    with pytest.raises(ValueError, match="at least one class; got no labels"):
        tree.restrict([])
    with pytest.raises(TypeError, match=r"got 'cat'. Pass \['cat'\]"):
        tree.restrict("cat")
    for depth in (-1, 1.5, "2"):
        with pytest.raises(ValueError, match="depth must be a whole number, 0 or more"):
            tree.cut(depth)
        with pytest.raises(ValueError, match="max_depth must be a whole number, 0 or more"):
            tree.to_text(depth)
