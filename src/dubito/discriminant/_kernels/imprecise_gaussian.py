"""Energies, sets and critical c of rows under Gaussian classes with boxed means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._numerics.threads import over_blocks
from dubito.discriminant._kernels.boxed_gaussians import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.discriminant._kernels.boxed_gaussians import BoxedGaussians


#: A search with a larger relative gap counts as unsettled; smaller gaps hardly change a bound.
_SETTLED_GAP = 1e-6


def energy_bounds(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_subproblems: int, threads: int
) -> tuple[FloatArray, FloatArray, int]:
    """Return the least and the largest energy of each class, (n, K), and unsettled searches.

    Both are conservative: where a search is unsettled the largest is too large, and both allow for
    rounding, which matters for rows so far away that it exceeds the differences of distances.
    """
    from dubito.discriminant._kernels.boxed_sets_compiled import (  # noqa: PLC0415 - numba is slow
        energies_in_place,
        extremes_of_rows,
    )

    near, near_gap, far, far_gap = np.empty((4, len(rows), len(classes.table)))

    def block(part: FloatArray, *results: FloatArray) -> FloatArray:
        extremes_of_rows(classes, part, c, max_subproblems, *results)
        return results[-1]

    over_blocks(block, (rows, near, near_gap, far, far_gap), threads=threads)
    n_unsettled = int((far_gap > _SETTLED_GAP * (1.0 + far)).sum())
    with np.errstate(invalid="ignore"):
        slack = ROUNDING * far
        near = np.maximum(near - near_gap - slack, 0.0)
        far = far + far_gap + slack
    beyond = ~np.isfinite(far)  # overflow: no information about the density
    near[beyond], far[beyond] = 0.0, np.inf
    energies_in_place(classes, near, far)
    return near, far, n_unsettled


def undominated_sets(
    classes: BoxedGaussians, rows: FloatArray, c: float, *, max_subproblems: int, threads: int
) -> tuple[BoolArray, IntArray]:
    """Return the undominated classes, (n, K), and the number of unsettled searches of each row."""
    from dubito.discriminant._kernels.boxed_sets_compiled import sets_of_rows  # noqa: PLC0415 - numba is slow

    return _in_blocks(sets_of_rows, classes, rows, c, max_subproblems, threads, dtype=np.bool_)


def critical_c(
    classes: BoxedGaussians, rows: FloatArray, max_c: float, *, max_subproblems: int, threads: int
) -> tuple[FloatArray, IntArray]:
    """Return the c at which each class enters the set, (n, K), and unsettled searches of each row.

    Where a search is unsettled the c is too small, never too large.
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
    """Return the two arrays that `kernel` writes, (n, K) and (n,), computed in blocks of rows."""
    result = np.empty((len(rows), len(classes.table)), dtype=dtype)
    n_unsettled = np.empty(len(rows), dtype=np.int64)

    def block(part: FloatArray, part_result: npt.NDArray[Any], unsettled: IntArray) -> IntArray:
        kernel(classes, part, c, max_subproblems, part_result, unsettled)
        return unsettled

    over_blocks(block, (rows, result, n_unsettled), threads=threads)
    return result, n_unsettled
