"""Which of several boxed Gaussian classes may be the most probable: bounds, and sets for one c.

Class b goes when some class a is surely more probable: when a, as far away as its box allows, has
less energy than b, as near as its box allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.boxed_rows_compiled import (
    far_distance,
    far_energy,
    farthest_of,
    largest_distance,
    least_distance,
    make_room,
    near_energy,
    nearest_of,
    place,
)
from dubito._kernels.jit import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._kernels.boxed_gaussians import BoxedGaussians
    from dubito._kernels.boxed_rows_compiled import Room

    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]
    IntArray = npt.NDArray[np.int64]

#: Energies this close, in units of those that enter them, are equal, and equal classes stay.
_TIE = 1e-12


@compiled()
def extremes_of_rows(  # noqa: PLR0913, PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_nodes: int,
    near: FloatArray,
    near_gap: FloatArray,
    far: FloatArray,
    far_gap: FloatArray,
    nodes: IntArray,
) -> None:
    """Write the nearest and farthest squared distances, certified: truth lies within the gaps."""
    room = make_room(classes)
    for i in range(len(rows)):
        place(classes, rows[i], room)
        for k in range(len(classes.table)):
            value, gap, _ = nearest_of(classes, room, k, c)
            near[i, k], near_gap[i, k] = value, gap
            value, bound, tried = farthest_of(classes, room, k, c, np.inf, max_nodes)
            far[i, k], far_gap[i, k], nodes[i, k] = value, bound - value, tried


@compiled()
def sets_of_rows(  # noqa: PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    c: float,
    max_nodes: int,
    kept: BoolArray,
    unsettled: IntArray,
) -> None:
    """Write which classes stay, and how many searches of each row ran into the limit."""
    room = make_room(classes)
    table = classes.table
    n_classes = len(table)
    order, strongest = np.empty(n_classes + 1, dtype=np.int64), np.empty(n_classes)
    found, proved = np.empty(n_classes), np.empty(n_classes)
    for i in range(len(rows)):
        place(classes, rows[i], room)
        unsettled[i] = 0
        rivals = meet_rivals(table, room.distances, c, strongest, order)
        best = strongest[rival(strongest, order, 0)]
        for k in range(n_classes):
            found[k] = room.distances[k]
            proved[k] = largest_distance(table, k, room.distances[k], c)
        for b in range(n_classes):
            # At its sample mean b has this energy, and no rival has less than the strongest.
            kept[i, b] = near_energy(table, b, room.distances[b]) <= best
            if kept[i, b] or surely_beaten(table, b, room.distances[b], c, rivals):
                continue
            value, gap, _ = nearest_of(classes, room, b, c)
            energy = near_energy(table, b, max(value - gap, 0.0))
            kept[i, b], cut = _unbeaten(
                classes, room, b, c, energy, max_nodes, order, strongest, found, proved
            )
            unsettled[i] += cut


@compiled()
def surely_beaten(table: FloatArray, b: int, distance: float, c: float, rivals: float) -> bool:
    """Say whether b, nearer than its box allows, is still farther than the best rival can be."""
    least = near_energy(table, b, least_distance(table, b, distance, c))
    return least == np.inf or least > rivals + tie_of(rivals, least)


@compiled(inline="always")
def _unbeaten(  # noqa: PLR0913, PLR0917
    classes: BoxedGaussians,
    room: Room,
    b: int,
    c: float,
    energy: float,
    max_nodes: int,
    order: IntArray,
    strongest: FloatArray,
    found: FloatArray,
    proved: FloatArray,
) -> tuple[bool, int]:
    """Say whether no rival is proved to beat b at its smallest energy; count what stays open."""
    cut = 0
    for place_in_order in range(len(strongest)):
        a = rival(strongest, order, place_in_order)
        limit = energy - tie_of(energy, strongest[a])
        if strongest[a] >= limit:
            break
        if a == b:
            continue
        target = far_distance(classes.table, a, limit)
        if not _settle(classes, room, a, c, target, max_nodes, found, proved):
            cut += 1
        elif found[a] < target:
            return False, 0
    return True, cut


@compiled()
def tie_of(one: float, other: float) -> float:
    """Return what rounding may do to the difference of two energies."""
    return _TIE * (1.0 + abs(one) + abs(other))


@compiled()
def meet_rivals(
    table: FloatArray, distances: FloatArray, c: float, strongest: FloatArray, order: IntArray
) -> float:
    """Write the energy of each class at the sample mean, the least it can have when far.

    Return an energy that the strongest rival does not exceed, whatever its mean in the box.
    `order` is for `rival`, which is asked for few of many: K numbers, and how many are in order.
    """
    rivals = np.inf
    order[-1] = 0
    for k in range(len(strongest)):
        order[k] = k
        strongest[k] = far_energy(table, k, distances[k])
        rivals = min(rivals, far_energy(table, k, largest_distance(table, k, distances[k], c)))
    return rivals


@compiled()
def rival(strongest: FloatArray, order: IntArray, place_in_order: int) -> int:
    """Return the class with so many stronger ones; the order is made as far as it is needed."""
    while order[-1] <= place_in_order:
        first = best = order[-1]
        for j in range(first + 1, len(strongest)):
            if strongest[order[j]] < strongest[order[best]]:
                best = j
        order[first], order[best] = order[best], order[first]
        order[-1] += 1
    return order[place_in_order]


@compiled(inline="always")
def _settle(  # noqa: PLR0917
    classes: BoxedGaussians,
    room: Room,
    a: int,
    c: float,
    target: float,
    max_nodes: int,
    found: FloatArray,
    proved: FloatArray,
) -> bool:
    """Find out whether class a can lie at a squared distance or beyond; False if the limit ends it.

    `found` is a distance at which it can lie, `proved` one that it cannot exceed.
    """
    if found[a] >= target or proved[a] <= target:
        return True
    value, bound, _ = farthest_of(classes, room, a, c, target, max_nodes)
    found[a] = max(found[a], value)
    proved[a] = min(proved[a], bound)
    return found[a] >= target or proved[a] <= target


@compiled()
def energies_in_place(classes: BoxedGaussians, near: FloatArray, far: FloatArray) -> None:
    """Replace squared distances by energies, over the covariances."""
    for i in range(len(near)):
        for k in range(len(classes.table)):
            near[i, k] = near_energy(classes.table, k, near[i, k])
            far[i, k] = far_energy(classes.table, k, far[i, k])
