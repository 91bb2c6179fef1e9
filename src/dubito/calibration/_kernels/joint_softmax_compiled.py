r"""Lower and upper probabilities of a softmax model, averaged over level sets of its likelihood.

Over the level set of relative likelihood :math:`e^{-r^2/2}`, with maxima of functionals of the
linear predictors u over it (`constrained_maxima_compiled`), the bounds of class k are

.. math:: \underline p_k(r)=\frac1{1+\sum_{l\ne k}\exp\max(u_l-u_k)},\qquad
          \overline p_k(r)=\frac1{1+\exp(-\max f_k)},\quad f_k=-\log\sum_{l\ne k}e^{u_l-u_k}.

The average is :math:`\int_0^\infty p_k(r)\,re^{-r^2/2}dr`, with relative likelihood uniform. Both
bounds have the form :math:`1/(1+\sum_me^{\pm\max f_m})`: with + and K-1 functionals, or - and one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

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

    #: Terms (M, m, p) and offsets (M, m) of M functionals.
    Functionals: TypeAlias = tuple[FloatArray, FloatArray]
    #: For each functional the last points of its solution path, its segments, and their number: 0
    #: where the path has no closed form.
    Paths: TypeAlias = tuple[FloatArray, FloatArray, IntArray]

#: Largest r of the integrals: relative likelihood exp(-r²/2) = 7e-10.
_LARGEST_R = 6.5

#: A kink of a solution path nearer than this to the end of a panel does not affect the accuracy.
_KINK_MARGIN = 1e-3

#: Number of kinks at which panels are ended; after that the adaptive rule alone resolves them.
_MAX_KINKS = 6


@compiled()
def _probability_at(
    problem: Problem, functionals: Functionals, sign: float, r: float, paths: Paths
) -> tuple[float, float]:
    """Return 1 / (1 + Σ exp(sign max f)) at r, and the least r of a kink since the last points."""
    terms, offsets = functionals
    last_points, segments, n_segments = paths
    odds_against, kink = 0.0, np.inf
    for m in range(len(terms)):
        if n_segments[m] > 0:
            f = offsets[m, 0] + growth_at(segments[m], n_segments[m], r)
        else:
            f = follow_path(problem, (terms[m], offsets[m]), r, last_points[m])
            kink = min(kink, last_kink(problem[1], last_points[m]))
        odds_against += math.exp(min(sign * f, 700.0))
    return 1.0 / (1.0 + odds_against), kink


@compiled()
def _panel_integrals(
    problem: Problem,
    functionals: Functionals,
    sign: float,
    ends: tuple[float, float],
    paths: Paths,
) -> tuple[float, float, float, float]:
    """Return Kronrod and Gauss integrals over a panel of r, the last value and the first kink.

    The integrand is 1 / (1 + Σ exp(sign max f)) times the density r exp(-r²/2).
    """
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    kronrod, gauss, probability, kink = 0.0, 0.0, 0.0, np.inf
    for i in range(15):
        r = middle + half * KRONROD_POINTS[i]
        probability, kink_here = _probability_at(problem, functionals, sign, r, paths)
        kink = min(kink, kink_here)
        density = probability * r * math.exp(-0.5 * r * r)
        kronrod += KRONROD_WEIGHTS[i] * density
        gauss += GAUSS_WEIGHTS[i] * density
    return half * kronrod, half * gauss, probability, kink


@compiled()
def _next_end(last_points: FloatArray, panel_start: float, end: float) -> tuple[bool, float]:
    """Return whether all paths end before a panel does, and the first end of a path inside it."""
    all_ended, first = True, np.inf
    for m in range(len(last_points)):
        all_ended &= last_points[m, 0, 1] == np.inf and last_points[m, 0, 0] <= end
        if (
            last_points[m, 0, 1] == np.inf
            and panel_start + 1e-7 < last_points[m, 0, 0] < end - 1e-7
        ):
            first = min(first, last_points[m, 0, 0])
    return all_ended, first


@compiled()
def start_paths(
    problem: Problem,
    functionals: Functionals,
    paths: Paths,
) -> float:
    """Write the start of all solution paths, or their closed form; return the largest df/dr."""
    likelihood, bounds, _, _ = problem
    terms, offsets = functionals
    last_points, segments, n_segments = paths
    in_closed_form = terms.shape[1] == 1 and likelihood[0].shape[1] == 0
    fastest_growth = 0.0
    for m in range(len(terms)):
        n_segments[m] = 0
        if in_closed_form:
            n_segments[m], end = path_segments(
                likelihood[4], likelihood[5], bounds, terms[m, 0], segments[m]
            )
            growth_rate = math.sqrt(max(segments[m, 0, 3], 0.0))
            last_points[m, 0, 0], last_points[m, 0, 1] = end, np.inf
        else:
            growth_rate = start_path(problem, (terms[m], offsets[m]), last_points[m])
        fastest_growth = max(fastest_growth, growth_rate)
    return fastest_growth


@compiled()
def _mean_probability(
    problem: Problem,
    functionals: Functionals,
    sign: float,
    tolerance: float,
) -> float:
    """Return the mean of 1 / (1 + Σ exp(sign max f)) over r with density r exp(-r²/2).

    max f is the maximum of each functional f over the level set of the likelihood at r. Adaptive
    Gauss-Kronrod quadrature; panels end where a solution path has a kink or ends.
    """
    n_paths, p = len(functionals[0]), len(problem[1])
    last_points, saved = np.empty((n_paths, MEMORY, p + 2)), np.empty((n_paths, MEMORY, p + 2))
    paths = (last_points, np.empty((n_paths, 2 * p + 2, 4)), np.empty(n_paths, dtype=np.intp))
    fastest_growth = start_paths(problem, functionals, paths)
    panel_start, width, panel_limit = 0.0, min(2.2, 4.0 / (fastest_growth + 1e-300)), _LARGEST_R
    total, n_kinks = 0.0, 0
    while True:
        panel_end = min(panel_start + width, panel_limit)
        saved[:] = last_points
        fine, coarse, probability, kink = _panel_integrals(
            problem, functionals, sign, (panel_start, panel_end), paths
        )
        error = abs(fine - coarse)
        all_ended, first_break = _next_end(last_points, panel_start, panel_end)
        if (
            panel_start + _KINK_MARGIN < kink < min(first_break, panel_end - _KINK_MARGIN)
            and n_kinks < _MAX_KINKS
        ):
            first_break = kink
            n_kinks += 1
        if first_break < np.inf:  # the integrand has a kink there, which both rules may miss
            last_points[:] = saved
            panel_limit = first_break
            continue
        if error > tolerance and panel_end - panel_start > 1e-6:
            last_points[:] = saved
            width = 0.5 * (panel_end - panel_start)
            continue
        total += fine
        panel_start, panel_limit = panel_end, _LARGEST_R
        # How much the probability can still change with r.
        remaining = probability if sign > 0.0 else 1.0 - probability
        if all_ended or remaining < 1e-12 or panel_start >= _LARGEST_R:
            probability, _ = _probability_at(problem, functionals, sign, panel_start, paths)
            return total + probability * math.exp(-0.5 * panel_start * panel_start)
        if error < 0.1 * tolerance:
            width *= 2.0


@compiled()
def class_functionals(
    query: FloatArray, k: int, coef: FloatArray
) -> tuple[Functionals, Functionals]:
    """Return the log-odds of class k at a query (K, p), and the others' linear predictors less its.

    The log-odds are one functional of K-1 terms, the others K-1 functionals of one term.
    """
    n_others, p = len(query) - 1, query.shape[1]
    terms, offsets = np.empty((n_others, p)), np.empty(n_others)
    for m in range(n_others):
        terms[m] = query[k] - query[m if m < k else m + 1]
        offsets[m] = dot(terms[m], coef)
    log_odds = (terms.reshape((1, n_others, p)), offsets.reshape((1, n_others)))
    return log_odds, (-terms.reshape((n_others, 1, p)), -offsets.reshape((n_others, 1)))


@compiled()
def mean_envelope(
    likelihood: Likelihood,
    bounds: FloatArray,
    estimate: tuple[FloatArray, FloatArray],
    queries: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Return mean lower and upper probabilities of every class at each query, (n, 2, K).

    `estimate` holds the coefficients and the Hessian there; `queries` (n, K, p) times coefficients
    are the linear predictors.
    """
    n, n_classes, _ = queries.shape
    n_others, n_rows = likelihood[1].shape
    coef, hessian = estimate
    problem = (likelihood, bounds, hessian, np.empty((3, n_others, n_rows)))
    out = np.empty((n, 2, n_classes))
    for i in range(n):
        for k in range(n_classes):
            log_odds, differences = class_functionals(queries[i], k, coef)
            out[i, 1, k] = _mean_probability(problem, log_odds, -1.0, tolerance)
            out[i, 0, k] = _mean_probability(problem, differences, 1.0, tolerance)
    return out
