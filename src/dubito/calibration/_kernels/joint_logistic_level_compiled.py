r"""Hull of the cuts :math:`\{-2\log pl\le t^2\}` of two contours of a joint logistic model.

Both likelihoods are expressed around the estimate of the first, in axes where its Hessian is the
identity: a point of one profile is then a good start for the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.contour_cut_compiled import (
    CERTAIN_LOG_ODDS,
    MAX_STEPS,
    begin_search,
    is_converged,
    next_point,
)
from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.joint_logistic_compiled import profile

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.joint_logistic_compiled import Likelihood

    #: Axis e of a query, the query's log-odds under the first likelihood, its length, and the sign
    #: of the end: -1 for the lower, 1 for the upper. `outward` is log-odds times this sign.
    Query: TypeAlias = tuple[FloatArray, float, float, float]
    #: State of a search (3, 2), solution path (2, 1 + rank), and the buffer of `profile` (3, n).
    Buffers: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


@compiled()
def _root_at(
    likelihood: Likelihood, query: Query, outward: float, path: FloatArray, buffer: FloatArray
) -> float:
    r"""Return :math:`\sqrt{-2\log pl}` at `outward`, and move the end of a solution path there.

    Rows of `path` are (ξ, β) of the last point and (0, dβ/dξ) there.
    """
    axis, estimate, length, sign = query
    xi = (sign * outward - estimate) / length
    step = xi - path[0, 0]
    beta = path[0, 1:] + step * path[1, 1:]
    correction = xi - dot(axis, beta)
    for a in range(len(beta)):
        beta[a] += correction * axis[a]
    excess = profile(likelihood, axis, beta, buffer)
    if abs(step) > 1e-3:  # closer points would give a direction of rounding errors
        path[1, 1:] = (beta - path[0, 1:]) / step
    path[0, 0] = xi
    path[0, 1:] = beta
    return math.sqrt(2.0 * max(excess, 0.0))


@compiled()
def _cut_end(
    likelihood: Likelihood,
    query: Query,
    start: tuple[float, float],
    t: float,
    buffers: Buffers,
) -> float:
    """Return the end of a cut, times its sign; infinite if the cut is unbounded.

    The search has a point inside the cut. `start` is the first `outward` to evaluate, and the
    standard error.
    """
    search, path, buffer = buffers
    outward, scale = min(start[0], CERTAIN_LOG_ODDS), start[1]
    for step in range(MAX_STEPS):
        r = _root_at(likelihood, query, outward, path, buffer)
        if r < t and outward >= CERTAIN_LOG_ODDS:
            return np.inf
        new = next_point(search, outward, r, t, scale)
        if is_converged(search, new, scale, step):
            return new
        outward = new
    return search[1, 0]


@compiled()
def _hull_end(
    likelihoods: tuple[Likelihood, Likelihood],
    query: Query,
    estimates: FloatArray,
    t: float,
    buffers: Buffers,
) -> float:
    """Return the outer end of two cuts, times its sign.

    Rows of `estimates` are log-odds, their standard error and coefficients of each likelihood. The
    cut with the outer estimate is searched first; mostly the other cut ends before it,
    which one evaluation shows.
    """
    search, path, buffer = buffers
    axis, estimate, length, sign = query
    first = 0 if sign * estimates[0, 0] >= sign * estimates[1, 0] else 1
    end = -np.inf
    for k in (first, 1 - first):
        likelihood = likelihoods[0] if k == 0 else likelihoods[1]
        outward, scale = sign * estimates[k, 0], min(estimates[k, 1], 2.0 * CERTAIN_LOG_ODDS)
        if outward >= CERTAIN_LOG_ODDS:
            return np.inf
        if outward >= end:
            begin_search(search, outward, 0.0)
            path[0, 0] = (estimates[k, 0] - estimate) / length
            path[0, 1:] = estimates[k, 2:]
            path[1, 1:] = axis
            end = _cut_end(likelihood, query, (outward + t * scale, scale), t, buffers)
        else:
            r = _root_at(likelihood, query, end, path, buffer)
            if r < t:
                begin_search(search, end, r)
                scale = min(scale, estimates[1 - k, 1])
                start = (end + max(t - r, 1e-3) * scale, scale)
                end = _cut_end(likelihood, query, start, t, buffers)
        if end == np.inf:
            return end
    return end


@compiled()
def level_ends(
    likelihoods: tuple[Likelihood, Likelihood],
    queries: FloatArray,
    estimates: FloatArray,
    second_coef: FloatArray,
    t: float,
) -> FloatArray:
    """Return log-odds of the lower and upper end of the hull for each whitened query, (m, 2).

    `estimates` (m, 4) are log-odds and standard error of the first and of the second likelihood;
    `second_coef` are the second's coefficients. Ends of unbounded cuts are infinite.
    """
    out = np.empty((len(queries), 2))
    rank = queries.shape[1]
    buffers = (np.empty((3, 2)), np.zeros((2, rank + 1)), np.empty((3, likelihoods[0][0].shape[1])))
    likelihood_estimates = np.zeros((2, rank + 2))
    likelihood_estimates[1, 2:] = second_coef
    for i in range(len(queries)):
        length = math.sqrt(dot(queries[i], queries[i]))
        axis = queries[i] / length
        (
            likelihood_estimates[0, 0],
            likelihood_estimates[0, 1],
            likelihood_estimates[1, 0],
            likelihood_estimates[1, 1],
        ) = estimates[i]
        for side in range(2):
            sign = 2.0 * side - 1.0
            query = (axis, estimates[i, 0], length, sign)
            out[i, side] = sign * _hull_end(likelihoods, query, likelihood_estimates, t, buffers)
    return out
