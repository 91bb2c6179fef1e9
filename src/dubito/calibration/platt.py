"""Platt scaling: a sigmoid of the score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from dubito._compat import Interval, StrOptions
from dubito._numerics.logistic_fit import (
    LogisticFit,
    fit_logistic,
    leave_one_out_loss,
    ridge_by_leave_one_out,
    standardisation,
    standardised,
)
from dubito._numerics.logistic_level import LogisticLevelLikelihoods, logistic_level_likelihoods
from dubito._numerics.logistic_profile import LogisticLikelihood, logistic_likelihood
from dubito._numerics.targets import event_targets
from dubito.belief.bounds import including
from dubito.calibration._kernels.misfit import misfit_fraction
from dubito.calibration.affine import AffineMixin
from dubito.calibration.base import UncachedStateMixin
from dubito.calibration.errors import warn_unless_converged
from dubito.calibration.evidential_logistic import (
    STORED_ROWS,
    EventRows,
    StandardisedSigmoid,
    rows_to_store,
)
from dubito.calibration.one_vs_rest import OneVsRestCalibrator

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


class PlattCalibrator(AffineMixin, OneVsRestCalibrator):
    r"""Sigmoid calibration: :math:`p(s)=\sigma(as+b)`.

    Parameters
    ----------
    ridge : float or "auto", default=0
        Strength of the penalty, which limits the slope where rows are few.

        0 is Platt's own method: no ridge, but targets :math:`(n_++1)/(n_++2)` and
        :math:`1/(n_-+2)` in place of 1 and 0. With few rows these flatten the map too
        much: on breast cancer with 20 rows the log loss is 0.18 with them and 0.12 with
        "auto".

        A number :math:`\lambda>0` adds :math:`\frac\lambda2[(\alpha-\alpha_0)^2+
        (\beta-\beta_0)^2]` to the cross-entropy, where :math:`\alpha,\beta` are slope and
        intercept for scores standardised to mean 0 and deviation 1. It shrinks to the
        identity map for logits and probabilities (in units of the logits' size where that exceeds
        1), and for margins, which have no natural unit, to the constant map at the frequency of
        the event. "auto" chooses :math:`\lambda` between 0.05 and 50 by analytic leave-one-out. Its
        influence vanishes as rows are added.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Probabilities are turned into log-odds: a sigmoid of probabilities
        cannot be the identity.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels.
    slope_, intercept_ : ndarray of shape (1,) or (K,)
        a and b of each map: one for two classes, one against the rest for each of more.
    ridge_ : ndarray of shape (1,) or (K,)
        Strength of the ridge of each map.
    n_iter_, gradient_norm_ : ndarray of shape (1,) or (K,)
        Newton steps, and the largest component of the gradient at the solution,
        in standardised units, for each unit of weight.
    maps_ : list of SigmoidMap
        The fitted maps.

    Notes
    -----
    Scaling and shifting margins changes nothing (up to rounding). Constant scores have slope 0. A
    calibration set of one class gives a constant map, closer to 1 with every row. More
    than two classes have one map each against the rest, normalised, and mixed with the
    base rate at the weight 1/(n+1) of one row, so that none is 0.

    ``predict_bounds`` uses the likelihood as `EvidentialLogisticCalibrator` does, computed at the
    first call: of Platt's targets without a ridge, of light ones with it; ``level=0.9`` as there.
    Bounds are widened to contain the probability. Up to 4,096 rows are stored for it; more are
    condensed to a few points with the same likelihood.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", 1999. His sign is the opposite: :math:`1/(1+e^{As+B})`.

    Examples
    --------
    >>> from dubito.calibration import PlattCalibrator
    >>> scores = [-2.0, -1.2, -0.4, 0.3, -0.1, 0.5, 1.1, 2.5]
    >>> y = ["no", "no", "no", "no", "yes", "yes", "yes", "yes"]
    >>> calibrator = PlattCalibrator().fit(scores, y)
    >>> calibrator.predict_proba([-1.0, 0.1, 1.0]).round(2)
    array([[0.73, 0.27],
           [0.49, 0.51],
           [0.3 , 0.7 ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        ridge: float | str = 0.0,
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.ridge = ridge

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        super()._fit(table, y, weight)
        self.slope_ = np.array([m.slope for m in self.maps_])
        self.intercept_ = np.array([m.intercept for m in self.maps_])
        self.ridge_ = np.array([m.ridge for m in self.maps_])
        self.n_iter_ = np.array([m.fit.n_iter for m in self.maps_])
        self.gradient_norm_ = np.array([m.fit.gradient_norm for m in self.maps_])
        warn_unless_converged(self, self.gradient_norm_)

    def node_map_spec(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and options with which all tree nodes are fitted at once, or None."""
        is_plain = type(self) is PlattCalibrator and self.ridge == 0
        return ("sigmoid", {"targets": "smoothed"}) if is_plain else None

    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> SigmoidMap:
        return fit_sigmoid(score, event, weight, ridge=self.ridge, identity=self.input != "margin")

    def _current_misfit(self) -> float:
        return float(np.mean([m.misfit for m in self.maps_]))

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        if len(self.classes_) > 2:
            return np.diag(self.slope_), self.intercept_.copy()
        return self.slope_ * np.eye(2), np.array([-0.5, 0.5]) * self.intercept_


@dataclass(frozen=True, kw_only=True)
class SigmoidMap(UncachedStateMixin, StandardisedSigmoid):
    """A fitted sigmoid.

    Bounds come from the likelihood of `rows`, computed at the first call: of Platt's targets
    without a ridge, of light ones with it.
    """

    ridge: float
    rows: EventRows
    fitted_misfit: float | None = None

    @cached_property
    def belief_likelihood(self) -> LogisticLikelihood:
        """The likelihood from which belief and plausibility are computed."""
        x, event, weight = self.rows
        if self.ridge == 0:
            target = event_targets(event, weight, "smoothed")
            return logistic_likelihood(x, target, weight, self.fit.coef)
        target = event_targets(event, weight, "light")
        design, zeros = np.column_stack([np.ones(len(x)), x]), np.zeros(2)
        fit = fit_logistic(design, target, weight, zeros, zeros, start=self.fit.coef)
        return logistic_likelihood(x, target, weight, fit.coef)

    @cached_property
    def level_likelihoods(self) -> LogisticLevelLikelihoods:
        """The two likelihoods from which bounds at a confidence level are computed."""
        return logistic_level_likelihoods(*self.rows, self.fit.coef)

    @cached_property
    def misfit(self) -> float:
        """Fraction of rows that contradict the form; `fitted_misfit` where rows were condensed."""
        if self.fitted_misfit is not None:
            return self.fitted_misfit
        x, event, weight = self.rows
        return misfit_fraction(expit(self.fit.coef[0] + self.fit.coef[1] * x), event, weight)

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        return including(self.proba(score), super().bounds(score))

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""
        return including(self.proba(score), super().level_bounds(score, level))


def fit_sigmoid(
    score: FloatArray,
    event: BoolArray,
    weight: FloatArray,
    *,
    ridge: str | float,
    identity: bool,
) -> SigmoidMap:
    """Return a fitted sigmoid; with `identity`, the ridge shrinks it to p = σ(score)."""
    centre, scale = standardisation(score, weight)
    x = standardised(score, centre, scale)
    design = np.column_stack([np.ones(len(score)), x])

    def with_rows(fit: LogisticFit, strength: float) -> SigmoidMap:
        return SigmoidMap(
            centre=centre,
            scale=scale,
            ridge=strength,
            fit=fit,
            rows=rows_to_store(x, event, weight, (fit.coef[0], fit.coef[1])),
            fitted_misfit=misfit_unless_stored(design @ fit.coef, event, weight),
        )

    if ridge == 0:
        zeros = np.zeros(2)
        fit = fit_logistic(design, event_targets(event, weight, "smoothed"), weight, zeros, zeros)
        return with_rows(fit, 0.0)

    if identity:
        prior = np.array([centre, scale])
        unit = max(1.0, float(np.hypot(scale, centre)))
    else:
        frequency = (weight[event].sum() + 0.5) / (weight.sum() + 1)
        prior, unit = np.array([logit(frequency), 0.0]), 1.0

    target = event.astype(float)

    def penalty(strength: float) -> FloatArray:
        return np.full(2, strength / unit**2)

    def fit_with(strength: float, start: FloatArray | None = None) -> LogisticFit:
        return fit_logistic(design, target, weight, penalty(strength), prior, start=start)

    def loss_of(strength: float, fit: LogisticFit) -> float:
        return leave_one_out_loss(design, event, weight, penalty(strength), fit)

    strength, fit = fit_with_ridge(ridge, fit_with, loss_of)
    return with_rows(fit, strength)


def fit_with_ridge(
    ridge: str | float,
    fit_with: Callable[..., LogisticFit],
    loss_of: Callable[[float, LogisticFit], float],
) -> tuple[float, LogisticFit]:
    """Return the penalty strength, chosen by `loss_of` for "auto", and the fit with it."""
    if isinstance(ridge, str):
        return ridge_by_leave_one_out(fit_with, loss_of)
    return float(ridge), fit_with(float(ridge))


def misfit_unless_stored(
    log_odds: FloatArray, event: BoolArray, weight: FloatArray
) -> float | None:
    """Return the misfit of fitted log-odds; None if all rows are stored, to compute it later."""
    if len(log_odds) <= STORED_ROWS:
        return None
    return misfit_fraction(expit(log_odds), event, weight)
