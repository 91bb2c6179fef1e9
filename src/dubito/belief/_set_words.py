"""Lists of sets as 64-bit words: grouping equal sets and adding their values.

A set of K classes is a row of ceil(K / 64) words; bit k of the row is set when class k is in it.
Intersections and unions are bitwise operations; words take an eighth of the memory of booleans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

Words: TypeAlias = npt.NDArray[np.uint64]

_WORD = np.dtype("<u8")  # little-endian, so that bit k of the bytes is bit k of the word


class SetGroups(NamedTuple):
    """The distinct sets of a list in bit-mask order, and the positions of each in the list."""

    sets: Words
    order: IntArray
    starts: IntArray

    def add_up(self, values: FloatArray) -> FloatArray:
        """Return the sums (n, F) of the columns (n, P) that belong to equal sets."""
        return np.add.reduceat(values[:, self.order], self.starts, axis=1)


def to_words(sets: BoolArray) -> Words:
    """Return boolean rows (P, K) packed into words (P, W)."""
    n_words = -(-sets.shape[1] // 64)
    packed = np.zeros((len(sets), 8 * n_words), dtype=np.uint8)
    bits = np.packbits(sets, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view(_WORD)


def from_words(words: Words, n_classes: int) -> BoolArray:
    """Return the boolean rows (P, K) of words (P, W)."""
    packed = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(packed, axis=1, count=n_classes, bitorder="little").astype(bool)


def group_equal(words: Words) -> SetGroups:
    """Return the distinct sets of a list, and which entries of it are equal."""
    key = words[:, 0] if words.shape[1] == 1 else _hashed(words)
    order = np.argsort(key, kind="stable")
    new = np.ones(len(order), dtype=bool)
    new[1:] = key[order[1:]] != key[order[:-1]]
    if words.shape[1] > 1:
        if _has_hash_collision(words, order, new):  # sort by all words
            order = np.lexsort(words.T)
            new[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
        else:
            order, new = _in_mask_order(words, order, new)
    starts = np.flatnonzero(new)
    return SetGroups(words[order[starts]], order, starts)


def _hashed(words: Words) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each set."""
    odd = np.random.default_rng(0).integers(2**63, size=words.shape[1], dtype=np.uint64) * 2 + 1
    mixed = words ^ (words >> np.uint64(29))
    return np.asarray((mixed * odd).sum(axis=1, dtype=np.uint64))


def _has_hash_collision(words: Words, order: IntArray, new: BoolArray) -> bool:
    """Return whether two different sets have the same hash."""
    same_key = np.flatnonzero(~new)
    return bool((words[order[same_key]] != words[order[same_key - 1]]).any())


def _in_mask_order(words: Words, order: IntArray, new: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return the order with groups sorted by the bit masks of their sets, and where they begin."""
    starts = np.flatnonzero(new)
    rank = np.empty(len(starts), dtype=np.intp)
    rank[np.lexsort(words[order[starts]].T)] = np.arange(len(starts))
    group = rank[np.cumsum(new) - 1]
    again = np.argsort(group, kind="stable")
    first = np.ones(len(group), dtype=bool)
    first[1:] = np.diff(group[again]) > 0
    return order[again], first
