r"""How much imprecision each class needs to become possible.

Sets grow with c, so class b has one value of c at which it enters: the largest over its rivals a of
the c at which a is no longer surely better,

.. math:: \phi(c)=E_a(\mathrm{far}_a(c))-E_b(\mathrm{near}_b(c))=0,

which rises with c. With a corner of a's box in place of the farthest one the root lies too high;
a farther corner, found at that root, gives a lower one, until none is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.boxed_rows_compiled import (
    ROUNDING,
    corner_terms,
    far_distance,
    far_energy,
    far_rate,
    farthest_of,
    largest_distance,
    make_room,
    near_energy,
    near_rate,
    nearest_of,
    place,
)
from dubito._kernels.boxed_sets_compiled import meet_rivals, rival, surely_beaten, tie_of
from dubito._kernels.jit import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._kernels.boxed_gaussians import BoxedGaussians
    from dubito._kernels.boxed_rows_compiled import Room

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

_MAX_STEPS = 100
_HALVINGS = 30


@compiled()
def critical_of_rows(  # noqa: PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    max_c: float,
    max_nodes: int,
    critical: FloatArray,
    unsettled: IntArray,
) -> None:
    """Write the c at which each class enters, inf beyond `max_c`, and searches cut short."""
    room = make_room(classes)
    table = classes.table
    n_classes = len(table)
    order, strongest = np.empty(n_classes + 1, dtype=np.int64), np.empty(n_classes)
    for i in range(len(rows)):
        place(classes, rows[i], room)
        rivals = meet_rivals(table, room.distances, max_c, strongest, order)
        best = strongest[rival(strongest, order, 0)]
        unsettled[i] = 0
        for b in range(n_classes):
            critical[i, b] = 0.0
            if near_energy(table, b, room.distances[b]) <= best:
                continue
            if surely_beaten(table, b, room.distances[b], max_c, rivals):
                critical[i, b] = np.inf
                continue
            critical[i, b], cut = _entry(classes, room, b, order, strongest, max_c, max_nodes)
            unsettled[i] += cut


@compiled(inline="always")
def _entry(  # noqa: PLR0917
    classes: BoxedGaussians,
    room: Room,
    b: int,
    order: IntArray,
    strongest: FloatArray,
    max_c: float,
    max_nodes: int,
) -> tuple[float, int]:
    """Return the c at which class b enters: rival after rival pushes it up.

    `max_nodes` is the limit for all of them together; below it a root bound is always allowed.
    """
    c, cut, budget = 0.0, 0, max_nodes
    for place_in_order in range(len(strongest)):
        a = rival(strongest, order, place_in_order)
        limit = _limit(classes, room, b, c, strongest[a], -1.0)
        if strongest[a] >= limit:
            break  # and so are all rivals after it
        if a == b:
            continue
        if c > 0.0:
            target = far_distance(classes.table, a, limit)
            value, bound, nodes = farthest_of(classes, room, a, c, target, max(budget, 1))
            budget -= nodes
            if value >= target:
                continue
            if bound > target:
                cut += 1
                continue
        c, short, nodes = _root(classes, room, a, b, c, max_c, max(budget, 1))
        budget -= nodes
        cut += short
        if c == np.inf:
            break
    return c, cut


@compiled(inline="always")
def _limit(  # noqa: PLR0917
    classes: BoxedGaussians, room: Room, b: int, c: float, other: float, ties: float
) -> float:
    """Return the energy that a rival must stay below to exclude b at c, and so many ties more."""
    value, gap, _ = nearest_of(classes, room, b, c)
    # On the safe side: where the rival is to be excluded the gap widens, else it narrows.
    energy = near_energy(classes.table, b, max(value + ties * gap, 0.0))
    return energy + ties * tie_of(energy, other)


@compiled()
def _root(  # noqa: PLR0917
    classes: BoxedGaussians,
    room: Room,
    a: int,
    b: int,
    low: float,
    max_c: float,
    max_nodes: int,
) -> tuple[float, int, int]:
    """Return the c above `low` where rival a no longer excludes b, 1 if cut short, and nodes."""
    # A corner to begin with: no single flip leads farther, so that its distance grows with c.
    farthest_of(classes, room, a, 1.0, np.inf, 1)
    linear, square = corner_terms(classes, room, a, 1.0)
    weakest = far_energy(classes.table, a, room.distances[a])
    c, at, spent, ties = np.inf, max_c, 0, 1.0
    for _ in range(_MAX_STEPS):
        lower_c = _root_of_corner(classes, room, a, b, linear, square, low, at)
        if c < np.inf and lower_c >= c:
            ties *= 10.0  # the corner at hand was taken for a better one, by rounding
        c = min(c, lower_c)
        at = min(c, max_c)
        if at == np.inf:
            return c, 0, spent  # without spread in any direction no distance grows
        # The corner at hand is a tie there; a better one is beyond it.
        target = far_distance(classes.table, a, _limit(classes, room, b, at, weakest, ties))
        target += ties * ROUNDING * largest_distance(classes.table, a, room.distances[a], at)
        value, bound, nodes = farthest_of(classes, room, a, at, target, max(max_nodes - spent, 1))
        spent += nodes
        if value < target:
            if bound <= target:
                return c, 0, spent
            break
        linear, square = corner_terms(classes, room, a, at)
    return _certified_below(classes, room, a, b, low, at), 1, spent


@compiled()
def _root_of_corner(  # noqa: PLR0917
    classes: BoxedGaussians,
    room: Room,
    a: int,
    b: int,
    linear: float,
    square: float,
    low: float,
    high: float,
) -> float:
    """Return the root for one corner in (low, high], or inf: Newton's steps, kept in a bracket."""
    distance = room.distances[a]
    most = far_distance(classes.table, a, near_energy(classes.table, b, room.distances[b]))
    # Where the corner is that far, b at its sample mean is no longer excluded.
    high = min(high, _positive_root(square, linear, distance - most))
    if high == np.inf:
        return np.inf
    c = high
    for _ in range(_MAX_STEPS):
        squared = distance + c * (linear + c * square)
        near, _, rate = nearest_of(classes, room, b, c)
        far = far_energy(classes.table, a, squared)
        excess = far - near_energy(classes.table, b, near)
        if c == high and excess < 0.0:
            return np.inf if excess < -tie_of(far, far) else c
        if excess >= 0.0:
            high = c
        else:
            low = c
        slope = far_rate(classes.table, a, squared) * (linear + 2.0 * c * square)
        slope -= near_rate(classes.table, b, near) * rate
        step = excess / slope if slope > 0.0 else np.inf
        following = c - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - c) <= 1e-14 * c or high - low <= 1e-15 * high:
            return high if excess >= 0.0 else following
        c = following
    return high


@compiled()
def _positive_root(square: float, linear: float, constant: float) -> float:
    """Return the positive root of square c^2 + linear c + constant, constant < 0, or inf."""
    if constant >= 0.0:
        return 0.0
    root = linear + (linear * linear - 4.0 * square * constant) ** 0.5
    return -2.0 * constant / root if root > 0.0 else np.inf


@compiled(inline="always")
def _certified_below(  # noqa: PLR0917
    classes: BoxedGaussians, room: Room, a: int, b: int, low: float, high: float
) -> float:
    """Return a c at which rival a is proved to exclude b without branching, by halving."""
    other = far_energy(classes.table, a, room.distances[a])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        target = far_distance(classes.table, a, _limit(classes, room, b, middle, other, -1.0))
        value, bound, _ = farthest_of(classes, room, a, middle, target, 1)
        if value < target and bound <= target:
            low = middle
        else:
            high = middle
    return low
