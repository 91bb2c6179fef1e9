"""Evidential logistic calibration: a sigmoid, with bounds from its likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from dubito._compat import StrOptions
from dubito._numerics.condensed_rows import fewer_rows
from dubito._numerics.logistic_fit import (
    LogisticFit,
    fit_logistic,
    standardisation,
    standardised,
)
from dubito._numerics.logistic_level import (
    LogisticLevelLikelihoods,
    level_bounds,
    logistic_level_likelihoods,
)
from dubito._numerics.logistic_profile import (
    LogisticLikelihood,
    belief_and_plausibility,
    contour_of,
    logistic_likelihood,
)
from dubito._numerics.targets import event_targets
from dubito.calibration._kernels.misfit import misfit_fraction
from dubito.calibration.errors import CalibrationInputError, warn_unless_converged
from dubito.calibration.one_vs_rest import OneVsRestCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


#: Largest number of rows for which a likelihood is stored row by row; more are condensed to a few
#: points.
STORED_ROWS = 4096


class EventRows(NamedTuple):
    """Rows of a logistic likelihood: scores, whether the event occurred, and sample weights."""

    x: FloatArray
    event: BoolArray
    weight: FloatArray


def rows_to_store(
    x: FloatArray, event: BoolArray, weight: FloatArray, coef: tuple[float, float]
) -> EventRows:
    """Return rows with the same likelihood as those given: the same, or fewer if they are many.

    Parameters
    ----------
    x, event, weight : array (n,)
        Scores, whether the event occurred, and sample weights.
    coef : tuple
        Intercept and slope of the fitted log-odds.
    """
    if len(x) <= STORED_ROWS:
        return EventRows(x, event, weight)
    return EventRows(*fewer_rows(x, event, weight, coef))


@dataclass(frozen=True, kw_only=True)
class StandardisedSigmoid:
    """A sigmoid of standardised scores, with bounds from likelihoods of its coefficients.

    The coefficients `fit.coef` are the intercept and the slope, in this order as everywhere in
    `dubito._numerics`. Belief and plausibility come from `belief_likelihood`, bounds at a level
    from the two `level_likelihoods`: fields or cached properties of a subclass.
    """

    centre: float
    scale: float
    fit: LogisticFit

    if TYPE_CHECKING:

        @property
        def belief_likelihood(self) -> LogisticLikelihood:
            """The likelihood from which belief and plausibility are computed."""

        @property
        def level_likelihoods(self) -> LogisticLevelLikelihoods:
            """The two likelihoods from which bounds at a confidence level are computed."""

    @property
    def slope(self) -> float:
        """Slope in the scores' own units, clipped to the largest float."""
        if not self.scale > 0:
            return 0.0
        with np.errstate(over="ignore"):
            slope = self.fit.coef[1] / self.scale
        largest = np.finfo(np.float64).max
        return float(np.clip(slope, -largest, largest))

    @property
    def intercept(self) -> float:
        """Log-odds at score 0."""
        return float(self.fit.coef[0] - self.slope * self.centre)

    def standardised(self, score: FloatArray) -> FloatArray:
        """Return standardised scores."""
        return standardised(score, self.centre, self.scale)

    def log_odds(self, score: FloatArray) -> FloatArray:
        """Return the fitted log-odds of the event for each score."""
        return self.fit.coef[0] + self.fit.coef[1] * self.standardised(score)

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the fitted probability of the event for each score."""
        return expit(self.log_odds(score))

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        return belief_and_plausibility(self.belief_likelihood, self.standardised(score))

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""
        return level_bounds(self.level_likelihoods, self.standardised(score), level)

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each score, (n, len(theta))."""
        return contour_of(self.belief_likelihood, self.standardised(score), theta)


class EvidentialLogisticCalibrator(OneVsRestCalibrator):
    r"""Sigmoid calibration with belief and plausibility from the likelihood.

    The probability at score s is :math:`\theta=\sigma(\sigma_0+\sigma_1s)`. Its contour is the
    profile likelihood, the largest likelihood of coefficients that give this probability,

    .. math:: pl_s(\theta)=\max\{L(\sigma):\sigma_0+\sigma_1s=\operatorname{logit}\theta\}/
        L(\hat\sigma),

    and the next outcome at s has

    .. math:: \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}pl_s(u)\,du,\qquad
        \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1pl_s(u)\,du.

    ``predict_bounds(scores, level=0.9)`` contains the true probability about nine times in ten if
    it is a sigmoid of the score: it is the smallest interval that contains the level sets
    :math:`\{\theta:-2\log pl_s(\theta)\le\chi^2_1(0.9)\}` of two likelihoods, of raw targets and
    of one pseudo-observation of unknown label added to the rows, whatever ``targets`` is.

    Parameters
    ----------
    targets : {"light", "smoothed", "raw"}, default="light"
        What the likelihood predicts. "light": a quarter of a pseudo-observation of
        unknown label in all, :math:`(1-\epsilon)y+\epsilon/2` with
        :math:`\epsilon=\frac14/(n+\frac14)`. "smoothed": Platt's, as published,
        :math:`(n_++1)/(n_++2)` and :math:`1/(n_-+2)`. "raw": plain 1 and 0, which have no
        maximum-likelihood estimate when some threshold separates the classes, ties at the
        threshold included; this raises `CalibrationInputError`.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Probabilities are turned into log-odds.
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
        :math:`\hat\sigma_1` and :math:`\hat\sigma_0` of each map: one for two classes, one
        against the rest for each of more.
    n_iter_, gradient_norm_ : ndarray of shape (1,) or (K,)
        Newton steps, and the largest component of the gradient at the estimate,
        in standardised units, for each unit of weight.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
    maps_ : list of EvidentialSigmoidMap
        The fitted maps.

    Notes
    -----
    Bounds are exact to about 1e-9, without random draws or a grid. Where a threshold separates the
    classes, the bounds at a level reach 0 or 1 on its sides, and both within the gap. Scaling and
    shifting scores changes nothing; negating them and swapping the classes gives the mirror image.
    ``predict_proba`` is the estimate :math:`\hat\theta`, that of ``PlattCalibrator(ridge=0)`` with
    smoothed targets, and lies within the bounds. Constant scores have slope 0. Weights count as
    rows: the bounds tighten as they grow.

    Deviations from the paper: the positive-slope form in place of
    :math:`1/(1+e^{\sigma_0+\sigma_1s})`; the integrals by quadrature in place of a discretised
    contour. More than two classes, which the paper does not treat, have one map each against the
    rest, and the bounds are those of the normalised probabilities, both mixed with the base rate at
    the weight 1/(n+1) of one row.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denœux, "Evidential calibration of binary SVM classifiers", 2016.
    P. Minary, F. Pichon, D. Mercier, E. Lefevre, B. Droit, "Evidential joint calibration of
    binary SVM classifiers using logistic regression", 2017, eq. 3; this is its case of one score.

    Examples
    --------
    >>> from dubito.calibration import EvidentialLogisticCalibrator
    >>> scores = [-2.0, -1.2, -0.4, 0.3, -0.1, 0.5, 1.1, 2.5]
    >>> y = ["no", "no", "no", "no", "yes", "yes", "yes", "yes"]
    >>> calibrator = EvidentialLogisticCalibrator().fit(scores, y)
    >>> bounds = calibrator.predict_bounds([-1.0, 0.1, 1.0])
    >>> bounds.lower.round(2)
    array([[0.62, 0.01],
           [0.21, 0.24],
           [0.01, 0.59]])

    Bounds that contain the true probability nine times in ten, wider with few rows:

    >>> calibrator.predict_bounds([-1.0, 0.1, 1.0], level=0.9).lower.round(2)
    array([[0.43, 0.  ],
           [0.11, 0.13],
           [0.  , 0.41]])

    How plausible each probability is:

    >>> calibrator.contour([0.1], [0.25, 0.5, 0.75]).round(2)
    array([[0.53, 1.  , 0.64]])
    """

    evidential: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "targets": [StrOptions({"light", "smoothed", "raw"})],
    }

    _assumes_form: ClassVar[bool] = True

    def __init__(
        self,
        *,
        targets: str = "light",
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.targets = targets

    def node_map_spec(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and options with which all tree nodes are fitted at once, or None."""
        # Raw targets may have no estimate: then only `fit` of each node raises an explained error.
        is_plain = type(self) is EvidentialLogisticCalibrator and self.targets != "raw"
        return ("evidential_sigmoid", {"targets": self.targets}) if is_plain else None

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        super()._fit(table, y, weight)
        self.slope_ = np.array([m.slope for m in self.maps_])
        self.intercept_ = np.array([m.intercept for m in self.maps_])
        self.n_iter_ = np.array([m.fit.n_iter for m in self.maps_])
        self.gradient_norm_ = np.array([m.fit.gradient_norm for m in self.maps_])
        level_norms = [m.level_likelihoods.gradient_norm for m in self.maps_]
        warn_unless_converged(self, np.append(self.gradient_norm_, level_norms))

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the mean over the maps of the fraction of rows that contradict their form."""
        fractions = [
            misfit_fraction(m.proba(log_odds), event, weight)
            for m, (log_odds, event) in zip(self.maps_, self._events(table, y), strict=True)
        ]
        return float(np.mean(fractions))

    def _fit_map(
        self, score: FloatArray, event: BoolArray, weight: FloatArray
    ) -> EvidentialSigmoidMap:
        centre, scale = standardisation(score, weight)
        x = standardised(score, centre, scale)
        if self.targets == "raw":
            _check_overlap(x, event)
        target = event_targets(event, weight, self.targets)
        design = np.column_stack([np.ones(len(x)), x])
        fit = fit_logistic(design, target, weight, np.zeros(2), np.zeros(2))
        return EvidentialSigmoidMap(
            centre=centre,
            scale=scale,
            fit=fit,
            belief_likelihood=logistic_likelihood(x, target, weight, fit.coef),
            level_likelihoods=logistic_level_likelihoods(x, event, weight, fit.coef),
        )


@dataclass(frozen=True, kw_only=True)
class EvidentialSigmoidMap(StandardisedSigmoid):
    """A fitted sigmoid with its likelihoods."""

    belief_likelihood: LogisticLikelihood
    level_likelihoods: LogisticLevelLikelihoods


def _check_overlap(x: FloatArray, event: BoolArray) -> None:
    """Raise unless the maximum-likelihood estimate exists.

    It exists exactly if the ranges of the scores of both classes overlap in more than a point, or
    if scores are constant and both classes are present.
    """
    advice = 'use targets="light", which always has an estimate, or more calibration rows.'
    if event.all() or not event.any():
        raise CalibrationInputError(
            f"with raw targets a calibration set of one class has no estimate; {advice}"
        )
    events, others = x[event], x[~event]
    if np.ptp(x) > 0 and (events.min() >= others.max() or others.min() >= events.max()):
        raise CalibrationInputError(
            "a threshold on the scores separates the classes, so with raw targets no "
            f"maximum-likelihood estimate exists; {advice}"
        )
