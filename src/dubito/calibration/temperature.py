"""Temperature scaling: one slope for all classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dubito._compat import Interval, StrOptions
from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.softmax import log_softmax, softmax_in_place
from dubito._numerics.targets import PSEUDO_ROWS, RAW, pseudo_fraction
from dubito.belief.bounds import including
from dubito.calibration._kernels import slope_level, slope_likelihood
from dubito.calibration._kernels.misfit import events_of, frequent_classes, misfit_of
from dubito.calibration._kernels.slope_quadrature import QuadraturePoints, quadrature_points
from dubito.calibration._kernels.temperature_scaling import fit_slope
from dubito.calibration.affine import AffineMixin
from dubito.calibration.base import BaseCalibrator, TwoClassMassMixin, UncachedStateMixin
from dubito.calibration.errors import warn_unless_converged
from dubito.calibration.evidential_multinomial import (
    shifted_scores,
    slope_belief,
    slope_level_bounds,
)
from dubito.calibration.scores import in_safe_units

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray


#: Largest number of scores that are stored for bounds, and the smallest number of rows in the
#: sample that is stored of more.
_STORED_SCORES = 2**17
_FEWEST_ROWS = 256

#: Number of quadrature points in each panel of the integral over the level.
_QUADRATURE_POINTS = 16


class TemperatureCalibrator(TwoClassMassMixin, AffineMixin, BaseCalibrator):
    r"""Temperature scaling: :math:`p=\mathrm{softmax}(\theta u)` with one slope θ ≥ 0.

    The slope minimises the negative log-likelihood of log scores u, a convex function of θ.
    So that it is finite on separable scores, c pseudo-observations of unknown label are spread
    over the n rows: targets are :math:`(1-\epsilon)e_y+\epsilon/K`, :math:`\epsilon=c/(n+c)`.
    As n grows they vanish and the estimate is that of maximum likelihood. The order of the
    classes in a row never changes, ties apart; a constant added to a row changes nothing.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Number c of pseudo-observations of unknown label, in rows; "auto" is 1/4. It limits θ as a
        ridge would, and has the name of that parameter in other calibrators, but is no penalty on
        θ. With 0 the estimate is plain maximum likelihood, which separable scores do not have: θ is
        then very large.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    slope_ : float
        θ. It is 0 where higher scores go with other labels, and 1 where scores are constant.
    temperature_ : float
        1/θ.
    gradient_norm_ : float
        Derivative of the mean negative log-likelihood in log θ at the estimate.
    n_iter_ : int
        Passes over the rows.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    Notes
    -----
    The model of Xu et al. (2015), eq. 21 and 24, there fitted to targets
    :math:`t_y=(n_y+1)/(n_y+K)` (eq. 25): K pseudo-observations for every class. They flatten
    probabilities where rows per class are few: with ten digits and 43 rows of each, the log loss of
    a linear support vector machine was 0.408 with them and 0.144 with those here. Guo et al., *On
    Calibration of Modern Neural Networks* (2017), have no pseudo-observations.

    ``predict_bounds`` uses the likelihood of the slope as `EvidentialMultinomialCalibrator` does,
    computed at the first call; ``level=0.9`` as there. Classes with equal scores have equal
    probabilities for every slope: their bounds have no width. Up to 131,072 scores are stored for
    it; of more, a sample whose weights give it the curvature of all rows.

    Solved by Halley's method from a subsample's estimate: three or four passes over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import TemperatureCalibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(9000, 3))
    >>> y = np.argmax(logits + 2 * rng.gumbel(size=(9000, 3)), axis=1)
    >>> calibrator = TemperatureCalibrator(input="logits").fit(logits, y)
    >>> round(calibrator.temperature_, 1)
    2.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    ignores_shifts: ClassVar[bool] = True

    _entries_per_class: ClassVar[int] = 32

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
        u, unit = in_safe_units(self._log_scores(table))
        pseudo_rows = PSEUDO_ROWS if isinstance(self.ridge, str) else float(self.ridge)
        fit = fit_slope(u, y, weight, pseudo_rows)
        self.slope_ = float(fit.slope / unit)
        self.temperature_ = float(unit / fit.slope) if fit.slope > 0 else np.inf
        self.gradient_norm_ = float(fit.gradient_norm)
        warn_unless_converged(self, self.gradient_norm_)
        self.n_iter_ = fit.n_iter
        self._rows = slope_rows(u, y, weight, fit.slope, pseudo_rows)
        self._unit = unit

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        points, slope = self._rows.points, self._rows.belief_likelihood.slope
        bounds = slope_belief(self._shifted(table), points, slope, "gumbel")
        return including(self._proba(table), bounds)

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        likelihoods, slope = self._rows.level_likelihoods, self._rows.belief_likelihood.slope
        bounds = slope_level_bounds(self._shifted(table), likelihoods, slope, level)
        return including(self._proba(table), bounds)

    def _shifted(self, table: FloatArray) -> FloatArray:
        return shifted_scores(self._log_scores(table) / self._unit, self._rows.points)

    def _current_misfit(self) -> float:
        return self._rows.misfit(self.slope_ * self._unit)

    def _proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table)
        # Differences first: slope times a huge score would round away their differences.
        return softmax_in_place(self.slope_ * (u - u.max(axis=1, keepdims=True)))

    def _log_proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table)
        return log_softmax(self.slope_ * (u - u.max(axis=1, keepdims=True)))

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        n_classes = len(self.classes_)
        return self.slope_ * np.eye(n_classes), np.zeros(n_classes)


class _LinearTerms(NamedTuple):
    """Linear terms of the slope's likelihoods: of the fit, and two of bounds at a level."""

    fitted: float
    raw: float
    light: float


@dataclass(frozen=True)
class SlopeRows(UncachedStateMixin):
    """Rows with the likelihood of a fitted slope; of large data, a sample of them.

    The weights of a sample give it the curvature of all rows at the slope, and its linear terms
    make the slope its maximum: its likelihood is right to second order at the estimate, which
    suffices for so many rows.
    """

    scores: FloatArray
    y: IntArray
    weight: FloatArray
    linear_terms: _LinearTerms
    factor: float = 1.0  # number of rows that each row of a sample represents

    @cached_property
    def belief_likelihood(self) -> slope_likelihood.SlopeLikelihood:
        """The likelihood from which belief and plausibility are computed."""
        return slope_likelihood.fit_likelihood(self.scores, self.weight, self.linear_terms.fitted)

    @cached_property
    def points(self) -> QuadraturePoints:
        """Quadrature points: the level sets of that likelihood."""
        return quadrature_points(self.belief_likelihood, _QUADRATURE_POINTS)

    @cached_property
    def level_likelihoods(self) -> slope_level.SlopeLevelLikelihoods:
        """The two likelihoods from which bounds at a level are computed."""
        return slope_level.level_likelihoods_from_linear_terms(
            self.scores, self.weight, self.linear_terms.raw, self.linear_terms.light
        )

    def misfit(self, slope: float) -> float:
        """Return the fraction of rows that contradict the form of the map."""
        weight = self.weight / self.factor  # the sample is tested as it is, not as all rows
        classes = frequent_classes(self.y, weight, self.scores.shape[1])
        proba = softmax_in_place(slope * (self.scores - self.scores.max(axis=1, keepdims=True)))
        fitted, event = events_of(proba, self.y, classes)
        return misfit_of(fitted, event, weight)


def slope_rows(
    scores: FloatArray, y: IntArray, weight: FloatArray, slope: float, pseudo_rows: float
) -> SlopeRows:
    """Return the rows to store for a slope fitted with `pseudo` pseudo-observations."""
    linear_terms = _linear_terms(scores, y, weight, pseudo_rows)
    rows = subsample_rows(len(scores), max(_STORED_SCORES // scores.shape[1], _FEWEST_ROWS))
    if len(rows) == len(scores):
        return SlopeRows(scores, y, weight, linear_terms)
    part_scores, part_y, part_weight = scores[rows], y[rows], weight[rows]
    first, second = _slope_derivatives(scores, y, weight, slope)
    part_first, part_second = _slope_derivatives(part_scores, part_y, part_weight, slope)
    if part_second > 0 and linear_terms.raw < 0:
        factor = second / part_second
        part_raw = slope_likelihood.linear_term(part_scores, part_y, part_weight, RAW)
        shift = factor * (part_first + part_raw) - (first + linear_terms.raw)
        linear_terms = _LinearTerms(*(term + shift for term in linear_terms))
    else:  # the true class always has the largest score, or probabilities are 0 and 1
        factor = weight.sum() / part_weight.sum()
        linear_terms = _linear_terms(part_scores, part_y, factor * part_weight, pseudo_rows)
    return SlopeRows(part_scores, part_y, factor * part_weight, linear_terms, factor)


def _slope_derivatives(
    scores: FloatArray, y: IntArray, weight: FloatArray, slope: float
) -> tuple[float, float]:
    """Return both derivatives in the slope of the negative log-likelihood of raw labels."""
    from dubito.calibration._kernels.temperature_scaling_compiled import temperature_sums  # noqa: PLC0415 - loads numba

    _, first, second, _ = temperature_sums(scores, y, weight, 0.0, slope)
    return first, second


def _linear_terms(
    scores: FloatArray, y: IntArray, weight: FloatArray, pseudo_rows: float
) -> _LinearTerms:
    """Return the linear terms of the three likelihoods; their targets mix raw and even ones."""
    n_classes, n = scores.shape[1], float(weight.sum())
    raw = slope_likelihood.linear_term(scores, y, weight, RAW)
    even = slope_likelihood.linear_term(scores, y, weight, (1 / n_classes, 1 / n_classes))
    # Raw targets have no maximum if the true class always has the largest score: use light ones.
    if pseudo_rows == 0 and raw == 0:
        pseudo_rows = PSEUDO_ROWS
    fractions = [pseudo_fraction(n, c) for c in (pseudo_rows, slope_level.LEVEL_PSEUDO_ROWS)]
    fitted, light = ((1 - f) * raw + f * even for f in fractions)
    return _LinearTerms(fitted, raw, light)
