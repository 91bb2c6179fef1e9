r"""The point of a box nearest to another in Mahalanobis distance: a convex quadratic programme.

With y the displacement from the centre m of the box, in units E in which its half width is
:math:`\rho`, the squared distance from x is, with precision P,

.. math:: f(y)=\delta-2g^\top y+y^\top Qy,\qquad y\in[-\rho,\rho]^p,

where :math:`\delta=f(0)` (`delta`), :math:`g=EP(x-m)` (`linear`) and :math:`Q=EPE` (`quad`).
Coordinate descent finds which bounds are active, a Newton step on the free coordinates solves the
rest. The certificate is the gap of the linearised problem: since f is convex,
:math:`\min f\ge f(y)-\max_{y'}\nabla f(y)^\top(y-y')`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito._numerics.cholesky_compiled import cholesky_solve
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, add_multiple, dot, matrix_vector

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Gaps up to this, relative to the largest distance in the box, are rounding errors.
_GAP_ROUNDING = 1e-14

#: Limit on rounds of coordinate descent and Newton steps; the gap after them is returned as it is.
_MAX_PASSES = 60

#: With more free coordinates than this a Newton step that leaves the box is clipped to it, if f
#: decreases; with fewer it stops at the first bound, which always works and is cheap for few.
_FEW_FREE = 16


@compiled()
def nearest(  # noqa: PLR0913, PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    largest: float,
    y: FloatArray,
    half_gradient: FloatArray,
    buffer: FloatArray,
    free: IntArray,
) -> tuple[float, float]:
    """Return the smallest squared distance and its gap.

    Writes the nearest point to `y`, and half the gradient there to `half_gradient`. `largest` is
    the size of the terms of f over the box; `buffer` is (p + 4, p).
    """
    _start_at_corner(linear, quad, half_width, y, half_gradient)
    tolerance = _GAP_ROUNDING * largest
    gap = _gap(y, half_gradient, half_width)
    for _ in range(_MAX_PASSES):
        if gap <= tolerance:
            break
        before = gap
        _sweep(quad, half_width, y, half_gradient)
        gap = _gap(y, half_gradient, half_width)
        if gap > tolerance:
            _minimise_on_face(linear, quad, half_width, y, half_gradient, buffer, free)
            # Rounding accumulates in the updated half gradient: compute it again from y.
            _half_gradient_at(linear, quad, y, half_gradient)
            gap = _gap(y, half_gradient, half_width)
        if gap >= before and gap <= 100.0 * tolerance:
            break
    value = delta - dot(linear, y) + dot(half_gradient, y)
    return max(value, 0.0), max(gap, 0.0)


@compiled(inline="always")
def _start_at_corner(
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    half_gradient: FloatArray,
) -> None:
    """Write the corner with the signs of g, which is the solution where the box is small."""
    for i in range(len(y)):
        y[i] = half_width if linear[i] >= 0.0 else -half_width
    _half_gradient_at(linear, quad, y, half_gradient)


@compiled()
def _half_gradient_at(
    linear: FloatArray, quad: FloatArray, y: FloatArray, half_gradient: FloatArray
) -> None:
    """Write half the gradient of f, quad @ y - linear."""
    matrix_vector(quad, y, half_gradient)
    for i in range(len(y)):
        half_gradient[i] -= linear[i]


@compiled(fastmath=SIMD_FLAGS)
def _gap(y: FloatArray, half_gradient: FloatArray, half_width: float) -> float:
    """Return the gap of the linearised problem, an upper bound on f(y) - min f."""
    total = 0.0
    for i in range(len(y)):
        total += half_gradient[i] * y[i] + half_width * abs(half_gradient[i])
    return 2.0 * total


@compiled(inline="always")
def _sweep(quad: FloatArray, half_width: float, y: FloatArray, half_gradient: FloatArray) -> None:
    """Minimise f along each coordinate in turn, in place."""
    for i in range(len(y)):
        curvature = quad[i, i]
        if curvature <= 0.0:
            continue
        minimiser = min(max(y[i] - half_gradient[i] / curvature, -half_width), half_width)
        if minimiser != y[i]:
            add_multiple(quad[i], minimiser - y[i], half_gradient)
            y[i] = minimiser


@compiled(inline="always")
def _minimise_on_face(  # noqa: PLR0917
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    half_gradient: FloatArray,
    buffer: FloatArray,
    free: IntArray,
) -> None:
    """Minimise f over the free coordinates, in place; those that reach a bound are fixed."""
    n_free = _list_free(quad, half_width, y, free)
    while n_free > 0:
        n_free = _factor_free(quad, free, n_free, buffer)
        rhs, step = buffer[len(y)], buffer[len(y) + 1]
        for a in range(n_free):
            rhs[a] = -half_gradient[free[a]]
        cholesky_solve(buffer[:n_free, :n_free], rhs[:n_free], step[:n_free])
        fraction, blocking = _longest_step(y, step, free, n_free, half_width)
        if (
            blocking >= 0
            and n_free > _FEW_FREE
            and _take_clipped_step(
                linear, quad, half_width, y, half_gradient, step, free, n_free, buffer
            )
        ):
            n_free = _list_free(quad, half_width, y, free)
            continue
        for a in range(n_free):
            i = free[a]
            move = fraction * step[a]
            if a == blocking:
                move = (half_width if step[a] > 0.0 else -half_width) - y[i]
            add_multiple(quad[i], move, half_gradient)
            y[i] += move
        if blocking < 0:
            return
        y[free[blocking]] = half_width if step[blocking] > 0.0 else -half_width
        for a in range(blocking + 1, n_free):
            free[a - 1] = free[a]
        n_free -= 1


@compiled()
def _list_free(quad: FloatArray, half_width: float, y: FloatArray, free: IntArray) -> int:
    """Write the indices of the coordinates strictly inside the box; return how many."""
    n_free = 0
    for i in range(len(y)):
        if abs(y[i]) < half_width and quad[i, i] > 0.0:
            free[n_free] = i
            n_free += 1
    return n_free


@compiled()
def _take_clipped_step(  # noqa: PLR0913, PLR0917
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    half_gradient: FloatArray,
    step: FloatArray,
    free: IntArray,
    n_free: int,
    buffer: FloatArray,
) -> bool:
    """Take the whole step, clipped to the box, if f decreases; return whether it did.

    Fixing one coordinate at a time would need as many factorisations as coordinates.
    """
    trial, new_half_gradient = buffer[len(y) + 2], buffer[len(y) + 3]
    trial[:] = y
    for a in range(n_free):
        i = free[a]
        trial[i] = min(max(y[i] + step[a], -half_width), half_width)
    _half_gradient_at(linear, quad, trial, new_half_gradient)
    before = dot(half_gradient, y) - dot(linear, y)
    if dot(new_half_gradient, trial) - dot(linear, trial) >= before:
        return False
    y[:] = trial
    half_gradient[:] = new_half_gradient
    return True


@compiled()
def _factor_free(quad: FloatArray, free: IntArray, n_free: int, buffer: FloatArray) -> int:
    """Write the Cholesky factor of Q on the free coordinates; return its rank.

    Linearly dependent coordinates are dropped from `free`; `dubito._numerics.cholesky_compiled`
    would reject the whole matrix.
    """
    kept = 0
    for a in range(n_free):
        i = free[a]
        row = buffer[kept]
        pivot = quad[i, i]
        for b in range(kept):
            value = quad[i, free[b]]
            for d in range(b):
                value -= row[d] * buffer[b, d]
            row[b] = value / buffer[b, b]
            pivot -= row[b] * row[b]
        if pivot > 1e-13 * quad[i, i]:
            row[kept] = pivot**0.5
            free[kept] = i
            kept += 1
    return kept


@compiled()
def _longest_step(
    y: FloatArray, step: FloatArray, free: IntArray, n_free: int, half_width: float
) -> tuple[float, int]:
    """Return the fraction of a step that stays in the box, and which coordinate limits it."""
    fraction, blocking = 1.0, -1
    for a in range(n_free):
        i = free[a]
        distance = half_width - y[i] if step[a] > 0.0 else half_width + y[i]
        if abs(step[a]) * fraction > distance:
            fraction, blocking = distance / abs(step[a]), a
    return fraction, blocking
