r"""Bounds of the probabilities of a softmax model of several classifiers at a confidence level.

They are the hull of the bounds over two level sets :math:`\{\beta:D(\beta)\le t^2/2\}`, with
:math:`t^2` the quantile of :math:`\chi^2_1` at the level: of the likelihood of the labels, and of
one with p/2 pseudo-observations for p coefficients; neither has a ridge. The upper probability is
exact for each; the lower one, :math:`1/\sum_l\exp\max(u_l-u_k)`, never exceeds the exact minimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.softmax import softmax_rows
from dubito._numerics.targets import shrunk_table
from dubito._numerics.threads import over_blocks
from dubito.calibration._kernels.joint_softmax import (
    SoftmaxLikelihood,
    far_outside,
    fit_softmax_model,
    hessian_at_estimate,
    quadratic_softmax_likelihood,
    softmax_likelihood,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Pseudo-observations of the likelihood of the labels: few enough to change nothing, and with them
#: an estimate exists for classes that the scores separate.
_RAW = 1e-7

#: A path is *lost* if its solver fails to converge; the bound is then 0 or 1.
#: Pseudo-observations of a second attempt where a path is lost because the likelihood is nearly
#: flat. They change the log-likelihood by at most their number times the mean difference in utility
#: of the true class, which is at most 30 before probabilities are 1 up to rounding. The level set
#: is enlarged by that amount, so it contains the one of the labels.
_NEARLY_RAW, _ADVANTAGE = 1e-3, 30.0

#: A bound this close to 0 or 1 may come from a lost path. It is computed again unless the estimate
#: is closer to 0 or 1 than the second number.
_LOST, _MATTERS = 1e-12, 1e-6

#: Increases of t tried in turn for lost paths, relative to t, or to the second number if t is less:
#: a path that is lost at one t is often found at a slightly larger one.
_MARGINS, _LEAST_T = (0.0, 0.01, 0.03, 0.1), 0.1

#: Number of parts of equal mass into which `stepped_bounds` divides the levels.
_PARTS = 32


class SoftmaxLevelLikelihoods(NamedTuple):
    """The likelihoods whose level sets bound a probability."""

    raw: SoftmaxLikelihood
    nearly_raw: SoftmaxLikelihood  # used where a path of `raw` is lost
    shrunk: SoftmaxLikelihood
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
    n_seen = int(np.linalg.matrix_rank(flat.T @ flat, hermitian=True))
    found, norms = [], []
    for pseudo in (_RAW, _NEARLY_RAW, 0.5 * n_seen):
        target = shrunk_table(total, n_classes, pseudo)[y, 1:]
        fit = fit_softmax_model(rows, target, weight, zeros, bounded)
        evidence = softmax_likelihood(rows, weight, zeros, bounded, fit)
        if quadratic:
            evidence = quadratic_softmax_likelihood(evidence, fit.hessian, zeros)
        found.append(evidence)
        norms.append(fit.gradient_norm)
    return SoftmaxLevelLikelihoods(found[0], found[1], found[2], max(norms))


def level_bounds(
    levels: SoftmaxLevelLikelihoods, queries: FloatArray, level: float, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability of every class at queries (m, K, p), each (m, K)."""
    t = root_chi2_quantile(level)
    nearly_raw_t = float(np.sqrt(t * t + 2.0 * _NEARLY_RAW * _ADVANTAGE))
    margins = [part * max(t, _LEAST_T) for part in _MARGINS]
    raw = [(levels.raw, t), *((levels.nearly_raw, nearly_raw_t + margin) for margin in margins)]
    shrunk = [(levels.shrunk, t + margin) for margin in margins]
    pairs = [_narrowest(cuts, queries, threads) for cuts in (raw, shrunk)]
    (lower, upper), other = pairs
    return np.minimum(lower, other[0]), np.maximum(upper, other[1])


def _narrowest(
    cuts: list[tuple[SoftmaxLikelihood, float]], queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the first level set, intersected with the next ones where paths were lost.

    Each later level set contains the first, so its bounds are valid too.
    """
    lower, upper = _cut(*cuts[0], queries, threads)
    proba = softmax_rows(queries @ cuts[0][0].coef)
    for evidence, depth in cuts[1:]:
        lost = (lower < _LOST) & (proba > _MATTERS)
        lost |= (upper > 1.0 - _LOST) & (proba < 1.0 - _MATTERS)
        rows = np.flatnonzero(lost.any(axis=1))
        if len(rows) == 0:
            break
        deeper_bounds = _cut(evidence, depth, queries[rows], threads)
        lower[rows] = np.maximum(lower[rows], deeper_bounds[0])
        upper[rows] = np.minimum(upper[rows], deeper_bounds[1])
    return lower, upper


def stepped_bounds(
    evidence: SoftmaxLikelihood, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    r"""Return lower and upper probabilities averaged over all levels, never too narrow.

    Upper probabilities rise with the level r of relative likelihood :math:`e^{-r^2/2}`. Levels are
    divided into parts of equal mass, and on each the bound at its end is taken, with the optimality
    gap of the path included: too wide by at most the mass of a part. For likelihoods that are flat
    in some directions, where `lower_and_upper` may lose paths.
    """
    lower, upper = np.zeros(queries.shape[:2]), np.full(queries.shape[:2], 1.0 / _PARTS)
    low, high = np.zeros_like(lower), np.ones_like(upper)
    for part in range(_PARTS - 1, 0, -1):
        level = float(np.sqrt(-2.0 * np.log1p(-part / _PARTS)))
        found = _cut(evidence, level, queries, threads)
        # A path that is lost here may have been found at a deeper level, whose bounds are wider.
        low, high = np.maximum(low, found[0]), np.minimum(high, found[1])
        lower += low / _PARTS
        upper += high / _PARTS
    return lower, upper


def _cut(
    evidence: SoftmaxLikelihood, t: float, queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return bounds over the level set D ≤ t²/2 of one likelihood; 0 and 1 outside its span."""
    from dubito.calibration._kernels.joint_softmax_level_compiled import cut  # noqa: PLC0415 - loads numba

    n, n_classes, _ = queries.shape
    lower, upper = np.zeros((n, n_classes)), np.ones((n, n_classes))
    known = ~far_outside(evidence, queries)
    if known.any():
        estimate = evidence.coef, hessian_at_estimate(evidence)
        found = over_blocks(
            lambda part: cut(evidence.likelihood, evidence.bounds, estimate, part, t),
            (queries[known],),
            threads=threads,
        )
        lower[known] = np.where(np.isnan(found[:, 0]), 0.0, found[:, 0])
        upper[known] = np.where(np.isnan(found[:, 1]), 1.0, found[:, 1])
    return lower, upper
