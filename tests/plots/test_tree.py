"""TreeDisplay: every class once, nodes midway between their sides, on the axes it was given."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dubito.dichotomies.tree import DichotomyTree
from dubito.plots import TreeDisplay

PETS = DichotomyTree.from_nested(((("cat", "dog"), "cow"), ("car", "bus")))


@pytest.fixture
def ax():
    return Figure().subplots()


def written(display):
    return [text.get_text() for text in display.texts_]


def test_all_classes_from_top_to_bottom(ax):
    display = TreeDisplay.from_tree(PETS, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert written(display) == PETS.leaves.tolist()
    assert [text.xy for text in display.texts_] == [(3, 0), (3, 1), (2, 2), (2, 3), (2, 4)]
    top, bottom = ax.get_ylim()[::-1]
    assert (top, bottom) == (-0.5, 4.5)  # the first class is above
    assert ax.get_xlabel() == "depth"
    assert ax.get_xticks().tolist() == [0, 1, 2, 3]


def test_nodes_are_midway_and_joined_to_their_sides(ax):
    display = TreeDisplay.from_tree(PETS, ax=ax)
    assert display.names == (None, None, None, "cat", "dog", "cow", None, "car", "bus")
    assert display.parent.tolist() == [-1, 0, 1, 2, 2, 1, 0, 6, 6]
    assert display.depth.tolist() == [0, 1, 2, 3, 3, 2, 1, 2, 2]
    assert display.size.tolist() == [5, 3, 2, 1, 1, 1, 2, 1, 1]
    assert display.height.tolist() == [2.375, 1.25, 0.5, 0, 1, 2, 3.5, 3, 4]
    assert display.branches_ in ax.collections
    for place, line in enumerate(display.branches_.get_segments(), start=1):
        above = display.parent[place]
        start = display.depth[above], display.height[above]
        end = display.depth[place], display.height[place]
        assert line.tolist() == [list(start), [start[0], end[1]], list(end)]


def test_collapsed_nodes_tell_their_number(ax):
    display = TreeDisplay.from_tree(PETS, max_depth=1, ax=ax)
    assert written(display) == ["… 3 classes", "… 2 classes"]
    assert display.size.tolist() == [5, 3, 2]
    colours = {text.get_color() for text in display.texts_}
    assert colours.isdisjoint(text.get_color() for text in PETS.plot(ax=ax).texts_)
    assert written(PETS.plot(max_depth=0, ax=ax)) == ["… 5 classes"]


def test_large_trees_are_cut_unless_a_depth_is_given(ax):
    tree = DichotomyTree.from_nested(list(range(1_000)))
    display = TreeDisplay(tree)
    assert display.depth.max() == 5
    ends = [name is not None for name in display.names]
    assert display.size[ends].sum() == 1_000
    assert len(TreeDisplay(tree, max_depth=7).depth) == 2**8 - 1
    assert len(written(DichotomyTree.from_nested(list(range(100))).plot(ax=ax))) == 100


def test_from_estimator_reads_its_tree(ax):
    display = TreeDisplay.from_estimator(SimpleNamespace(tree_=PETS), max_depth=2, ax=ax)
    assert written(display) == ["… 2 classes", "cow", "car", "bus"]
    with pytest.raises(TypeError, match="SimpleNamespace has no tree_; pass a fitted Nested"):
        TreeDisplay.from_estimator(SimpleNamespace(), ax=ax)


def test_the_tree_draws_itself(ax):
    display = PETS.plot(2, ax, linewidths=3)
    assert isinstance(display, TreeDisplay)
    assert display.ax_ is ax
    assert display.branches_.get_linewidths().tolist() == [3]


def test_letters_fit_their_lines():
    few, many = (
        TreeDisplay(DichotomyTree.from_nested(list(range(n)))).plot(Figure().subplots())
        for n in (5, 40)
    )
    assert few.texts_[0].get_fontsize() == 10
    line = 72 * 4.8 * many.ax_.get_position().height / 40
    assert 4 < many.texts_[0].get_fontsize() < line
    large = TreeDisplay(PETS).plot(Figure().subplots(), fontsize=14)
    assert large.texts_[0].get_fontsize() == 14


def test_new_axes_grow_with_the_tree(monkeypatch):
    monkeypatch.setattr(
        "dubito.plots._drawing.pyplot",
        lambda: SimpleNamespace(subplots=lambda: (None, Figure().subplots())),
    )
    small, large = (
        DichotomyTree.from_nested(list(range(n))).plot().figure_.get_size_inches() for n in (1, 100)
    )
    assert (small < large).all()
    assert large[1] > 20
    TreeDisplay(DichotomyTree.from_nested(["only"])).plot().figure_.draw_without_rendering()


def test_names_are_written_as_they_are(ax):
    tree = DichotomyTree.from_nested(("", ("$_$", "x" * 60)))
    display = tree.plot(ax=ax)
    assert written(display) == ["", "$_$", "x" * 23 + "…"]
    assert display.height.tolist() == [0.75, 0, 1.5, 1, 2]
    ax.figure.draw_without_rendering()  # mathematics that cannot be read would fail


def test_a_long_chain_is_drawn(ax):
    nested = 0
    for label in range(1, 3_000):
        nested = (nested, label)
    display = DichotomyTree.from_nested(nested).plot(max_depth=2_999, ax=ax)
    assert len(display.texts_) == 3_000
    assert len(ax.get_xticks()) == 11
    assert np.array_equal(np.sort(display.height[display.size == 1]), np.arange(3_000))


@pytest.mark.parametrize("depth", [-1, 1.5, "all"])
def test_depths_are_whole_numbers(depth):
    with pytest.raises(ValueError, match=r"max_depth must be a whole number, 0 or more. Got"):
        TreeDisplay(PETS, max_depth=depth)
