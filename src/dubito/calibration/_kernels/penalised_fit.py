"""Fits of softmax maps shrunk to the temperature map by a ridge, and refits for their bounds.

A map has parameters x in log-odds, in groups: slopes, biases, entries off the diagonal. x = 0 is
the temperature map. The *ridge* has one number for each group, the *penalty* that of its group for
each parameter: the fit minimises the negative log-likelihood and half of the sum of penalty times
squared parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from dubito.calibration._kernels.quasi_newton import Minimum, minimise

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.calibration._kernels.delta_method import SoftmaxMapWithErrors
    from dubito.calibration._kernels.hessian_solvers import HessianSolver

#: Range of the ridge: prior standard deviations of 30 and of 0.001 in log-odds.
SMALLEST_RIDGE, LARGEST_RIDGE = 1e-3, 1e6

#: Index of each group of parameters, also in the array of their ridges.
SLOPES, BIASES, OFF_DIAGONAL = 0, 1, 2

#: Largest squared distance from the minimum, in standard errors, at which one Newton step replaces
#: a fit.
_NEAR = 1e-3


class MapLikelihood(Protocol):
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

    def choose_ridge(self) -> tuple[FloatArray, FloatArray]:
        """Return the ridge by the marginal likelihood, and starting parameters."""

    def start_at(self, ridge: FloatArray) -> FloatArray:
        """Return the parameters at which the fit with a given ridge starts."""

    def largest_level_ridge(self) -> FloatArray:
        """Return what each group's ridge is lowered to, if larger, for bounds at a level."""

    def map_with_errors(self, x: FloatArray, ridge: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with parameters x, and its standard errors with a given ridge."""


def fit_map(
    likelihood: MapLikelihood, wanted: float | str | FloatArray
) -> tuple[Minimum, FloatArray]:
    """Return the fitted parameters of a map, and the ridge of each group.

    `wanted` is "auto", one ridge, or one for each group.
    """
    if isinstance(wanted, str):
        ridge, start = likelihood.choose_ridge()
    else:
        ridge = np.broadcast_to(wanted, int(likelihood.groups.max()) + 1).astype(np.float64)
        start = likelihood.start_at(ridge)
    return solve_map(likelihood, ridge, start), ridge


def solve_map(
    likelihood: MapLikelihood,
    ridge: FloatArray,
    start: FloatArray,
    *,
    tolerance: float | None = None,
) -> Minimum:
    """Return the minimum of likelihood and penalty, to a gradient of `tolerance` per row."""
    tolerance = likelihood.tolerance if tolerance is None else tolerance
    penalty = ridge[likelihood.groups]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = likelihood.objective(x)
        return value + 0.5 * float(penalty @ (x * x)), gradient + penalty * x

    return minimise(
        objective,
        lambda x: likelihood.hessian_solver(x, penalty).solve,
        start,
        tolerance=tolerance * likelihood.total,
        refresh=likelihood.refresh,
    )


def largest_slope_ridge(logit_scale: float) -> float:
    """Return what the ridge of slopes is lowered to, if larger, for bounds at a level.

    The prior standard deviation of a slope, in log-odds, is `logit_scale`, the base slope times a
    typical score, but at least 1 and at most 2.
    """
    return float(1 / np.clip(logit_scale, 1.0, 2.0) ** 2)


def belief_map(likelihood: MapLikelihood, x: FloatArray, ridge: FloatArray) -> SoftmaxMapWithErrors:
    """Return the fitted map with standard errors, for belief and plausibility.

    The errors are those of a ridge of slopes and biases of at most 1 (`delta_method` says why).
    """
    smaller = ridge.copy()
    smaller[: BIASES + 1] = np.clip(ridge[: BIASES + 1], SMALLEST_RIDGE, 1.0)
    return likelihood.map_with_errors(x, smaller)


def level_map(likelihood: MapLikelihood, x: FloatArray, ridge: FloatArray) -> SoftmaxMapWithErrors:
    """Return the map refitted with a smaller ridge, with standard errors, for bounds at a level.

    Without a full Hessian (many classes) the map is not refitted.
    """
    smaller = np.clip(ridge, SMALLEST_RIDGE, likelihood.largest_level_ridge())
    if likelihood.has_full_hessian:
        # x is the minimum for `ridge`: with the smaller one the gradient there is minus
        # `difference`, the difference of the two penalties' gradients.
        difference = (ridge - smaller)[likelihood.groups] * x
        step = likelihood.hessian_solver(x, smaller[likelihood.groups]).solve(difference)
        near = difference @ step <= _NEAR
        x = x + step if near else solve_map(likelihood, smaller, x).x
    return likelihood.map_with_errors(x, smaller)
