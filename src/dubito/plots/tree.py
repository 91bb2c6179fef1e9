"""The tree of a nested dichotomy: which classes are told apart, and in which order (P4)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._wording import counted, shorten
from dubito.plots._drawing import DrawsOnAxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Trees of up to so many classes are drawn whole, larger ones to this depth.
_WHOLE, _LEVELS = 100, 5
_LONGEST = 24
#: Inches of new figures: for each level and each line, and the least and the most of both.
_WIDE, _HIGH, _LEAST, _MOST = 1.0, 0.25, 1.5, 100.0
_POINTS_PER_INCH = 72


class TreeDisplay(DrawsOnAxes):
    """The classes of a nested dichotomy as leaves of its tree, the root at the left.

    A node below which nothing is drawn is named by the number of its classes. Make one with
    `from_tree` or `from_estimator`.

    Parameters
    ----------
    tree : DichotomyTree
        What is drawn.
    max_depth : int, optional
        Nodes at this depth stand for all below them. By default trees of up to 100 classes are
        drawn whole, larger ones to depth 5.

    Attributes
    ----------
    depth : ndarray of int, shape (V,)
        The depth of each drawn node, the root first, every node before those below it.
    height : ndarray of shape (V,)
        Its place from top to bottom: 0, 1, ... for the ends of the tree, midway between its two
        sides for a node.
    parent : ndarray of int, shape (V,)
        The drawn node above, -1 for the root.
    size : ndarray of int, shape (V,)
        Its number of classes, 1 for a leaf.
    names : tuple of str or None, length V
        The label of a leaf, the number of classes of a node that stands for all below it, None
        for other nodes.
    ax_, figure_ : matplotlib axes and figure
        Where the last drawing was made.
    branches_ : matplotlib line collection
        The lines from nodes to what is below them, after `plot`.
    texts_ : list of matplotlib texts
        The names, after `plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dubito.dichotomies import DichotomyTree
    >>> from dubito.plots import TreeDisplay
    >>> tree = DichotomyTree.from_nested(((("cat", "dog"), "cow"), ("car", "bus")))
    >>> display = TreeDisplay.from_tree(tree, max_depth=2, ax=Figure().subplots())
    >>> [text.get_text() for text in display.texts_]
    ['… 2 classes', 'cow', 'car', 'bus']
    """

    def __init__(self, tree: Any, *, max_depth: int | None = None) -> None:
        deepest = _deepest(tree, max_depth)
        # What is still to be placed: a node or, below 0, a leaf; its depth; the place above.
        waiting = [(0 if len(tree.left) else -1, 0, -1)]
        placed: list[tuple[int, int, int]] = []
        names: list[str | None] = []
        while waiting:
            node, level, above = waiting.pop()
            size = 1 if node < 0 else int(tree.stop[node] - tree.start[node])
            if size == 1:
                names.append(shorten(tree.leaves[-1 - node], _LONGEST))
            elif level >= deepest:
                names.append(f"… {counted(size, 'class')}")
            else:
                names.append(None)
                waiting += [(int(side[node]), level + 1, len(placed)) for side in _sides(tree)]
            placed.append((level, above, size))
        self.depth, self.parent, self.size = np.array(placed).T
        self.names = tuple(names)
        self.height = _heights(self.parent, np.array([name is None for name in names]))

    @classmethod
    def from_tree(
        cls, tree: Any, *, max_depth: int | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a tree.

        Parameters
        ----------
        tree, max_depth
            As for the class.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        TreeDisplay
        """
        return cls(tree, max_depth=max_depth).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_depth: int | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the tree of a fitted nested dichotomy.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``tree_``, as `NestedDichotomyClassifier` has.
        max_depth
            As for the class.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        TreeDisplay
        """
        if not hasattr(estimator, "tree_"):
            raise TypeError(
                f"{type(estimator).__name__} has no tree_; pass a fitted NestedDichotomyClassifier "
                "(an ensemble's are its estimators_)."
            )
        return cls.from_tree(estimator.tree_, max_depth=max_depth, ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, fontsize: float | None = None, **kwargs: Any) -> Self:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default new ones, large enough for every name.
        fontsize : float, optional
            Of the names; by default such that they do not overlap, from 4 to 10.
        **kwargs
            Passed on to matplotlib's ``LineCollection`` for the branches.

        Returns
        -------
        TreeDisplay
            Itself.
        """
        self._set_axes(ax)
        if ax is None:
            size = _WIDE * (self.depth.max() + 2), _HIGH * (self.height.max() + 3)
            self.figure_.set_size_inches(np.clip(size, _LEAST, _MOST))
            self.figure_.set_layout_engine("constrained")
        self._draw_branches(kwargs)
        self._draw_names(self._fitting_size() if fontsize is None else fontsize)
        return self

    def _draw_branches(self, style: dict[str, Any]) -> None:
        from matplotlib.collections import LineCollection  # noqa: PLC0415 - only drawing needs it

        above = self.parent[1:]
        # From the node above straight up or down, and from there to the right.
        x = np.column_stack([self.depth[above], self.depth[above], self.depth[1:]])
        y = np.column_stack([self.height[above], self.height[1:], self.height[1:]])
        style = {"colors": "0.4", "linewidths": 1.0, **style}
        self.branches_ = LineCollection(list(np.stack([x, y], axis=-1)), **style)
        self.ax_.add_collection(self.branches_)
        lowest = max(self.height.max(), 0) + 0.5
        levels = int(self.depth.max())
        self.ax_.set(xlim=(-0.1, max(levels, 1)), ylim=(lowest, -0.5), yticks=[], xlabel="depth")
        self.ax_.set_xticks(np.unique(np.linspace(0, levels, min(levels, 10) + 1).round()))
        self.ax_.spines[["left", "right", "top"]].set_visible(False)

    def _draw_names(self, letters: float) -> None:
        style = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        places = zip(self.depth, self.height, self.size, self.names, strict=True)
        self.texts_ = [
            self.ax_.annotate(
                name,
                (x, y),
                fontsize=letters,
                color="black" if size == 1 else "0.4",
                annotation_clip=False,
                parse_math=False,
                **style,
            )
            for x, y, size, name in places
            if name is not None
        ]

    def _fitting_size(self) -> float:
        """Return the size of letters that fill four fifths of a line."""
        box = self.ax_.get_position()
        points = box.height * self.figure_.get_size_inches()[1] * _POINTS_PER_INCH
        return float(np.clip(0.8 * points / (self.height.max() + 1), 4, 10))


def _deepest(tree: Any, max_depth: Any) -> int:
    n_classes = len(tree.leaves)
    if max_depth is None:
        return n_classes if n_classes <= _WHOLE else _LEVELS
    if not isinstance(max_depth, Integral) or max_depth < 0:
        raise ValueError(f"max_depth must be a whole number, 0 or more. Got {max_depth!r} instead.")
    return int(max_depth)


def _sides(tree: Any) -> tuple[IntArray, IntArray]:
    """Return the nodes on both sides; the last is placed first, so at the top."""
    return tree.right, tree.left


def _heights(parent: IntArray, inner: BoolArray) -> FloatArray:
    """Return 0, 1, ... for the ends and, for other nodes, the middle between their two sides."""
    height = np.where(inner, 0.0, np.cumsum(~inner) - 1.0)
    for place in range(len(parent) - 1, 0, -1):  # what is below a node comes later
        if inner[parent[place]]:
            height[parent[place]] += height[place] / 2
    return height
