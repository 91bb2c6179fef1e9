"""Lower and upper probabilities at one level: what paths of constrained maxima reach there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.constrained_maxima_compiled import follow, missing_at
from dubito.calibration._kernels.constrained_maxima_quadratic_compiled import growth_at
from dubito.calibration._kernels.extrapolation_compiled import MEMORY
from dubito.calibration._kernels.joint_softmax_compiled import begin

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.constrained_maxima_compiled import Problem
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood


@compiled()
def _reached(
    problem: Problem, functionals: tuple[FloatArray, FloatArray], sign: float, level: float
) -> float:
    """Return 1 / (1 + sum of exp(sign f)) with each functional at its maximum at a level.

    What a path may be short of its maximum is added: the bound is rather too wide.
    """
    terms, heights = functionals
    n_paths, p = len(terms), len(problem[1])
    curved, straight = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, 2 * p + 2, 4))
    counts = np.empty(n_paths, dtype=np.intp)
    begin(problem, functionals, (curved, straight, counts))
    rivals = 0.0
    for m in range(n_paths):
        if counts[m] > 0:
            f = heights[m, 0] + growth_at(straight[m], counts[m], level)
        else:
            functional = (terms[m], heights[m])
            f = follow(problem, functional, level, curved[m])
            f += missing_at(problem, functional, level, curved[m])
        rivals += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + rivals)


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
    optimum, metric = estimate
    problem = (likelihood, bounds, metric, np.empty((3, n_others, n_rows)))
    terms, heights = np.empty((n_others, p)), np.empty(n_others)
    for i in range(n):
        for k in range(n_classes):
            for m in range(n_others):
                terms[m] = queries[i, k] - queries[i, m if m < k else m + 1]
                heights[m] = dot(terms[m], optimum)
            log_odds = (terms.reshape((1, n_others, p)), heights.reshape((1, n_others)))
            out[i, 1, k] = _reached(problem, log_odds, -1.0, level)
            rivals = (-terms.reshape((n_others, 1, p)), -heights.reshape((n_others, 1)))
            out[i, 0, k] = _reached(problem, rivals, 1.0, level)
    return out
