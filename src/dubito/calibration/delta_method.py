r"""Bounds of log-odds by the delta method: of penalised softmax maps, and of beta calibration.

The penalty strengths that maximise the marginal likelihood are good for probabilities and too
strong for bounds: they fix parameters at 0 that the data do not determine. For bounds the
strengths of slopes and biases are at most 1, a prior standard deviation of 1 in log-odds, and the
slope that all classes share has a very weak prior. The inverse of the Hessian with these strengths
is the covariance of the parameters; the delta method gives standard errors of the log-odds of a
class against the rest.

Nearly separable rows give a lower limit of the shared slope but no upper one. The likelihood is
asymmetric in this direction, so standard errors down and up are taken from the likelihood itself
in place of its curvature.

Belief and plausibility describe the fitted map: they are centred at it, and off the diagonal they
keep its strength. Bounds at a level promise to contain the true probability, so shrinkage must not
move their centre: they are centred at a map refitted with weaker strengths, which also limit the
strength off the diagonal and let slopes deviate by up to 2 in log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_curvature import logistic_hessian
from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.softmax import softmax_in_place
from dubito.calibration._kernels.log_odds_bounds import (
    belief_of_log_odds,
    level_bounds_of_log_odds,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray
    from dubito.calibration._kernels.softmax_covariance import Covariance

#: Numbers in memory for one chunk of rows: 2 MiB, which fit in a processor's cache.
_CHUNK_NUMBERS = 2**18

#: Prior standard deviation of the shared slope over that of the other parameters.
_SHARED_DEVIATION = 10.0

#: Deviation for belief and plausibility: the mean of a Rayleigh variable.
_BELIEF_DEVIATION = np.sqrt(np.pi / 2)
#: Deviations :math:`\sqrt{-2\log pl}`, in standard errors, to which the likelihood along the shared
#: slope is followed: that for belief, and those of the confidence levels 0.5, 0.9 and 0.99.
_DEVIATIONS = np.array(
    [root_chi2_quantile(0.5), _BELIEF_DEVIATION, root_chi2_quantile(0.9), root_chi2_quantile(0.99)]
)
#: Relative error of the distance at which the likelihood reaches a deviation.
_TOLERANCE = 0.01


class SharedSlope(NamedTuple):
    """The direction w in which all slopes change, one standard error long (`split_shared_slope`).

    `direction` is (K, K+1), the bias last, or (K, 2) where the matrix is diagonal. `down` and `up`
    are the distances at which the likelihood reaches each of `_DEVIATIONS`, as multiples of those
    of a parabola.
    """

    direction: FloatArray
    down: FloatArray
    up: FloatArray

    def distances(self, deviation: float) -> tuple[float, float]:
        """Return how far down and up a deviation is reached, as multiples of a parabola's."""
        down, up = (np.interp(deviation, _DEVIATIONS, known) for known in (self.down, self.up))
        return float(down), float(up)

    def of_rows(self, scores: FloatArray) -> FloatArray:
        """Return the derivatives of the logits along the direction, (n, K)."""
        slopes, bias = self.direction[:, :-1], self.direction[:, -1]
        if slopes.shape[1] == 1:
            return scores * slopes[:, 0] + bias
        return scores @ slopes.T + bias


@dataclass(frozen=True)
class SoftmaxMapWithErrors:
    """A softmax map with the standard errors of its log-odds.

    `matrix` is (K, K), or (K,) where it is diagonal; `covariance` and `shared` are for scores in
    units of `size`.
    """

    matrix: FloatArray
    bias: FloatArray
    size: float
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
        down, up = self.shared.distances(deviation)
        row_size = self.covariance.numbers_per_row() + 8 * u.shape[1]
        for rows in row_chunks(len(u), row_size, _CHUNK_NUMBERS):
            scores = u[rows] / self.size
            covariances = self.covariance.of_rows(scores)
            odds = covariances.log_odds(self._logits(u[rows]), self.shared.of_rows(scores))
            eta[rows] = odds.value
            decreasing = odds.along < 0
            square = odds.along**2
            below[rows] = np.sqrt(odds.variance + np.where(decreasing, up**2, down**2) * square)
            above[rows] = np.sqrt(odds.variance + np.where(decreasing, down**2, up**2) * square)
        return eta, below, above

    def bounds(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of each class, each (n, K)."""
        return belief_of_log_odds(*self.log_odds_with_errors(u, _BELIEF_DEVIATION))

    def level_bounds(self, u: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of each class's probability at a confidence level, each (n, K)."""
        odds = self.log_odds_with_errors(u, root_chi2_quantile(level))
        return level_bounds_of_log_odds(*odds, level)


def slope_strength(size: float) -> float:
    """Return the largest penalty strength of slopes for bounds at a level.

    The prior standard deviation of a slope, in log-odds, is `size`, θ times a typical score, but at
    least 1 and at most 2.
    """
    return float(1 / np.clip(size, 1.0, 2.0) ** 2)


def split_shared_slope(
    covariance_of_sum: FloatArray, slopes: FloatArray, strength: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return v and w: the covariance is :math:`C-vv^\mathsf T+ww^\mathsf T`.

    C has a penalty :math:`\tfrac\lambda2\lVert x\rVert^2` on K slopes, which shrinks their mean to
    θ, itself estimated from the rows. The penalty :math:`\lambda(I-\kappa11^\mathsf T/K)` does not:
    with :math:`\kappa=1-1/(100K)` the mean has a prior deviation of :math:`10/\sqrt\lambda`, ten
    times that of a slope.

    Derivation: let a be 1 for slopes and 0 for other parameters; :math:`a^\mathsf Tx` is the sum
    of the slopes, of variance :math:`s=a^\mathsf TCa`. Given this sum the covariance is
    :math:`C-vv^\mathsf T` with :math:`v=Ca/\sqrt s`. The weaker penalty has the covariance

    .. math:: (C^{-1}-\tfrac{\lambda\kappa}Kaa^\mathsf T)^{-1}
        =C+\frac{Ca\,a^\mathsf TC}g,\qquad g=\frac K{\lambda\kappa}-s

    (Sherman and Morrison, 1950). It equals :math:`C-vv^\mathsf T+ww^\mathsf T` for
    :math:`ww^\mathsf T=(\tfrac1s+\tfrac1g)\,Ca\,a^\mathsf TC`, so :math:`w=Ca\sqrt{(1+s/g)/s}`.

    Parameters
    ----------
    covariance_of_sum : array (p,)
        Ca, the covariance of each parameter and the sum of the slopes.
    slopes : array (p,)
        a.
    strength : float
        λ.
    """
    n_slopes, variance_of_sum = slopes.sum(), covariance_of_sum @ slopes
    weakened = strength * (1 - 1 / (n_slopes * _SHARED_DEVIATION**2))
    # Positive but for rounding: s is at most K/λ, where the rows say nothing about the slopes.
    gap = max(n_slopes / weakened - variance_of_sum, 1e-12 * n_slopes / weakened)
    v = covariance_of_sum / np.sqrt(variance_of_sum)
    return v, covariance_of_sum * np.sqrt((1 + variance_of_sum / gap) / variance_of_sum)


def shared_slope(
    direction: FloatArray, shape: tuple[int, int], deviance: Callable[[float], float] | None = None
) -> SharedSlope:
    """Return the shared slope: its direction, and the distances of the deviations.

    Parameters
    ----------
    direction : array
        Of the parameters, one standard error long.
    shape : tuple
        Of `SharedSlope.direction`.
    deviance : callable, optional
        Twice the decrease of the log-likelihood at a multiple of the direction; a parabola if
        absent.
    """
    table = direction.reshape(shape)
    ones = np.ones(len(_DEVIATIONS))
    if deviance is None:
        return SharedSlope(table, ones, ones)
    down, up = (np.array([_distance(deviance, t, sign) for t in _DEVIATIONS]) for sign in (-1, 1))
    return SharedSlope(table, down, up)


def _distance(deviance: Callable[[float], float], deviation: float, sign: int) -> float:
    """Return the factor c with deviance(sign · c · deviation) = deviation², by secants on its root.

    c is 1 for a parabola.
    """
    low, high, factor = 0.0, np.inf, 1.0
    for _ in range(20):
        ratio = np.sqrt(max(deviance(sign * factor * deviation), 0.0)) / deviation
        if abs(ratio - 1) <= _TOLERANCE:
            break
        low, high = (factor, high) if ratio < 1 else (low, factor)
        middle = 0.5 * (low + high) if high < np.inf else 4 * factor
        guess = factor / max(ratio, 0.25)
        factor = guess if low < guess < high else middle
    return factor


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
        down, up = self.shared.distances(deviation)
        lower = np.where(along < 0, up, down) * along
        upper = np.where(along < 0, down, up) * along
        variance = np.maximum(variance, 0.0)
        return design @ self.coef, np.sqrt(variance + lower**2), np.sqrt(variance + upper**2)

    def bounds(self, design: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event, each (n,)."""
        return belief_of_log_odds(*self.log_odds_with_errors(design, _BELIEF_DEVIATION))

    def level_bounds(self, design: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the event's probability at a confidence level, each (n,)."""
        odds = self.log_odds_with_errors(design, root_chi2_quantile(level))
        return level_bounds_of_log_odds(*odds, level)

    def contour(self, design: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each row, (n, len(theta))."""
        eta, below, above = self.log_odds_with_errors(design, _BELIEF_DEVIATION)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = logit(theta) - eta[:, None]
            deviations = distance / np.where(distance < 0, below[:, None], above[:, None])
        return np.where(distance == 0, 1.0, np.exp(-0.5 * deviations**2))


def linear_map_with_errors(
    design: FloatArray, weight: FloatArray, coef: FloatArray, strengths: FloatArray
) -> LinearMapWithErrors:
    """Return fitted coefficients of a logistic regression with their covariance.

    Parameters
    ----------
    design : array (n, p)
    weight : array (n,)
    coef : array (p,)
        Near the maximum of the likelihood.
    strengths : array (p,)
        Penalty strengths; those of slopes are equal and positive, and apply to their differences
        from the mean slope.
    """
    eta = design @ coef
    hessian = logistic_hessian(design, eta, weight, strengths)
    plain = np.linalg.pinv(hessian, rcond=1e-13, hermitian=True)
    slopes = (strengths > 0).astype(np.float64)
    fixed, direction = split_shared_slope(plain @ slopes, slopes, float(strengths.max()))
    steps = design @ direction
    differences = direction[slopes > 0] - direction[slopes > 0].mean()
    penalty = float(strengths.max() * differences @ differences)
    value = float(weight @ np.logaddexp(0.0, eta))
    first = float(weight @ (steps * expit(eta)))

    def deviance(a: float) -> float:
        # The terms of the targets are linear in a, and the linear part is subtracted.
        increase = float(weight @ np.logaddexp(0.0, eta + a * steps)) - value - a * first
        return 2 * increase + penalty * a * a

    shared = shared_slope(direction, (1, len(coef)), deviance)
    return LinearMapWithErrors(coef, plain - np.outer(fixed, fixed), shared)
