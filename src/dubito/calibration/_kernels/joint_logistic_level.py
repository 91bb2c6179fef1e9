r"""Bounds of the probability of a logistic model of several scores at a confidence level.

As for one score (`logistic_level`) they are the hull of the cuts :math:`\{-2\log pl\le t^2\}` of
two contours: of the likelihood of the labels (`raw`), and of that of light targets with p/2
pseudo-observations for p coefficients (`light`); neither has a ridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_curvature import logistic_hessian
from dubito._numerics.logistic_fit import fit_logistic
from dubito._numerics.logistic_level import level_targets
from dubito._numerics.threads import over_blocks
from dubito.calibration._kernels.joint_logistic import (
    JointLikelihood,
    bases_of_span,
    joint_likelihood,
    outside_span,
    quadratic_joint_likelihood,
)

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Curvature of the raw likelihood, relative to that of the light one, below which it has no
#: maximum.
_FLAT = 1e-6


class JointLevelLikelihoods(NamedTuple):
    """The two likelihoods whose contours are cut, in the whitened axes of the light one.

    The raw likelihood has the rows and penalty of the light one. In `raw_at_estimate` the log-odds
    are those of the light estimate, the targets t are in place of probabilities and c in place of
    softplus values, so that D is that of the raw likelihood: Σw[ζ(η) - tη] minus its minimum, with
    ζ = log(1 + exp).
    """

    light: JointLikelihood
    raw_at_estimate: FloatArray  # (4, n): sample weight, log-odds, c, t
    raw_coef: FloatArray  # (p,)
    raw_whitened_coef: FloatArray  # (rank,): raw minus light coefficients, whitened
    raw_whiten: FloatArray  # (p, rank): axes where the raw Hessian is the identity
    separated: bool  # whether the raw likelihood has no maximum
    gradient_norm: float  # the larger one of the two fits

    @property
    def arrays(self) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """The argument `likelihoods` of the compiled kernels."""
        rows, _, penalty = self.light.arrays
        return self.light.arrays, (rows, self.raw_at_estimate, penalty)


def joint_level_likelihoods(
    design: FloatArray, event: BoolArray, weight: FloatArray
) -> JointLevelLikelihoods:
    """Return both fitted likelihoods of a design (n, p), events and positive sample weights."""
    _, scaled = bases_of_span(design, weight)
    rank = scaled.shape[1]
    raw_target, light_target = level_targets(event, weight, rank)
    light = joint_likelihood(design, light_target, weight, np.zeros(design.shape[1]))
    zeros = np.zeros(rank)
    if not rank:  # rows that are all zero, without a bias: the log-odds are 0
        empty = np.zeros((design.shape[1], 0))
        return JointLevelLikelihoods(light, light.at_estimate, light.coef, zeros, empty, False, 0.0)
    coordinates = design @ scaled
    fit = fit_logistic(coordinates, raw_target, weight, zeros, zeros, start=light.fit.coef)
    coef, eta, rows = scaled @ fit.coef, coordinates @ fit.coef, light.rows.T
    values, axes = np.linalg.eigh(logistic_hessian(rows, eta, weight))
    white = axes / np.sqrt(np.maximum(values, 1e-14))
    # The minimum of Σw[ζ(η) - tη] is divided over the rows.
    offset = raw_target * light.at_estimate[1] + fit.objective / weight.sum()
    return JointLevelLikelihoods(
        light=light,
        raw_at_estimate=np.stack([weight, light.at_estimate[1], offset, raw_target]),
        raw_coef=coef,
        raw_whitened_coef=np.linalg.pinv(light.whiten) @ (coef - light.coef),
        raw_whiten=light.whiten @ white,
        separated=bool(values.min() < _FLAT),
        gradient_norm=max(light.fit.gradient_norm, fit.gradient_norm),
    )


def quadratic_level_likelihoods(likelihoods: JointLevelLikelihoods) -> JointLevelLikelihoods:
    """Return the likelihoods without rows, for bounds from second-order expansions only."""
    return likelihoods._replace(
        light=quadratic_joint_likelihood(likelihoods.light), raw_at_estimate=np.zeros((4, 0))
    )


def level_bounds(
    likelihoods: JointLevelLikelihoods,
    design: FloatArray,
    level: float,
    *,
    exact: bool,
    threads: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability at each row of a design, each (m,).

    Rows outside the span of the calibration rows could have any probability: 0 and 1.
    """
    t = root_chi2_quantile(level)
    if exact:
        ends = _exact_ends(likelihoods, design, t, threads)
    else:
        ends = _quadratic_ends(likelihoods, design, t)
    outside = outside_span(likelihoods.light, design)
    lower, upper = expit(ends).T
    return np.where(outside, 0.0, lower), np.where(outside, 1.0, upper)


def _estimates(
    likelihoods: JointLevelLikelihoods, design: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log-odds of both likelihoods, (m, 2), and their standard errors."""
    log_odds = design @ np.column_stack([likelihoods.light.coef, likelihoods.raw_coef])
    whiten = likelihoods.light.whiten, likelihoods.raw_whiten
    return log_odds, np.column_stack([np.linalg.norm(design @ w, axis=1) for w in whiten])


def _exact_ends(
    likelihoods: JointLevelLikelihoods, design: FloatArray, t: float, threads: int
) -> FloatArray:
    from dubito.calibration._kernels.joint_logistic_level_compiled import (  # noqa: PLC0415 - loads numba
        level_ends,
    )

    queries = design @ likelihoods.light.whiten
    log_odds, std_error = _estimates(likelihoods, design)
    estimates = np.stack([log_odds, std_error], axis=2).reshape(-1, 4)
    ends = np.repeat(log_odds[:, :1], 2, axis=1)
    varies = std_error[:, 0] > 0  # False for rows of zeros without a bias
    arrays = likelihoods.arrays
    ends[varies] = over_blocks(
        lambda z, e: level_ends(arrays, z, e, likelihoods.raw_whitened_coef, t),
        (queries[varies], np.ascontiguousarray(estimates[varies])),
        threads=threads,
    )
    return ends


def _quadratic_ends(likelihoods: JointLevelLikelihoods, design: FloatArray, t: float) -> FloatArray:
    """Return log-odds of both ends of the hull, from second-order expansions, (m, 2).

    For separated classes the raw cut is unbounded on the side of the raw estimate.
    """
    log_odds, std_error = _estimates(likelihoods, design)
    lower, upper = log_odds - t * std_error, log_odds + t * std_error
    if likelihoods.separated:
        outward = np.sign(log_odds[:, 1] - log_odds[:, 0])
        flat = std_error[:, 1] > std_error[:, 0] / np.sqrt(_FLAT)
        lower[flat, 1] = np.where(outward < 0, -np.inf, lower[:, 0])[flat]
        upper[flat, 1] = np.where(outward > 0, np.inf, upper[:, 0])[flat]
    return np.column_stack([lower.min(axis=1), upper.max(axis=1)])
