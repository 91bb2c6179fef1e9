"""Compiled part of `logistic_level`: the ends of the cuts of two contours at each score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.contour_cut_compiled import (
    CERTAIN_LOG_ODDS,
    MAX_STEPS,
    begin_search,
    is_converged,
    next_point,
)
from dubito._numerics.jit import compiled
from dubito._numerics.logistic_profile_compiled import EXACT, in_axes, profile, query_axes
from dubito._numerics.vector_math_compiled import exp_buffers

if TYPE_CHECKING:
    from dubito._numerics.logistic_profile_compiled import (
        AxesLikelihood,
        CurveLikelihood,
        ExpBuffers,
        Model,
        ProfilePoint,
    )
    from dubito._typing import FloatArray


@compiled()
def _end(  # noqa: PLR0917
    rotated: AxesLikelihood,
    query: tuple[float, float],
    last: ProfilePoint,
    start: tuple[float, float, float],
    t: float,
    buffers: ExpBuffers,
) -> tuple[float, float, float]:
    """Return the end of a cut, sign times log-odds, and the point (ζ, b) of the profile there.

    `query` is the norm and the sign of the end (-1 lower, 1 upper). `start` is sign times log-odds
    of the estimate and of the first point to evaluate, and the standard error. b is extrapolated
    from `last`.
    """
    norm, sign = query
    zeta_last, b_last, tilt = last
    best, outward, scale = start
    search = np.empty((3, 2))
    begin_search(search, best, 0.0)
    outward = min(outward, CERTAIN_LOG_ODDS)
    for step in range(MAX_STEPS):
        zeta = sign * outward / norm
        b, excess = profile(rotated, zeta, b_last + tilt * (zeta - zeta_last), buffers, EXACT)
        if abs(zeta - zeta_last) * norm > 1e-3 * min(scale, 1.0):
            tilt = (b - b_last) / (zeta - zeta_last)
        zeta_last, b_last = zeta, b
        r = math.sqrt(2.0 * max(excess, 0.0))
        if r < t and outward >= CERTAIN_LOG_ODDS:
            return np.inf, zeta_last, b_last
        new = next_point(search, outward, r, t, scale)
        if is_converged(search, new, scale, step):
            return new, zeta_last, b_last
        outward = new
    return search[1, 0], zeta_last, b_last


@compiled()
def level_ends(
    light: tuple[CurveLikelihood, Model],
    raw: tuple[CurveLikelihood, Model],
    queries: FloatArray,
    t: float,
) -> FloatArray:
    """Return log-odds at the ends of two cuts, (n, 4): lower and upper of each, maybe infinite.

    The raw likelihood may have an estimate of very large log-odds, with curvature near 0: where
    possible, the search for its ends begins at those of the light likelihood.
    """
    out = np.empty((len(queries), 4))
    buffers = exp_buffers(max(light[0][0].shape[1], raw[0][0].shape[1]))
    for i in range(len(queries)):
        norm, axes, optimum, scale = query_axes(queries[i], light[1])
        _, _, raw_optimum, raw_scale = query_axes(queries[i], raw[1])
        rotated = in_axes(light[0], (0.0, 0.0), axes, 1.0)
        raw_rotated = in_axes(raw[0], (0.0, 0.0), axes, 1.0)
        for side in range(2):
            sign = 2.0 * side - 1.0
            query = (norm, sign)
            best = sign * optimum[0] * norm
            end, zeta, b = np.inf, optimum[0], optimum[1]
            if best < CERTAIN_LOG_ODDS:
                start = (best, best + t * scale, scale)
                end, zeta, b = _end(rotated, query, optimum, start, t, buffers)
            out[i, side] = sign * end
            best = sign * raw_optimum[0] * norm
            if best >= CERTAIN_LOG_ODDS:
                end = np.inf
            elif best < end < CERTAIN_LOG_ODDS:
                start, last = (best, end, scale), (zeta, b, raw_optimum[2])
                end, _, _ = _end(raw_rotated, query, last, start, t, buffers)
            else:
                width = min(raw_scale, CERTAIN_LOG_ODDS - best)
                start = (best, best + t * width, width)
                end, _, _ = _end(raw_rotated, query, raw_optimum, start, t, buffers)
            out[i, 2 + side] = sign * end
    return out
