"""Drawing of the tree of a nested dichotomy."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._wording import counted, shorten
from dubito.plots._drawing import SingleAxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Trees of up to 100 classes are drawn completely, larger ones to depth 5.
_MOST_CLASSES, _SHOWN_DEPTH = 100, 5
#: Longest name of a class, in characters.
_LONGEST_NAME = 24
#: New figures, in inches: width of a level of depth, height of a line, limits of either size.
_WIDTH, _HEIGHT, _SMALLEST, _LARGEST = 1.0, 0.25, 1.5, 100.0
_POINTS_PER_INCH = 72


class TreeDisplay(SingleAxesDisplay):
    """Drawing of the tree of a nested dichotomy, with the root at the left.

    A node that is not expanded is named by the number of its classes. Make one with `from_tree` or
    `from_estimator`.

    Parameters
    ----------
    tree : DichotomyTree
        The tree.
    max_depth : int, optional
        Nodes at this depth are not expanded. By default trees of up to 100 classes are drawn
        completely, larger ones to depth 5.

    Attributes
    ----------
    depth : ndarray of int, shape (V,)
        The depth of each drawn node or leaf, the root first, every node before its children.
    height : ndarray of shape (V,)
        Its vertical position from the top: 0, 1, ... for leaves and nodes that are not expanded,
        halfway between its children for another node.
    parent : ndarray of int, shape (V,)
        The drawn node above, -1 for the root.
    size : ndarray of int, shape (V,)
        Its number of classes, 1 for a leaf.
    names : tuple of str or None, length V
        The label of a leaf, the number of classes of a node that is not expanded, None for other
        nodes.
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    branches_ : matplotlib line collection
        The lines from nodes to their children, after `plot`.
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
        # Stack of nodes to be added (negative numbers: leaves), their depth, and their parent.
        stack = [(0 if len(tree.left) else -1, 0, -1)]
        drawn: list[tuple[int, int, int]] = []
        names: list[str | None] = []
        while stack:
            node, depth, above = stack.pop()
            size = 1 if node < 0 else int(tree.stop[node] - tree.start[node])
            if size == 1:
                names.append(shorten(tree.leaves[-1 - node], _LONGEST_NAME))
            elif depth >= deepest:
                names.append(f"… {counted(size, 'class')}")
            else:
                names.append(None)
                # The left child is popped first and drawn at the top.
                children = tree.right[node], tree.left[node]
                stack += [(int(child), depth + 1, len(drawn)) for child in children]
            drawn.append((depth, above, size))
        self.depth, self.parent, self.size = np.array(drawn).T
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
            Axes to draw on; by default new ones, large enough for every name.
        fontsize : float, optional
            Size of the names; by default from 4 to 10, such that they do not overlap.
        **kwargs
            Passed on to matplotlib's ``LineCollection`` for the branches.

        Returns
        -------
        TreeDisplay
            Itself.
        """
        self._set_axes(ax)
        if ax is None:
            size = _WIDTH * (self.depth.max() + 2), _HEIGHT * (self.height.max() + 3)
            self.figure_.set_size_inches(np.clip(size, _SMALLEST, _LARGEST))
            self.figure_.set_layout_engine("constrained")
        self._draw_branches(kwargs)
        self._draw_names(self._fitting_size() if fontsize is None else fontsize)
        return self

    def _draw_branches(self, style: dict[str, Any]) -> None:
        from matplotlib.collections import LineCollection  # noqa: PLC0415 - drawing only

        above = self.parent[1:]
        # A vertical line from the parent, then a horizontal one to the child.
        x = np.column_stack([self.depth[above], self.depth[above], self.depth[1:]])
        y = np.column_stack([self.height[above], self.height[1:], self.height[1:]])
        style = {"colors": "0.4", "linewidths": 1.0, **style}
        self.branches_ = LineCollection(list(np.stack([x, y], axis=-1)), **style)
        self.ax_.add_collection(self.branches_)
        lowest = max(self.height.max(), 0) + 0.5
        deepest = int(self.depth.max())
        self.ax_.set(xlim=(-0.1, max(deepest, 1)), ylim=(lowest, -0.5), yticks=[], xlabel="depth")
        self.ax_.set_xticks(np.unique(np.linspace(0, deepest, min(deepest, 10) + 1).round()))
        self.ax_.spines[["left", "right", "top"]].set_visible(False)

    def _draw_names(self, fontsize: float) -> None:
        style = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        drawn = zip(self.depth, self.height, self.size, self.names, strict=True)
        self.texts_ = [
            self.ax_.annotate(
                name,
                (x, y),
                fontsize=fontsize,
                color="black" if size == 1 else "0.4",
                annotation_clip=False,
                parse_math=False,
                **style,
            )
            for x, y, size, name in drawn
            if name is not None
        ]

    def _fitting_size(self) -> float:
        """Return the font size that fills 80 % of a line, within 4 to 10."""
        box = self.ax_.get_position()
        points = box.height * self.figure_.get_size_inches()[1] * _POINTS_PER_INCH
        return float(np.clip(0.8 * points / (self.height.max() + 1), 4, 10))


def _deepest(tree: Any, max_depth: Any) -> int:
    n_classes = len(tree.leaves)
    if max_depth is None:
        return n_classes if n_classes <= _MOST_CLASSES else _SHOWN_DEPTH
    if not isinstance(max_depth, Integral) or max_depth < 0:
        raise ValueError(f"max_depth must be a whole number, 0 or more. Got {max_depth!r} instead.")
    return int(max_depth)


def _heights(parent: IntArray, inner: BoolArray) -> FloatArray:
    """Return the height of each node: 0, 1, ... without children, else the mean of its children."""
    height = np.where(inner, 0.0, np.cumsum(~inner) - 1.0)
    for v in range(len(parent) - 1, 0, -1):  # children come after their node
        if inner[parent[v]]:
            height[parent[v]] += height[v] / 2
    return height
