r"""The direction in which all slopes of a map change together, with its own standard errors.

The ridge is for differences of slopes from their mean; the mean itself is determined by the rows,
or hardly at all where they are nearly separable. The covariance of the parameters is therefore
split into the covariance given the mean slope and this direction, along which the likelihood is
followed on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito.calibration._kernels.hessian_solvers import dense_inverse
from dubito.calibration._kernels.log_odds_bounds import BELIEF_DEVIATION
from dubito.calibration._kernels.penalised_fit import BIASES, SLOPES, MapLikelihood
from dubito.calibration._kernels.softmax_covariance import ClassBlocks
from dubito.calibration._kernels.vector_scaling import Blocks, inverse_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray

#: Prior standard deviation of the shared slope over that of the other parameters.
_SHARED_DEVIATION = 10.0

#: Deviations :math:`\sqrt{-2\log pl}`, in standard errors, to which the likelihood along the shared
#: slope is followed: that for belief, and those of the confidence levels 0.5, 0.9 and 0.99.
_DEVIATIONS = np.array(
    [root_chi2_quantile(0.5), BELIEF_DEVIATION, root_chi2_quantile(0.9), root_chi2_quantile(0.99)]
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

    def standard_errors(
        self, variance: FloatArray, along: FloatArray, deviation: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return standard errors down and up of values with a derivative `along` the direction.

        `variance` is that given the mean slope, and bounds will be computed at `deviation`
        standard errors from the estimate.
        """
        down, up = (np.interp(deviation, _DEVIATIONS, at) for at in (self.down, self.up))
        below = np.where(along < 0, up, down) * along
        above = np.where(along < 0, down, up) * along
        return np.sqrt(variance + below**2), np.sqrt(variance + above**2)

    def of_rows(self, scores: FloatArray) -> FloatArray:
        """Return the derivatives of the logits along the direction, (n, K)."""
        slopes, bias = self.direction[:, :-1], self.direction[:, -1]
        if slopes.shape[1] == 1:
            return scores * slopes[:, 0] + bias
        return scores @ slopes.T + bias


def split_shared_slope(
    covariance_of_sum: FloatArray, slopes: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return v and w: the covariance is :math:`C-vv^\mathsf T+ww^\mathsf T`.

    C has a penalty :math:`\tfrac\lambda2\lVert x\rVert^2` on K slopes, which shrinks their mean to
    θ, itself estimated from the rows. The penalty :math:`\lambda(I-\kappa11^\mathsf T/K)` does not:
    with :math:`\kappa=1-1/(100K)` the mean has a prior deviation of :math:`10/\sqrt\lambda`, ten
    times that of a slope.

    Derivation: let a be 1 for slopes and 0 for other parameters; :math:`a^\mathsf Tx` is the sum
    of the slopes, of variance :math:`s=a^\mathsf TCa`. Given this sum the covariance is
    :math:`C-vv^\mathsf T` with :math:`v=Ca/\sqrt s`. This penalty has the covariance

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
    ridge : float
        λ.
    """
    n_slopes, variance_of_sum = slopes.sum(), covariance_of_sum @ slopes
    weakened = ridge * (1 - 1 / (n_slopes * _SHARED_DEVIATION**2))
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
    direction = direction.reshape(shape)
    ones = np.ones(len(_DEVIATIONS))
    if deviance is None:
        return SharedSlope(direction, ones, ones)
    down, up = (np.array([_distance(deviance, t, sign) for t in _DEVIATIONS]) for sign in (-1, 1))
    return SharedSlope(direction, down, up)


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


def _shared_slope_deviance(
    likelihood: MapLikelihood, x: FloatArray, ridge: FloatArray, direction: FloatArray
) -> Callable[[float], float]:
    """Return twice the increase of the objective from x along a direction, minus its linear part.

    Only differences of slopes from their mean are penalised, as in the covariance.
    """
    penalty = ridge[likelihood.groups] * (likelihood.groups != SLOPES)
    slopes = direction[likelihood.groups == SLOPES]
    differences = ridge[SLOPES] * float(np.sum((slopes - slopes.mean()) ** 2))
    value, gradient = likelihood.objective(x)
    first = float(gradient @ direction)
    second = differences + float(penalty @ (direction * direction))

    def deviance(a: float) -> float:
        increase = likelihood.objective(x + a * direction)[0] - value - a * first
        return 2 * increase + second * a * a

    return deviance


def covariance_given_mean_slope(
    likelihood: MapLikelihood, hessian: FloatArray, x: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray, Callable[[float], float]]:
    """Return the covariance given the mean slope, the direction of that slope, and its deviance.

    They are those of `split_shared_slope` and `_shared_slope_deviance`, for a full Hessian.
    """
    plain = dense_inverse(hessian, ridge[likelihood.groups])
    slopes = (likelihood.groups == SLOPES).astype(np.float64)
    fixed, direction = split_shared_slope(plain @ slopes, slopes, ridge[SLOPES])
    deviance = _shared_slope_deviance(likelihood, x, ridge, direction)
    return plain - np.outer(fixed, fixed), direction, deviance


def class_covariance(
    blocks: Blocks, score_scale: float, ridge: FloatArray
) -> tuple[ClassBlocks, FloatArray]:
    """Return the covariance of slope and bias class by class, and the shared slope (K, 2)."""
    a, c = blocks.slope / score_scale**2 + ridge[SLOPES], blocks.bias + ridge[BIASES]
    b = blocks.both / score_scale
    slope, both, bias = inverse_blocks(Blocks(a, b, c))
    slopes = np.repeat([1.0, 0.0], len(a))
    fixed, direction = split_shared_slope(np.concatenate([slope, both]), slopes, ridge[SLOPES])
    covariance = ClassBlocks(slope, both, bias, *fixed.reshape(2, -1))
    return covariance, direction.reshape(2, -1).T
