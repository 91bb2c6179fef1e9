r"""Bounds of a logistic model of several scores that hold the probability at a confidence level.

As for one score (`logistic_level`) they are the hull of the cuts of two contours,
of the plain likelihood and of p/2 pseudo-observations beside the rows; neither has a ridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_fit import fit_logistic
from dubito._numerics.logistic_level import level_targets
from dubito._numerics.threads import over_blocks
from dubito.calibration._kernels.joint_logistic import (
    JointEvidence,
    joint_evidence,
    outside_span,
    quadratic_evidence,
    seen_directions,
)

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Curvature, relative to that with pseudo-observations, below which plain targets have no estimate.
_FLAT = 1e-6


class JointLevels(NamedTuple):
    """The two likelihoods whose cuts bound a probability, in the axes of the first."""

    shrunk: JointEvidence
    raw_at: FloatArray  # (4, n): as `JointEvidence.at`, such that the fall is from the raw estimate
    raw_coef: FloatArray  # (p,)
    raw_place: FloatArray  # (rank,): raw coefficients from the first estimate, whitened
    raw_whiten: FloatArray  # (p, rank): axes where the raw curvature is the identity
    separated: bool  # whether plain targets have no estimate
    gradient_norm: float  # the certificate of both fits

    @property
    def likelihoods(self) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """What the compiled kernels take."""
        rows, _, penalty = self.shrunk.likelihood
        return self.shrunk.likelihood, (rows, self.raw_at, penalty)


def joint_levels(design: FloatArray, event: BoolArray, weight: FloatArray) -> JointLevels:
    """Fit both likelihoods to a design (n, p), events and positive weights."""
    _, scaled = seen_directions(design, weight)
    rank = scaled.shape[1]
    target, raw = level_targets(event, weight, rank)
    shrunk = joint_evidence(design, target, weight, np.zeros(design.shape[1]))
    nothing = np.zeros(rank)
    if not rank:  # rows that are all zero, without a bias: the log-odds are 0
        none = np.zeros((design.shape[1], 0))
        return JointLevels(shrunk, shrunk.at, shrunk.coef, nothing, none, False, 0.0)
    seen = design @ scaled
    fit = fit_logistic(seen, raw, weight, nothing, nothing, start=shrunk.fit.coef)
    coef, eta, rows = scaled @ fit.coef, seen @ fit.coef, shrunk.rows.T
    curvature = (rows * (weight * expit(eta) * expit(-eta))[:, None]).T @ rows
    values, axes = np.linalg.eigh(curvature)
    white = axes / np.sqrt(np.maximum(values, 1e-14))
    # The fall is Σw(softplus(η) - tη), less its least: each row takes its part of that.
    part = raw * shrunk.at[1] + fit.objective / weight.sum()
    return JointLevels(
        shrunk=shrunk,
        raw_at=np.stack([weight, shrunk.at[1], part, raw]),
        raw_coef=coef,
        raw_place=np.linalg.pinv(shrunk.whiten) @ (coef - shrunk.coef),
        raw_whiten=shrunk.whiten @ white,
        separated=bool(values.min() < _FLAT),
        gradient_norm=max(shrunk.fit.gradient_norm, fit.gradient_norm),
    )


def quadratic_levels(levels: JointLevels) -> JointLevels:
    """Drop the rows: the quadratics of both likelihoods need only estimates and curvatures."""
    return levels._replace(shrunk=quadratic_evidence(levels.shrunk), raw_at=np.zeros((4, 0)))


def level_bounds(
    levels: JointLevels, design: FloatArray, level: float, *, exact: bool, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability at each row of a design, each (m,).

    Rows outside the span of the calibration rows could have any probability: 0 and 1.
    """
    t = root_chi2_quantile(level)
    ends = _exact_ends(levels, design, t, threads) if exact else _quadratic_ends(levels, design, t)
    unknown = outside_span(levels.shrunk, design)
    lower, upper = expit(ends).T
    return np.where(unknown, 0.0, lower), np.where(unknown, 1.0, upper)


def _estimates(levels: JointLevels, design: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log-odds of both likelihoods, (m, 2), and their standard errors."""
    log_odds = design @ np.column_stack([levels.shrunk.coef, levels.raw_coef])
    spreads = [
        np.linalg.norm(design @ w, axis=1) for w in (levels.shrunk.whiten, levels.raw_whiten)
    ]
    return log_odds, np.column_stack(spreads)


def _exact_ends(levels: JointLevels, design: FloatArray, t: float, threads: int) -> FloatArray:
    from dubito.calibration._kernels.joint_logistic_level_compiled import (  # noqa: PLC0415 - loads numba
        level_ends,
    )

    queries = design @ levels.shrunk.whiten
    log_odds, spread = _estimates(levels, design)
    estimates = np.stack([log_odds, spread], axis=2).reshape(-1, 4)
    ends = np.repeat(log_odds[:, :1], 2, axis=1)
    moves = spread[:, 0] > 0  # not rows of zeros without a bias
    both = levels.likelihoods
    ends[moves] = over_blocks(
        lambda z, e: level_ends(both, z, e, levels.raw_place, t),
        (queries[moves], np.ascontiguousarray(estimates[moves])),
        threads=threads,
    )
    return ends


def _quadratic_ends(levels: JointLevels, design: FloatArray, t: float) -> FloatArray:
    """Return ends from the quadratics; those of separated classes have none on the raw side."""
    log_odds, spread = _estimates(levels, design)
    lower, upper = log_odds - t * spread, log_odds + t * spread
    if levels.separated:
        outward = np.sign(log_odds[:, 1] - log_odds[:, 0])
        flat = spread[:, 1] > spread[:, 0] / np.sqrt(_FLAT)
        lower[flat, 1] = np.where(outward < 0, -np.inf, lower[:, 0])[flat]
        upper[flat, 1] = np.where(outward > 0, np.inf, upper[:, 0])[flat]
    return np.column_stack([lower.min(axis=1), upper.max(axis=1)])
