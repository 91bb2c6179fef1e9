r"""The ridge that maximises the marginal likelihood of a penalised fit (MacKay, 1992).

Groups g of parameters x (slopes, biases, entries off the diagonal) have a ridge
:math:`\lambda_g` each and a quadratic form :math:`P_g`; the fit minimises

.. math:: \mathrm{NLL}(x)+\tfrac12\sum_g\lambda_gx^\top P_gx.

With H the Hessian of this sum and
:math:`\gamma_g=\mathrm{rank}P_g-\lambda_g\mathrm{tr}(P_gH^{-1})` the effective number of
parameters that the data determine, the log marginal likelihood (Laplace's approximation, up to a
constant)

.. math:: -\mathrm{NLL}(x)-\tfrac12\sum_g\lambda_gx^\top P_gx
    +\tfrac12\sum_g\mathrm{rank}P_g\log\lambda_g-\tfrac12\log\det H,

is largest where :math:`\lambda_g=\gamma_g/x^\top P_gx`. `maximise_marginal_likelihood` is for forms
that are the identity on their group and takes secant steps; `ridge_by_marginal_likelihood` is for
any forms and few parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.calibration._kernels.penalised_fit import (
    LARGEST_RIDGE,
    SMALLEST_RIDGE,
    MapLikelihood,
    solve_map,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import AnyArray, BoolArray, FloatArray
    from dubito.calibration._kernels.matrix_scaling import Spectrum

#: Limit on the rounds of MacKay's update, and the change of the log ridge at which they stop.
_ROUNDS = 50
_CLOSE = 0.05


def maximise_marginal_likelihood(
    likelihood: MapLikelihood,
    ridge: FloatArray | None = None,
    x: FloatArray | None = None,
    *,
    rounds: int = _ROUNDS,
    tolerance: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """Return the ridge that maximises the marginal likelihood, and the parameters there.

    Each round fits the map at a given ridge, to a gradient of `tolerance` per row.
    """
    n_groups = int(likelihood.groups.max()) + 1
    ridge = np.full(n_groups, 10.0) if ridge is None else ridge
    x = np.zeros(len(likelihood.groups)) if x is None else x
    last_change = step = np.zeros(n_groups)  # of the log ridge
    for _ in range(rounds):
        x = solve_map(likelihood, ridge, x, tolerance=tolerance).x
        last_step, step = step, _mackay_log_step(likelihood, ridge, x)
        if np.abs(step).max() < _CLOSE:
            return np.clip(ridge * np.exp(step), SMALLEST_RIDGE, LARGEST_RIDGE), x
        change = _secant_log_step(last_change, last_step, step)
        new = np.clip(ridge * np.exp(change), SMALLEST_RIDGE, LARGEST_RIDGE)
        last_change, ridge = np.log(new / ridge), new
    return ridge, x


def _mackay_log_step(likelihood: MapLikelihood, ridge: FloatArray, x: FloatArray) -> FloatArray:
    """Return the change of each log ridge by MacKay's update, 0 at the ends of the range."""
    n_groups = len(ridge)
    sizes = np.bincount(likelihood.groups, minlength=n_groups)
    variances = likelihood.hessian_solver(x, ridge[likelihood.groups]).inverse_diagonal()
    determined = sizes - ridge * np.bincount(likelihood.groups, variances, n_groups)
    squares = np.bincount(likelihood.groups, x * x, n_groups)
    return np.log(_mackay_ridge(determined, squares) / ridge)


def _mackay_ridge(determined: FloatArray, squares: AnyArray) -> FloatArray:
    """Return γ / xᵀPx of each group, within the range of the ridge."""
    new = np.maximum(determined, 0.0) / np.maximum(squares, 1e-300)
    return np.clip(new, SMALLEST_RIDGE, LARGEST_RIDGE)


def _secant_log_step(
    last_change: FloatArray, last_step: FloatArray, step: FloatArray
) -> FloatArray:
    """Return the change of each log ridge at which a secant predicts that MacKay's step is 0.

    Where the marginal likelihood grows slowly MacKay's update takes dozens of fits. A secant step
    changes a ridge by a factor of at most eight, or as far as MacKay's update where that is
    more.
    """
    decrease = last_step - step
    secant = np.full_like(step, np.inf)
    np.divide(last_change * step, decrease, out=secant, where=decrease * last_change > 0)
    largest = np.maximum(np.abs(step), np.log(8.0))
    accelerated = np.sign(step) * np.minimum(np.abs(secant), largest)
    return np.where(last_change == 0.0, step, accelerated)


def quadratic_ridge(hessian: Spectrum, gradient: FloatArray) -> float:
    r"""Return the one ridge that maximises the marginal likelihood of a quadratic model.

    With gradient g and curvature h along each eigenvector, twice the log marginal likelihood is
    :math:`\sum g^2/(h+\lambda)+\log\lambda-\log(h+\lambda)`.
    """
    h, squares = hessian.values, hessian.rotate(gradient) ** 2
    grid = np.geomspace(SMALLEST_RIDGE, LARGEST_RIDGE, 37)
    values = [float((squares / (h + v) - np.log1p(h / v)).sum()) for v in grid]
    return float(grid[np.argmax(values)])


def ridge_by_marginal_likelihood(
    fit_at: Callable[[FloatArray], tuple[FloatArray, FloatArray, BoolArray]], forms: FloatArray
) -> FloatArray:
    """Return the ridge of each group that maximises the marginal likelihood.

    Parameters
    ----------
    fit_at : callable
        Takes the penalty (p, p); returns coefficients, the Hessian with the penalty, and a mask
        of the coefficients that are free: not at a bound.
    forms : ndarray of shape (groups, p, p)
        Quadratic form of each group.
    """
    ridge = np.ones(len(forms))
    for _ in range(_ROUNDS):
        coef, hessian, free = fit_at(np.tensordot(ridge, forms, axes=1))
        inverse, block = np.zeros_like(hessian), np.ix_(free, free)
        inverse[block] = np.linalg.pinv(hessian[block], hermitian=True)
        ranks = np.array([np.linalg.matrix_rank(form[block], hermitian=True) for form in forms])
        traces = np.array([float((form * inverse).sum()) for form in forms])
        squares = np.array([float(coef @ form @ coef) for form in forms])
        # A group without free coefficients keeps its ridge.
        new = np.where(ranks > 0, _mackay_ridge(ranks - ridge * traces, squares), ridge)
        converged = np.abs(np.log(new / ridge)).max() < _CLOSE
        ridge = new
        if converged:
            break
    return ridge
