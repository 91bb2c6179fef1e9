r"""Least and greatest probability of each class over an interval of slopes.

With :math:`A(\theta)=\log\sum_je^{\theta s_j}`, :math:`\log p_k(\theta)=\theta s_k-A(\theta)` is
concave in :math:`\theta`: it is least at an end of the interval, and greatest at an end or where
:math:`A'(\theta)=E_\theta[s]=s_k`. That maximum is needed for up to K classes of a row, so A is
interpolated once (value and three derivatives at both ends of a piece) and each root costs O(1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Largest error of the interpolant at the middle of a piece; the interpolants of its halves, which
#: are used, have errors 2^8 times smaller.
_TOLERANCE = 1e-9

#: Largest number of pieces on the stack; beyond it, tangents bound the maximum.
_MAX_PIECES = 64

#: Where slope times the gap to the largest score exceeds this plus log K, the probabilities of the
#: other classes are below rounding.
_LARGEST_SLOPE_TIMES_GAP = 40.0


@compiled(fastmath=SIMD_FLAGS)
def _derivatives(
    s: FloatArray, slope: float, power: tuple[FloatArray, FloatArray, IntArray], out: FloatArray
) -> None:
    """Write A(θ) = log Σ exp(θs) and three derivatives, for scores s at most 0, the largest 0."""
    e, binade, bits = power
    for j in range(len(s)):
        e[j] = slope * s[j]
    exp_in_place(e, binade, bits)
    total = first = second = third = 0.0
    for j in range(len(s)):
        weighted = e[j] * s[j]
        total += e[j]
        first += weighted
        second += weighted * s[j]
        third += weighted * s[j] * s[j]
    first /= total
    second /= total
    variance = second - first * first
    out[0] = math.log(total)
    out[1] = first
    out[2] = variance
    out[3] = third / total - first * (3.0 * variance + first * first)


@compiled()
def _interpolant(left: FloatArray, right: FloatArray, width: float, c: FloatArray) -> None:
    """Write coefficients of the Hermite polynomial of degree 7 on [0, 1], from A at both ends."""
    c[0], c[1] = left[0], left[1] * width
    c[2], c[3] = 0.5 * left[2] * width * width, left[3] * width**3 / 6.0
    # Residuals at the right end of the Taylor cubic of the left end, for each derivative.
    m0 = right[0] - (c[0] + c[1] + c[2] + c[3])
    m1 = right[1] * width - (c[1] + 2.0 * c[2] + 3.0 * c[3])
    m2 = right[2] * width * width - (2.0 * c[2] + 6.0 * c[3])
    m3 = right[3] * width**3 - 6.0 * c[3]
    c[4] = 35.0 * m0 - 15.0 * m1 + 2.5 * m2 - m3 / 6.0
    c[5] = -84.0 * m0 + 39.0 * m1 - 7.0 * m2 + 0.5 * m3
    c[6] = 70.0 * m0 - 34.0 * m1 + 6.5 * m2 - 0.5 * m3
    c[7] = -20.0 * m0 + 10.0 * m1 - 2.0 * m2 + m3 / 6.0


@compiled()
def _maximum(c: FloatArray, slope: float) -> float:
    """Return the maximum of slope·x minus the polynomial on [0, 1], by bracketed Newton steps."""
    low, high, x = 0.0, 1.0, 0.5
    for _ in range(40):
        value, first, half_second = c[7], 0.0, 0.0
        for k in range(6, -1, -1):
            half_second = half_second * x + first
            first = first * x + value
            value = value * x + c[k]
        if first < slope:
            low = x
        else:
            high = x
        proposal = x + (slope - first) / (2.0 * half_second) if half_second > 0.0 else -1.0
        proposal = proposal if low <= proposal <= high else 0.5 * (low + high)
        # Near the maximum the error of the value is of the square of that of x.
        if abs(proposal - x) < 1e-7:
            break
        x = proposal
    value = c[7]
    for k in range(6, -1, -1):
        value = value * x + c[k]
    return slope * x - value


@compiled()
def _by_tangents(left: FloatArray, right: FloatArray, ends: tuple[float, float], s: float) -> float:
    """Return an upper bound of θs - A(θ) on a piece, from the tangents below the convex A."""
    a, b = ends
    slope_change = right[1] - left[1]
    crossing = a
    if slope_change > 0.0:
        crossing = ((right[1] * b - right[0]) - (left[1] * a - left[0])) / slope_change
    crossing = min(max(crossing, a), b)
    tangent = max(left[0] + left[1] * (crossing - a), right[0] + right[1] * (crossing - b))
    return crossing * s - tangent


@compiled()
def _any_between(s: FloatArray, low: float, high: float) -> bool:
    """Return whether a score lies between two mean scores."""
    for j in range(len(s)):  # noqa: SIM110 - numba knows no generators
        if low < s[j] < high:
            return True
    return False


@compiled()
def _raise_to_maxima(  # noqa: PLR0917 - numba knows no keyword-only arguments
    s: FloatArray,
    left: FloatArray,
    right: FloatArray,
    ends: tuple[float, float],
    smooth: bool,
    upper: FloatArray,
) -> None:
    """Raise the log-probabilities of classes whose maximum lies inside a piece."""
    a, b = ends
    c = np.empty(8)
    _interpolant(left, right, b - a, c)
    for j in range(len(s)):
        if left[1] < s[j] < right[1]:
            if smooth:
                maximum = a * s[j] + _maximum(c, (b - a) * s[j])
            else:
                maximum = _by_tangents(left, right, ends, s[j])
            upper[j] = max(upper[j], maximum)


@compiled()
def _maxima_inside(
    s: FloatArray,
    power: tuple[FloatArray, FloatArray, IntArray],
    knots: FloatArray,
    data: FloatArray,
    upper: FloatArray,
) -> None:
    """Raise log-probabilities to their maxima between knots[0] and knots[1].

    `knots` (m,) and `data` (m, 4) are a stack of ends of pieces still to do, right to left.
    """
    smallest_slope = 1.0 / -s.min()
    c, middle_data = np.empty(8), np.empty(4)
    count = 2  # the current piece lies between the last two of the stack, the left one last
    knots[0], knots[1] = knots[1], knots[0]
    for k in range(4):
        data[0, k], data[1, k] = data[1, k], data[0, k]
    while count > 1:
        b, a = knots[count - 2], knots[count - 1]
        right, left = data[count - 2], data[count - 1]
        if not _any_between(s, left[1], right[1]):
            count -= 1
            continue
        # Maxima lie at slopes of as many orders of magnitude as the scores have.
        scale = max(a, smallest_slope)
        middle = 0.5 * (a + b) if b <= 4.0 * scale else math.sqrt(scale) * math.sqrt(b)
        if count == _MAX_PIECES or not a < middle < b:
            _raise_to_maxima(s, left, right, (a, b), False, upper)
            count -= 1
            continue
        _derivatives(s, middle, power, middle_data)
        _interpolant(left, right, b - a, c)
        interpolated, fraction = c[7], (middle - a) / (b - a)
        for k in range(6, -1, -1):
            interpolated = fraction * interpolated + c[k]
        if abs(interpolated - middle_data[0]) <= _TOLERANCE:
            _raise_to_maxima(s, left, middle_data, (a, middle), True, upper)
            _raise_to_maxima(s, middle_data, right, (middle, b), True, upper)
            count -= 1
            continue
        knots[count], data[count] = a, left
        knots[count - 1], data[count - 1] = middle, middle_data
        count += 1


@compiled()
def _gap_and_ties(s: FloatArray) -> tuple[float, int]:
    """Return the gap from the largest value, 0, to the next one, and the number of values 0."""
    second, ties = -np.inf, 0
    for j in range(len(s)):
        if s[j] == 0.0:
            ties += 1
        elif s[j] > second:
            second = s[j]
    return -second, ties


@compiled()
def _in_units(
    scores: FloatArray, interval: tuple[float, float], s: FloatArray
) -> tuple[float, float]:
    """Write scores in units of the widest gap, a power of 2; return the slopes in these units.

    Otherwise the third derivative of A, a cube of scores, could overflow or underflow.
    """
    low, high = interval
    widest = -scores.min()
    unit = math.ldexp(1.0, math.frexp(widest)[1] - 1) if widest > 0.0 else 1.0
    for j in range(len(s)):
        s[j] = scores[j] / unit
    return min(low * unit, 1e300), min(high * unit, 1e300) if high < np.inf else np.inf


@compiled()
def write_extremes(
    scores: FloatArray, interval: tuple[float, float], lower: FloatArray, upper: FloatArray
) -> None:
    """Write the least and greatest p_k over slopes in an interval whose upper end may be infinite.

    `scores` (n, K) are at most 0, and 0 for the largest of each row.
    """
    n, n_classes = scores.shape
    e, binade = np.empty(n_classes), np.empty(n_classes)
    power = (e, binade, binade.view(np.int64))
    knots, data = np.empty(_MAX_PIECES), np.empty((_MAX_PIECES, 4))
    s = np.empty(n_classes)
    for i in range(n):
        down, up = lower[i], upper[i]
        low, high = _in_units(scores[i], interval, s)
        gap, ties = _gap_and_ties(s)
        if ties == n_classes:
            down[:] = up[:] = 1.0 / n_classes
            continue
        last_slope = min((_LARGEST_SLOPE_TIMES_GAP + math.log(n_classes)) / gap, 1e300)
        knots[0], knots[1] = low, max(min(high, last_slope), low)
        _derivatives(s, knots[0], power, data[0])
        _derivatives(s, knots[1], power, data[1])
        for j in range(n_classes):
            at_low = knots[0] * s[j] - data[0, 0]
            at_high = high * s[j] - data[1, 0]
            if high == np.inf:
                at_high = -math.log(ties) if s[j] == 0.0 else -np.inf
            down[j], up[j] = min(at_low, at_high), max(at_low, at_high)
        if data[0, 1] < data[1, 1]:
            _maxima_inside(s, power, knots, data, up)
        for j in range(n_classes):
            down[j], up[j] = math.exp(down[j]), min(math.exp(up[j]), 1.0)
