"""Distances, energies, sets and critical c of rows under Gaussian classes with boxed means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dubito._numerics.threads import over_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.discriminant._kernels.boxed_gaussians import BoxedGaussians


#: A search with a larger relative gap counts as cut short; smaller gaps hardly change a bound.
_OPEN = 1e-6

#: Rounding error of squared distances, relative to the largest of a box.
_ROUNDING = 1e-14


class Extremes(NamedTuple):
    """Squared distances of the nearest and farthest mean of each box, each (n, K), certified.

    The exact nearest lies in [near - near_gap, near], the exact farthest in [far, far + far_gap].
    """

    near: FloatArray
    near_gap: FloatArray
    far: FloatArray
    far_gap: FloatArray
    subproblems: IntArray


def extremes(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_subproblems: int, threads: int
) -> Extremes:
    """Return the squared distances of each row from the nearest and farthest mean of each class."""
    from dubito.discriminant._kernels.boxed_sets_compiled import extremes_of_rows  # noqa: PLC0415 - numba is slow

    shape = (len(rows), len(classes.table))
    near, near_gap, far, far_gap = np.empty((4, *shape))
    found = Extremes(near, near_gap, far, far_gap, np.empty(shape, dtype=np.int64))

    def block(part: FloatArray, *results: npt.NDArray[Any]) -> IntArray:
        extremes_of_rows(classes, part, c, max_subproblems, *results)
        return results[-1]

    over_blocks(block, (rows, *found), threads=threads)
    return found


def energy_bounds(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_subproblems: int, threads: int
) -> tuple[FloatArray, FloatArray, int]:
    """Return the least and the largest energy of each class, (n, K), and searches cut short.

    Both are conservative: where a search was cut short the largest is too large, and both allow for
    rounding, which matters for rows so far away that it exceeds the differences of distances.
    """
    from dubito.discriminant._kernels.boxed_sets_compiled import energies_in_place  # noqa: PLC0415 - as above

    found = extremes(classes, rows, c, max_subproblems=max_subproblems, threads=threads)
    cut = int((found.far_gap > _OPEN * (1.0 + found.far)).sum())
    with np.errstate(invalid="ignore"):
        slack = _ROUNDING * found.far
        near = np.maximum(found.near - found.near_gap - slack, 0.0)
        far = found.far + found.far_gap + slack
    beyond = ~np.isfinite(far)  # overflow: no information about the density
    near[beyond], far[beyond] = 0.0, np.inf
    energies_in_place(classes, near, far)
    return near, far, cut


def undominated_sets(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_subproblems: int, threads: int
) -> tuple[BoolArray, IntArray]:
    """Return the undominated classes, (n, K), and the number of searches cut short in each row."""
    from dubito.discriminant._kernels.boxed_sets_compiled import sets_of_rows  # noqa: PLC0415 - numba is slow

    return _in_blocks(sets_of_rows, classes, rows, c, max_subproblems, threads, dtype=np.bool_)


def critical_c(
    classes: BoxedGaussians, rows: FloatArray, max_c: float, *, max_subproblems: int, threads: int
) -> tuple[FloatArray, IntArray]:
    """Return the c at which each class enters the set, (n, K), and searches cut short in each row.

    Where a search was cut short the c is too small, never too large.
    """
    from dubito.discriminant._kernels.boxed_critical_compiled import (  # noqa: PLC0415 - numba is slow
        critical_of_rows,
    )

    return _in_blocks(
        critical_of_rows, classes, rows, max_c, max_subproblems, threads, dtype=np.float64
    )


def _in_blocks(  # noqa: PLR0917
    kernel: Callable[..., None],
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_subproblems: int,
    threads: int,
    *,
    dtype: npt.DTypeLike,
) -> tuple[npt.NDArray[Any], IntArray]:
    result = np.empty((len(rows), len(classes.table)), dtype=dtype)
    n_cut_short = np.empty(len(rows), dtype=np.int64)

    def block(part: FloatArray, part_result: npt.NDArray[Any], cut: IntArray) -> IntArray:
        kernel(classes, part, c, max_subproblems, part_result, cut)
        return cut

    over_blocks(block, (rows, result, n_cut_short), threads=threads)
    return result, n_cut_short
