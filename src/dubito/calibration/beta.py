"""Beta calibration: a sigmoid with different slopes for small and large probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from dubito._compat import Interval, StrOptions
from dubito._numerics.logistic_fit import LogisticFit, fit_logistic, leave_one_out_loss
from dubito._numerics.targets import event_targets
from dubito.belief.bounds import including
from dubito.calibration._kernels.delta_method import LinearMapWithErrors, linear_map_with_errors
from dubito.calibration._kernels.misfit import misfit_fraction
from dubito.calibration.base import UncachedStateMixin
from dubito.calibration.errors import warn_unless_converged
from dubito.calibration.evidential_logistic import EventRows, rows_to_store
from dubito.calibration.one_vs_rest import OneVsRestCalibrator
from dubito.calibration.platt import (
    SigmoidMap,
    fit_sigmoid,
    fit_with_ridge,
    misfit_unless_stored,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Larger log-odds are clipped: they carry no more information and would dominate the fit.
_LARGEST_LOG_ODDS = 1e5

#: Ridge of a, b and c for bounds: prior standard deviation 1 for a and b in their unit.
_BOUNDS_PENALTY = np.array([1.0, 1.0, 0.0])

#: Logits whose standard deviation is smaller count as constant: the difference is rounding.
_SMALLEST_DEVIATION = 1e-12


class BetaCalibrator(OneVsRestCalibrator):
    r"""Beta calibration: :math:`\operatorname{logit}p=a\ln q-b\ln(1-q)+c` with :math:`a,b\ge0`.

    q is the probability to be corrected, :math:`\sigma(s)` for logits. Small q are corrected with
    a, large q with b; a = b is sigmoid calibration of the log-odds, a = b = 1 and c = 0 change
    nothing.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Strength :math:`\lambda` of the penalty that shrinks to sigmoid calibration,
        :math:`10\lambda[(a-a_0)^2/u^2+(b-a_0)^2/u^2+(d-d_0)^2]`. Slope :math:`a_0` and offset
        :math:`d_0`, the log-odds where :math:`\ln q` and :math:`\ln(1-q)` have their means, are
        those of `PlattCalibrator`, fitted first with the same ``ridge``, or of a flat map if that
        decreases; the unit u is :math:`a_0`, or one over the scores' standard deviation where that
        is more. "auto" chooses between 0.05 and 50 by analytic leave-one-out; the influence of the
        ridge vanishes as rows are added. 0 has no ridge, but Platt's smoothed targets, which keep
        separable scores finite.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Margins have no probability q: they are first mapped to log-odds by
        the fitted sigmoid, so their unit and origin do not matter, and a, b, c refine that map. A
        decreasing sigmoid is replaced by a flat map: a, b ≥ 0 keep the order of the scores.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels.
    coef_ : ndarray of shape (1, 3) or (K, 3)
        a, b and c of each map: one for two classes, one against the rest for each of more.
    ridge_ : ndarray of shape (1,) or (K,)
        Strength of the ridge of each map.
    n_iter_, gradient_norm_ : ndarray of shape (1,) or (K,)
        Newton steps, and the largest component of the projected gradient for
        each unit of weight.
    maps_ : list of BetaMap
        The fitted maps.

    Notes
    -----
    The map never decreases. :math:`\ln q` and :math:`\ln(1-q)` are computed from the log-odds,
    so they stay finite at any score. The paper drops a coefficient that turns out negative and
    refits; here the constrained optimum is found, which may differ. More than two classes have one
    map each against the rest, normalised, and mixed with the base rate at the weight 1/(n+1).

    ``predict_bounds`` has the log-odds with standard errors from the Hessian, a and b with a prior
    deviation of their own size around each other; in the direction in which both grow,
    standard errors down and up come from the likelihood itself. That a and b are not negative is
    not used. Belief and plausibility are centred at the fitted map, ``level=0.9`` at that of the
    weakest ridge; both are widened to contain the probability.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach, "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers", 2017, eq. 4.

    Examples
    --------
    >>> from dubito.calibration import BetaCalibrator
    >>> proba = [0.05, 0.1, 0.2, 0.4, 0.6, 0.5, 0.7, 0.9, 0.95]
    >>> y = [0, 0, 0, 0, 0, 1, 1, 1, 1]
    >>> calibrator = BetaCalibrator(input="proba").fit(proba, y)
    >>> calibrator.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2)
    array([0.09, 0.49, 0.9 ])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        ridge: float | str = "auto",
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.ridge = ridge

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        super()._fit(table, y, weight)
        self.coef_ = np.array([m.coef for m in self.maps_])
        self.ridge_ = np.array([m.ridge for m in self.maps_])
        self.n_iter_ = np.array([m.fit.n_iter for m in self.maps_])
        self.gradient_norm_ = np.array([m.fit.gradient_norm for m in self.maps_])
        warn_unless_converged(self, self.gradient_norm_)

    def _current_misfit(self) -> float:
        return float(np.mean([m.misfit for m in self.maps_]))

    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> BetaMap:
        margins = self.input == "margin"
        if not margins:
            score = np.clip(score, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
        sigmoid = fit_sigmoid(score, event, weight, ridge=self.ridge, identity=not margins)
        start = _start_for_margins(sigmoid) if margins else _start_for_logits(sigmoid)
        return _fit_beta(score, event, weight, start, self.ridge)


class _StartingPoint(NamedTuple):
    """The map of scores to log-odds, the unit of a and b, and the ridge's centre in these units."""

    to_log_odds: _ToLogOdds
    unit: float
    prior: FloatArray


def _start_for_margins(sigmoid: SigmoidMap) -> _StartingPoint:
    """Return the start for margins: the sigmoid maps them to log-odds, and a = b = 1, c = 0."""
    prior = [1.0, 1.0, 0.0] if sigmoid.slope > 0 else [0.0, 0.0, sigmoid.fit.coef[0]]
    return _StartingPoint(_ToLogOdds(sigmoid), 1.0, np.array(prior))


def _start_for_logits(sigmoid: SigmoidMap) -> _StartingPoint:
    """Return the start for logits, which are used unchanged; the sigmoid gives a and b."""
    varies = sigmoid.scale > _SMALLEST_DEVIATION
    unit = max(sigmoid.slope, 1 / sigmoid.scale) if varies else 1.0
    if varies and sigmoid.slope > 0:
        prior = [sigmoid.slope / unit, sigmoid.slope / unit, sigmoid.intercept]
    else:
        prior = [0.0, 0.0, sigmoid.fit.coef[0]]
    return _StartingPoint(_ToLogOdds(None), unit, np.array(prior))


@dataclass(frozen=True)
class _ToLogOdds:
    """Maps scores to log-odds: unchanged, or by a sigmoid if that is increasing."""

    sigmoid: SigmoidMap | None

    def __call__(self, score: FloatArray) -> FloatArray:
        if self.sigmoid is None:
            return np.clip(score, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
        if self.sigmoid.slope > 0:
            return self.sigmoid.log_odds(score)
        scale = self.sigmoid.scale
        return (score - self.sigmoid.centre) / (scale if scale > 0 else 1.0)


@dataclass(frozen=True, kw_only=True)
class BetaMap(UncachedStateMixin):
    """A fitted beta map; its coefficients are those of centred and scaled columns."""

    to_log_odds: _ToLogOdds
    centre: FloatArray
    unit: float
    ridge: float
    fit: LogisticFit
    rows: EventRows  # log-odds in place of scores
    fitted_misfit: float | None = None

    @cached_property
    def belief_map(self) -> LinearMapWithErrors:
        """The fitted map, with standard errors of its log-odds."""
        return self._with_errors(self.fit.coef)

    @cached_property
    def level_map(self) -> LinearMapWithErrors:
        """The map refitted with the weaker penalty of bounds, with standard errors of its log-odds.

        The chosen ridge would move the centre of the bounds.
        """
        design, event, weight = self._design_rows()
        target, prior = event_targets(event, weight, "light"), self.fit.coef
        fit = fit_logistic(design, target, weight, _BOUNDS_PENALTY, prior, nonnegative=(0, 1))
        return self._with_errors(fit.coef)

    @cached_property
    def misfit(self) -> float:
        """Fraction of rows that contradict the form; `fitted_misfit` where rows were condensed."""
        if self.fitted_misfit is not None:
            return self.fitted_misfit
        log_odds, event, weight = self.rows
        return misfit_fraction(self._proba_at(log_odds), event, weight)

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        bounds = self.belief_map.bounds(self._design(self.to_log_odds(score)))
        return including(self.proba(score), bounds)

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""
        bounds = self.level_map.level_bounds(self._design(self.to_log_odds(score)), level)
        return including(self.proba(score), bounds)

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each score, (n, len(theta))."""
        return self.belief_map.contour(self._design(self.to_log_odds(score)), theta)

    def _with_errors(self, coef: FloatArray) -> LinearMapWithErrors:
        design, _, weight = self._design_rows()
        return linear_map_with_errors(design, weight, coef, _BOUNDS_PENALTY)

    def _design_rows(self) -> EventRows:
        log_odds, event, weight = self.rows
        return EventRows(self._design(log_odds), event, weight)

    def _design(self, log_odds: FloatArray) -> FloatArray:
        return _beta_design(log_odds, self.centre, self.unit)

    @property
    def coef(self) -> FloatArray:
        """Return a, b and c."""
        a, b, offset = self.fit.coef * [self.unit, self.unit, 1.0]
        return np.array([a, b, offset - self.centre @ [a, b]])

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the probability of the event for each score."""
        return self._proba_at(self.to_log_odds(score))

    def _proba_at(self, log_odds: FloatArray) -> FloatArray:
        return expit(self._design(log_odds) @ self.fit.coef)


def _logarithms(log_odds: FloatArray) -> FloatArray:
    """Return the columns ln q and -ln(1-q), where the log-odds are those of q."""
    return np.column_stack([log_expit(log_odds), -log_expit(-log_odds)])


def _beta_design(log_odds: FloatArray, centre: FloatArray, unit: float) -> FloatArray:
    """Return the columns of a, b and c, (n, 3): logarithms centred and in the unit, and ones."""
    return np.column_stack([(_logarithms(log_odds) - centre) * unit, np.ones(len(log_odds))])


def _penalty(strength: float) -> FloatArray:
    # 20 times that of the sigmoid, which was fitted to the same rows: less would overfit few rows.
    return np.full(3, 20 * strength)


def _fit_beta(
    score: FloatArray,
    event: BoolArray,
    weight: FloatArray,
    start: _StartingPoint,
    ridge: str | float,
) -> BetaMap:
    """Return the fitted map: a and b in their unit, and c."""
    log_odds = start.to_log_odds(score)
    # Centred: columns of small scores are nearly constant, so nearly collinear with that of c.
    centre = np.average(_logarithms(log_odds), axis=0, weights=weight)
    design = _beta_design(log_odds, centre, start.unit)
    prior = start.prior.copy()
    prior[2] += start.unit * float(prior[:2] @ centre)  # c of centred columns: log-odds there

    def fit_with(strength: float, first: FloatArray | None = None) -> LogisticFit:
        return fit_logistic(
            design,
            event.astype(float) if strength > 0 else event_targets(event, weight, "smoothed"),
            weight,
            _penalty(strength),
            prior,
            start=first,
            nonnegative=(0, 1),
        )

    def loss_of(strength: float, fit: LogisticFit) -> float:
        return leave_one_out_loss(design, event, weight, _penalty(strength), fit)

    strength, fit = fit_with_ridge(ridge, fit_with, loss_of)
    # Rows are condensed as for a line whose slope is the larger of a and b, at least 1.
    steepest = max(float(np.abs(fit.coef[:2]).max()) * start.unit, 1.0)
    return BetaMap(
        to_log_odds=start.to_log_odds,
        centre=centre,
        unit=start.unit,
        ridge=strength,
        fit=fit,
        rows=rows_to_store(log_odds, event, weight, (float(fit.coef[2]), steepest)),
        fitted_misfit=misfit_unless_stored(design @ fit.coef, event, weight),
    )
