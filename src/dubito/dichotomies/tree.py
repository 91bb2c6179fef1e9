"""The structure of a nested dichotomy: a binary tree whose leaves are the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._labels import as_labels
from dubito._wording import counted, name_some
from dubito.dichotomies._tree_conversions import (
    as_depth,
    as_left_sizes,
    derive_arrays,
    flatten,
    label_positions,
    plain_labels,
    text_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from dubito._typing import IntArray
    from dubito.plots.tree import TreeDisplay

#: `str` shows trees of up to 100 classes completely, larger ones to depth 5.
_MAX_SHOWN, _SHOWN_DEPTH = 100, 5


class DichotomyTree:
    r"""A binary tree that splits a set of classes recursively into single classes.

    Make one with `from_nested` or `from_splits`. It is immutable. A tree of K classes has K-1
    nodes, numbered in preorder: the root is 0, followed by all nodes on its left, then those on its
    right. Every node covers consecutive leaves.

    Parameters
    ----------
    leaves : array-like of shape (K,)
        The class labels from left to right, each once.
    left_sizes : array-like of int, shape (K-1,)
        The number of leaves on the left of each node.

    Attributes
    ----------
    leaves : ndarray of shape (K,)
        The class labels from left to right.
    left_sizes : ndarray of int, shape (K-1,)
        The number of leaves on the left of each node.
    start, split, stop : ndarray of int, shape (K-1,)
        Node t covers the leaves start[t] to stop[t]-1; those from split[t] on are its right side.
    left, right : ndarray of int, shape (K-1,)
        The node on that side, or -1-j if the side is the single leaf j.
    parent : ndarray of int, shape (K-1,)
        The node above, -1 for the root.
    depths : ndarray of int, shape (K-1,)
        The number of nodes above.

    Notes
    -----
    The probability of a class is the product of the node probabilities on its `path` (Leathart et
    al. 2019, eq. 2).

    Examples
    --------
    >>> from dubito.dichotomies import DichotomyTree
    >>> tree = DichotomyTree.from_nested(((("cat", "dog"), "cow"), ("car", "bus")))
    >>> print(tree)
    5 classes
    ├─ 3 classes
    │  ├─ 2 classes
    │  │  ├─ cat
    │  │  └─ dog
    │  └─ cow
    └─ 2 classes
       ├─ car
       └─ bus
    >>> tree.path("dog")
    [(0, 0), (1, 0), (2, 1)]
    >>> tree.cut(1)
    array([0, 0, 0, 1, 1])
    >>> tree.restrict(["dog", "bus", "cow"]).to_nested()
    (('dog', 'cow'), 'bus')
    """

    __slots__ = (
        "_positions",
        "depths",
        "leaves",
        "left",
        "left_sizes",
        "parent",
        "right",
        "split",
        "start",
        "stop",
    )

    leaves: npt.NDArray[Any]
    left_sizes: IntArray
    start: IntArray
    split: IntArray
    stop: IntArray
    left: IntArray
    right: IntArray
    parent: IntArray
    depths: IntArray
    _positions: dict[Any, int]

    def __init__(self, leaves: npt.ArrayLike, left_sizes: npt.ArrayLike) -> None:
        labels = as_labels(leaves, "leaves").copy()
        sizes = as_left_sizes(left_sizes)
        positions = label_positions(plain_labels(labels))
        if len(sizes) != len(labels) - 1:
            raise ValueError(
                f"a tree of {counted(len(labels), 'class')} has "
                f"{counted(len(labels) - 1, 'node')}; left_sizes has {len(sizes)} entries."
            )
        self._set("_positions", positions)
        self._set_array("leaves", labels)
        self._set_array("left_sizes", sizes)
        for name, values in derive_arrays(sizes).items():
            self._set_array(name, np.array(values, dtype=np.intp))

    @classmethod
    def from_splits(cls, leaves: npt.ArrayLike, left_sizes: npt.ArrayLike) -> DichotomyTree:
        """Build a tree from its leaves and the sizes of its left sides.

        Parameters
        ----------
        leaves : array-like of shape (K,)
            The class labels from left to right, each once.
        left_sizes : array-like of int, shape (K-1,)
            The number of leaves on the left of each node, nodes in preorder.

        Returns
        -------
        DichotomyTree

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> DichotomyTree.from_splits(["a", "b", "c"], [2, 1]).to_nested()
        (('a', 'b'), 'c')
        """
        return cls(leaves, left_sizes)

    @classmethod
    def from_nested(cls, nested: Sequence[Any]) -> DichotomyTree:
        """Build a tree from nested tuples or lists with labels as leaves, such as a taxonomy.

        Parameters
        ----------
        nested : tuple or list
            Its items are labels, or tuples or lists again. A group of more than two is split into
            halves in its order, the first being the larger; a group of one is its only item.

        Returns
        -------
        DichotomyTree

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> DichotomyTree.from_nested([["cat", "dog", "cow"], ["car"]]).to_nested()
        ((('cat', 'dog'), 'cow'), 'car')
        """
        if not isinstance(nested, tuple | list):
            raise TypeError(
                f"a tree is built from nested tuples or lists of labels; got {nested!r}. "
                'Write groups in brackets, as in (("cat", "dog"), "bus").'
            )
        return cls(*flatten(nested))

    @property
    def n_classes(self) -> int:
        """The number of leaves, K."""
        return len(self.leaves)

    @property
    def n_nodes(self) -> int:
        """The number of dichotomies, K-1."""
        return len(self.left_sizes)

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path, 0 for a single leaf."""
        return int(self.depths.max(initial=-1)) + 1

    def path(self, label: Any) -> list[tuple[int, int]]:
        """Return the nodes from the root to a class, each with the side it is on.

        Parameters
        ----------
        label : label
            One of `leaves`.

        Returns
        -------
        list of (int, int)
            Node and side: 0 left, 1 right.

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> DichotomyTree.from_nested((("a", "b"), "c")).path("b")
        [(0, 0), (1, 1)]
        """
        (position,) = self._positions_of([label])
        steps = []
        node = 0 if self.n_nodes else -1
        while node >= 0:
            side = int(position >= self.split[node])
            steps.append((node, side))
            node = int((self.right if side else self.left)[node])
        return steps

    def cut(self, depth: int) -> IntArray:
        """Return the group of each leaf when the tree is cut off at a depth.

        Parameters
        ----------
        depth : int
            Largest number of dichotomies on a path: 0 gives one group, `self.depth` or more one
            group for each class.

        Returns
        -------
        ndarray of int, shape (K,)
            In the order of `leaves`; groups are numbered from left to right.

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> tree = DichotomyTree.from_nested(((("a", "b"), "c"), ("d", "e")))
        >>> tree.cut(2)
        array([0, 0, 1, 2, 3])
        """
        deepest = as_depth(depth, "depth")
        # Exactly one node splits between two neighbouring leaves.
        begins = np.zeros(self.n_classes, dtype=np.intp)
        begins[self.split[self.depths < deepest]] = 1
        return np.cumsum(begins)

    def restrict(self, labels: Iterable[Any]) -> DichotomyTree:
        """Return the tree of some of the classes, without the nodes that do not split them.

        Parameters
        ----------
        labels : iterable of labels
            At least one, each among `leaves`.

        Returns
        -------
        DichotomyTree
            Its leaves are in the order of this one's.

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> tree = DichotomyTree.from_nested((("a", "b"), ("c", "d")))
        >>> tree.restrict(["d", "a", "c"]).to_nested()
        ('a', ('c', 'd'))
        """
        if isinstance(labels, str | bytes):
            raise TypeError(f"labels must be a list of labels; got {labels!r}. Pass [{labels!r}].")
        kept = np.zeros(self.n_classes, dtype=bool)
        kept[self._positions_of(labels)] = True
        if not kept.any():
            raise ValueError("a tree needs at least one class; got no labels.")
        before = np.concatenate([[0], np.cumsum(kept)])
        on_left = before[self.split] - before[self.start]
        on_right = before[self.stop] - before[self.split]
        return DichotomyTree(self.leaves[kept], on_left[(on_left > 0) & (on_right > 0)])

    def to_nested(self) -> tuple[Any, ...]:
        """Return the tree as nested pairs with labels as leaves; a single leaf as a group of one.

        Returns
        -------
        tuple

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> DichotomyTree.from_splits([3, 1, 2], [1, 1]).to_nested()
        (3, (1, 2))
        """
        names = plain_labels(self.leaves)
        if len(names) == 1:
            return (names[0],)
        pairs: list[tuple[Any, ...]] = [()] * self.n_nodes
        for node in range(self.n_nodes - 1, -1, -1):  # nodes below come later
            sides = (int(self.left[node]), int(self.right[node]))
            pairs[node] = tuple(pairs[s] if s >= 0 else names[-1 - s] for s in sides)
        return pairs[0]

    def to_text(self, max_depth: int | None = None) -> str:
        """Return the tree as indented lines of text.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown by the number of their classes. All by default.

        Returns
        -------
        str

        Examples
        --------
        >>> from dubito.dichotomies import DichotomyTree
        >>> tree = DichotomyTree.from_nested(((("a", "b"), "c"), "d"))
        >>> print(tree.to_text(max_depth=1))
        4 classes
        ├─ … 3 classes
        └─ d
        """
        deepest = self.depth if max_depth is None else as_depth(max_depth, "max_depth")
        return "\n".join(text_lines(self, deepest))

    def plot(
        self, max_depth: int | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> TreeDisplay:
        """Draw the tree; see `TreeDisplay`.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown by the number of their classes. By default trees of up to
            100 classes are drawn completely, larger ones to depth 5.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        **kwargs
            As in `TreeDisplay.plot`.

        Returns
        -------
        TreeDisplay
        """
        from dubito.plots.tree import TreeDisplay  # noqa: PLC0415 - drawing only

        return TreeDisplay.from_tree(self, max_depth=max_depth, ax=ax, **kwargs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DichotomyTree):
            return NotImplemented
        return np.array_equal(self.left_sizes, other.left_sizes) and (
            plain_labels(self.leaves) == plain_labels(other.leaves)
        )

    def __hash__(self) -> int:
        return hash((tuple(self._positions), self.left_sizes.tobytes()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"a DichotomyTree never changes, so {name} cannot be set; build another with "
            "from_nested, from_splits or restrict."
        )

    def __copy__(self) -> DichotomyTree:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DichotomyTree:
        return self

    def __reduce__(self) -> tuple[type, tuple[npt.NDArray[Any], IntArray]]:
        return DichotomyTree, (self.leaves, self.left_sizes)

    def __str__(self) -> str:
        return self.to_text(None if self.n_classes <= _MAX_SHOWN else _SHOWN_DEPTH)

    def __repr__(self) -> str:
        return f"DichotomyTree({counted(self.n_classes, 'class')}, depth {self.depth})"

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _set_array(self, name: str, array: npt.NDArray[Any]) -> None:
        array.flags.writeable = False
        self._set(name, array)

    def _positions_of(self, labels: Iterable[Any]) -> list[int]:
        wanted = list(labels)
        unknown = [label for label in wanted if label not in self._positions]
        if unknown:
            raise ValueError(
                f"{name_some(unknown)} not among the classes of the tree "
                f"({name_some(list(self._positions))})."
            )
        return [self._positions[label] for label in wanted]
