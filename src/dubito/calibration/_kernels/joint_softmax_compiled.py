"""Lower and upper probabilities: what paths of constrained maxima reach, averaged over levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.constrained_maxima_compiled import follow, kink_behind, start
from dubito.calibration._kernels.constrained_maxima_quadratic_compiled import growth_at, stretches
from dubito.calibration._kernels.extrapolation_compiled import MEMORY

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.calibration._kernels.constrained_maxima_compiled import Problem
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood

#: Levels beyond have plausibility 7e-10.
_DEEPEST = 6.5

#: A bend nearer than this to the end of a panel does no harm.
_APART = 1e-3

#: Panels end at so many bends; beyond, the rules' difference is relied on.
_CUTS = 6


@compiled()
def chance_at(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    level: float,
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[float, float]:
    """Return 1 / (1 + sum of exp(sign f)) at a level, and where a path bent on the way there."""
    terms, heights = functionals
    curved, straight, counts = paths
    rivals, kink = 0.0, np.inf
    for m in range(len(terms)):
        if counts[m] > 0:
            f = heights[m, 0] + growth_at(straight[m], counts[m], level)
        else:
            f = follow(problem, (terms[m], heights[m]), level, curved[m])
            kink = min(kink, kink_behind(problem[1], curved[m]))
        rivals += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + rivals), kink


@compiled()
def _panel(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    ends: tuple[float, float],
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[float, float, float, float]:
    """Integrate 1 / (1 + sum of exp(sign f)) over levels by two rules.

    Return also its last value and the first level where a path bends. In the level r of
    plausibility exp(-r²/2) the integral is over r exp(-r²/2) dr.
    """
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    kronrod, gauss, chance, kink = 0.0, 0.0, 0.0, np.inf
    for i in range(15):
        k = i if i < 8 else 14 - i
        level = middle - half * KRONROD_POINTS[k] if i < 8 else middle + half * KRONROD_POINTS[k]
        chance, bend = chance_at(problem, functionals, sign, level, paths)
        kink = min(kink, bend)
        density = chance * level * math.exp(-0.5 * level * level)
        kronrod += KRONROD_WEIGHTS[k] * density
        gauss += GAUSS_WEIGHTS[k] * density
    return half * kronrod, half * gauss, chance, kink


@compiled()
def _next_end(curved: FloatArray, here: float, end: float) -> tuple[bool, float]:
    """Return whether all paths have ended before a panel does, and the first end of one inside."""
    every, first = True, np.inf
    for m in range(len(curved)):
        every &= curved[m, 0, 1] == np.inf and curved[m, 0, 0] <= end
        if curved[m, 0, 1] == np.inf and here + 1e-7 < curved[m, 0, 0] < end - 1e-7:
            first = min(first, curved[m, 0, 0])
    return every, first


@compiled()
def begin(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> float:
    """Begin all paths, those in closed form at once; return the fastest growth of a functional."""
    (likelihood, bounds, _, _), (terms, heights), (curved, straight, counts) = (
        problem,
        functionals,
        paths,
    )
    in_closed_form = terms.shape[1] == 1 and likelihood[0].shape[1] == 0
    fastest = 0.0
    for m in range(len(terms)):
        counts[m] = 0
        if in_closed_form:
            counts[m], end = stretches(
                likelihood[4], likelihood[5], bounds, terms[m, 0], straight[m]
            )
            speed = math.sqrt(max(straight[m, 0, 3], 0.0))
            curved[m, 0, 0], curved[m, 0, 1] = end, np.inf
        else:
            speed = start(problem, (terms[m], heights[m]), curved[m])
        fastest = max(fastest, speed)
    return fastest


@compiled()
def _mean(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    tolerance: float,
) -> float:
    """Average a probability, 1 / (1 + sum of exp(sign f)), over all levels of plausibility.

    `functionals` are the terms (M, m, p) and heights (M, m) of M functionals. For the upper
    probability (sign -1) there is one, the log-odds of the class; for the lower one (sign 1) each
    rival has its own greatest advantage.
    """
    n_paths, p = len(functionals[0]), len(problem[1])
    curved, kept = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, MEMORY, p + 2))
    paths = (curved, np.empty((n_paths, 2 * p + 2, 4)), np.empty(n_paths, dtype=np.intp))
    fastest = begin(problem, functionals, paths)
    here, width, cut = 0.0, min(2.2, 4.0 / (fastest + 1e-300)), _DEEPEST
    total, n_cuts = 0.0, 0
    while True:
        end = min(here + width, cut)
        kept[:] = curved
        fine, coarse, chance, kink = _panel(problem, functionals, sign, (here, end), paths)
        error = abs(fine - coarse)
        every, first = _next_end(curved, here, end)
        if here + _APART < kink < min(first, end - _APART) and n_cuts < _CUTS:
            first = kink
            n_cuts += 1
        if first < np.inf:  # the integrand has a kink there, which two rules may miss
            curved[:] = kept
            cut = first
            continue
        if error > tolerance and end - here > 1e-6:
            curved[:] = kept
            width = 0.5 * (end - here)
            continue
        total += fine
        here, cut = end, _DEEPEST
        left = chance if sign > 0.0 else 1.0 - chance  # what it can still lose, or gain
        if every or left < 1e-12 or here >= _DEEPEST:
            chance, _ = chance_at(problem, functionals, sign, here, paths)
            return total + chance * math.exp(-0.5 * here * here)
        if error < 0.1 * tolerance:
            width *= 2.0


@compiled()
def envelope(
    likelihood: Likelihood,
    bounds: FloatArray,
    estimate: tuple[FloatArray, FloatArray],
    queries: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Return lower and upper probabilities of every class at each query, (n, 2, K).

    `estimate` holds the coefficients and the Hessian there; `queries` (n, K, p) are linear in the
    coefficients.
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
            out[i, 1, k] = _mean(problem, log_odds, -1.0, tolerance)
            rivals = (-terms.reshape((n_others, 1, p)), -heights.reshape((n_others, 1)))
            out[i, 0, k] = _mean(problem, rivals, 1.0, tolerance)
    return out
