r"""The corner of a box farthest from a point in Mahalanobis distance: branch and bound.

.. math:: \max f(y)=\delta-2g^\top y+y^\top Qy,\qquad y\in\{-\rho,\rho\}^p,

with f the squared distance of `box_nearest_compiled`. f is convex, so that the farthest point is a
corner; finding it is NP-hard in general. Bounds come from a diagonal
:math:`\mathrm{Diag}(u)\succeq Q`: on corners f equals

.. math:: F(y)=f(y)+\sum_iu_i(\rho^2-y_i^2),

which is concave, hence below its tangents: the tangent at any y of the box bounds f on all corners.
The sign of a coordinate is fixed without branching where :math:`|g_i|` exceeds
:math:`\rho\sum_{j\ne i}|Q_{ij}|`, or where the tangent bound excludes the opposite sign. A
subproblem is the set of corners that agree with the signs fixed so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, add_multiple, dot, matrix_vector
from dubito.discriminant._kernels.diagonal_majorant_compiled import fraction_needed

if TYPE_CHECKING:
    from dubito._typing import FloatArray, SignArray

#: Distances closer than this, relative to the largest in the box, are equal.
_DISTANCE_TIE = 1e-13

#: Limit on coordinate passes that increase F; after them the subproblem is branched.
_MAX_SWEEPS = 12


@compiled()
def farthest(  # noqa: PLR0913, PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    off_diagonal_sums: FloatArray,
    majorant: FloatArray,
    half_width: float,
    target: float,
    max_subproblems: int,
    corner: FloatArray,
    buffer: FloatArray,
    stack: FloatArray,
    sign_stack: SignArray,
) -> tuple[float, float, int]:
    r"""Return the largest squared distance found, an upper bound on all, the number of subproblems.

    Without a target (inf) the search ends when both agree. With one it ends as soon as a corner at
    or beyond the target is found, or proved not to exist. The corner found is written to `corner`.
    `off_diagonal_sums` are :math:`\sum_{j\ne i}|Q_{ij}|`, `majorant` is u. `buffer` is (p + 6, p);
    `stack` (p, p + 2) and `sign_stack` (p + 2, p) hold the open subproblems. Signs are 1 or -1
    where fixed and 0 where open.
    """
    value = _corner_of_signs(delta, linear, quad, half_width, corner, buffer[0])
    decided = _decide_by_linear_term(linear, off_diagonal_sums, half_width, corner, sign_stack[0])
    if decided or value >= target:
        return value, value if decided else np.inf, 0
    value += _flip(linear, quad, half_width, corner, buffer[0])
    if value >= target:
        return value, np.inf, 0
    largest = delta + 2.0 * half_width * _sum_of_absolutes(linear) + half_width**2 * majorant.sum()
    if target < np.inf and largest < target:
        return value, largest, 0
    return _search(
        delta, linear, quad, majorant, half_width, target, max_subproblems, _DISTANCE_TIE * largest,
        value, corner, buffer, stack, sign_stack,
    )  # fmt: skip


@compiled(inline="always")
def _corner_of_signs(  # noqa: PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    corner: FloatArray,
    product: FloatArray,
) -> float:
    """Write the corner with signs opposite to those of g; return its squared distance."""
    for i in range(len(linear)):
        corner[i] = -half_width if linear[i] >= 0.0 else half_width
    matrix_vector(quad, corner, product)
    return delta - 2.0 * dot(linear, corner) + dot(product, corner)


@compiled(inline="always")
def _decide_by_linear_term(
    linear: FloatArray,
    off_diagonal_sums: FloatArray,
    half_width: float,
    corner: FloatArray,
    signs: SignArray,
) -> bool:
    """Fix the sign of each coordinate that g alone decides; return whether that is all of them."""
    all_decided = True
    for i in range(len(linear)):
        certain = abs(linear[i]) >= half_width * off_diagonal_sums[i]
        signs[i] = 0
        if certain:
            signs[i] = 1 if corner[i] > 0.0 else -1
        all_decided = all_decided and certain
    return all_decided


@compiled(fastmath=SIMD_FLAGS)
def _sum_of_absolutes(linear: FloatArray) -> float:
    total = 0.0
    for i in range(len(linear)):
        total += abs(linear[i])
    return total


@compiled()
def _flip(
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    corner: FloatArray,
    product: FloatArray,
) -> float:
    """Flip one sign at a time, the best first, while f grows; return by how much it grew."""
    gained = 0.0
    for _ in range(4 * len(linear) + 4):
        best, which = 0.0, -1
        for i in range(len(linear)):
            gain = corner[i] * (linear[i] - product[i]) + half_width**2 * quad[i, i]
            if gain > best:
                best, which = gain, i
        if which < 0 or gained + 4.0 * best == gained:
            break
        gained += 4.0 * best
        add_multiple(quad[which], -2.0 * corner[which], product)
        corner[which] = -corner[which]
    return gained


@compiled(inline="always")
def _search(  # noqa: PLR0913, PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    majorant: FloatArray,
    half_width: float,
    target: float,
    max_subproblems: int,
    tolerance: float,
    value: float,
    corner: FloatArray,
    buffer: FloatArray,
    stack: FloatArray,
    sign_stack: SignArray,
) -> tuple[float, float, int]:
    """Return what `farthest` does, by depth-first search; at a branch the sign of y comes first."""
    p = len(linear)
    y, product, trial = buffer[1], buffer[2], buffer[3]
    signs, opposite_tried = sign_stack[p + 1], sign_stack[p]
    signs[:] = sign_stack[0]
    y[:] = corner
    # With a target only corners at or beyond it matter; without, only better ones.
    threshold = target if target < np.inf else value + tolerance
    depth, subproblems, root_bound, fraction = 0, 0, np.inf, 1.0
    while True:
        subproblems += 1
        bound, branch, fraction = _bound(
            delta, linear, quad, majorant, half_width, threshold, fraction, y, product, signs,
            buffer[4:],
        )  # fmt: skip
        root_bound = min(root_bound, bound) if subproblems == 1 else root_bound
        if bound >= threshold:
            candidate = _round_to_corner(delta, linear, quad, half_width, y, trial, product)
            if candidate > value:
                value = candidate
                corner[:] = trial
                if value >= target:
                    return value, np.inf, subproblems
                threshold = target if target < np.inf else value + tolerance
        if bound >= threshold and branch >= 0:
            if subproblems >= max_subproblems:
                return value, max(root_bound, value), subproblems
            sign_stack[depth] = signs
            stack[depth, :p] = y
            stack[depth, p] = branch
            stack[depth, p + 1] = fraction
            opposite_tried[depth] = 0
            _fix_sign(signs, y, branch, 1 if y[branch] >= 0.0 else -1, half_width)
            depth += 1
            continue
        while depth > 0 and opposite_tried[depth - 1]:
            depth -= 1
        if depth == 0:
            return value, threshold, subproblems
        signs[:] = sign_stack[depth - 1]
        y[:] = stack[depth - 1, :p]
        branch, fraction = int(stack[depth - 1, p]), stack[depth - 1, p + 1]
        _fix_sign(signs, y, branch, -1 if y[branch] >= 0.0 else 1, half_width)
        opposite_tried[depth - 1] = 1


@compiled()
def _fix_sign(signs: SignArray, y: FloatArray, i: int, sign: int, half_width: float) -> None:
    signs[i] = sign
    y[i] = half_width * sign


@compiled(inline="always")
def _bound(  # noqa: PLR0913, PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    majorant: FloatArray,
    half_width: float,
    threshold: float,
    fraction: float,
    y: FloatArray,
    product: FloatArray,
    signs: SignArray,
    buffer: FloatArray,
) -> tuple[float, int, float]:
    """Return a bound on the corners of a subproblem, the coordinate to branch on, and `fraction`.

    Moves `y` up F until the tangent bound lies below the threshold, and fixes signs by that bound.
    The open coordinates need only a `fraction` of u, which falls as signs are fixed.
    """
    matrix_vector(quad, y, product)
    bound, branch = np.inf, -1
    for attempt in range(2):
        for _ in range(_MAX_SWEEPS):
            _ascend(linear, quad, majorant, fraction, half_width, y, product, signs)
            value_at_y, rise = _tangent(
                delta, linear, majorant, fraction, half_width, y, product, signs
            )
            bound = min(bound, value_at_y + rise)
            if value_at_y + rise < threshold:
                return bound, -1, fraction
            # The maximum of F itself is above the threshold: no tangent will decide.
            if rise <= 0.1 * (value_at_y - threshold):
                break
        branch = _decide_by_tangent(
            delta, linear, quad, majorant, fraction, half_width, threshold, y, product, signs
        )
        if attempt > 0 or branch < 0:
            break
        needed = fraction_needed(quad, majorant, signs, buffer)
        if needed > 0.98 * fraction:
            break
        fraction = needed
    return bound, branch, fraction


@compiled()
def _decide_by_tangent(  # noqa: PLR0913, PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    majorant: FloatArray,
    fraction: float,
    half_width: float,
    threshold: float,
    y: FloatArray,
    product: FloatArray,
    signs: SignArray,
) -> int:
    """Fix signs whose opposite the tangent excludes; return the open i of least |y_i|, or -1."""
    value_at_y, rise = _tangent(delta, linear, majorant, fraction, half_width, y, product, signs)
    branch, least = -1, np.inf
    for i in range(len(y)):
        if signs[i] != 0:
            continue
        half_derivative = product[i] - linear[i] - fraction * majorant[i] * y[i]
        if value_at_y + rise - 4.0 * half_width * abs(half_derivative) < threshold:
            sign = 1 if half_derivative > 0.0 else -1
            moves = y[i] != half_width * sign
            if moves:
                add_multiple(quad[i], half_width * sign - y[i], product)
            _fix_sign(signs, y, i, sign, half_width)
            if moves:  # the tangent was taken at another point
                value_at_y, rise = _tangent(
                    delta, linear, majorant, fraction, half_width, y, product, signs
                )
        elif abs(y[i]) < least:
            branch, least = i, abs(y[i])
    return branch


@compiled()
def _ascend(  # noqa: PLR0917
    linear: FloatArray,
    quad: FloatArray,
    majorant: FloatArray,
    fraction: float,
    half_width: float,
    y: FloatArray,
    product: FloatArray,
    signs: SignArray,
) -> None:
    """Maximise F along each open coordinate in turn."""
    for i in range(len(y)):
        if signs[i] != 0:
            continue
        half_derivative = product[i] - linear[i] - fraction * majorant[i] * y[i]
        curvature = fraction * majorant[i] - quad[i, i]
        if curvature * half_width <= 1e-3 * abs(half_derivative):
            maximiser = half_width if half_derivative > 0.0 else -half_width
        else:
            maximiser = min(max(y[i] + half_derivative / curvature, -half_width), half_width)
        if maximiser != y[i]:
            add_multiple(quad[i], maximiser - y[i], product)
            y[i] = maximiser


@compiled(fastmath=SIMD_FLAGS)
def _tangent(  # noqa: PLR0917
    delta: float,
    linear: FloatArray,
    majorant: FloatArray,
    fraction: float,
    half_width: float,
    y: FloatArray,
    product: FloatArray,
    signs: SignArray,
) -> tuple[float, float]:
    """Return F at y, and the largest rise of the tangent at y above that value in the box."""
    value_at_y, rise = delta, 0.0
    for i in range(len(y)):
        value_at_y += y[i] * (product[i] - 2.0 * linear[i])
        if signs[i] == 0:
            half_derivative = product[i] - linear[i] - fraction * majorant[i] * y[i]
            value_at_y += fraction * majorant[i] * (half_width * half_width - y[i] * y[i])
            rise += 2.0 * (half_width * abs(half_derivative) - half_derivative * y[i])
    return value_at_y, rise


@compiled()
def _round_to_corner(  # noqa: PLR0917
    delta: float,
    linear: FloatArray,
    quad: FloatArray,
    half_width: float,
    y: FloatArray,
    trial: FloatArray,
    product: FloatArray,
) -> float:
    """Write the corner nearest to y, improved by sign flips; return its squared distance."""
    for i in range(len(y)):
        trial[i] = half_width if y[i] >= 0.0 else -half_width
    matrix_vector(quad, trial, product)
    value = delta - 2.0 * dot(linear, trial) + dot(product, trial)
    return value + _flip(linear, quad, half_width, trial, product)
