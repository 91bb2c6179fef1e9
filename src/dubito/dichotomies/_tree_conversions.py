"""Conversions of a `DichotomyTree`: from labels and nested tuples, to arrays and to text.

No function is recursive: the depth of a tree may exceed Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._wording import counted, name_some

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import IntArray
    from dubito.dichotomies.tree import DichotomyTree


def plain_labels(labels: npt.NDArray[Any]) -> list[Any]:
    """Return labels as Python values; dates stay as they are, because they may lose their unit."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def label_positions(names: list[Any]) -> dict[Any, int]:
    """Return the position of each label; raise unless each occurs once."""
    if not names:
        raise ValueError("a tree needs at least one class; got none.")
    try:
        positions = {label: position for position, label in enumerate(names)}
    except TypeError as error:
        raise TypeError(f"a label must be a single, hashable value: {error}.") from error
    if len(positions) < len(names):
        twice = {label: None for at, label in enumerate(names) if positions[label] != at}
        raise ValueError(
            f"each class is one leaf of a tree; more than once: {name_some(list(twice))}."
        )
    return positions


def as_left_sizes(left_sizes: npt.ArrayLike) -> IntArray:
    """Return the sizes of left sides as an array of integers."""
    sizes = np.asarray(left_sizes)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
        raise TypeError(
            "left_sizes must list whole numbers, one for each node; got an array of "
            f"shape {sizes.shape} and type {sizes.dtype}."
        )
    return sizes.astype(np.intp)


def as_depth(depth: Any, name: str) -> int:
    """Return a depth as a non-negative integer."""
    try:
        number = index(depth)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"{name} must be a whole number, 0 or more. Got {depth!r} instead.")
    return number


def derive_arrays(left_sizes: IntArray) -> dict[str, list[int]]:
    """Return the arrays of a `DichotomyTree` that follow from the sizes of left sides."""
    n = len(left_sizes)
    start, split, stop, left, right, depths = ([0] * n for _ in range(6))
    parent = [-1] * n
    if n:
        stop[0] = n + 1
    for t, size in enumerate(left_sizes.tolist()):
        if not 0 < size < stop[t] - start[t]:
            raise ValueError(
                f"node {t} covers {counted(stop[t] - start[t], 'class')}, so its left side has "
                f"1 to {stop[t] - start[t] - 1}; left_sizes[{t}] is {size}."
            )
        split[t] = start[t] + size
        left[t] = t + 1 if size > 1 else -1 - start[t]
        right[t] = t + size if stop[t] - split[t] > 1 else -1 - split[t]
        # In preorder children come after their node, so their ranges are set before their turn.
        for child, begin, end in ((left[t], start[t], split[t]), (right[t], split[t], stop[t])):
            if child >= 0:
                start[child], stop[child] = begin, end
                parent[child], depths[child] = t, depths[t] + 1
    return {
        "start": start,
        "split": split,
        "stop": stop,
        "left": left,
        "right": right,
        "parent": parent,
        "depths": depths,
    }


def flatten(nested: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the leaves and the sizes of left sides of nested tuples or lists."""
    leaves: list[Any] = []
    left_sizes: list[int] = []
    # A stack of items of a group still to be read, and the node whose right side they are.
    waiting: list[tuple[Sequence[Any], int, int, int | None]] = [(nested, 0, len(nested), None)]
    while waiting:
        group, first, last, node = waiting.pop()
        if node is not None:
            left_sizes[node] += len(leaves)
        while last - first == 1 and isinstance(group[first], tuple | list):
            group = group[first]
            first, last = 0, len(group)
        if first == last:
            raise ValueError("a group of classes is empty; leave it out, or give it a label.")
        if last - first == 1:
            leaves.append(_as_label(group[first]))
            continue
        middle = first + (last - first + 1) // 2
        left_sizes.append(-len(leaves))  # becomes a size when the left side is complete
        waiting.append((group, middle, last, len(left_sizes) - 1))
        waiting.append((group, first, middle, None))
    return leaves, left_sizes


def text_lines(tree: DichotomyTree, deepest: int) -> list[str]:
    """Return one line for each node and leaf; nodes at depth `deepest` are not expanded."""
    names = plain_labels(tree.leaves)
    lines = []
    # A stack of nodes or leaves still to be shown, with the prefixes of their line and those below.
    waiting = [(0 if tree.n_nodes else -1, "", "")]
    while waiting:
        node, begin, below = waiting.pop()
        if node < 0:
            lines.append(f"{begin}{names[-1 - node]}")
            continue
        collapsed = tree.depths[node] >= deepest
        size = counted(int(tree.stop[node] - tree.start[node]), "class")
        lines.append(f"{begin}{'… ' if collapsed else ''}{size}")
        if not collapsed:
            waiting.append((int(tree.right[node]), f"{below}└─ ", f"{below}   "))
            waiting.append((int(tree.left[node]), f"{below}├─ ", f"{below}│  "))
    return lines


def _as_label(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        raise TypeError(
            f"a leaf must be a single label, a group a tuple or a list; got {value!r}, "
            f"a {type(value).__name__}."
        )
    return value
