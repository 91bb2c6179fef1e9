"""Bounds on energies, sets of classes and critical c of many rows, in blocks and threads.

The energy of a class at a row is minus twice the logarithm of prior times density.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._numerics.threads import over_blocks
from dubito.discriminant._kernels.class_boxes import DISTANCE_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.discriminant._kernels.class_boxes import BoxedGaussians

#: A search with a larger relative gap counts as unsettled; smaller gaps hardly change a bound.
_SETTLED_GAP = 1e-6

#: Fewest rows per thread: with fewer, starting a thread costs more than it saves.
_ROWS_PER_THREAD = 256


class SearchLimits(NamedTuple):
    """Limits on the work of a prediction."""

    max_subproblems: int
    n_threads: int

    def threads_for(self, n_rows: int) -> int:
        """Return the number of threads for this number of rows."""
        return max(1, min(self.n_threads, n_rows // _ROWS_PER_THREAD))


def energy_bounds(
    classes: BoxedGaussians, rows: FloatArray, c: float, limits: SearchLimits
) -> tuple[FloatArray, FloatArray, int]:
    """Return the least (near) and the largest (far) energy of each class, and unsettled searches.

    Energies are (n, K). A search is unsettled where it ends at `max_subproblems` without a proof;
    the largest energy is then too large. Both allow for rounding, which exceeds the differences of
    distances in rows far away.
    """
    from dubito.discriminant._kernels.boxed_sets_compiled import (  # noqa: PLC0415 - loads numba
        energies_in_place,
        extremes_of_rows,
    )

    near, near_gap, far, far_gap = np.empty((4, len(rows), len(classes.parameters)))

    def block(part: FloatArray, *results: FloatArray) -> FloatArray:
        extremes_of_rows(classes, part, c, limits.max_subproblems, *results)
        return results[-1]

    arrays = (rows, near, near_gap, far, far_gap)
    over_blocks(block, arrays, threads=limits.threads_for(len(rows)))
    n_unsettled = int((far_gap > _SETTLED_GAP * (1.0 + far)).sum())
    with np.errstate(invalid="ignore"):
        slack = DISTANCE_ROUNDING * far
        near = np.maximum(near - near_gap - slack, 0.0)
        far = far + far_gap + slack
    beyond = ~np.isfinite(far)  # overflow: no information about the density
    near[beyond], far[beyond] = 0.0, np.inf
    energies_in_place(classes, near, far)
    return near, far, n_unsettled


def maximal_classes(
    classes: BoxedGaussians, rows: FloatArray, c: float, limits: SearchLimits
) -> tuple[BoolArray, int]:
    """Return the classes that no other dominates, (n, K), and the number of unsettled searches."""
    from dubito.discriminant._kernels.boxed_sets_compiled import maximal_of_rows  # noqa: PLC0415 - loads numba

    sets = np.empty((len(rows), len(classes.parameters)), dtype=np.bool_)
    return sets, _write_in_blocks(maximal_of_rows, classes, rows, c, limits, sets)


def critical_c(
    classes: BoxedGaussians, rows: FloatArray, max_c: float, limits: SearchLimits
) -> tuple[FloatArray, int]:
    """Return the c at which each class enters the set, (n, K), and the unsettled searches.

    Where a search is unsettled the c is too small, never too large.
    """
    from dubito.discriminant._kernels.boxed_critical_compiled import (  # noqa: PLC0415 - loads numba
        critical_of_rows,
    )

    critical = np.empty((len(rows), len(classes.parameters)))
    return critical, _write_in_blocks(critical_of_rows, classes, rows, max_c, limits, critical)


def _write_in_blocks(  # noqa: PLR0917
    kernel: Callable[..., None],
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    limits: SearchLimits,
    results: npt.NDArray[Any],
) -> int:
    """Write the results of a kernel, (n, K), and return the number of unsettled searches."""
    n_unsettled = np.empty(len(rows), dtype=np.int64)

    def block(part: FloatArray, part_results: npt.NDArray[Any], unsettled: IntArray) -> IntArray:
        kernel(classes, part, c, limits.max_subproblems, part_results, unsettled)
        return unsettled

    over_blocks(block, (rows, results, n_unsettled), threads=limits.threads_for(len(rows)))
    return int(n_unsettled.sum())
