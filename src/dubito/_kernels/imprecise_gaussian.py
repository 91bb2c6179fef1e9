"""Rows before Gaussian classes with boxes for means: distances, sets and critical imprecision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dubito._kernels.threads import over_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._kernels.boxed_gaussians import BoxedGaussians

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


#: A relative gap above this counts as a search cut short; a smaller one moves no bound visibly.
_OPEN = 1e-6

#: What rounding may do to distances, relative to the largest of a box.
_ROUNDING = 1e-14


class Extremes(NamedTuple):
    """Squared distances of the nearest and farthest mean of each box, each (n, K), with proof.

    The nearest is within `near_gap` below `near`, the farthest within `far_gap` above `far`.
    """

    near: FloatArray
    near_gap: FloatArray
    far: FloatArray
    far_gap: FloatArray
    nodes: IntArray


def extremes(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_nodes: int, threads: int
) -> Extremes:
    """Return how near and how far the mean of each class may be from each row."""
    from dubito._kernels.boxed_sets_compiled import extremes_of_rows  # noqa: PLC0415 - numba is slow

    shape = (len(rows), len(classes.table))
    near, near_gap, far, far_gap = np.empty((4, *shape))
    found = Extremes(near, near_gap, far, far_gap, np.empty(shape, dtype=np.int64))

    def block(part: FloatArray, *results: npt.NDArray[Any]) -> IntArray:
        extremes_of_rows(classes, part, c, max_nodes, *results)
        return results[-1]

    over_blocks(block, (rows, *found), threads=threads)
    return found


def energy_bounds(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_nodes: int, threads: int
) -> tuple[FloatArray, FloatArray, int]:
    """Return the least and the largest energy of each class, (n, K), and searches cut short.

    Both are safe: where a search was cut short the largest is too large, and both allow for
    rounding, which matters for rows so far away that distances differ by less.
    """
    from dubito._kernels.boxed_sets_compiled import energies_in_place  # noqa: PLC0415 - as above

    found = extremes(classes, rows, c, max_nodes=max_nodes, threads=threads)
    cut = int((found.far_gap > _OPEN * (1.0 + found.far)).sum())
    with np.errstate(invalid="ignore"):
        slack = _ROUNDING * found.far
        near = np.maximum(found.near - found.near_gap - slack, 0.0)
        far = found.far + found.far_gap + slack
    beyond = ~np.isfinite(far)  # too far for numbers: nothing is known
    near[beyond], far[beyond] = 0.0, np.inf
    energies_in_place(classes, near, far)
    return near, far, cut


def possible_sets(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_nodes: int, threads: int
) -> tuple[BoolArray, IntArray]:
    """Return the classes no other surely beats, (n, K), and searches cut short in each row."""
    from dubito._kernels.boxed_sets_compiled import sets_of_rows  # noqa: PLC0415 - numba is slow

    return _judged(sets_of_rows, classes, rows, c, max_nodes, threads, dtype=np.bool_)


def critical_c(
    classes: BoxedGaussians, rows: FloatArray, max_c: float, *, max_nodes: int, threads: int
) -> tuple[FloatArray, IntArray]:
    """Return the c from which each class is possible, (n, K), and searches cut short in each row.

    Where a search was cut short the c is too small rather than too large.
    """
    from dubito._kernels.boxed_critical_compiled import (  # noqa: PLC0415 - numba is slow
        critical_of_rows,
    )

    return _judged(critical_of_rows, classes, rows, max_c, max_nodes, threads, dtype=np.float64)


def _judged(  # noqa: PLR0917
    kernel: Callable[..., None],
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_nodes: int,
    threads: int,
    *,
    dtype: npt.DTypeLike,
) -> tuple[npt.NDArray[Any], IntArray]:
    judged = np.empty((len(rows), len(classes.table)), dtype=dtype)
    unsettled = np.empty(len(rows), dtype=np.int64)

    def block(part: FloatArray, result: npt.NDArray[Any], cut: IntArray) -> IntArray:
        kernel(classes, part, c, max_nodes, result, cut)
        return cut

    over_blocks(block, (rows, judged, unsettled), threads=threads)
    return judged, unsettled
