"""Ends of the cuts of two contours of a logistic curve at each score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.contour_cut_compiled import (
    FAR,
    MAX_STEPS,
    begin_search,
    is_found,
    next_place,
)
from dubito._numerics.jit import compiled
from dubito._numerics.logistic_profile_compiled import profile, query_axes

if TYPE_CHECKING:
    from dubito._numerics.logistic_profile_compiled import (
        Likelihood,
        Model,
        Pair,
        Triple,
    )
    from dubito._typing import FloatArray


@compiled()
def _end(
    likelihood: Likelihood,
    query: tuple[float, Pair, float],
    path: Triple,
    place: Triple,
    t: float,
) -> Triple:
    """Return where a cut ends, counted outward, and the point (ζ, b) of the profile there.

    `query` is norm, axes and side; `path` a point (ζ, b) of the profile, or near it, and db/dζ;
    `place` the estimate, where to look first, and the standard error.
    """
    norm, axes, sign = query
    zeta_last, b_last, tilt = path
    best, u, scale = place
    search = np.empty((3, 2))
    begin_search(search, best, 0.0)
    u = min(u, FAR)
    for step in range(MAX_STEPS):
        zeta = sign * u / norm
        b, value = profile(likelihood, axes, zeta, b_last + tilt * (zeta - zeta_last))
        if abs(zeta - zeta_last) * norm > 1e-3 * min(scale, 1.0):
            tilt = (b - b_last) / (zeta - zeta_last)
        zeta_last, b_last = zeta, b
        r = math.sqrt(2.0 * max(value - likelihood[2], 0.0))
        if r < t and u >= FAR:
            return np.inf, zeta_last, b_last
        new = next_place(search, u, r, t, scale)
        if is_found(search, new, scale, step):
            return new, zeta_last, b_last
        u = new
    return search[1, 0], zeta_last, b_last


@compiled()
def level_ends(
    shrunk: tuple[Likelihood, Model], raw: tuple[Likelihood, Model], queries: FloatArray, t: float
) -> FloatArray:
    """Return log-odds at the ends of two cuts, (n, 4): lower and upper of each; open ends are inf.

    The raw likelihood may have its estimate very far out, and its curvature nearly 0 there: its
    ends are looked for from those of the other.
    """
    out = np.empty((len(queries), 4))
    for i in range(len(queries)):
        norm, axes, path, scale = query_axes(queries[i], shrunk[1])
        _, _, raw_path, raw_scale = query_axes(queries[i], raw[1])
        for side in range(2):
            sign = 2.0 * side - 1.0
            query = (norm, axes, sign)
            best = sign * path[0] * norm
            end, zeta, b = np.inf, path[0], path[1]
            if best < FAR:
                place = (best, best + t * scale, scale)
                end, zeta, b = _end(shrunk[0], query, path, place, t)
            out[i, side] = sign * end
            best = sign * raw_path[0] * norm
            if best >= FAR:
                end = np.inf
            elif best < end < FAR:
                place, near = (best, end, scale), (zeta, b, raw_path[2])
                end, _, _ = _end(raw[0], query, near, place, t)
            else:
                width = min(raw_scale, FAR - best)
                place = (best, best + t * width, width)
                end, _, _ = _end(raw[0], query, raw_path, place, t)
            out[i, 2 + side] = sign * end
    return out
