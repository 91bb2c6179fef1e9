r"""Calibrators that shrink softmax maps to temperature scaling by a ridge, chosen on the rows.

A map is :math:`z=\hat\theta u+Fx`, linear in its parameters x, all of them in log-odds; x = 0 is
the fitted temperature map. The fit minimises

.. math:: \sum_i w_i\,\ell_i(x)+\tfrac12\sum_g\lambda_g\lVert x_g\rVert^2

over groups g of parameters (slopes, biases, entries off the diagonal), with the ridge
:math:`\lambda_g` as given or by the marginal likelihood (`_kernels/marginal_likelihood.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dubito._compat import Interval, StrOptions
from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.softmax import log_softmax, softmax_in_place
from dubito._numerics.targets import PSEUDO_ROWS, pseudo_fraction
from dubito.belief.bounds import including
from dubito.calibration._kernels.light_labels import LightLabels
from dubito.calibration._kernels.misfit import events_of, frequent_classes, misfit_of
from dubito.calibration._kernels.penalised_fit import (
    MapLikelihood,
    belief_map,
    fit_map,
    level_map,
)
from dubito.calibration._kernels.temperature_scaling import fit_slope
from dubito.calibration.base import BaseCalibrator, TwoClassMassMixin
from dubito.calibration.errors import warn_unless_converged
from dubito.calibration.scores import in_safe_units

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray


#: Largest number of rows on which the form of a map is checked, to limit the time.
_FORM_ROWS = 4000
#: Smallest number of rows per parameter for that check.
_ROWS_PER_PARAMETER = 5


class ShrunkenCalibrator(TwoClassMassMixin, BaseCalibrator):
    """Base class of calibrators that shrink a softmax map to temperature scaling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    _assumes_form: ClassVar[bool] = True

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
        likelihood, x = self._estimate(table, y, weight, self.ridge)
        self._belief_map = belief_map(likelihood, x, self.ridge_)
        self._level_map = level_map(likelihood, x, self.ridge_)

    def held_out_proba(
        self, table: FloatArray, y: IntArray, weight: FloatArray, held_out: FloatArray
    ) -> FloatArray:
        """Return probabilities of scores `held_out` by a map fitted to `table` with `ridge_`."""
        other = copy(self)
        other._estimate(table, y, weight, self.ridge_)
        return other._proba(held_out)

    def _estimate(
        self,
        table: FloatArray,
        y: IntArray,
        weight: FloatArray,
        ridge: float | str | FloatArray,
    ) -> tuple[MapLikelihood, FloatArray]:
        """Set the fitted parameters; return the likelihood and its penalised maximum."""
        u, unit = in_safe_units(self._log_scores(table, normalised=True))
        pseudo_rows = PSEUDO_ROWS
        if not isinstance(ridge, str):
            pseudo_rows = min(float(np.max(ridge)), PSEUDO_ROWS)
        start = fit_slope(u, y, weight, pseudo_rows)
        labels = LightLabels(y, weight, pseudo_fraction(weight.sum(), pseudo_rows))
        score_scale = float(np.sqrt(np.average(_mean_square(u), weights=weight))) or 1.0
        likelihood = self._likelihood(u, labels, start.slope, score_scale)
        fit, self.ridge_ = fit_map(likelihood, ridge)
        self.base_slope_ = float(start.slope / unit)
        self.gradient_norm_ = fit.gradient_norm / likelihood.total
        warn_unless_converged(self, max(self.gradient_norm_, start.gradient_norm))
        self.n_iter_ = fit.n_iter
        self._set_parameters(fit.x, start.slope, score_scale, unit)
        self._unit, self._n_parameters = unit, len(likelihood.groups)
        return likelihood, fit.x

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the fraction of rows, or of a sample, that contradict the form of the map.

        The map of bounds at a level is checked: the one with the ridge by the marginal likelihood
        is biased where rows are few. 0 with few rows per parameter, where the map fits each row.
        """
        if weight.sum() < _ROWS_PER_PARAMETER * self._n_parameters:
            return 0.0
        rows = subsample_rows(len(table), _FORM_ROWS)
        u, y, weight = self._scores_in_unit(table[rows]), y[rows], weight[rows]
        classes = frequent_classes(y, weight, len(self.classes_))
        return misfit_of(*events_of(self._level_map.proba(u), y, classes), weight)

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return including(self._proba(table), self._belief_map.bounds(self._scores_in_unit(table)))

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        bounds = self._level_map.level_bounds(self._scores_in_unit(table), level)
        return including(self._proba(table), bounds)

    def _input_for(self, kind: str) -> str:
        """Return "margin" for logits, so that the calibrator is one more linear layer.

        Normalised logits differ by a constant in each row; on digits they are as good (log loss of
        matrix scaling of logistic regression: 0.142 normalised, 0.141 not; of boosting 0.194 and
        0.191).
        """
        return "margin" if kind == "logits" and self.input == "margin" else kind

    def _scores_in_unit(self, table: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._log_scores(table, normalised=True)) / self._unit

    def _proba(self, table: FloatArray) -> FloatArray:
        return softmax_in_place(self._logits(table))

    def _log_proba(self, table: FloatArray) -> FloatArray:
        return log_softmax(self._logits(table))

    @abstractmethod
    def _logits(self, table: FloatArray) -> FloatArray:
        """Return the logits of the map, (n, K)."""

    @abstractmethod
    def _likelihood(
        self, u: FloatArray, labels: LightLabels, base_slope: float, score_scale: float
    ) -> MapLikelihood:
        """Return the likelihood of the map around the temperature map."""

    @abstractmethod
    def _set_parameters(
        self, x: FloatArray, base_slope: float, score_scale: float, unit: float
    ) -> None:
        """Set the fitted parameters in the units of the scores."""


def _mean_square(u: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", u, u) / u.shape[1]
