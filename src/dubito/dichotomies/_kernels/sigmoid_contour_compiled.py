r"""Profile likelihood of a logistic curve at one score, and its integral, on vector lanes.

The contour is that of `dubito._numerics.logistic_profile_compiled`. This second version exists for
speed: thousands of nodes are tabulated, so exponentials run on vector lanes and each panel of the
integral takes a dozen profiles instead of an adaptive Gauss-Kronrod rule.

The log-odds at the score are :math:`\hat\eta+\tau s`, with τ their deviation; what is left to
maximise over is b, the step across. The contour is :math:`\exp(-\rho^2/2)`, and ρ/s is nearly
constant, exactly so for a normal likelihood: it is held as a short series over a panel of s, of a
dozen profiles, however steep the curve.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place, log_one_plus

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
    #: (4, terms): weights, log-odds at the optimum, how these change along and across the query.
    Rows: TypeAlias = FloatArray
    #: Buffers of `exp_in_place`: values, powers of two, the same memory as integers.
    ExpBuffers: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
    #: Sums of targets along and across the query, and the loss at the optimum without them.
    Totals: TypeAlias = tuple[float, float, float]
    #: A point (s, b) of the profile and db/ds there.
    Path: TypeAlias = tuple[float, float, float]
    Pair: TypeAlias = tuple[float, float]

#: Log-odds, and falls of the log-likelihood, beyond which less than 2e-11 is left to integrate.
FAR = 25.0

#: Profiles on a panel of s and its width: the contour falls to 0.002, or little more, on it.
_PROFILES = 14
_WIDTH = 3.55

#: Below this standard deviation of the log-odds the panel width is doubled.
_SURE = 0.15

#: Largest change of the contour that the last coefficients of ρ/s may cause.
_UNSURE = 3e-9

#: Gauss-Legendre rule of the integral over log-odds, applied to each stretch of this length.
_LEGENDRE_POINTS, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(12)
_STRETCH = 4.0


def chebyshev(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Chebyshev points, descending, and the matrix from values there to coefficients."""
    angles = (np.arange(size) + 0.5) * np.pi / size
    to_series = np.cos(np.outer(np.arange(size), angles)) * (2 / size)
    to_series[0] /= 2
    return np.cos(angles), to_series


_ALONG, _TO_ROOTS = chebyshev(_PROFILES)


@compiled()
def exp_buffers(size: int) -> ExpBuffers:
    """Return the buffers that `exp_in_place` needs for vectors up to this size."""
    power = np.empty(size)
    return np.empty(size), power, power.view(np.int64)


@compiled()
def clenshaw(series: FloatArray, x: float) -> float:
    """Return a Chebyshev series at x."""
    ahead = after = 0.0
    for k in range(len(series) - 1, 0, -1):
        ahead, after = series[k] + 2.0 * x * ahead - after, ahead
    return series[0] + x * ahead - after


@compiled(fastmath=SIMD_FLAGS)
def _expand(
    rows: Rows, totals: Totals, s: float, b: float, buffers: ExpBuffers
) -> tuple[float, float, float]:
    """Return the fall of the log-likelihood at (s, b), and its two derivatives by b."""
    small, power, bits = buffers
    n = rows.shape[1]
    for j in range(n):
        small[j] = -abs(rows[1, j] + s * rows[2, j] + b * rows[3, j])
    exp_in_place(small, power, bits)
    fall = -totals[0] * s - totals[1] * b - totals[2]
    first, second = -totals[1], 0.0
    for j in range(n):
        weight, across = rows[0, j], rows[3, j]
        eta = rows[1, j] + s * rows[2, j] + b * across
        fraction = 1.0 / (1.0 + small[j])
        p = fraction if eta >= 0.0 else small[j] * fraction
        fall += weight * (max(eta, 0.0) + log_one_plus(small[j]))
        first += weight * across * p
        second += weight * across * across * small[j] * fraction * fraction
    return fall, first, second


@compiled()
def profile(rows: Rows, totals: Totals, s: float, b: float, buffers: ExpBuffers) -> Pair:
    """Maximise over b by safeguarded Newton steps; return b and the fall of the log-likelihood."""
    low, high, reach = -np.inf, np.inf, 8.0
    fall = np.inf
    for _ in range(200):
        fall, first, second = _expand(rows, totals, s, b, buffers)
        if first == 0.0:  # as always where all rows have the same score
            break
        gain = first * first  # in units of twice the curvature
        # One Newton step from here is accurate to the third power of its length.
        if gain <= 1e-6 * second:
            return b - first / second, fall - 0.5 * gain / second
        if first > 0.0:
            high = b
        else:
            low = b
        step = -first / second if second > 1e-300 else math.copysign(np.inf, -first)
        if abs(step) > reach:  # far out the loss is nearly linear and Newton steps are too long
            step = math.copysign(reach, step)
            reach *= 2.0
        new = b + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b, fall


@compiled()
def _root_series(
    rows: Rows, totals: Totals, ends: Pair, path: Path, buffers: ExpBuffers
) -> tuple[FloatArray, Path]:
    """Return the series of ρ/s over a panel of s, and the path at its end."""
    s_last, b_last, tilt = path
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    roots = np.empty(_PROFILES)
    for i in range(_PROFILES - 1, -1, -1):
        s = middle + half * _ALONG[i]
        b, fall = profile(rows, totals, s, b_last + tilt * (s - s_last), buffers)
        tilt = (b - b_last) / (s - s_last)
        s_last, b_last = s, b
        roots[i] = math.sqrt(2.0 * max(fall, 0.0)) / s
    return _TO_ROOTS @ roots, (s_last, b_last, tilt)


@compiled()
def _panel(series: FloatArray, ends: Pair, line: Pair) -> float:
    """Integrate pl(η)σ'(η) over a panel of s."""
    best, deviation = line
    pieces = 1 + int(deviation * (ends[1] - ends[0]) / _STRETCH)
    width = (ends[1] - ends[0]) / pieces
    area = 0.0
    for piece in range(pieces):
        middle = ends[0] + (piece + 0.5) * width
        for i in range(len(_LEGENDRE_POINTS)):
            s = middle + 0.5 * width * _LEGENDRE_POINTS[i]
            root = s * clenshaw(series, 2.0 * (s - ends[0]) / (ends[1] - ends[0]) - 1.0)
            small = math.exp(-abs(best + deviation * s))
            area += _LEGENDRE_WEIGHTS[i] * math.exp(-0.5 * root * root) * small / (1.0 + small) ** 2
    return 0.5 * width * deviation * area


@compiled()
def upper_integral(rows: Rows, totals: Totals, line: Pair, buffers: ExpBuffers) -> float:
    """Integrate pl(η)σ'(η) from the estimate upwards; `line` are estimate and deviation of η."""
    best, deviation = line
    here, end = max(-FAR - best, 0.0) / deviation, (FAR - best) / deviation
    path = (0.0, 0.0, 0.0)
    if here > 0.0:
        b, fall = profile(rows, totals, here, 0.0, buffers)
        path = (here, b, b / here)
        if fall > FAR:
            return 0.0
    area, width = 0.0, _WIDTH if deviation > _SURE else 2.0 * _WIDTH
    while here < end:
        stop = min(here + width, end)
        series, after = _root_series(rows, totals, (here, stop), path, buffers)
        # A relative error of ρ moves the contour by ρ² exp(-ρ²/2) of it, most at ρ² = 2.
        root = max(here * clenshaw(series, -1.0), 1.4142135623730951)
        unsure = max(abs(series[_PROFILES - 1]), abs(series[_PROFILES - 2])) / series[0]
        unsure *= root * root * math.exp(-0.5 * root * root)
        unsure *= min(1.0, 0.25 * deviation * (stop - here))  # of the integral of the density
        if unsure > _UNSURE and width > 1e-3:
            width = 0.5 * (stop - here)
            continue
        area += _panel(series, (here, stop), line)
        here, path = stop, after
        if unsure < 1e-3 * _UNSURE:
            width = 2.0 * width
        root = stop * clenshaw(series, 1.0)
        if 0.5 * root * root + max(best + deviation * stop, 0.0) > FAR:
            break
    return area
