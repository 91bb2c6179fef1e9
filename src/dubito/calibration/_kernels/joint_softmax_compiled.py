r"""Lower and upper probabilities, averaged over the likelihood levels.

At the level r of relative likelihood :math:`e^{-r^2/2}` the bounds follow from constrained maxima
(`constrained_maxima_compiled`); they are averaged with the density :math:`re^{-r^2/2}`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.quadrature import GAUSS_WEIGHTS, KRONROD_POINTS, KRONROD_WEIGHTS
from dubito._numerics.vector_math_compiled import dot
from dubito.calibration._kernels.constrained_maxima_compiled import (
    follow_path,
    last_kink,
    start_path,
)
from dubito.calibration._kernels.constrained_maxima_quadratic_compiled import (
    growth_at,
    path_segments,
)
from dubito.calibration._kernels.extrapolation_compiled import MEMORY

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.calibration._kernels.constrained_maxima_compiled import Problem
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import Likelihood

#: Last level r of the integrals: relative likelihood exp(-r²/2) = 7e-10.
_LAST_LEVEL = 6.5

#: A kink of a path nearer than this to the end of a panel does not affect the accuracy.
_KINK_MARGIN = 1e-3

#: Number of kinks at which panels are ended; after that the adaptive rule alone resolves them.
_MAX_KINKS = 6


@compiled()
def probability_at(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    level: float,
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[float, float]:
    """Return 1 / (1 + sum of exp(sign f)) at a level, and the level of the last kink of a path."""
    terms, offsets = functionals
    traced, segments, n_segments = paths
    odds_against, kink = 0.0, np.inf
    for m in range(len(terms)):
        if n_segments[m] > 0:
            f = offsets[m, 0] + growth_at(segments[m], n_segments[m], level)
        else:
            f = follow_path(problem, (terms[m], offsets[m]), level, traced[m])
            kink = min(kink, last_kink(problem[1], traced[m]))
        odds_against += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + odds_against), kink


@compiled()
def _panel(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    ends: tuple[float, float],
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> tuple[float, float, float, float]:
    """Return Kronrod and Gauss integrals of 1 / (1 + sum of exp(sign f)) over a panel of levels.

    The density of the level r is r exp(-r²/2). Also returned: the last value, and the first level
    where a path has a kink.
    """
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    kronrod, gauss, probability, kink = 0.0, 0.0, 0.0, np.inf
    for i in range(15):
        k = i if i < 8 else 14 - i
        level = middle - half * KRONROD_POINTS[k] if i < 8 else middle + half * KRONROD_POINTS[k]
        probability, kink_here = probability_at(problem, functionals, sign, level, paths)
        kink = min(kink, kink_here)
        density = probability * level * math.exp(-0.5 * level * level)
        kronrod += KRONROD_WEIGHTS[k] * density
        gauss += GAUSS_WEIGHTS[k] * density
    return half * kronrod, half * gauss, probability, kink


@compiled()
def _next_end(traced: FloatArray, panel_start: float, end: float) -> tuple[bool, float]:
    """Return whether all paths end before a panel does, and the first end of a path inside it."""
    all_ended, first = True, np.inf
    for m in range(len(traced)):
        all_ended &= traced[m, 0, 1] == np.inf and traced[m, 0, 0] <= end
        if traced[m, 0, 1] == np.inf and panel_start + 1e-7 < traced[m, 0, 0] < end - 1e-7:
            first = min(first, traced[m, 0, 0])
    return all_ended, first


@compiled()
def start_paths(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    paths: tuple[FloatArray, FloatArray, IntArray],
) -> float:
    """Start all paths, or write their closed form; return the largest growth rate."""
    (likelihood, bounds, _, _), (terms, offsets), (traced, segments, n_segments) = (
        problem,
        functionals,
        paths,
    )
    in_closed_form = terms.shape[1] == 1 and likelihood[0].shape[1] == 0
    fastest_growth = 0.0
    for m in range(len(terms)):
        n_segments[m] = 0
        if in_closed_form:
            n_segments[m], end = path_segments(
                likelihood[4], likelihood[5], bounds, terms[m, 0], segments[m]
            )
            growth_rate = math.sqrt(max(segments[m, 0, 3], 0.0))
            traced[m, 0, 0], traced[m, 0, 1] = end, np.inf
        else:
            growth_rate = start_path(problem, (terms[m], offsets[m]), traced[m])
        fastest_growth = max(fastest_growth, growth_rate)
    return fastest_growth


@compiled()
def _mean_probability(
    problem: Problem,
    functionals: tuple[FloatArray, FloatArray],
    sign: float,
    tolerance: float,
) -> float:
    """Return the mean of 1 / (1 + sum of exp(sign f)) over all likelihood levels.

    `functionals` are the terms (M, m, p) and offsets (M, m) of M functionals. For the upper
    probability (sign -1) there is one, the log-odds of the class; for the lower one (sign 1) there
    is one for each other class, the difference of its utility from that of the class.
    """
    n_paths, p = len(functionals[0]), len(problem[1])
    traced, saved = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, MEMORY, p + 2))
    paths = (traced, np.empty((n_paths, 2 * p + 2, 4)), np.empty(n_paths, dtype=np.intp))
    fastest_growth = start_paths(problem, functionals, paths)
    panel_start, width, panel_limit = 0.0, min(2.2, 4.0 / (fastest_growth + 1e-300)), _LAST_LEVEL
    total, n_kinks = 0.0, 0
    while True:
        panel_end = min(panel_start + width, panel_limit)
        saved[:] = traced
        fine, coarse, probability, kink = _panel(
            problem, functionals, sign, (panel_start, panel_end), paths
        )
        error = abs(fine - coarse)
        all_ended, first_break = _next_end(traced, panel_start, panel_end)
        if (
            panel_start + _KINK_MARGIN < kink < min(first_break, panel_end - _KINK_MARGIN)
            and n_kinks < _MAX_KINKS
        ):
            first_break = kink
            n_kinks += 1
        if first_break < np.inf:  # the integrand has a kink there, which both rules may miss
            traced[:] = saved
            panel_limit = first_break
            continue
        if error > tolerance and panel_end - panel_start > 1e-6:
            traced[:] = saved
            width = 0.5 * (panel_end - panel_start)
            continue
        total += fine
        panel_start, panel_limit = panel_end, _LAST_LEVEL
        # The largest change still possible.
        remaining = probability if sign > 0.0 else 1.0 - probability
        if all_ended or remaining < 1e-12 or panel_start >= _LAST_LEVEL:
            probability, _ = probability_at(problem, functionals, sign, panel_start, paths)
            return total + probability * math.exp(-0.5 * panel_start * panel_start)
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
    coef, hessian = estimate
    problem = (likelihood, bounds, hessian, np.empty((3, n_others, n_rows)))
    terms, offsets = np.empty((n_others, p)), np.empty(n_others)
    for i in range(n):
        for k in range(n_classes):
            for m in range(n_others):
                terms[m] = queries[i, k] - queries[i, m if m < k else m + 1]
                offsets[m] = dot(terms[m], coef)
            log_odds = (terms.reshape((1, n_others, p)), offsets.reshape((1, n_others)))
            out[i, 1, k] = _mean_probability(problem, log_odds, -1.0, tolerance)
            rivals = (-terms.reshape((n_others, 1, p)), -offsets.reshape((n_others, 1)))
            out[i, 0, k] = _mean_probability(problem, rivals, 1.0, tolerance)
    return out
