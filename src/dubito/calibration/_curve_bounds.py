r"""Bounds of log-odds that are linear in a few columns, the last of them constant.

As for softmax maps (`_log_odds_bounds`): standard errors from the Hessian with a weak penalty, and
along the direction in which all slopes move together those that the likelihood itself has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from dubito._kernels.log_odds import belief_of_log_odds, cut_of_level, level_of_log_odds
from dubito.calibration._log_odds_bounds import (
    BELIEF_CUT,
    SharedSlope,
    shared_slope,
    split_shared_slope,
)

if TYPE_CHECKING:
    from dubito._checks import FloatArray


@dataclass(frozen=True)
class CurveSpread:
    """Coefficients (p,), and how sure they are: a covariance given the mean slope, and that."""

    coef: FloatArray
    covariance: FloatArray
    shared: SharedSlope

    def log_odds(self, design: FloatArray, cut: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-odds at rows of a design, and standard errors down and up, each (n,)."""
        variance = np.einsum("ij,ij->i", design @ self.covariance, design)
        along = design @ self.shared.direction[0]
        down, up = self.shared.reach(cut)
        lower = np.where(along < 0, up, down) * along
        upper = np.where(along < 0, down, up) * along
        variance = np.maximum(variance, 0.0)
        return design @ self.coef, np.sqrt(variance + lower**2), np.sqrt(variance + upper**2)

    def belief(self, design: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event, each (n,)."""
        return belief_of_log_odds(*self.log_odds(design, BELIEF_CUT))

    def at_level(self, design: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the interval of the event's probability at a confidence level, each (n,)."""
        return level_of_log_odds(*self.log_odds(design, cut_of_level(level)), level)

    def contour(self, design: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each row, (n, len(theta))."""
        eta, below, above = self.log_odds(design, BELIEF_CUT)
        with np.errstate(divide="ignore", invalid="ignore"):
            away = logit(theta) - eta[:, None]
            deviations = away / np.where(away < 0, below[:, None], above[:, None])
        return np.where(away == 0, 1.0, np.exp(-0.5 * deviations**2))


def curve_spread(
    design: FloatArray, weight: FloatArray, coef: FloatArray, strengths: FloatArray
) -> CurveSpread:
    """Return how sure fitted coefficients are.

    Parameters
    ----------
    design : array (n, p)
    weight : array (n,)
    coef : array (p,)
        Near the maximum of the likelihood.
    strengths : array (p,)
        Penalties; those of slopes are equal and positive, and hold departures from their mean.
    """
    eta = design @ coef
    curvature = weight * expit(eta) * expit(-eta)
    hessian = (design * curvature[:, None]).T @ design + np.diag(strengths)
    plain = np.linalg.pinv(hessian, rcond=1e-13, hermitian=True)
    slopes = (strengths > 0).astype(np.float64)
    fixed, direction = split_shared_slope(plain @ slopes, slopes, float(strengths.max()))
    steps = design @ direction
    apart = direction[slopes > 0] - direction[slopes > 0].mean()
    own = float(strengths.max() * apart @ apart)
    start = float(weight @ np.logaddexp(0.0, eta))
    linear = float(weight @ (steps * expit(eta)))

    def excess(a: float) -> float:
        # Targets are linear in the coefficients: what they add is in the linear part left out.
        rise = float(weight @ np.logaddexp(0.0, eta + a * steps)) - start - a * linear
        return 2 * rise + own * a * a

    shared = shared_slope(direction, (1, len(coef)), excess)
    return CurveSpread(coef, plain - np.outer(fixed, fixed), shared)
