"""Compiled version of the isotonic profile likelihood of `isotonic`.

Scores are numbered 0..m-1 in ascending order, score i has `successes[i]` and `failures[i]`. Only
the contour below its maximum is computed; above the maximum it is that of the mirrored data (order
reversed, successes and failures exchanged). A segment of the contour is an interval of θ on which
it is a constant times θ^a (1-θ)^b. The exponents are the successes and the failures of all scores
that have the value θ there; they are called `k_theta` and `r_theta`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray

    Integers: TypeAlias = npt.NDArray[np.int64]
    #: The state of a segment, as `_next_segment` describes it.
    State: TypeAlias = tuple[int, int, float, float]

#: Logarithm of the contour below which it changes no bound in double precision.
_NEGLIGIBLE = -34.0

#: Approximate drop of the log integrand over a panel of the quadrature, and the largest width of a
#: panel in log-odds: twelve points then have a relative error below 1e-10.
_PANEL_DROP = 4.0
_PANEL_WIDTH = 2.0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(12)

#: Six and four points are enough below these limits: on the larger of a panel's drop and width, or
#: on the log integrand.
_SIX_BELOW = 1.0, -12.0
_FOUR_BELOW = 0.12, -18.0
_SIX_POINTS, _SIX_WEIGHTS = np.polynomial.legendre.leggauss(6)
_FOUR_POINTS, _FOUR_WEIGHTS = np.polynomial.legendre.leggauss(4)

#: Largest distance of log-odds below those of `top`: the probability is 0 there, and exp does not
#: overflow yet.
_DEEPEST = 700.0


class SuffixFits(NamedTuple):
    """The isotonic fit of m scores in B blocks, and the fits of all suffixes of the scores."""

    follow: Integers  # (m,), as k and r: see `suffix_chains`
    k: FloatArray
    r: FloatArray
    starts: Integers  # (B + 1,) the first score of each block, and m
    value: FloatArray  # (B,) of each block
    block: Integers  # (m,) the block of each score
    prefix_k: FloatArray  # (m,) successes from the start of its block up to the score itself
    prefix_r: FloatArray  # (m,) failures likewise


@compiled()
def suffix_chains(
    successes: FloatArray, failures: FloatArray
) -> tuple[Integers, FloatArray, FloatArray]:
    """Return the isotonic fits of all suffixes of the scores, as arrays follow, k, r (m,).

    The fit of the scores j, j+1, ... starts with the block j..follow[j]-1, which has k[j] successes
    and r[j] failures, and goes on as the fit of the suffix that starts at follow[j]: adjacent
    violators are pooled from right to left.
    """
    m = len(successes)
    follow = np.empty(m, np.int64)
    k, r = successes.copy(), failures.copy()
    for j in range(m - 1, -1, -1):
        end = j + 1
        # Odds compared by cross-multiplication: a block without failures has no odds.
        while end < m and k[j] * r[end] >= k[end] * r[j]:
            k[j] += k[end]
            r[j] += r[end]
            end = follow[end]
        follow[j] = end
    return follow, k, r


@compiled()
def fit_with_suffixes(successes: FloatArray, failures: FloatArray) -> SuffixFits:
    """Return the isotonic fit of all scores, and those of all suffixes."""
    m = len(successes)
    follow, k, r = suffix_chains(successes, failures)
    starts = np.empty(m + 1, np.int64)
    value = np.empty(m)
    block = np.empty(m, np.int64)
    prefix_k, prefix_r = successes.copy(), failures.copy()
    count, start = 0, 0
    while start < m:
        starts[count] = start
        value[count] = k[start] / (k[start] + r[start])
        block[start] = count
        for i in range(start + 1, follow[start]):
            block[i] = count
            prefix_k[i] += prefix_k[i - 1]
            prefix_r[i] += prefix_r[i - 1]
        count += 1
        start = follow[start]
    starts[count] = m
    starts, value = starts[: count + 1].copy(), value[:count].copy()
    return SuffixFits(follow, k, r, starts, value, block, prefix_k, prefix_r)


@compiled()
def _refitted_blocks(last: int, fit: SuffixFits, right_blocks: FloatArray) -> int:
    """Write the blocks of a fit to the scores after `last` in its block alone; return their number.

    Rows of `right_blocks`, from left to right, are the value of a block, and the successes and
    failures of all refitted blocks up to it.
    """
    k, r = fit.k, fit.r
    count = 0
    sum_k, sum_r = 0.0, 0.0
    j = last + 1
    while j < fit.starts[fit.block[last] + 1]:
        sum_k += k[j]
        sum_r += r[j]
        right_blocks[count, 0] = k[j] / (k[j] + r[j])
        right_blocks[count, 1] = sum_k
        right_blocks[count, 2] = sum_r
        count += 1
        j = fit.follow[j]
    return count


@compiled()
def _log_ratio(theta: float, top: float, k_theta: float, r_theta: float) -> float:
    """Return the log of (θ/top)^k_theta ((1-θ)/(1-top))^r_theta for 0 < θ <= top."""
    ratio = k_theta * math.log(theta / top)
    if r_theta > 0.0:
        ratio += r_theta * math.log1p((top - theta) / (1.0 - top))
    return ratio


@compiled()
def _next_segment(
    top: float, fit: SuffixFits, right_blocks: FloatArray, state: State
) -> tuple[State, float, float, float]:
    """Return the state of the segment below `top`, and its bottom, k_theta and r_theta.

    The state is the number of blocks of `right_blocks` that have value θ, the index of the first
    block of the fit that has, and the successes and failures from there to the last score.
    """
    starts, value = fit.starts, fit.value
    n_right, left, k_left, r_left = state
    # Blocks on the right with values of at least θ keep them; blocks on the left with values
    # above θ get the value θ.
    while n_right > 0 and right_blocks[n_right - 1, 0] >= top:
        n_right -= 1
    while left > 0 and value[left - 1] >= top:
        left -= 1
        k_left += fit.k[starts[left]]
        r_left += fit.r[starts[left]]
    bottom = value[left - 1] if left > 0 else 0.0
    k_theta, r_theta = k_left, r_left
    if n_right > 0:
        bottom = max(bottom, right_blocks[n_right - 1, 0])
        k_theta += right_blocks[n_right - 1, 1]
        r_theta += right_blocks[n_right - 1, 2]
    return (n_right, left, k_left, r_left), bottom, k_theta, r_theta


@compiled()
def _list_segments(
    last: int, fit: SuffixFits, floor: float, right_blocks: FloatArray, segments: FloatArray
) -> int:
    """Write the segments of the contour, downwards from the estimate; return their number.

    The contour is that of the value at a score with scores 0..last at or left of it. Row i of
    `segments` is (top, bottom, a, b, log plausibility at top): from bottom to top the contour is
    that at top times (θ/top)^a ((1-θ)/(1-top))^b. The last one ends at 0, or where the logarithm
    is below `floor`.
    """
    block = fit.block[last]
    n_refitted = _refitted_blocks(last, fit, right_blocks)
    state = n_refitted, block, fit.prefix_k[last], fit.prefix_r[last]
    top = fit.value[block]
    log_pl = 0.0
    count = 0
    while top > 0.0 and log_pl > floor:
        state, bottom, k_theta, r_theta = _next_segment(top, fit, right_blocks, state)
        segments[count] = top, bottom, k_theta, r_theta, log_pl
        count += 1
        if bottom > 0.0:
            log_pl += _log_ratio(bottom, top, k_theta, r_theta)
        top = bottom
    return count


@compiled()
def _panel_integral(
    depth: float,
    width: float,
    shape: tuple[float, float, float, float],
    size: float,
    log_integrand: float,
) -> float:
    """Return the integral of the integrand of `segment_integral` over a panel of depths."""
    log_pl, a, b, co_top = shape
    points, weights = _POINTS, _WEIGHTS
    if size < _FOUR_BELOW[0] or log_integrand < _FOUR_BELOW[1]:
        points, weights = _FOUR_POINTS, _FOUR_WEIGHTS
    elif size < _SIX_BELOW[0] or log_integrand < _SIX_BELOW[1]:
        points, weights = _SIX_POINTS, _SIX_WEIGHTS
    half = 0.5 * width
    middle = depth + half
    total = 0.0
    for i in range(len(points)):
        d = middle + half * points[i]
        total += weights[i] * math.exp(
            log_pl - (a + b) * math.log1p(co_top * math.expm1(d)) + b * d
        )
    return half * total


@compiled()
def segment_integral(
    top: float, bottom: float, k_theta: float, r_theta: float, log_pl: float
) -> float:
    """Return the integral of the contour over one segment.

    At depth d below the log-odds of top, top/θ = 1 + (1-top)(exp(d) - 1) =: e and
    (1-θ)/(1-top) = exp(d)/e, so the integrand is top (1-top) exp(log_pl + b d - (a+b) log e) with
    a and b one more than k_theta and r_theta: smooth and log-concave for all of them, also down to
    θ = 0, and no large logarithms cancel. Panels of bounded drop are added downwards until the
    integrand is negligible.
    """
    if r_theta == 0.0:  # a monomial in θ; the only case in which top may be 1
        fall = -1.0
        if bottom > 0.0:
            fall = math.expm1((k_theta + 1.0) * math.log(bottom / top))
        return -math.exp(log_pl) * top * fall / (k_theta + 1.0)
    end = math.inf
    if bottom > 0.0:
        end = math.log(top / bottom) + math.log1p((top - bottom) / (1.0 - top))
    a, b, co_top = k_theta + 1.0, r_theta + 1.0, 1.0 - top
    depth, total = 0.0, 0.0
    while depth < end:
        top_over_theta = 1.0 + co_top * math.expm1(depth)
        log_integrand = log_pl - (a + b) * math.log(top_over_theta) + b * depth
        theta = top / top_over_theta
        derivative = a - (a + b) * theta  # of the log integrand in log-odds
        if derivative > 0.0 and log_integrand < _NEGLIGIBLE:
            break
        curvature = (a + b) * theta * (1.0 - theta)
        steepest = abs(derivative) + math.sqrt(
            derivative * derivative + 2.0 * curvature * _PANEL_DROP
        )
        width = min(2.0 * _PANEL_DROP / steepest, _PANEL_WIDTH, end - depth)
        drop = width * (abs(derivative) + 0.5 * curvature * width)
        total += _panel_integral(
            depth, width, (log_pl, a, b, co_top), max(drop, width), log_integrand
        )
        depth = end if width == end - depth else depth + width
    return total * top * co_top


@compiled()
def beliefs(fit: SuffixFits) -> FloatArray:
    """Return the belief at a score with scores 0..j at or left of it, for every j."""
    m = len(fit.block)
    right_blocks = np.empty((m, 3))
    segments = np.empty((m + 1, 5))
    belief = np.empty(m)
    for j in range(m):
        count = _list_segments(j, fit, _NEGLIGIBLE, right_blocks, segments)
        integral = 0.0
        for i in range(count - 1, -1, -1):
            top, bottom, k_theta, r_theta, log_pl = segments[i]
            integral += segment_integral(top, bottom, k_theta, r_theta, log_pl)
        belief[j] = max(fit.value[fit.block[j]] - integral, 0.0)
    return belief


@compiled()
def contours_below_maximum(lasts: Integers, theta: FloatArray, fit: SuffixFits) -> FloatArray:
    """Return the contour at descending `theta`, (n, len(theta)); 1 at and above the estimate.

    Positions `lasts` are as in `cut_ends_below_maximum`.
    """
    m = len(fit.block)
    right_blocks = np.empty((m, 3))
    segments = np.empty((m + 1, 5))
    contour = np.ones((len(lasts), len(theta)))
    for row in range(len(lasts)):
        if lasts[row] < 0:
            continue
        count = _list_segments(lasts[row], fit, -math.inf, right_blocks, segments)
        segment = 0
        for column in range(len(theta)):
            value = theta[column]
            while segment < count and value < segments[segment, 1]:
                segment += 1
            if segment == count or value >= segments[segment, 0]:
                continue
            top, _, k_theta, r_theta, log_pl = segments[segment]
            if value > 0.0:
                log_pl += _log_ratio(value, top, k_theta, r_theta)
                contour[row, column] = math.exp(min(log_pl, 0.0))
            else:
                contour[row, column] = 0.0
    return contour


@compiled()
def _depth_of_drop(drop: float, top: float, k_theta: float, r_theta: float) -> float:
    """Return the depth below the log-odds of `top` at which the log contour has fallen by `drop`.

    At depth d a segment has fallen by h(d) = (a+b) log(1 + (1-top)(exp(d) - 1)) - b d, convex and
    increasing for d > 0. Newton's method starts at the root of its second-order expansion; from
    the second point on it converges to the root from above.
    """
    a, b, co_top = k_theta, r_theta, 1.0 - top
    derivative, curvature = max(a - (a + b) * top, 0.0), (a + b) * top * co_top
    depth = 2.0 * drop / (derivative + math.sqrt(derivative * derivative + 2.0 * curvature * drop))
    depth = min(depth, _DEEPEST)
    for _ in range(60):
        growth = co_top * math.expm1(depth)
        fallen = (a + b) * math.log1p(growth) - b * depth
        step = (fallen - drop) / (a - (a + b) * top / (1.0 + growth))
        depth -= step
        if abs(step) <= 1e-14 * depth or depth >= _DEEPEST:
            break
    return depth


@compiled()
def _root_in_segment(segment: FloatArray, target: float) -> float:
    """Return the θ of a segment at which the log contour is `target`."""
    top, bottom, k_theta, r_theta, log_pl = segment
    drop = log_pl - target
    if drop <= 0.0:
        return top
    if r_theta == 0.0:
        return max(top * math.exp(-drop / k_theta), bottom)
    depth = _depth_of_drop(drop, top, k_theta, r_theta)
    if depth >= _DEEPEST:
        return bottom
    return min(max(top / (1.0 + (1.0 - top) * math.expm1(depth)), bottom), top)


@compiled()
def cut_ends_below_maximum(lasts: Integers, excess: float, fit: SuffixFits) -> FloatArray:
    """Return the least θ whose log contour is at least -excess, for each position; 0 for -1.

    A position is the index of the last score at or left of it, -1 for none.
    """
    m = len(fit.block)
    right_blocks = np.empty((m, 3))
    segments = np.empty((m + 1, 5))
    ends = np.zeros(len(lasts))
    for row in range(len(lasts)):
        if lasts[row] < 0:
            continue
        # The last segment is that in which the logarithm falls below -excess.
        count = _list_segments(lasts[row], fit, -excess, right_blocks, segments)
        if count > 0:
            ends[row] = _root_in_segment(segments[count - 1], -excess)
    return ends


@compiled()
def values_with_failure(fit: SuffixFits) -> FloatArray:
    """Return the value fitted at a score with scores 0..j at or left of it, with a failure added.

    This is p0 of Venn-Abers prediction; of the mirrored data, 1 - p1.

    A failure there multiplies the contour by 1-θ; the maximum of the product on one segment is at
    a/(a+b+1), clipped to the segment. The product is log-concave in the log-odds: the first segment
    from above with its maximum inside has the global maximum.
    """
    m = len(fit.block)
    right_blocks = np.empty((m, 3))
    fitted = np.empty(m)
    for j in range(m):
        block = fit.block[j]
        state = _refitted_blocks(j, fit, right_blocks), block, fit.prefix_k[j], fit.prefix_r[j]
        top = fit.value[block]
        while top > 0.0:
            state, bottom, k_theta, r_theta = _next_segment(top, fit, right_blocks, state)
            best = k_theta / (k_theta + r_theta + 1.0)
            if best >= bottom:
                top = min(best, top)
                break
            top = bottom
        fitted[j] = top
    return fitted
