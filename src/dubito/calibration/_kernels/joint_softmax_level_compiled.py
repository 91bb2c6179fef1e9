"""Lower and upper probabilities of a softmax model over one level set of its likelihood.

The bounds are those of `joint_softmax_compiled` at one r: relative likelihood exp(-r²/2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito.calibration._kernels.constrained_maxima_compiled import follow_path, optimality_gap
from dubito.calibration._kernels.constrained_maxima_quadratic_compiled import growth_at
from dubito.calibration._kernels.extrapolation_compiled import MEMORY
from dubito.calibration._kernels.joint_softmax_compiled import class_functionals, start_paths

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.constrained_maxima_compiled import Problem
    from dubito.calibration._kernels.joint_softmax_compiled import Functionals
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood


@compiled()
def _safe_probability_at(
    problem: Problem, functionals: Functionals, sign: float, r: float
) -> float:
    """Return 1 / (1 + Σ exp(sign max f)) over the level set at r, as a bound never too narrow.

    The optimality gap of each solution path is added to its maximum.
    """
    terms, offsets = functionals
    n_paths, p = len(terms), len(problem[1])
    last_points, segments = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, 2 * p + 2, 4))
    n_segments = np.empty(n_paths, dtype=np.intp)
    start_paths(problem, functionals, (last_points, segments, n_segments))
    odds_against = 0.0
    for m in range(n_paths):
        if n_segments[m] > 0:
            f = offsets[m, 0] + growth_at(segments[m], n_segments[m], r)
        else:
            functional = (terms[m], offsets[m])
            f = follow_path(problem, functional, r, last_points[m])
            f += optimality_gap(problem, functional, r, last_points[m])
        odds_against += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + odds_against)


@compiled()
def envelope_at(
    likelihood: Likelihood,
    bounds: FloatArray,
    estimate: tuple[FloatArray, FloatArray],
    queries: FloatArray,
    r: float,
) -> FloatArray:
    """Return lower and upper probabilities of every class at each query, (n, 2, K).

    As `joint_softmax_compiled.mean_envelope`, over the level set at r alone.
    """
    n, n_classes, _ = queries.shape
    n_others, n_rows = likelihood[1].shape
    coef, hessian = estimate
    problem = (likelihood, bounds, hessian, np.empty((3, n_others, n_rows)))
    out = np.empty((n, 2, n_classes))
    for i in range(n):
        for k in range(n_classes):
            log_odds, differences = class_functionals(queries[i], k, coef)
            out[i, 1, k] = _safe_probability_at(problem, log_odds, -1.0, r)
            out[i, 0, k] = _safe_probability_at(problem, differences, 1.0, r)
    return out
