r"""The critical c of each class: the least imprecision at which it belongs to the set.

Sets grow with c, so class b enters at one value of c: the largest over the other classes a of the c
at which a no longer dominates b,

.. math:: \phi(c)=E_a(\mathrm{far}_a(c))-E_b(\mathrm{near}_b(c))=0,

which rises with c. With any corner of a's box in place of the farthest one the root is too
large; a farther corner, found at that root, gives a smaller root, until no farther one exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito.discriminant._kernels.boxed_distances_compiled import (
    corner_terms,
    distance_of_far_energy,
    distance_upper_bound,
    far_energy,
    far_rate,
    farthest_distance,
    load_row,
    make_buffers,
    near_energy,
    near_rate,
    nearest_distance,
)
from dubito.discriminant._kernels.boxed_sets_compiled import (
    class_at_rank,
    is_dominated_by_radius,
    make_rivals,
    prepare_rivals,
    tie_tolerance,
)
from dubito.discriminant._kernels.class_boxes import DISTANCE_ROUNDING

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._kernels.boxed_distances_compiled import RowBuffers
    from dubito.discriminant._kernels.boxed_sets_compiled import Rivals
    from dubito.discriminant._kernels.class_boxes import BoxedGaussians

#: Limit on Newton steps for the root of one corner, and on corners tried for one rival.
_MAX_STEPS = 100

#: Bisections of the interval of a root where the search for it is unsettled.
_BISECTIONS = 30


@compiled()
def critical_of_rows(  # noqa: PLR0917
    classes: BoxedGaussians,
    rows: FloatArray,
    max_c: float,
    max_subproblems: int,
    critical: FloatArray,
    n_unsettled: IntArray,
) -> None:
    """Write the c at which each class enters, inf beyond `max_c`, and the unsettled searches.

    A search is unsettled where it ends at `max_subproblems` without a proof; c is then too small.
    """
    parameters = classes.parameters
    n_classes = len(parameters)
    buffers, rivals = make_buffers(classes), make_rivals(n_classes)
    for i in range(len(rows)):
        load_row(classes, rows[i], buffers)
        rival_bound = prepare_rivals(parameters, buffers.distances, max_c, rivals)
        best = rivals.mean_energy[class_at_rank(rivals, 0)]
        n_unsettled[i] = 0
        for b in range(n_classes):
            critical[i, b] = 0.0
            if near_energy(parameters, b, buffers.distances[b]) <= best:
                continue
            if is_dominated_by_radius(parameters, b, buffers.distances[b], max_c, rival_bound):
                critical[i, b] = np.inf
                continue
            critical[i, b], unsettled = _critical_c(
                classes, buffers, b, rivals, max_c, max_subproblems
            )
            n_unsettled[i] += unsettled


@compiled(inline="always")
def _critical_c(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    b: int,
    rivals: Rivals,
    max_c: float,
    max_subproblems: int,
) -> tuple[float, int]:
    """Return the c at which class b enters, the maximum over its rivals, and unsettled searches.

    `max_subproblems` limits all searches together; each may solve at least its first subproblem.
    """
    c, unsettled, budget = 0.0, 0, max_subproblems
    for rank in range(len(rivals.order)):
        a = class_at_rank(rivals, rank)
        mean_energy = rivals.mean_energy[a]
        limit = _domination_energy(classes, buffers, b, c, mean_energy, -1.0)
        if mean_energy >= limit:
            break  # later rivals have no less energy
        if a == b:
            continue
        if c > 0.0:
            target = distance_of_far_energy(classes.parameters, a, limit)
            value, bound, subproblems = farthest_distance(
                classes, buffers, a, c, target, max(budget, 1)
            )
            budget -= subproblems
            if value >= target:
                continue
            if bound > target:
                unsettled += 1
                continue
        c, root_unsettled, subproblems = _root(classes, buffers, a, b, c, max_c, max(budget, 1))
        budget -= subproblems
        unsettled += root_unsettled
        if c == np.inf:
            break
    return c, unsettled


@compiled(inline="always")
def _domination_energy(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    b: int,
    c: float,
    scale_energy: float,
    tie_multiple: float,
) -> float:
    """Return the energy below which a rival dominates b at c, moved by some tolerances.

    The tolerance of ties is relative to that energy and `scale_energy`; `tie_multiple`, signed, is
    how many are added.
    """
    value, gap, _ = nearest_distance(classes, buffers, b, c)
    # Conservative: the sign of `tie_multiple` decides on which side the gap is counted.
    energy = near_energy(classes.parameters, b, max(value + tie_multiple * gap, 0.0))
    return energy + tie_multiple * tie_tolerance(energy, scale_energy)


@compiled()
def _root(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    a: int,
    b: int,
    low: float,
    max_c: float,
    max_subproblems: int,
) -> tuple[float, int, int]:
    """Return the c above `low` where a no longer dominates b, 1 if unsettled, and subproblems."""
    # Start from a corner that no single flip improves: its distance grows with c.
    farthest_distance(classes, buffers, a, 1.0, np.inf, 1)
    linear_c, square_c = corner_terms(classes, buffers, a, 1.0)
    centre_energy = far_energy(classes.parameters, a, buffers.distances[a])
    c, c_tried, n_subproblems, tie_multiple = np.inf, max_c, 0, 1.0
    for _ in range(_MAX_STEPS):
        lower_c = _root_of_corner(classes, buffers, a, b, linear_c, square_c, low, c_tried)
        if c < np.inf and lower_c >= c:
            tie_multiple *= 10.0  # rounding: the search returned the current corner as a better one
        c = min(c, lower_c)
        c_tried = min(c, max_c)
        if c_tried == np.inf:
            return c, 0, n_subproblems  # rank 0: no distance depends on c
        # At this c the distance of the current corner equals the target, so a better corner must
        # exceed it by more than rounding.
        target = distance_of_far_energy(
            classes.parameters,
            a,
            _domination_energy(classes, buffers, b, c_tried, centre_energy, tie_multiple),
        )
        target += (
            tie_multiple
            * DISTANCE_ROUNDING
            * distance_upper_bound(classes.parameters, a, buffers.distances[a], c_tried)
        )
        value, bound, subproblems = farthest_distance(
            classes, buffers, a, c_tried, target, max(max_subproblems - n_subproblems, 1)
        )
        n_subproblems += subproblems
        if value < target:
            if bound <= target:
                return c, 0, n_subproblems
            break
        linear_c, square_c = corner_terms(classes, buffers, a, c_tried)
    return _bisect_without_branching(classes, buffers, a, b, low, c_tried), 1, n_subproblems


@compiled()
def _root_of_corner(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    a: int,
    b: int,
    linear_c: float,
    square_c: float,
    low: float,
    high: float,
) -> float:
    """Return the root for one corner in (low, high], or inf, by Newton steps within a bracket."""
    distance = buffers.distances[a]
    most = distance_of_far_energy(
        classes.parameters, a, near_energy(classes.parameters, b, buffers.distances[b])
    )
    # With the corner this far away, b at its sample mean is not dominated.
    high = min(high, _positive_root(square_c, linear_c, distance - most))
    if high == np.inf:
        return np.inf
    c = high
    for _ in range(_MAX_STEPS):
        squared = distance + c * (linear_c + c * square_c)
        near, _, rate = nearest_distance(classes, buffers, b, c)
        far = far_energy(classes.parameters, a, squared)
        phi = far - near_energy(classes.parameters, b, near)
        if c == high and phi < 0.0:
            return np.inf if phi < -tie_tolerance(far, far) else c
        if phi >= 0.0:
            high = c
        else:
            low = c
        derivative = far_rate(classes.parameters, a, squared) * (linear_c + 2.0 * c * square_c)
        derivative -= near_rate(classes.parameters, b, near) * rate
        step = phi / derivative if derivative > 0.0 else np.inf
        following = c - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - c) <= 1e-14 * c or high - low <= 1e-15 * high:
            return high if phi >= 0.0 else following
        c = following
    return high


@compiled()
def _positive_root(square_c: float, linear_c: float, constant: float) -> float:
    """Return the positive root of square_c c² + linear_c c + constant, constant < 0, or inf."""
    if constant >= 0.0:
        return 0.0
    root = linear_c + (linear_c * linear_c - 4.0 * square_c * constant) ** 0.5
    return -2.0 * constant / root if root > 0.0 else np.inf


@compiled(inline="always")
def _bisect_without_branching(  # noqa: PLR0917
    classes: BoxedGaussians, buffers: RowBuffers, a: int, b: int, low: float, high: float
) -> float:
    """Return a c at which a is proved to dominate b without branching, by bisection."""
    centre_energy = far_energy(classes.parameters, a, buffers.distances[a])
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        target = distance_of_far_energy(
            classes.parameters,
            a,
            _domination_energy(classes, buffers, b, middle, centre_energy, -1.0),
        )
        value, bound, _ = farthest_distance(classes, buffers, a, middle, target, 1)
        if value < target and bound <= target:
            low = middle
        else:
            high = middle
    return low
