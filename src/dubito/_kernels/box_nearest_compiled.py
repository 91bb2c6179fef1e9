r"""The point of a box nearest to another in Mahalanobis distance: a convex quadratic programme.

With y the way from the centre of the box, in units in which its half width is :math:`\rho`,

.. math:: f(y)=\delta-2g^\top y+y^\top Qy,\qquad y\in[-\rho,\rho]^p.

Coordinate descent finds which sides of the box bind, Newton's step on the coordinates that are
free ends the matter. The certificate is the gap of the linearised problem: f convex means
:math:`\min f\ge f(y)-\max_{y'}\nabla f(y)^\top(y-y')`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES, dot
from dubito._kernels.small_systems_compiled import solve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.intp]

#: Gaps this small, in units of the largest distance the box allows, are rounding.
_ROUNDING = 1e-14
_MAX_PASSES = 60

#: Up to so many free coordinates bind one by one: the surest way, and cheap.
_FEW = 16


@compiled()
def nearest(  # noqa: PLR0913, PLR0917
    delta: float,
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    largest: float,
    y: FloatArray,
    slope: FloatArray,
    room: FloatArray,
    free: IntArray,
) -> tuple[float, float]:
    """Return the squared distance and its gap; `y` and `slope` end as the point and half gradient.

    `largest` is the size of the terms of f over the box; `room` is (p + 4, p).
    """
    start_at_corner(pull, quad, half_width, y, slope)
    tolerance = _ROUNDING * largest
    gap = _gap(y, slope, half_width)
    for _ in range(_MAX_PASSES):
        if gap <= tolerance:
            break
        before = gap
        _sweep(quad, half_width, y, slope)
        gap = _gap(y, slope, half_width)
        if gap > tolerance:
            _minimise_on_face(pull, quad, half_width, y, slope, room, free)
            # Added up over many steps the slope drifts; its own definition sets it right.
            _slope_at(pull, quad, y, slope)
            gap = _gap(y, slope, half_width)
        if gap >= before and gap <= 100.0 * tolerance:
            break
    value = delta - dot(pull, y) + dot(slope, y)
    return max(value, 0.0), max(gap, 0.0)


@compiled(inline="always")
def start_at_corner(
    pull: FloatArray, quad: FloatArray, half_width: float, y: FloatArray, slope: FloatArray
) -> None:
    """Go to the corner that the pull points to: where the box is small, the solution."""
    for i in range(len(y)):
        y[i] = half_width if pull[i] >= 0.0 else -half_width
    _slope_at(pull, quad, y, slope)


@compiled()
def _slope_at(pull: FloatArray, quad: FloatArray, y: FloatArray, slope: FloatArray) -> None:
    """Write half the gradient, Qy - g."""
    times_rows(quad, y, slope)
    for i in range(len(y)):
        slope[i] -= pull[i]


@compiled(fastmath=LANES)
def times_rows(quad: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the product of a symmetric matrix and a vector."""
    for i in range(len(y)):
        row, total = quad[i], 0.0
        for j in range(len(y)):
            total += row[j] * y[j]
        out[i] = total


@compiled(fastmath=LANES)
def add_row(row: FloatArray, amount: float, out: FloatArray) -> None:
    """Add a multiple of a row."""
    for j in range(len(out)):
        out[j] += amount * row[j]


@compiled(fastmath=LANES)
def _gap(y: FloatArray, slope: FloatArray, half_width: float) -> float:
    total = 0.0
    for i in range(len(y)):
        total += slope[i] * y[i] + half_width * abs(slope[i])
    return 2.0 * total


@compiled(inline="always")
def _sweep(quad: FloatArray, half_width: float, y: FloatArray, slope: FloatArray) -> None:
    """Minimise along each coordinate in turn."""
    for i in range(len(y)):
        curvature = quad[i, i]
        if curvature <= 0.0:
            continue
        aim = min(max(y[i] - slope[i] / curvature, -half_width), half_width)
        if aim != y[i]:
            add_row(quad[i], aim - y[i], slope)
            y[i] = aim


@compiled(inline="always")
def _minimise_on_face(  # noqa: PLR0917
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    slope: FloatArray,
    room: FloatArray,
    free: IntArray,
) -> None:
    """Minimise over the free coordinates; those that meet the box bind, several at once if many."""
    n_free = _free_ones(quad, half_width, y, free)
    while n_free > 0:
        n_free = _definite_part(quad, free, n_free, room)
        rhs, step = room[len(y)], room[len(y) + 1]
        for a in range(n_free):
            rhs[a] = -slope[free[a]]
        solve(room[:n_free, :n_free], rhs[:n_free], step[:n_free])
        share, blocking = _longest_step(y, step, free, n_free, half_width)
        if (
            blocking >= 0
            and n_free > _FEW
            and _cut_off(pull, quad, half_width, y, slope, step, free, n_free, room)
        ):
            n_free = _free_ones(quad, half_width, y, free)
            continue
        for a in range(n_free):
            i = free[a]
            move = share * step[a]
            if a == blocking:
                move = (half_width if step[a] > 0.0 else -half_width) - y[i]
            add_row(quad[i], move, slope)
            y[i] += move
        if blocking < 0:
            return
        y[free[blocking]] = half_width if step[blocking] > 0.0 else -half_width
        for a in range(blocking + 1, n_free):
            free[a - 1] = free[a]
        n_free -= 1


@compiled()
def _free_ones(quad: FloatArray, half_width: float, y: FloatArray, free: IntArray) -> int:
    """List the coordinates that lie inside the box; return how many."""
    n_free = 0
    for i in range(len(y)):
        if abs(y[i]) < half_width and quad[i, i] > 0.0:
            free[n_free] = i
            n_free += 1
    return n_free


@compiled()
def _cut_off(  # noqa: PLR0913, PLR0917
    pull: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    slope: FloatArray,
    step: FloatArray,
    free: IntArray,
    n_free: int,
    room: FloatArray,
) -> bool:
    """Take the whole step, cut off at the box, if it leads down and binds something; say whether.

    One coordinate after the other would need as many factors as coordinates.
    """
    trial, new_slope = room[len(y) + 2], room[len(y) + 3]
    trial[:] = y
    for a in range(n_free):
        i = free[a]
        trial[i] = min(max(y[i] + step[a], -half_width), half_width)
    _slope_at(pull, quad, trial, new_slope)
    before = dot(slope, y) - dot(pull, y)
    if dot(new_slope, trial) - dot(pull, trial) >= before:
        return False
    y[:] = trial
    slope[:] = new_slope
    return True


@compiled()
def _definite_part(quad: FloatArray, free: IntArray, n_free: int, room: FloatArray) -> int:
    """Factor the free part; coordinates that depend on others stay where they are."""
    kept = 0
    for a in range(n_free):
        i = free[a]
        row = room[kept]
        left = quad[i, i]
        for b in range(kept):
            value = quad[i, free[b]]
            for d in range(b):
                value -= row[d] * room[b, d]
            row[b] = value / room[b, b]
            left -= row[b] * row[b]
        if left > 1e-13 * quad[i, i]:
            row[kept] = left**0.5
            free[kept] = i
            kept += 1
    return kept


@compiled()
def _longest_step(
    y: FloatArray, step: FloatArray, free: IntArray, n_free: int, half_width: float
) -> tuple[float, int]:
    """Return which share of a step stays in the box, and the coordinate that ends it, or -1."""
    share, blocking = 1.0, -1
    for a in range(n_free):
        i = free[a]
        space = half_width - y[i] if step[a] > 0.0 else half_width + y[i]
        if abs(step[a]) * share > space:
            share, blocking = space / abs(step[a]), a
    return share, blocking
