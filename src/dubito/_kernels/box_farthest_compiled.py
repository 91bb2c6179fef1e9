r"""The corner of a box farthest from a point in Mahalanobis distance: branch and bound.

.. math:: \max f(y)=\delta-2g^\top y+y^\top Qy,\qquad y\in\{-\rho,\rho\}^p.

f is convex, so that the farthest point is a corner; to find it is NP-hard in general. Bounds come
from a diagonal :math:`\mathrm{Diag}(u)\succeq Q`: on corners f equals

.. math:: F(y)=f(y)+\sum_iu_i(\rho^2-y_i^2),

which is concave, and so below its tangents: any y of the box bounds all corners at once. Where no
bound is needed, none is computed: a coordinate whose pull :math:`|g_i|` exceeds
:math:`\rho\sum_{j\ne i}|Q_{ij}|` has its side, and so has one whose other side the tangent
excludes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.box_nearest_compiled import add_row, times_rows
from dubito._kernels.diagonal_share_compiled import share_needed
from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES, dot

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    SignArray = npt.NDArray[np.int8]

#: Distances this close, in units of the largest that the box allows, are equal.
_ROUNDING = 1e-13
_MAX_SWEEPS = 12


@compiled()
def farthest(  # noqa: PLR0913, PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    guards: FloatArray,
    half_width: float,
    target: float,
    max_nodes: int,
    corner: FloatArray,
    room: FloatArray,
    trail: FloatArray,
    sides: SignArray,
) -> tuple[float, float, int]:
    r"""Return the largest squared distance found, a bound on all, and the nodes it took.

    Without a target (inf) the search ends when both agree. With one it ends as soon as a corner
    lies at the target or beyond, or none can: only the comparison is needed. `corner` ends as the
    corner found. `guards` are :math:`\sum_{j\ne i}|Q_{ij}|` and u, (2, p). `room` is
    (p + 6, p); `trail` (p, p + 2) and `sides` (p + 2, p) hold the open branches.
    """
    reach, lift = guards[0], guards[1]
    value = _corner_of_pull(delta, pull, quad, half_width, corner, room[0])
    decided = _decide_by_pull(pull, reach, half_width, corner, sides[0])
    if decided or value >= target:
        return value, value if decided else np.inf, 0
    value += _flip(pull, quad, half_width, corner, room[0])
    if value >= target:
        return value, np.inf, 0
    largest = delta + 2.0 * half_width * _total(pull) + half_width**2 * lift.sum()
    if target < np.inf and largest < target:
        return value, largest, 0
    return _search(
        delta, pull, quad, lift, half_width, target, max_nodes, _ROUNDING * largest, value,
        corner, room, trail, sides,
    )  # fmt: skip


@compiled(inline="always")
def _corner_of_pull(  # noqa: PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    corner: FloatArray,
    product: FloatArray,
) -> float:
    """Go to the corner that the pull points away from; return its distance."""
    for i in range(len(pull)):
        corner[i] = -half_width if pull[i] >= 0.0 else half_width
    times_rows(quad, corner, product)
    return delta - 2.0 * dot(pull, corner) + dot(product, corner)


@compiled(inline="always")
def _decide_by_pull(
    pull: FloatArray, reach: FloatArray, half_width: float, corner: FloatArray, side: SignArray
) -> bool:
    """Give each coordinate its side where the pull outweighs all others; True if all have one."""
    everywhere = True
    for i in range(len(pull)):
        certain = abs(pull[i]) >= half_width * reach[i]
        side[i] = 0
        if certain:
            side[i] = 1 if corner[i] > 0.0 else -1
        everywhere = everywhere and certain
    return everywhere


@compiled(fastmath=LANES)
def _total(pull: FloatArray) -> float:
    total = 0.0
    for i in range(len(pull)):
        total += abs(pull[i])
    return total


@compiled()
def _flip(
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    corner: FloatArray,
    product: FloatArray,
) -> float:
    """Cross the box along one coordinate at a time while that gains; return what is gained."""
    gained = 0.0
    for _ in range(4 * len(pull) + 4):
        best, which = 0.0, -1
        for i in range(len(pull)):
            gain = corner[i] * (pull[i] - product[i]) + half_width**2 * quad[i, i]
            if gain > best:
                best, which = gain, i
        if which < 0 or gained + 4.0 * best == gained:
            break
        gained += 4.0 * best
        add_row(quad[which], -2.0 * corner[which], product)
        corner[which] = -corner[which]
    return gained


@compiled(inline="always")
def _search(  # noqa: PLR0913, PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    lift: FloatArray,
    half_width: float,
    target: float,
    max_nodes: int,
    tolerance: float,
    value: float,
    corner: FloatArray,
    room: FloatArray,
    trail: FloatArray,
    sides: SignArray,
) -> tuple[float, float, int]:
    """Branch depth first, the nearer side first; prune what cannot beat the best or the target."""
    p = len(pull)
    y, product, trial = room[1], room[2], room[3]
    side, other_side_seen = sides[p + 1], sides[p]
    side[:] = sides[0]
    y[:] = corner
    # With a target only corners at or beyond it matter; without, only better ones.
    aim = target if target < np.inf else value + tolerance
    depth, nodes, root_bound, scale = 0, 0, np.inf, 1.0
    while True:
        nodes += 1
        bound, branch, scale = _bound(
            delta, pull, quad, lift, half_width, aim, scale, y, product, side, room[4:]
        )
        root_bound = min(root_bound, bound) if nodes == 1 else root_bound
        if bound >= aim:
            found = _round(delta, pull, quad, half_width, y, trial, product)
            if found > value:
                value = found
                corner[:] = trial
                if value >= target:
                    return value, np.inf, nodes
                aim = target if target < np.inf else value + tolerance
        if bound >= aim and branch >= 0:
            if nodes >= max_nodes:
                return value, max(root_bound, value), nodes
            sides[depth] = side
            trail[depth, :p] = y
            trail[depth, p] = branch
            trail[depth, p + 1] = scale
            other_side_seen[depth] = 0
            _take_side(side, y, branch, 1 if y[branch] >= 0.0 else -1, half_width)
            depth += 1
            continue
        while depth > 0 and other_side_seen[depth - 1]:
            depth -= 1
        if depth == 0:
            return value, aim, nodes
        side[:] = sides[depth - 1]
        y[:] = trail[depth - 1, :p]
        branch, scale = int(trail[depth - 1, p]), trail[depth - 1, p + 1]
        _take_side(side, y, branch, -1 if y[branch] >= 0.0 else 1, half_width)
        other_side_seen[depth - 1] = 1


@compiled()
def _take_side(side: SignArray, y: FloatArray, i: int, sign: int, half_width: float) -> None:
    side[i] = sign
    y[i] = half_width * sign


@compiled(inline="always")
def _bound(  # noqa: PLR0913, PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    lift: FloatArray,
    half_width: float,
    aim: float,
    scale: float,
    y: FloatArray,
    product: FloatArray,
    side: SignArray,
    room: FloatArray,
) -> tuple[float, int, float]:
    """Bound the corners that are open, decide sides by the bound, and name the one to branch on.

    `y` moves uphill in F; once the tangent at it lies below the aim nothing is left to see. What is
    open needs only a share `scale` of u, which falls as sides are decided; it is returned too.
    """
    times_rows(quad, y, product)
    bound, branch = np.inf, -1
    for attempt in range(2):
        for _ in range(_MAX_SWEEPS):
            _climb(pull, quad, lift, scale, half_width, y, product, side)
            height, excess = _tangent(delta, pull, lift, scale, half_width, y, product, side)
            bound = min(bound, height + excess)
            if height + excess < aim:
                return bound, -1, scale
            if excess <= 0.1 * (height - aim):  # the top itself is above the aim
                break
        branch = _decide_by_tangent(
            delta, pull, quad, lift, scale, half_width, aim, y, product, side
        )
        if attempt > 0 or branch < 0:
            break
        share = share_needed(quad, lift, side, room)
        if share > 0.98 * scale:
            break
        scale = share
    return bound, branch, scale


@compiled()
def _decide_by_tangent(  # noqa: PLR0913, PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    lift: FloatArray,
    scale: float,
    half_width: float,
    aim: float,
    y: FloatArray,
    product: FloatArray,
    side: SignArray,
) -> int:
    """Give sides where the tangent excludes the other one; return what is most open, or -1."""
    height, excess = _tangent(delta, pull, lift, scale, half_width, y, product, side)
    branch, least = -1, np.inf
    for i in range(len(y)):
        if side[i] != 0:
            continue
        steep = product[i] - pull[i] - scale * lift[i] * y[i]
        if height + excess - 4.0 * half_width * abs(steep) < aim:
            sign = 1 if steep > 0.0 else -1
            moves = y[i] != half_width * sign
            if moves:
                add_row(quad[i], half_width * sign - y[i], product)
            _take_side(side, y, i, sign, half_width)
            if moves:  # the tangent was taken at another point
                height, excess = _tangent(delta, pull, lift, scale, half_width, y, product, side)
        elif abs(y[i]) < least:
            branch, least = i, abs(y[i])
    return branch


@compiled()
def _climb(  # noqa: PLR0917
    pull: FloatArray,
    quad: FloatArray,
    lift: FloatArray,
    scale: float,
    half_width: float,
    y: FloatArray,
    product: FloatArray,
    side: SignArray,
) -> None:
    """Maximise F along each open coordinate in turn."""
    for i in range(len(y)):
        if side[i] != 0:
            continue
        steep = product[i] - pull[i] - scale * lift[i] * y[i]
        bend = scale * lift[i] - quad[i, i]
        if bend * half_width <= 1e-3 * abs(steep):
            aim = half_width if steep > 0.0 else -half_width
        else:
            aim = min(max(y[i] + steep / bend, -half_width), half_width)
        if aim != y[i]:
            add_row(quad[i], aim - y[i], product)
            y[i] = aim


@compiled(fastmath=LANES)
def _tangent(  # noqa: PLR0917
    delta: float,
    pull: FloatArray,
    lift: FloatArray,
    scale: float,
    half_width: float,
    y: FloatArray,
    product: FloatArray,
    side: SignArray,
) -> tuple[float, float]:
    """Return F at y, and by how much its tangent rises above it in the box."""
    height, excess = delta, 0.0
    for i in range(len(y)):
        height += y[i] * (product[i] - 2.0 * pull[i])
        if side[i] == 0:
            steep = product[i] - pull[i] - scale * lift[i] * y[i]
            height += scale * lift[i] * (half_width * half_width - y[i] * y[i])
            excess += 2.0 * (half_width * abs(steep) - steep * y[i])
    return height, excess


@compiled()
def _round(  # noqa: PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    trial: FloatArray,
    product: FloatArray,
) -> float:
    """Go to the corner nearest to y and on to better ones; return its distance."""
    for i in range(len(y)):
        trial[i] = half_width if y[i] >= 0.0 else -half_width
    times_rows(quad, trial, product)
    value = delta - 2.0 * dot(pull, trial) + dot(product, trial)
    return value + _flip(pull, quad, half_width, trial, product)
