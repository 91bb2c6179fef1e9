r"""Penalised likelihoods, with strengths that maximise the marginal likelihood (MacKay, 1992).

The parameters x minimise

.. math:: \mathrm{NLL}(x)+\tfrac12\sum_g\lambda_gx^\top P_gx

over groups g of parameters (slopes, biases, entries off the diagonal), each with a quadratic form
:math:`P_g`. With H the Hessian of the sum and
:math:`\gamma_g=\mathrm{rank}P_g-\lambda_g\mathrm{tr}(P_gH^{-1})` the effective number of
parameters that the data determine, the log marginal likelihood (Laplace's approximation, up to a
constant)

.. math:: -\mathrm{NLL}(x)-\tfrac12\sum_g\lambda_gx^\top P_gx
    +\tfrac12\sum_g\mathrm{rank}P_g\log\lambda_g-\tfrac12\log\det H,

is largest where :math:`\lambda_g=\gamma_g/x^\top P_gx`. `maximise_marginal_likelihood` is for forms
that are the identity on their group and takes secant steps; `strengths_by_marginal_likelihood` is
for any forms and few parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from dubito.calibration._kernels.hessian_solvers import dense_inverse
from dubito.calibration._kernels.quasi_newton import Minimum, minimise
from dubito.calibration._kernels.softmax_covariance import ClassBlocks
from dubito.calibration._kernels.vector_scaling import Blocks, inverse_blocks
from dubito.calibration.delta_method import split_shared_slope

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration._kernels.hessian_solvers import HessianSolver
    from dubito.calibration._kernels.matrix_scaling import Spectrum
    from dubito.calibration.delta_method import SoftmaxMapWithErrors

#: Range of the strengths: prior standard deviations of 30 and of 0.001 in log-odds.
WEAKEST, STRONGEST = 1e-3, 1e6

#: Numbers of the groups of parameters, and so indices of their strengths.
SLOPES, BIASES, OFF_DIAGONAL = 0, 1, 2

#: Most rounds of MacKay's update, and the change of log strengths at which they stop.
_ROUNDS = 50
_CLOSE = 0.05


class PenalisedModel(Protocol):
    """The likelihood of a map whose parameters x are shrunk to 0, as the solver uses it."""

    groups: IntArray  # group of each parameter
    total: float  # sum of the sample weights
    refresh: int  # solver steps between new Hessians
    tolerance: float  # gradient norm per row at which the solver stops
    has_full_hessian: bool  # of all rows or of a sample; otherwise `hessian_solver` approximates

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""

    def hessian_solver(self, x: FloatArray, penalty: FloatArray) -> HessianSolver:
        """Return the solver of the Hessian of likelihood and penalty, or of an approximation."""

    def choose_strengths(self) -> tuple[FloatArray, FloatArray]:
        """Return the strength of each group by the marginal likelihood, and starting parameters."""

    def start_for(self, strengths: FloatArray) -> FloatArray:
        """Return starting parameters for given strengths."""

    def level_strengths(self) -> FloatArray:
        """Return the largest strength of each group for bounds at a level."""

    def map_with_errors(self, x: FloatArray, strengths: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with parameters x, and its standard errors at given strengths."""


def fit_map(model: PenalisedModel, ridge: float | str | FloatArray) -> tuple[Minimum, FloatArray]:
    """Return the fitted parameters of a map, and the strength of each group.

    `ridge` is "auto", one strength, or one for each group.
    """
    if isinstance(ridge, str):
        strengths, start = model.choose_strengths()
    else:
        strengths = np.broadcast_to(ridge, int(model.groups.max()) + 1).astype(np.float64)
        start = model.start_for(strengths)
    return solve_map(model, strengths, start), strengths


def solve_map(
    model: PenalisedModel,
    strengths: FloatArray,
    start: FloatArray,
    *,
    tolerance: float | None = None,
) -> Minimum:
    """Return the minimum of likelihood and penalty, to a gradient of `tolerance` per row."""
    tolerance = model.tolerance if tolerance is None else tolerance
    penalty = strengths[model.groups]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = model.objective(x)
        return value + 0.5 * float(penalty @ (x * x)), gradient + penalty * x

    return minimise(
        objective,
        lambda x: model.hessian_solver(x, penalty).solve,
        start,
        tolerance=tolerance * model.total,
        refresh=model.refresh,
    )


def maximise_marginal_likelihood(
    model: PenalisedModel,
    strengths: FloatArray | None = None,
    x: FloatArray | None = None,
    *,
    rounds: int = _ROUNDS,
    tolerance: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """Return the strengths that maximise the marginal likelihood, and the parameters there.

    Each round fits the map at given strengths, to a gradient of `tolerance` per row.
    """
    n_groups = int(model.groups.max()) + 1
    strengths = np.full(n_groups, 10.0) if strengths is None else strengths
    x = np.zeros(len(model.groups)) if x is None else x
    last_change = step = np.zeros(n_groups)  # of the log strengths
    for _ in range(rounds):
        x = solve_map(model, strengths, x, tolerance=tolerance).x
        last_step, step = step, _mackay_log_step(model, strengths, x)
        if np.abs(step).max() < _CLOSE:
            return np.clip(strengths * np.exp(step), WEAKEST, STRONGEST), x
        change = _secant_log_step(last_change, last_step, step)
        new = np.clip(strengths * np.exp(change), WEAKEST, STRONGEST)
        last_change, strengths = np.log(new / strengths), new
    return strengths, x


def _mackay_log_step(model: PenalisedModel, strengths: FloatArray, x: FloatArray) -> FloatArray:
    """Return the change of each log strength by MacKay's update, 0 at the ends of the range."""
    n_groups = len(strengths)
    sizes = np.bincount(model.groups, minlength=n_groups)
    variances = model.hessian_solver(x, strengths[model.groups]).inverse_diagonal()
    determined = sizes - strengths * np.bincount(model.groups, variances, n_groups)
    squares = np.bincount(model.groups, x * x, n_groups)
    new = np.maximum(determined, 0.0) / np.maximum(squares, 1e-300)
    return np.log(np.clip(new, WEAKEST, STRONGEST) / strengths)


def _secant_log_step(
    last_change: FloatArray, last_step: FloatArray, step: FloatArray
) -> FloatArray:
    """Return the change of each log strength at which a secant predicts that MacKay's step is 0.

    Where the marginal likelihood grows slowly MacKay's update takes dozens of fits. A secant step
    changes a strength by a factor of at most eight, or as far as MacKay's update where that is
    more.
    """
    decrease = last_step - step
    secant = np.full_like(step, np.inf)
    np.divide(last_change * step, decrease, out=secant, where=decrease * last_change > 0)
    largest = np.maximum(np.abs(step), np.log(8.0))
    accelerated = np.sign(step) * np.minimum(np.abs(secant), largest)
    return np.where(last_change == 0.0, step, accelerated)


def _shared_slope_deviance(
    model: PenalisedModel, x: FloatArray, strengths: FloatArray, direction: FloatArray
) -> Callable[[float], float]:
    """Return twice the increase of the objective from x along a direction, minus its linear part.

    Only differences of slopes from their mean are penalised, as in the covariance.
    """
    penalty = strengths[model.groups] * (model.groups != SLOPES)
    slopes = direction[model.groups == SLOPES]
    differences = strengths[SLOPES] * float(np.sum((slopes - slopes.mean()) ** 2))
    value, gradient = model.objective(x)
    first = float(gradient @ direction)
    second = differences + float(penalty @ (direction * direction))

    def deviance(a: float) -> float:
        increase = model.objective(x + a * direction)[0] - value - a * first
        return 2 * increase + second * a * a

    return deviance


def covariance_given_mean_slope(
    model: PenalisedModel, hessian: FloatArray, x: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray, Callable[[float], float]]:
    """Return the covariance given the mean slope, the direction of that slope, and its deviance.

    They are those of `split_shared_slope` and `_shared_slope_deviance`, for a full Hessian.
    """
    plain = dense_inverse(hessian, strengths[model.groups])
    slopes = (model.groups == SLOPES).astype(np.float64)
    fixed, direction = split_shared_slope(plain @ slopes, slopes, strengths[SLOPES])
    deviance = _shared_slope_deviance(model, x, strengths, direction)
    return plain - np.outer(fixed, fixed), direction, deviance


def class_covariance(
    blocks: Blocks, scale: float, strengths: FloatArray
) -> tuple[ClassBlocks, FloatArray]:
    """Return the covariance of slope and bias class by class, and the shared slope (K, 2)."""
    a, c = blocks.slope / scale**2 + strengths[SLOPES], blocks.bias + strengths[BIASES]
    b = blocks.both / scale
    slope, both, bias = inverse_blocks(Blocks(a, b, c))
    slopes = np.repeat([1.0, 0.0], len(a))
    fixed, direction = split_shared_slope(np.concatenate([slope, both]), slopes, strengths[SLOPES])
    covariance = ClassBlocks(slope, both, bias, *fixed.reshape(2, -1))
    return covariance, direction.reshape(2, -1).T


def quadratic_strength(hessian: Spectrum, gradient: FloatArray) -> float:
    r"""Return the one strength that maximises the marginal likelihood of a quadratic model.

    With gradient g and curvature h along each eigenvector, twice the log marginal likelihood is
    :math:`\sum g^2/(h+\lambda)+\log\lambda-\log(h+\lambda)`.
    """
    h, squares = hessian.values, hessian.rotate(gradient) ** 2
    grid = np.geomspace(WEAKEST, STRONGEST, 37)
    values = [float((squares / (h + v) - np.log1p(h / v)).sum()) for v in grid]
    return float(grid[np.argmax(values)])


def strengths_by_marginal_likelihood(
    fit_at: Callable[[FloatArray], tuple[FloatArray, FloatArray, BoolArray]], forms: FloatArray
) -> FloatArray:
    """Return the penalty strength of each group that maximises the marginal likelihood.

    Parameters
    ----------
    fit_at : callable
        Takes the penalty (p, p); returns coefficients, the Hessian with the penalty, and a mask
        of the coefficients that are free: not at a bound.
    forms : ndarray of shape (groups, p, p)
        Quadratic form of each group.
    """
    strengths = np.ones(len(forms))
    for _ in range(_ROUNDS):
        coef, hessian, free = fit_at(np.tensordot(strengths, forms, axes=1))
        inverse = np.zeros_like(hessian)
        inverse[np.ix_(free, free)] = np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True)
        new = np.array(
            [
                _strength(form, strength, coef, inverse, free)
                for form, strength in zip(forms, strengths, strict=True)
            ]
        )
        converged = np.abs(np.log(new / strengths)).max() < _CLOSE
        strengths = new
        if converged:
            break
    return strengths


def _strength(
    form: FloatArray, strength: float, coef: FloatArray, inverse: FloatArray, free: BoolArray
) -> float:
    """Return MacKay's new strength of a group; the present one if no coefficient is free."""
    rank = int(np.linalg.matrix_rank(form[np.ix_(free, free)], hermitian=True))
    if rank == 0:
        return strength
    determined = max(rank - strength * float((form * inverse).sum()), 0.0)
    size = max(float(coef @ form @ coef), 1e-300)
    return float(np.clip(determined / size, WEAKEST, STRONGEST))
