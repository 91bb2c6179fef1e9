r"""Bounds of log-odds by the delta method: of penalised softmax maps, and of beta calibration.

The ridge that maximises the marginal likelihood is good for probabilities and too large for bounds:
it fixes parameters at 0 that the data do not determine. For bounds the ridge of slopes and biases
is at most 1, a prior standard deviation of 1 in log-odds, and the slope that all classes share has
a very weak prior (`shared_slope`). The inverse of the Hessian with this ridge is the covariance of
the parameters; the delta method gives standard errors of the log-odds of a class against the rest.

Nearly separable rows give a lower limit of the shared slope but no upper one. The likelihood is
asymmetric in this direction, so standard errors down and up are taken from the likelihood itself
in place of its curvature.

Belief and plausibility describe the fitted map: they are centred at it, and off the diagonal they
keep its ridge. Bounds at a level promise to contain the true probability, so the ridge must not
move their centre: they are centred at a map refitted with a smaller one, which is also limited off
the diagonal and lets slopes deviate by up to 2 in log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_curvature import logistic_hessian
from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.softmax import softmax_in_place
from dubito.calibration._kernels.log_odds_bounds import (
    BELIEF_DEVIATION,
    belief_of_log_odds,
    level_bounds_of_log_odds,
)
from dubito.calibration._kernels.shared_slope import SharedSlope, shared_slope, split_shared_slope

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.softmax_covariance import Covariance

#: Largest number of entries in memory for one chunk of rows: 2 MiB fit in a processor's cache.
_CHUNK_ENTRIES = 2**18


@dataclass(frozen=True)
class SoftmaxMapWithErrors:
    """A softmax map with the standard errors of its log-odds.

    `matrix` is (K, K), or (K,) where it is diagonal; `covariance` and `shared` are for scores in
    units of `score_scale`.
    """

    matrix: FloatArray
    bias: FloatArray
    score_scale: float
    covariance: Covariance
    shared: SharedSlope

    def proba(self, u: FloatArray) -> FloatArray:
        """Return the probabilities of the map, (n, K)."""
        return softmax_in_place(self._logits(u))

    def _logits(self, u: FloatArray) -> FloatArray:
        logits = u * self.matrix if self.matrix.ndim == 1 else u @ self.matrix.T
        logits += self.bias
        return logits

    def log_odds_with_errors(
        self, u: FloatArray, deviation: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-odds of each class against the rest, and standard errors down and up.

        Parameters
        ----------
        u : array (n, K)
            Log scores.
        deviation : float
            Standard errors from the estimate at which bounds will be computed.

        Returns
        -------
        eta, below, above : array (n, K)
        """
        eta, below, above = np.empty(u.shape), np.empty(u.shape), np.empty(u.shape)
        entries_per_row = self.covariance.entries_per_row() + 8 * u.shape[1]
        for rows in row_chunks(len(u), entries_per_row, _CHUNK_ENTRIES):
            scores = u[rows] / self.score_scale
            covariances = self.covariance.of_rows(scores)
            log_odds = covariances.log_odds(self._logits(u[rows]), self.shared.of_rows(scores))
            eta[rows] = log_odds.value
            below[rows], above[rows] = self.shared.standard_errors(
                log_odds.variance, log_odds.along, deviation
            )
        return eta, below, above

    def bounds(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of each class, each (n, K)."""
        return belief_of_log_odds(*self.log_odds_with_errors(u, BELIEF_DEVIATION))

    def level_bounds(self, u: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of each class's probability at a confidence level, each (n, K)."""
        log_odds = self.log_odds_with_errors(u, root_chi2_quantile(level))
        return level_bounds_of_log_odds(*log_odds, level)


@dataclass(frozen=True)
class LinearMapWithErrors:
    """A map to log-odds, linear in a few columns, the last constant, with their standard errors.

    `covariance` is that of the coefficients (p,) given the mean slope, which `shared` describes.
    """

    coef: FloatArray
    covariance: FloatArray
    shared: SharedSlope

    def log_odds_with_errors(
        self, design: FloatArray, deviation: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-odds at rows of a design, and standard errors down and up, each (n,)."""
        variance = np.einsum("ij,ij->i", design @ self.covariance, design)
        along = design @ self.shared.direction[0]
        variance = np.maximum(variance, 0.0)
        return design @ self.coef, *self.shared.standard_errors(variance, along, deviation)

    def bounds(self, design: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event, each (n,)."""
        return belief_of_log_odds(*self.log_odds_with_errors(design, BELIEF_DEVIATION))

    def level_bounds(self, design: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the event's probability at a confidence level, each (n,)."""
        log_odds = self.log_odds_with_errors(design, root_chi2_quantile(level))
        return level_bounds_of_log_odds(*log_odds, level)

    def contour(self, design: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each row, (n, len(theta))."""
        eta, below, above = self.log_odds_with_errors(design, BELIEF_DEVIATION)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = logit(theta) - eta[:, None]
            deviations = distance / np.where(distance < 0, below[:, None], above[:, None])
        return np.where(distance == 0, 1.0, np.exp(-0.5 * deviations**2))


def linear_map_with_errors(
    design: FloatArray, weight: FloatArray, coef: FloatArray, penalty: FloatArray
) -> LinearMapWithErrors:
    """Return fitted coefficients of a logistic regression with their covariance.

    Parameters
    ----------
    design : array (n, p)
    weight : array (n,)
    coef : array (p,)
        Near the maximum of the likelihood.
    penalty : array (p,)
        Of slopes one ridge, positive, that is for their differences from the mean slope; 0 for
        other coefficients.
    """
    eta = design @ coef
    hessian = logistic_hessian(design, eta, weight, penalty)
    plain = np.linalg.pinv(hessian, rcond=1e-13, hermitian=True)
    slopes = (penalty > 0).astype(np.float64)
    ridge = float(penalty.max())
    fixed, direction = split_shared_slope(plain @ slopes, slopes, ridge)
    steps = design @ direction
    differences = direction[slopes > 0] - direction[slopes > 0].mean()
    second = ridge * float(differences @ differences)
    value = float(weight @ np.logaddexp(0.0, eta))
    first = float(weight @ (steps * expit(eta)))

    def deviance(a: float) -> float:
        # The terms of the targets are linear in a, and the linear part is subtracted.
        increase = float(weight @ np.logaddexp(0.0, eta + a * steps)) - value - a * first
        return 2 * increase + second * a * a

    shared = shared_slope(direction, (1, len(coef)), deviance)
    return LinearMapWithErrors(coef, plain - np.outer(fixed, fixed), shared)
