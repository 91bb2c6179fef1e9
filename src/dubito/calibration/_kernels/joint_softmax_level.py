r"""Bounds of a softmax model of several classifiers that hold the probability at a level.

They are the hull of what two likelihoods allow at :math:`\{\beta:D(\beta)\le t^2/2\}`, with
:math:`t^2` the quantile of :math:`\chi^2_1` at the level: that of the labels as they are, and one
with p/2 pseudo-observations for p coefficients; neither has a ridge. The upper probability is exact
for each; the lower one, :math:`1/\sum_l\exp\max(u_l-u_k)`, is never above the least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.softmax import softmax_rows
from dubito._numerics.targets import shrunken_table
from dubito._numerics.threads import over_blocks
from dubito.calibration._kernels.joint_softmax import (
    SoftmaxEvidence,
    far_outside,
    fit_softmax_model,
    hessian_at_estimate,
    quadratic_evidence,
    softmax_evidence,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Pseudo-observations, in rows, for the likelihood of the labels as they are: with so few, labels
#: that the scores separate have an estimate too.
_LIMIT = 1e-7

#: Pseudo-observations for paths that get lost there, where the likelihood is all but flat. They
#: lower it by no more than so many times the mean advantage of the true classes in utility; where
#: that exceeds 30, every row has its class for sure. The cut is made deeper by as much.
_SLIGHT, _ADVANTAGE = 1e-3, 30.0

#: A bound this close to 0 or 1 may be that of a lost path; where the estimate is as close as the
#: second number, it does not matter.
_LOST, _MATTERS = 1e-12, 1e-6

#: A path that is lost at one depth is often found a little deeper: parts of t, or of the least t.
_DEEPER, _SHALLOW = (0.0, 0.01, 0.03, 0.1), 0.1

#: Parts of equal mass that the levels are divided into where each is certified.
_PARTS = 32


class SoftmaxLevels(NamedTuple):
    """The two likelihoods whose cuts bound a probability."""

    raw: SoftmaxEvidence
    nearly_raw: SoftmaxEvidence  # for paths that get lost in the first
    shrunken: SoftmaxEvidence
    gradient_norm: float  # the largest one of the fits


def fit_levels(
    rows: FloatArray,
    y: IntArray,
    weight: FloatArray,
    bounded: npt.NDArray[np.bool_],
    *,
    quadratic: bool,
) -> SoftmaxLevels:
    """Fit both likelihoods to rows (n, K-1, p), as `fit_softmax_model` takes them."""
    n_classes = rows.shape[1] + 1
    total, nothing = float(weight.sum()), np.zeros(rows.shape[2])
    flat = rows.reshape(-1, rows.shape[2])
    n_seen = int(np.linalg.matrix_rank(flat.T @ flat, hermitian=True))
    found, norms = [], []
    for pseudo in (_LIMIT, _SLIGHT, 0.5 * n_seen):
        target = shrunken_table(total, n_classes, pseudo)[y, 1:]
        fit = fit_softmax_model(rows, target, weight, nothing, bounded)
        evidence = softmax_evidence(rows, weight, nothing, bounded, fit)
        if quadratic:
            evidence = quadratic_evidence(evidence, fit.hessian, nothing)
        found.append(evidence)
        norms.append(fit.gradient_norm)
    return SoftmaxLevels(found[0], found[1], found[2], max(norms))


def level_bounds(
    levels: SoftmaxLevels, queries: FloatArray, level: float, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability of every class at queries (m, K, p), each (m, K)."""
    t = root_chi2_quantile(level)
    slight = float(np.sqrt(t * t + 2.0 * _SLIGHT * _ADVANTAGE))
    deeper = [part * max(t, _SHALLOW) for part in _DEEPER]
    raw = [(levels.raw, t), *((levels.nearly_raw, slight + more) for more in deeper)]
    shrunken = [(levels.shrunken, t + more) for more in deeper]
    pairs = [_narrowest(cuts, queries, threads) for cuts in (raw, shrunken)]
    (lower, upper), other = pairs
    return np.minimum(lower, other[0]), np.maximum(upper, other[1])


def _narrowest(
    cuts: list[tuple[SoftmaxEvidence, float]], queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return the first cut, and for rows with lost paths what it and the next ones leave.

    All of them hold what the first would, were none of its paths lost: the others are deeper.
    """
    lower, upper = _cut(*cuts[0], queries, threads)
    proba = softmax_rows(queries @ cuts[0][0].coef)
    for evidence, depth in cuts[1:]:
        lost = (lower < _LOST) & (proba > _MATTERS)
        lost |= (upper > 1.0 - _LOST) & (proba < 1.0 - _MATTERS)
        rows = np.flatnonzero(lost.any(axis=1))
        if len(rows) == 0:
            break
        again = _cut(evidence, depth, queries[rows], threads)
        lower[rows] = np.maximum(lower[rows], again[0])
        upper[rows] = np.minimum(upper[rows], again[1])
    return lower, upper


def stepped_bounds(
    evidence: SoftmaxEvidence, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    r"""Return lower and upper probabilities over all levels, not too narrow but rather too wide.

    Upper probabilities rise with the level r of relative likelihood :math:`e^{-r^2/2}`. Levels are
    divided into parts of equal mass, and on each the bound at its end is taken, where what the
    maximum may exceed the path by is included: too wide by at most the mass of a part. For
    likelihoods that are flat in some directions, where `lower_and_upper` may lose its way.
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
    evidence: SoftmaxEvidence, t: float, queries: FloatArray, threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return what one likelihood allows at a level; rows far outside its span: 0 and 1."""
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
