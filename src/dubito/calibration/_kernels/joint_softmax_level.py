r"""Bounds of the probabilities of a softmax model of several classifiers at a confidence level.

They are the hull of the bounds over two level sets :math:`\{\beta:D(\beta)\le t^2/2\}`, with
:math:`t^2` the quantile of :math:`\chi^2_1` at the level: of the likelihood of the labels, and of
that of light targets with p/2 pseudo-observations for p coefficients; neither has a ridge. The
upper probability is exact for each; the lower one, :math:`1/\sum_l\exp\max(u_l-u_k)`, never exceeds
the exact minimum.

A solution path (`constrained_maxima_compiled`) is *lost* if its solver fails to converge; the bound
is then 0 or 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.softmax import softmax_in_place
from dubito._numerics.targets import light_table
from dubito.calibration._kernels.joint_softmax import (
    SoftmaxLikelihood,
    fit_softmax_model,
    quadratic_softmax_likelihood,
    softmax_likelihood,
    within_span,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Number of pseudo-observations in the likelihood of the labels, so that an estimate exists for
#: classes that the scores separate: few enough to change nothing else.
_RAW_PSEUDO_ROWS = 1e-7

#: Number of pseudo-observations in a second attempt, where a path is lost because the likelihood is
#: nearly flat. They change the log-likelihood by at most their number times the mean difference in
#: utility of the true class, which is at most 30 before probabilities are 1 up to rounding. The
#: level set is enlarged by that amount, so it contains the one of the labels.
_NEARLY_RAW_PSEUDO_ROWS, _LARGEST_UTILITY_DIFFERENCE = 1e-3, 30.0

#: A bound closer to 0 or 1 than the first number may come from a lost path. It is computed again
#: unless the estimate is closer to 0 or 1 than the second number.
_LOST, _NEAR_CERTAIN = 1e-12, 1e-6

#: Increases of t tried in turn for lost paths, relative to t, or to the second number if t is less:
#: a path that is lost at one t often converges at a slightly larger one.
_MARGINS, _LEAST_T = (0.0, 0.01, 0.03, 0.1), 0.1

#: Number of intervals of relative likelihood of equal width that `stepped_bounds` uses.
_STEPS = 32


class SoftmaxLevelLikelihoods(NamedTuple):
    """The likelihoods whose level sets bound a probability."""

    raw: SoftmaxLikelihood
    nearly_raw: SoftmaxLikelihood  # used where a path of `raw` is lost
    light: SoftmaxLikelihood
    gradient_norm: float  # the largest one of the fits


def softmax_level_likelihoods(
    rows: FloatArray,
    y: IntArray,
    weight: FloatArray,
    bounded: npt.NDArray[np.bool_],
    *,
    quadratic: bool,
) -> SoftmaxLevelLikelihoods:
    """Return the fitted likelihoods of rows (n, K-1, p), as `fit_softmax_model` takes them."""
    n_classes = rows.shape[1] + 1
    total, zeros = float(weight.sum()), np.zeros(rows.shape[2])
    flat = rows.reshape(-1, rows.shape[2])
    rank = int(np.linalg.matrix_rank(flat.T @ flat, hermitian=True))
    likelihoods, norms = [], []
    for pseudo_rows in (_RAW_PSEUDO_ROWS, _NEARLY_RAW_PSEUDO_ROWS, 0.5 * rank):
        target = light_table(total, n_classes, pseudo_rows)[y, 1:]
        fit = fit_softmax_model(rows, target, weight, zeros, bounded)
        likelihood = softmax_likelihood(rows, weight, zeros, bounded, fit)
        if quadratic:
            likelihood = quadratic_softmax_likelihood(likelihood, fit.hessian, zeros)
        likelihoods.append(likelihood)
        norms.append(fit.gradient_norm)
    raw, nearly_raw, light = likelihoods
    return SoftmaxLevelLikelihoods(raw, nearly_raw, light, max(norms))


def level_bounds(
    likelihoods: SoftmaxLevelLikelihoods, queries: FloatArray, level: float, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability of every class at queries (m, K, p), each (m, K)."""
    t = root_chi2_quantile(level)
    nearly_raw_t = float(
        np.sqrt(t * t + 2.0 * _NEARLY_RAW_PSEUDO_ROWS * _LARGEST_UTILITY_DIFFERENCE)
    )
    margins = [fraction * max(t, _LEAST_T) for fraction in _MARGINS]
    raw = [(likelihoods.raw, t), *((likelihoods.nearly_raw, nearly_raw_t + m) for m in margins)]
    light = [(likelihoods.light, t + margin) for margin in margins]
    raw_lower, raw_upper = _narrowest(raw, queries, threads)
    light_lower, light_upper = _narrowest(light, queries, threads)
    return np.minimum(raw_lower, light_lower), np.maximum(raw_upper, light_upper)


def _narrowest(
    level_sets: list[tuple[SoftmaxLikelihood, float]], queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return bounds over the first level set, narrowed by the next ones where paths were lost.

    Level sets are given by their likelihood and r. Each later one contains the first, so its bounds
    are valid for the first too.
    """
    lower, upper = _bounds_at(*level_sets[0], queries, threads)
    proba = softmax_in_place(queries @ level_sets[0][0].coef)
    for likelihood, r in level_sets[1:]:
        lost = (lower < _LOST) & (proba > _NEAR_CERTAIN)
        lost |= (upper > 1.0 - _LOST) & (proba < 1.0 - _NEAR_CERTAIN)
        rows = np.flatnonzero(lost.any(axis=1))
        if len(rows) == 0:
            break
        outer_lower, outer_upper = _bounds_at(likelihood, r, queries[rows], threads)
        lower[rows] = np.maximum(lower[rows], outer_lower)
        upper[rows] = np.minimum(upper[rows], outer_upper)
    return lower, upper


def stepped_bounds(
    likelihood: SoftmaxLikelihood, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    r"""Return lower and upper probabilities averaged over all level sets, never too narrow.

    The same average as `joint_softmax.belief_and_plausibility`, for likelihoods that are flat in
    some directions, on which that may lose solution paths. Upper probabilities increase with r,
    where the relative likelihood is :math:`e^{-r^2/2}`. It is divided into intervals of equal
    width, and on each the bound at the larger r is taken, with the optimality gap of the path
    included: too wide by at most the width of an interval.
    """
    lower, upper = np.zeros(queries.shape[:2]), np.full(queries.shape[:2], 1.0 / _STEPS)
    low, high = np.zeros_like(lower), np.ones_like(upper)
    for step in range(_STEPS - 1, 0, -1):
        r = float(np.sqrt(-2.0 * np.log1p(-step / _STEPS)))
        low_at_r, high_at_r = _bounds_at(likelihood, r, queries, threads)
        # Where a path is lost at this r, the wider bounds of a larger r may be known.
        low, high = np.maximum(low, low_at_r), np.minimum(high, high_at_r)
        lower += low / _STEPS
        upper += high / _STEPS
    return lower, upper


def _bounds_at(
    likelihood: SoftmaxLikelihood, r: float, queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return bounds over the level set D ≤ r²/2 of one likelihood; 0 and 1 where undefined."""
    from dubito.calibration._kernels.joint_softmax_level_compiled import envelope_at  # noqa: PLC0415 - loads numba

    lower, upper = within_span(envelope_at, likelihood, queries, r, threads)
    return np.where(np.isnan(lower), 0.0, lower), np.where(np.isnan(upper), 1.0, upper)
