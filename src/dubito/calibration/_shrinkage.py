r"""Softmax maps shrunken towards temperature scaling, with the strength of it read off the data.

A map is :math:`z=\hat\theta u+Fx`, linear in its parameters x, all of them in log-odds; x = 0 is
the fitted temperature map. The fit minimises

.. math:: \sum_i w_i\,\ell_i(x)+\tfrac12\sum_g\lambda_g\lVert x_g\rVert^2

over groups g of parameters (slopes, biases, entries off the diagonal). The strengths maximise the
evidence: with :math:`\gamma_g=|g|-\lambda_g\,\mathrm{tr}_g\,H^{-1}` the number of parameters that
the data determine, :math:`\lambda_g=\gamma_g/\lVert x_g\rVert^2` (MacKay, 1992).
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import linalg

from dubito._kernels.quasi_newton import Minimum, minimise
from dubito._kernels.softmax import Slope, fit_slope, spread_rows
from dubito._sklearn import Interval, StrOptions
from dubito.calibration._base import BaseCalibrator
from dubito.calibration._certificates import check_certificate
from dubito.calibration._log_odds_bounds import LogOddsSpread, holding
from dubito.calibration._misfit import events_of, frequent_classes, misfit_of
from dubito.calibration._two_classes import TwoClassMass

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray

#: Pseudo-observations of unknown label, in rows, unless the user says otherwise.
AUTO_PSEUDO = 0.25

# Strengths beyond: a standard deviation of 30, or of a thousandth, in log-odds.
WEAKEST, STRONGEST = 1e-3, 1e6

# Groups of parameters: a third one are entries off the diagonal.
_BIAS = 1

# Rows on which the form of a map is checked: a fit should not wait for it. And how many it takes.
_FORM_ROWS = 4000
_ROWS_PER_PARAMETER = 5

# Squared standard errors from its minimum within which one Newton step ends a fit.
_NEAR = 1e-3


@dataclass(frozen=True)
class Metric:
    """An approximate Hessian: how to solve with it, and the diagonal of its inverse."""

    solve: Callable[[FloatArray], FloatArray]
    inverse_diagonal: Callable[[], FloatArray]


class ShrunkenMap(Protocol):
    """The likelihood of a map, as the solver sees it."""

    groups: IntArray
    total: float
    refresh: int
    tolerance: float  # of the gradient per row: Newton's last step is for free, others are a pass
    newton: bool  # whether the metric is the Hessian, or that of a sample of rows

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""

    def metric(self, x: FloatArray, penalty: FloatArray) -> Metric:
        """Return the Hessian of likelihood and penalty, or something near it."""

    def choose(self) -> tuple[FloatArray, FloatArray]:
        """Return a strength for each group, and parameters to start from."""

    def start(self, strengths: FloatArray) -> FloatArray:
        """Return parameters to start from at given strengths."""

    def level_strengths(self) -> FloatArray:
        """Return the strength of each group that bounds at a level do not exceed."""

    def spread(self, x: FloatArray, strengths: FloatArray) -> LogOddsSpread:
        """Return how sure the map with parameters x is at given strengths."""


def fit_map(model: ShrunkenMap, ridge: float | str | FloatArray) -> tuple[Minimum, FloatArray]:
    """Fit a map; return its parameters and the strength of each group.

    `ridge` is "auto", one strength, or one for each group.
    """
    if isinstance(ridge, str):
        strengths, start = model.choose()
    else:
        strengths = np.broadcast_to(ridge, int(model.groups.max()) + 1).astype(np.float64)
        start = model.start(strengths)
    return solve_map(model, strengths, start), strengths


def solve_map(
    model: ShrunkenMap,
    strengths: FloatArray,
    start: FloatArray,
    *,
    tolerance: float | None = None,
) -> Minimum:
    """Minimise likelihood and penalty, to a gradient of `tolerance` per row."""
    tolerance = model.tolerance if tolerance is None else tolerance
    penalty = strengths[model.groups]

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = model.objective(x)
        return value + 0.5 * float(penalty @ (x * x)), gradient + penalty * x

    return minimise(
        objective,
        lambda x: model.metric(x, penalty).solve,
        start,
        tolerance=tolerance * model.total,
        refresh=model.refresh,
    )


def maximise_evidence(
    model: ShrunkenMap,
    strengths: FloatArray | None = None,
    x: FloatArray | None = None,
    *,
    rounds: int = 50,
    tolerance: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """Return the strengths that maximise the evidence, and the parameters there.

    Each round fits the map at given strengths, to a gradient of `tolerance` per row.
    """
    n_groups = int(model.groups.max()) + 1
    strengths = np.full(n_groups, 10.0) if strengths is None else strengths
    x = np.zeros(len(model.groups)) if x is None else x
    moved = pull = np.zeros(n_groups)
    for _ in range(rounds):
        x = solve_map(model, strengths, x, tolerance=tolerance).x
        before, pull = pull, _pull(model, strengths, x)
        if np.abs(pull).max() < 0.05:
            return np.clip(strengths * np.exp(pull), WEAKEST, STRONGEST), x
        new = np.clip(strengths * np.exp(_leap(moved, before, pull)), WEAKEST, STRONGEST)
        moved, strengths = np.log(new / strengths), new
    return strengths, x


def _pull(model: ShrunkenMap, strengths: FloatArray, x: FloatArray) -> FloatArray:
    """Return the logarithm of MacKay's new strengths over the present ones, 0 at a bound."""
    n_groups = len(strengths)
    sizes = np.bincount(model.groups, minlength=n_groups)
    spread = model.metric(x, strengths[model.groups]).inverse_diagonal()
    determined = sizes - strengths * np.bincount(model.groups, spread, n_groups)
    squares = np.bincount(model.groups, x * x, n_groups)
    new = np.maximum(determined, 0.0) / np.maximum(squares, 1e-300)
    return np.log(np.clip(new, WEAKEST, STRONGEST) / strengths)


def _leap(moved: FloatArray, before: FloatArray, pull: FloatArray) -> FloatArray:
    """Return the change of each log strength that a secant expects to end the pull.

    MacKay's own change is the pull. Where the evidence grows slowly, often for ever, that takes
    dozens of fits; a secant goes there at once, here by a factor of at most eight in a round
    unless MacKay's goes further.
    """
    fall = before - pull
    secant = np.full_like(pull, np.inf)
    np.divide(moved * pull, fall, out=secant, where=fall * moved > 0)
    farthest = np.maximum(np.abs(pull), np.log(8.0))
    leap = np.sign(pull) * np.minimum(np.abs(secant), farthest)
    return np.where(moved == 0.0, pull, leap)


def belief_spread(model: ShrunkenMap, x: FloatArray, strengths: FloatArray) -> LogOddsSpread:
    """Return how sure the fitted map is, slopes and biases having a deviation of a log-odd."""
    weaker = strengths.copy()
    weaker[: _BIAS + 1] = np.clip(strengths[: _BIAS + 1], WEAKEST, 1.0)
    return model.spread(x, weaker)


def level_spread(model: ShrunkenMap, x: FloatArray, strengths: FloatArray) -> LogOddsSpread:
    """Return how sure a map near the fitted one is, with strengths that keep the promise."""
    weaker = np.clip(strengths, WEAKEST, model.level_strengths())
    if model.newton:
        # The gradient at x with weaker strengths is what the penalties differ by.
        difference = (strengths - weaker)[model.groups] * x
        step = model.metric(x, weaker[model.groups]).solve(difference)
        near = difference @ step <= _NEAR
        x = x + step if near else solve_map(model, weaker, x).x
    return model.spread(x, weaker)


def shared_excess(
    model: ShrunkenMap, x: FloatArray, strengths: FloatArray, direction: FloatArray
) -> Callable[[float], float]:
    """Return twice the rise of the objective from x along a direction, less its linear part.

    Slopes are penalised for departures from their mean alone, as the covariance has it.
    """
    penalty = strengths[model.groups] * (model.groups != 0)
    slopes = direction[model.groups == 0]
    apart = strengths[0] * float(np.sum((slopes - slopes.mean()) ** 2))
    value, gradient = model.objective(x)
    first = float(gradient @ direction)
    second = apart + float(penalty @ (direction * direction))

    def excess(a: float) -> float:
        rise = model.objective(x + a * direction)[0] - value - a * first
        return 2 * rise + second * a * a

    return excess


def dense_metric(hessian: FloatArray, penalty: FloatArray) -> Metric:
    """Return the metric of a full Hessian."""
    diagonal = hessian.diagonal() + penalty
    factor = _cholesky(hessian, diagonal, 1e-10 * max(diagonal.max(), 1e-290))

    def inverse_diagonal() -> FloatArray:
        inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
        return np.einsum("ij,ij->j", inverse, inverse)

    def solve(gradient: FloatArray) -> FloatArray:
        return linalg.cho_solve((factor, True), gradient, check_finite=False)

    return Metric(solve, inverse_diagonal)


def dense_inverse(hessian: FloatArray, penalty: FloatArray) -> FloatArray:
    """Return the inverse of a full Hessian with a penalty, lifted where it is singular."""
    diagonal = hessian.diagonal() + penalty
    factor = _cholesky(hessian, diagonal, 1e-10 * max(diagonal.max(), 1e-290))
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


def _cholesky(hessian: FloatArray, diagonal: FloatArray, lift: float) -> FloatArray:
    """Factor a Hessian with a given diagonal, lifted as little as makes it positive definite.

    A constant added to all biases changes no probability, and where all probabilities are 0 or 1
    nothing does: without a penalty the Hessian is singular.
    """
    while True:
        matrix = hessian.copy()
        np.fill_diagonal(matrix, diagonal + lift)
        try:
            return linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            lift *= 100


def in_safe_units(u: FloatArray) -> tuple[FloatArray, float]:
    """Return u divided by a unit so that its cube is finite, and the unit: 1 for common scores."""
    largest = max(float(u.max()), -float(u.min()))
    if 1e-60 < largest < 1e60 or largest == 0.0:
        return u, 1.0
    unit = 2.0 ** np.clip(np.floor(np.log2(largest)), -1020, 1020)
    return u / unit, unit


class ShrunkenCalibrator(TwoClassMass, BaseCalibrator):
    """A calibrator that fits a map shrunken towards temperature scaling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    _assumes_form: ClassVar[bool] = True

    def __init__(
        self,
        *,
        input: str = "margin",
        ridge: float | str = "auto",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.ridge = ridge

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        model, x = self._estimate(table, y, weight, self.ridge)
        self._belief = belief_spread(model, x, self.ridge_)
        self._level = level_spread(model, x, self.ridge_)

    def left_out_proba(
        self, table: FloatArray, y: IntArray, weight: FloatArray, left: FloatArray
    ) -> FloatArray:
        """Return probabilities of rows left out, by a fit to others with the same strengths."""
        other = copy(self)
        other._estimate(table, y, weight, self.ridge_)
        return other._proba(left)

    def _estimate(
        self,
        table: FloatArray,
        y: IntArray,
        weight: FloatArray,
        ridge: float | str | FloatArray,
    ) -> tuple[ShrunkenMap, FloatArray]:
        """Fit the parameters; return the likelihood and where its penalised maximum is."""
        u, unit = in_safe_units(self._log_scores(table, normalised=True))
        pseudo = AUTO_PSEUDO
        if not isinstance(ridge, str):
            pseudo = min(float(np.max(ridge)), AUTO_PSEUDO)
        slope = fit_slope(u, y, weight, pseudo)
        share = pseudo / (weight.sum() + pseudo)
        scale = float(np.sqrt(np.average(_mean_square(u), weights=weight))) or 1.0
        model = self._model(u, Labels(y, weight, share), slope, scale)
        fit, strengths = fit_map(model, ridge)
        self.base_slope_ = float(slope.theta / unit)
        self.ridge_ = strengths
        self.gradient_norm_ = fit.gradient_norm / model.total
        check_certificate(self, max(self.gradient_norm_, slope.gradient))
        self.n_iter_ = fit.n_iter
        self._keep(fit.x, slope.theta, scale, unit)
        self._unit, self._n_parameters = unit, len(model.groups)
        return model, fit.x

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the fraction of rows, of a sample where they are many, against the form.

        Of the map for bounds: that of the evidence is off on purpose where rows are few. With few
        rows for each parameter it follows each of them, and nothing can be told.
        """
        if weight.sum() < _ROWS_PER_PARAMETER * self._n_parameters:
            return 0.0
        rows = spread_rows(len(table), _FORM_ROWS)
        u, y, weight = self._scores_in_unit(table[rows]), y[rows], weight[rows]
        classes = frequent_classes(y, weight, len(self.classes_))
        return misfit_of(*events_of(self._level.proba(u), y, classes), weight)

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return holding(self._proba(table), self._belief.belief(self._scores_in_unit(table)))

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        bounds = self._level.at_level(self._scores_in_unit(table), level)
        return holding(self._proba(table), bounds)

    def _scores_in_unit(self, table: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._log_scores(table, normalised=True)) / self._unit

    @abstractmethod
    def _model(self, u: FloatArray, labels: Labels, slope: Slope, scale: float) -> ShrunkenMap:
        """Return the likelihood of the map around the temperature map."""

    @abstractmethod
    def _keep(self, x: FloatArray, theta: float, scale: float, unit: float) -> None:
        """Keep the fitted parameters in the units of the scores."""


@dataclass(frozen=True)
class Labels:
    """Labels, weights and the share of each target that is spread over all classes."""

    y: IntArray
    weight: FloatArray
    share: float

    def take(self, rows: IntArray) -> Labels:
        """Return those of some rows."""
        return Labels(self.y[rows], self.weight[rows], self.share)


def _mean_square(u: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", u, u) / u.shape[1]
