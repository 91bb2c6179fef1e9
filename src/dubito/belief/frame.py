"""The frame of discernment: the classes, in an order, and the subsets of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dubito._wording import name_some

if TYPE_CHECKING:
    from dubito._typing import BoolArray

Label: TypeAlias = Hashable
Subset: TypeAlias = Label | Iterable[Label]

#: Largest frame whose :math:`2^K` subsets are listed.
DENSE_LIMIT = 20


class Frame:
    """Ordered class labels, and their subsets as labels, bit masks or indicators.

    Parameters
    ----------
    labels : sequence of hashable
        The classes, each once, in the order of the columns of masses and bounds; for instance a
        fitted classifier's ``classes_``.

    Examples
    --------
    >>> from dubito.belief import Frame
    >>> frame = Frame(["flu", "cold", "covid"])
    >>> frame.to_mask(["flu", "covid"])
    5
    >>> frame.from_mask(5)
    ('flu', 'covid')
    >>> frame.to_indicator("cold")
    array([False,  True, False])
    >>> len(frame), "flu" in frame
    (3, True)
    """

    __slots__ = ("_index", "labels")

    labels: tuple[Label, ...]

    def __init__(self, labels: Iterable[Label]) -> None:
        if not _is_collection(labels):
            raise TypeError(f"a frame needs a sequence of labels; got {labels!r}.")
        if isinstance(labels, set | frozenset):
            raise TypeError("a frame needs its labels in an order; got a set. Pass a list.")
        self.labels = tuple(_plain(label) for label in labels)
        self._index = {label: k for k, label in enumerate(self.labels)}
        if not self.labels:
            raise ValueError("a frame needs at least one label; got none.")
        if len(self._index) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise ValueError(f"frame labels must differ; {twice!r} appears more than once.")

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(self.labels)

    def __reduce__(self) -> tuple[type, tuple[tuple[Label, ...]]]:
        return Frame, (self.labels,)

    def __repr__(self) -> str:
        return f"Frame({list(self.labels)!r})"

    def positions(self, subset: Subset) -> list[int]:
        """Return the column numbers of a subset: one label, several, or a boolean (K,) row."""
        if isinstance(subset, np.ndarray) and subset.dtype == bool:
            if subset.shape != (len(self),):
                raise ValueError(
                    f"a boolean subset must have one entry for each of the {len(self)} classes; "
                    f"got shape {subset.shape}."
                )
            return [int(k) for k in np.flatnonzero(subset)]
        return sorted({self._position(_plain(label)) for label in labels_of(subset)})

    def _position(self, label: Label) -> int:
        try:
            return self._index[label]
        except KeyError:
            shown = name_some(self.labels, shown=10, rest=", …")
            raise ValueError(f"{label!r} is not in the frame ({shown}).") from None

    def to_mask(self, subset: Subset) -> int:
        """Return the bit mask of a subset: bit k is set when class k is in it."""
        return sum(1 << k for k in self.positions(subset))

    def from_mask(self, mask: int) -> tuple[Label, ...]:
        """Return the labels of a bit mask, in frame order."""
        mask = index(mask)
        if not 0 <= mask < 1 << len(self):
            raise ValueError(f"mask must lie in 0..2^{len(self)}-1 for this frame; got {mask}.")
        return tuple(label for k, label in enumerate(self.labels) if mask >> k & 1)

    def to_indicator(self, subset: Subset) -> BoolArray:
        """Return the boolean (K,) row of a subset."""
        row = np.zeros(len(self), dtype=bool)
        row[self.positions(subset)] = True
        return row

    def from_indicator(self, row: Sequence[bool] | BoolArray) -> tuple[Label, ...]:
        """Return the labels of a boolean (K,) row."""
        inside = np.asarray(row)
        if inside.shape != (len(self),):
            raise ValueError(
                f"the row must have one entry for each of the {len(self)} classes; "
                f"got shape {inside.shape}."
            )
        return tuple(label for label, is_in in zip(self.labels, inside, strict=True) if is_in)

    def subsets(self) -> BoolArray:
        """Return all non-empty subsets as a read-only (2^K-1, K) array, in bit-mask order."""
        return nonempty_subsets(len(self))


@cache
def all_subsets(n_classes: int) -> BoolArray:
    """Return all subsets, the empty one first, in bit-mask order, as one shared (2^K, K) array."""
    if n_classes > DENSE_LIMIT:
        raise ValueError(
            f"a frame of {n_classes} classes has 2^{n_classes} subsets; listing them is allowed up "
            f"to {DENSE_LIMIT} classes. Keep listed focal sets, or work with Bounds."
        )
    masks = np.arange(1 << n_classes)
    listed = (masks[:, None] >> np.arange(n_classes) & 1).astype(bool)
    listed.flags.writeable = False
    return listed


@cache
def nonempty_subsets(n_classes: int) -> BoolArray:
    """Return all subsets but the empty one, in bit-mask order, as one shared array."""
    return all_subsets(n_classes)[1:]


def labels_of(subset: Subset) -> Iterable[Label]:
    """Return the labels of a subset given as one label or as a collection of labels."""
    return subset if _is_collection(subset) else (subset,)  # type: ignore[return-value]


def _is_collection(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _equals_itself(label: Any) -> bool:
    try:
        return bool(label == label)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal to itself
        return False


def _plain(label: Any) -> Label:
    """Return a label, a numpy scalar as a Python value; raise an error if it cannot be a label."""
    if _is_collection(label):
        raise TypeError(f"a label must be a single value; got the collection {label!r}.")
    if not _equals_itself(label):
        raise ValueError(
            f"a label must equal itself; {label!r} does not. Name the class otherwise."
        )
    is_date = isinstance(label, np.datetime64 | np.timedelta64)  # .item() may lose their unit
    return label.item() if isinstance(label, np.generic) and not is_date else label
