"""Maximal Gaussian classes with boxed means, and extreme distances and energies, of many rows.

The energy of a class is minus twice the logarithm of prior times density. Class a dominates b when
a at its largest energy (mean farthest from the row) has less energy than b at its smallest (mean
nearest to the row); maximal classes are those that no other dominates. The rivals of a class are
those that may dominate it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.jit import compiled
from dubito.discriminant._kernels.boxed_distances_compiled import (
    distance_lower_bound,
    distance_of_far_energy,
    distance_upper_bound,
    far_energy,
    farthest_distance,
    load_row,
    make_buffers,
    near_energy,
    nearest_distance,
)

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.discriminant._kernels.boxed_distances_compiled import RowBuffers
    from dubito.discriminant._kernels.class_boxes import BoxedGaussians

#: Energies closer than this, relative to their size, are ties; neither class dominates in a tie.
_ENERGY_TIE = 1e-12


class Rivals(NamedTuple):
    """All classes by increasing energy at their sample means, for one row; sorted on demand."""

    mean_energy: FloatArray  # (K,)
    order: IntArray  # (K,) classes, of which the first `n_sorted[0]` are sorted
    n_sorted: IntArray  # (1,)


@compiled(inline="always")
def make_rivals(n_classes: int) -> Rivals:
    """Return buffers for one row, not initialised."""
    order, n_sorted = np.empty(n_classes, dtype=np.int64), np.empty(1, dtype=np.int64)
    return Rivals(np.empty(n_classes), order, n_sorted)


@compiled()
def extremes_of_rows(  # noqa: PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_subproblems: int,
    near: FloatArray,
    near_gap: FloatArray,
    far: FloatArray,
    far_gap: FloatArray,
) -> None:
    """Write squared distances of the nearest and farthest mean of each box, each (n, K).

    The exact nearest is in [near - near_gap, near], the exact farthest in [far, far + far_gap].
    """
    buffers = make_buffers(classes)
    for i in range(len(rows)):
        load_row(classes, rows[i], buffers)
        for k in range(len(classes.parameters)):
            value, gap, _ = nearest_distance(classes, buffers, k, c)
            near[i, k], near_gap[i, k] = value, gap
            value, bound, _ = farthest_distance(classes, buffers, k, c, np.inf, max_subproblems)
            far[i, k], far_gap[i, k] = value, bound - value


@compiled()
def maximal_of_rows(  # noqa: PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_subproblems: int,
    sets: BoolArray,
    n_unsettled: IntArray,
) -> None:
    """Write which classes are maximal, and the number of unsettled comparisons of each row.

    A comparison is unsettled where its search ends at `max_subproblems` without a proof; it then
    excludes no class.
    """
    parameters = classes.parameters
    n_classes = len(parameters)
    buffers, rivals = make_buffers(classes), make_rivals(n_classes)
    far_lower, far_upper = np.empty(n_classes), np.empty(n_classes)
    for i in range(len(rows)):
        load_row(classes, rows[i], buffers)
        n_unsettled[i] = 0
        rival_bound = prepare_rivals(parameters, buffers.distances, c, rivals)
        best = rivals.mean_energy[class_at_rank(rivals, 0)]
        for k in range(n_classes):
            far_lower[k] = buffers.distances[k]
            far_upper[k] = distance_upper_bound(parameters, k, buffers.distances[k], c)
        for b in range(n_classes):
            # Maximal already at the sample mean: no other class has less energy there.
            sets[i, b] = near_energy(parameters, b, buffers.distances[b]) <= best
            if sets[i, b] or is_dominated_by_radius(
                parameters, b, buffers.distances[b], c, rival_bound
            ):
                continue
            value, gap, _ = nearest_distance(classes, buffers, b, c)
            energy = near_energy(parameters, b, max(value - gap, 0.0))
            sets[i, b], unsettled = _is_maximal(
                classes, buffers, b, c, energy, max_subproblems, rivals, far_lower, far_upper
            )
            n_unsettled[i] += unsettled


@compiled()
def is_dominated_by_radius(
    parameters: FloatArray, b: int, distance: float, c: float, rival_bound: float
) -> bool:
    """Return whether bounds on distances that need no search prove that b is dominated."""
    least = near_energy(parameters, b, distance_lower_bound(parameters, b, distance, c))
    return least == np.inf or least > rival_bound + tie_tolerance(rival_bound, least)


@compiled(inline="always")
def _is_maximal(  # noqa: PLR0913, PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    b: int,
    c: float,
    energy: float,
    max_subproblems: int,
    rivals: Rivals,
    far_lower: FloatArray,
    far_upper: FloatArray,
) -> tuple[bool, int]:
    """Return whether no rival is proved to dominate b, and the number of unsettled comparisons."""
    unsettled = 0
    for rank in range(len(rivals.order)):
        a = class_at_rank(rivals, rank)
        mean_energy = rivals.mean_energy[a]
        limit = energy - tie_tolerance(energy, mean_energy)
        if mean_energy >= limit:
            break
        if a == b:
            continue
        target = distance_of_far_energy(classes.parameters, a, limit)
        if not _settle_farthest(
            classes, buffers, a, c, target, max_subproblems, far_lower, far_upper
        ):
            unsettled += 1
        elif far_lower[a] < target:
            return False, 0
    return True, unsettled


@compiled()
def tie_tolerance(one: float, other: float) -> float:
    """Return the difference of two energies up to which they count as equal."""
    return _ENERGY_TIE * (1.0 + abs(one) + abs(other))


@compiled()
def prepare_rivals(
    parameters: FloatArray, distances: FloatArray, c: float, rivals: Rivals
) -> float:
    """Write the energy of each class at its sample mean; return an upper bound on the least energy.

    The bound holds for all means in the boxes.
    """
    rival_bound = np.inf
    rivals.n_sorted[0] = 0
    for k in range(len(rivals.order)):
        rivals.order[k] = k
        rivals.mean_energy[k] = far_energy(parameters, k, distances[k])
        rival_bound = min(
            rival_bound,
            far_energy(parameters, k, distance_upper_bound(parameters, k, distances[k], c)),
        )
    return rival_bound


@compiled()
def class_at_rank(rivals: Rivals, rank: int) -> int:
    """Return the class of a rank by energy, rank 0 the smallest; sorts no further than needed."""
    mean_energy, order, n_sorted = rivals
    while n_sorted[0] <= rank:
        first = best = n_sorted[0]
        for j in range(first + 1, len(order)):
            if mean_energy[order[j]] < mean_energy[order[best]]:
                best = j
        order[first], order[best] = order[best], order[first]
        n_sorted[0] += 1
    return order[rank]


@compiled(inline="always")
def _settle_farthest(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    a: int,
    c: float,
    target: float,
    max_subproblems: int,
    far_lower: FloatArray,
    far_upper: FloatArray,
) -> bool:
    """Return whether the farthest mean of a is known to reach the target, or known not to.

    `far_lower` and `far_upper` bound the squared distance of the farthest mean, and are updated.
    False if the search ends at `max_subproblems` before either is proved.
    """
    if far_lower[a] >= target or far_upper[a] <= target:
        return True
    value, bound, _ = farthest_distance(classes, buffers, a, c, target, max_subproblems)
    far_lower[a] = max(far_lower[a], value)
    far_upper[a] = min(far_upper[a], bound)
    return far_lower[a] >= target or far_upper[a] <= target


@compiled()
def energies_in_place(classes: BoxedGaussians, near: FloatArray, far: FloatArray) -> None:
    """Replace squared distances by the smallest and largest energies over the covariances."""
    for i in range(len(near)):
        for k in range(len(classes.parameters)):
            near[i, k] = near_energy(classes.parameters, k, near[i, k])
            far[i, k] = far_energy(classes.parameters, k, far[i, k])
