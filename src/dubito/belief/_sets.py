"""Lists of sets as boolean rows: finding equal ones and adding up what belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray


class SetGroups(NamedTuple):
    """The distinct sets of a list, and where the list mentions each."""

    sets: BoolArray
    order: IntArray
    starts: IntArray

    def add_up(self, values: FloatArray) -> FloatArray:
        """Add the columns (n, P) that belong to equal sets, giving (n, F)."""
        return np.add.reduceat(values[:, self.order], self.starts, axis=1)


def group_equal(listed: BoolArray) -> SetGroups:
    """Group equal rows of a list of P sets; the distinct ones come in bit-mask order."""
    packed = pack_sets(listed)
    order = np.lexsort(packed.T[::-1])
    ordered = packed[order]
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    return SetGroups(listed[order[starts]], order, starts)


def pack_sets(listed: BoolArray) -> npt.NDArray[np.uint8]:
    """Pack each row into bytes that, compared from the left, order as the bit masks do."""
    return np.packbits(listed, axis=1, bitorder="little")[:, ::-1]
