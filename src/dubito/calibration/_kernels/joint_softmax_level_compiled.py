"""Lower and upper probabilities over one level set, from constrained maxima."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.constrained_maxima_compiled import follow_path, optimality_gap
from dubito.calibration._kernels.constrained_maxima_quadratic_compiled import growth_at
from dubito.calibration._kernels.extrapolation_compiled import MEMORY
from dubito.calibration._kernels.joint_softmax_compiled import start_paths

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.constrained_maxima_compiled import Problem
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood


@compiled()
def _probability_at_level(
    problem: Problem, functionals: tuple[FloatArray, FloatArray], sign: float, level: float
) -> float:
    """Return 1 / (1 + sum of exp(sign f)) with each functional at its maximum at a level.

    The optimality gap of each path is added, so the bound is never too narrow.
    """
    terms, offsets = functionals
    n_paths, p = len(terms), len(problem[1])
    traced, segments = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, 2 * p + 2, 4))
    n_segments = np.empty(n_paths, dtype=np.intp)
    start_paths(problem, functionals, (traced, segments, n_segments))
    odds_against = 0.0
    for m in range(n_paths):
        if n_segments[m] > 0:
            f = offsets[m, 0] + growth_at(segments[m], n_segments[m], level)
        else:
            functional = (terms[m], offsets[m])
            f = follow_path(problem, functional, level, traced[m])
            f += optimality_gap(problem, functional, level, traced[m])
        odds_against += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + odds_against)


@compiled()
def cut(
    likelihood: Likelihood,
    bounds: FloatArray,
    estimate: tuple[FloatArray, FloatArray],
    queries: FloatArray,
    level: float,
) -> FloatArray:
    """Return lower and upper probabilities of every class at each query, (n, 2, K).

    As `joint_softmax_compiled.envelope`, at the level of relative likelihood exp(-level²/2) alone.
    """
    n, n_classes, p = queries.shape
    out = np.empty((n, 2, n_classes))
    n_others, n_rows = likelihood[1].shape
    coef, hessian = estimate
    problem = (likelihood, bounds, hessian, np.empty((3, n_others, n_rows)))
    terms, offsets = np.empty((n_others, p)), np.empty(n_others)
    for i in range(n):
        for k in range(n_classes):
            for m in range(n_others):
                terms[m] = queries[i, k] - queries[i, m if m < k else m + 1]
                offsets[m] = dot(terms[m], coef)
            log_odds = (terms.reshape((1, n_others, p)), offsets.reshape((1, n_others)))
            out[i, 1, k] = _probability_at_level(problem, log_odds, -1.0, level)
            rivals = (-terms.reshape((n_others, 1, p)), -offsets.reshape((n_others, 1)))
            out[i, 0, k] = _probability_at_level(problem, rivals, 1.0, level)
    return out
