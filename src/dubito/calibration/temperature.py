"""Temperature scaling: one slope for all classes."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dubito._kernels.softmax import fit_slope, log_softmax, softmax_rows
from dubito._sklearn import Interval, StrOptions
from dubito.calibration._base import AffineMixin, BaseCalibrator
from dubito.calibration._certificates import check_certificate
from dubito.calibration._log_odds_bounds import holding
from dubito.calibration._shrinkage import AUTO_PSEUDO, in_safe_units
from dubito.calibration._slope_bounds import prepared, slope_at_level, slope_belief, slope_rows
from dubito.calibration._two_classes import TwoClassMass

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray


class TemperatureCalibrator(TwoClassMass, AffineMixin, BaseCalibrator):
    r"""Temperature scaling: :math:`p=\mathrm{softmax}(\theta u)` with one slope θ ≥ 0.

    The slope minimises the negative log-likelihood of log scores u, a convex function of θ.
    So that it is finite on separable scores, c pseudo-observations of unknown label are spread
    over the n rows: targets are :math:`(1-\epsilon)e_y+\epsilon/K`, :math:`\epsilon=c/(n+c)`.
    As n grows they vanish and the estimate is that of maximum likelihood. The order of the
    classes in a row never changes, ties apart; a constant added to a row changes nothing.

    Parameters
    ----------
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken.
    ridge : "auto" or float, default="auto"
        Weight c of the pseudo-observations, in rows; "auto" is 1/4. With 0 the estimate is plain
        maximum likelihood, which separable scores do not have: θ is then merely very large.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken. "auto" is half of
        the smallest positive one in the fit, within 1e-16 and 0.01: what a forest calls impossible
        is then a little less likely than what it has seen once; for log-probabilities it is the
        power of 1e-16 that fits the rows best by one slope, so that a few absurd ones count little.
    classes : array-like of shape (K,), optional
        Labels of the columns, where y lacks some of them.

    Attributes
    ----------
    slope_ : float
        θ. It is 0 where scores point away from the labels, and 1 where they are constant.
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
    The model of P0, eq. 21 and 24, there fitted to targets :math:`t_y=(n_y+1)/(n_y+K)` (eq. 25):
    K pseudo-observations for every class. They flatten probabilities where rows per class are
    few: with ten digits and 43 rows of each, the log loss of a linear support vector machine was
    0.408 with them and 0.144 with those here. Guo et al., *On Calibration of Modern Neural
    Networks* (2017), have no such safeguard.

    ``predict_bounds`` reads the likelihood of the slope as `EvidentialMultinomialCalibrator` does,
    when it is first asked; ``level=0.9`` as there. Classes with equal scores have equal
    probabilities whatever the rows say: bounds have no width there. Up to 131,072 scores are kept
    for it, of more a sample whose weights give it the curvature of all rows.

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

    _working_set: ClassVar[int] = 32

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
        u, unit = in_safe_units(self._log_scores(table))
        pseudo = AUTO_PSEUDO if isinstance(self.ridge, str) else float(self.ridge)
        fit = fit_slope(u, y, weight, pseudo)
        self.slope_ = float(fit.theta / unit)
        self.temperature_ = float(unit / fit.theta) if fit.theta > 0 else np.inf
        self.gradient_norm_ = float(fit.gradient)
        check_certificate(self, self.gradient_norm_)
        self.n_iter_ = fit.n_iter
        self._rows = slope_rows(u, y, weight, fit.theta, pseudo)
        self._unit = unit

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        nodes = self._rows.nodes
        bounds = slope_belief(self._prepared(table), nodes, self._rows.fit.slope, "gumbel")
        return holding(self._proba(table), bounds)

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        slope, levels = self._rows.fit.slope, self._rows.levels
        bounds = slope_at_level(self._prepared(table), levels, slope, level)
        return holding(self._proba(table), bounds)

    def _prepared(self, table: FloatArray) -> FloatArray:
        return prepared(self._log_scores(table) / self._unit, self._rows.nodes)

    def _current_misfit(self) -> float:
        return self._rows.misfit(self.slope_ * self._unit)

    def _proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table)
        # Differences first: slope times a huge score would lose what tells the classes apart.
        return softmax_rows(self.slope_ * (u - u.max(axis=1, keepdims=True)))

    def _log_proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table)
        return log_softmax(self.slope_ * (u - u.max(axis=1, keepdims=True)))

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        n_classes = len(self.classes_)
        return self.slope_ * np.eye(n_classes), np.zeros(n_classes)
