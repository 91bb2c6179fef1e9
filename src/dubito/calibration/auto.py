"""The default calibrator: temperature scaling of limited scores, matrix scaling, and pooling.

Pooling is the weighted mean of several maps, with weights that maximise the likelihood of rows left
out. The formulas are in `_kernels/limited_slope.py` and `_kernels/pool_weights.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.targets import base_rate
from dubito.belief.bounds import including
from dubito.calibration._kernels.limited_slope import fit_limited_slope
from dubito.calibration._kernels.pool_weights import fit_pool_weights, folds_by_margin, is_balanced
from dubito.calibration.base import BaseCalibrator, TwoClassMassMixin
from dubito.calibration.isotonic import IsotonicCalibrator
from dubito.calibration.matrix import MatrixCalibrator
from dubito.calibration.scores import in_safe_units
from dubito.calibration.vector import VectorCalibrator

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest number of classes for which the second step is matrix scaling; beyond, vector scaling.
_MATRIX_CLASSES = 100
#: Smallest number of rows, and of rows per class, and largest number of classes for which an
#: isotonic map is pooled.
_POOL_ROWS, _POOL_ROWS_PER_CLASS, _POOL_CLASSES = 200, 30, 50
#: Largest number of rows on which the weights of the maps are chosen; of more, a fixed random
#: sample.
_MAX_FOLDED_ROWS = 5000
#: Number of folds in which the weights of the maps are chosen.
_FOLDS = 5
#: Prior rows of the map, the isotonic map and the base rates: `prior` of `fit_pool_weights`.
_PRIOR_ROWS = np.array([4.0, 0.1, 0.02])
#: Weight of the base rates, in rows, where there are too few rows to choose weights in folds.
_BASE_ROWS = 0.25
#: Rows of unknown label that the base rates include: enough that none is 0. The K rows of Laplace's
#: rule, in `OneVsRestCalibrator`, would make them nearly equal where rows per class are few.
_BASE_RATE_PSEUDO_ROWS = 1


class AutoCalibrator(TwoClassMassMixin, BaseCalibrator):
    r"""Calibration without settings, for twenty rows as for twenty thousand.

    Three steps, each as simple as the number of rows requires:

    1. *Robust temperature.* :math:`p=\mathrm{softmax}(\theta v)`, one slope for all classes, of
       scores whose gap to the best is limited, :math:`v_k=-d_k/(1+d_k/L)`. The limit L is chosen
       among six quantiles of the gaps, and none, by likelihood; it must gain four units.
    2. *Matrix scaling* of its logarithm, shrunk to it with a ridge by the marginal likelihood
       (`MatrixCalibrator`; beyond 100 classes `VectorCalibrator`): offsets and slopes of classes,
       and the effect of a score on other classes.
    3. *Pooling.* The probability is the mean
       :math:`\omega_1p_\text{map}+\omega_2p_\text{isotonic}+\omega_3\pi` with π the base rates.
       From 200 rows and 30 for each class on, up to 50 classes, the weights ω maximise the
       likelihood of rows left out in five folds; with fewer rows :math:`\omega_2=0` and
       :math:`\omega_3=1/(4(n+1))`, so that no probability is 0.

    Parameters
    ----------
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken, or their logarithms.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken. "auto" is half of
        the smallest positive one in the fit, between 1e-16 and 0.01: a class without votes in
        a forest is then a little less likely than one with one vote. For log-probabilities "auto"
        is the power of 1e-16 that fits the rows best by one slope, which limits the influence of a
        few extreme ones.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    summary_ : str
        One sentence with the choices made.
    limit_ : float
        Limit L of the gaps between scores; infinite where there is none.
    slope_ : float
        Slope θ of the robust temperature map.
    map_ : MatrixCalibrator or VectorCalibrator
        Fitted to the logarithm of the temperature map.
    isotonic_ : IsotonicCalibrator or None
        None with few rows, many classes, or where it has no weight.
    pool_weights_ : ndarray of shape (3,)
        Weights ω of the map, of the isotonic map and of the base rates.
    base_rate_ : ndarray of shape (K,)
        Frequencies of the classes, one row of unknown label added. (Calibrators with a map for each
        class against the rest add K rows.)
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    See Also
    --------
    MatrixCalibrator : The second step alone.
    CalibratedClassifier : Calibrates any classifier, with this calibrator by default.

    Notes
    -----
    Bounds are the means of those of the two maps, with the same weights, widened to contain
    the probability. Limit and weights are treated as known.

    The number of limits tried, the gain of four units, 200 rows, a quarter of a row and the prior
    weights of the pool were chosen on digits, breast cancer and wine, also with few features, noisy
    labels and merged classes; `benchmarks/QUALITY.md` has the results on other data. Folds do not
    depend on the order of rows or classes, except that with more than 5,000 rows the weights are
    chosen on a fixed sample of row numbers. There is no isotonic map if so many scores are equal
    that one fold would have more than half of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=60)
    >>> scores = rng.normal(size=(60, 3)) + 2 * np.eye(3)[y]
    >>> calibrator = AutoCalibrator().fit(scores, y)
    >>> calibrator.predict_proba([[1.0, 0.5, -1.0]]).round(2)
    array([[0.78, 0.21, 0.01]])
    >>> print(calibrator.summary_)
    temperature 0.538, then matrix scaling; weights 0.996 map, 0.004 base rate (60 rows, 3 classes)
    """

    _entries_per_class: ClassVar[int] = 16

    _assumes_form: ClassVar[bool] = True

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        u, self._unit = in_safe_units(self._log_scores(table, normalised=True))
        total, n_classes = float(weight.sum()), len(self.classes_)
        self._limited = fit_limited_slope(u, y, weight)
        self.slope_, self.limit_ = (
            self._limited.slope / self._unit,
            self._limited.limit * self._unit,
        )
        self.map_ = self._fresh_map().fit(self._features(u), y, weight)
        self.base_rate_ = base_rate(y, weight, n_classes, _BASE_RATE_PSEUDO_ROWS)
        self.isotonic_: IsotonicCalibrator | None = None
        base_weight = _BASE_ROWS / (total + 1)
        self.pool_weights_ = np.array([1 - base_weight, 0.0, base_weight])
        if self._has_rows_to_pool(total):
            self._pool(u, y, weight)
        self.summary_ = self._summary(total)

    def _has_rows_to_pool(self, total: float) -> bool:
        """Return whether there are enough rows to pool an isotonic map."""
        n_classes = len(self.classes_)
        enough = max(_POOL_ROWS, _POOL_ROWS_PER_CLASS * n_classes)
        return n_classes <= _POOL_CLASSES and total >= enough

    def _pool(self, u: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit the isotonic map and the weights of the pool, unless too many rows are equal."""
        rows = subsample_rows(len(u), _MAX_FOLDED_ROWS)
        some_u, some_y, some_weight = u[rows], y[rows], weight[rows]
        fold = folds_by_margin(some_u, some_y, _FOLDS)
        if not is_balanced(fold, some_weight, _FOLDS):
            return
        true_class_proba = np.empty((len(rows), 3))
        for k in range(_FOLDS):
            train, held_out = fold != k, fold == k
            probas = self._held_out_proba(some_u, some_y, some_weight, train, held_out)
            true_class_proba[held_out] = np.column_stack(
                [p[np.arange(len(p)), some_y[held_out]] for p in probas]
            )
        self.pool_weights_ = fit_pool_weights(true_class_proba, some_weight, _PRIOR_ROWS)
        self.isotonic_ = self._fresh_isotonic().fit(self._limited.slope * u, y, weight)

    def _held_out_proba(
        self, u: FloatArray, y: IntArray, weight: FloatArray, train: BoolArray, held_out: BoolArray
    ) -> list[FloatArray]:
        """Return probabilities of the held-out rows, by each map of the pool fitted to `train`."""
        logits = self._limited.slope * u
        isotonic = self._fresh_isotonic().fit(logits[train], y[train], weight[train])
        base = base_rate(y[train], weight[train], u.shape[1], _BASE_RATE_PSEUDO_ROWS)
        features = self._features(u)
        proba = self.map_.held_out_proba(
            features[train], y[train], weight[train], features[held_out]
        )
        return [proba, isotonic.predict_proba(logits[held_out]), np.broadcast_to(base, proba.shape)]

    def _fresh_map(self) -> MatrixCalibrator | VectorCalibrator:
        """Return the second step, not fitted."""
        calibrator = MatrixCalibrator if self._has_matrix() else VectorCalibrator
        return calibrator(classes=np.arange(len(self.classes_)))._without_warnings()

    def _has_matrix(self) -> bool:
        """Return whether the second step is matrix scaling."""
        return len(self.classes_) <= _MATRIX_CLASSES

    def _features(self, u: FloatArray) -> FloatArray:
        """Return the input of the second step: log-probabilities, or the margin of two classes.

        Margins that are not limited are not normalised: a constant added to a row is information.
        """
        if len(self.classes_) == 2:
            log_proba = self._limited.log_proba(u)
            return log_proba[:, 1:] - log_proba[:, :1]
        if self.input == "margin" and self._limited.limit == np.inf:
            return self._limited.slope * u
        return self._limited.log_proba(u)

    def _fresh_isotonic(self) -> IsotonicCalibrator:
        """Return the isotonic map, not fitted."""
        fresh = IsotonicCalibrator(input="logits", classes=np.arange(len(self.classes_)))
        return fresh._without_warnings()

    def _proba(self, table: FloatArray) -> FloatArray:
        u = self._scores_in_unit(table)
        proba = self.pool_weights_[0] * self.map_.predict_proba(self._features(u))
        if self.isotonic_ is not None:
            logits = self._limited.slope * u
            proba += self.pool_weights_[1] * self.isotonic_.predict_proba(logits)
        return proba + self.pool_weights_[2] * self.base_rate_

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the misfit of the second step, or that of the pool if it is smaller."""
        misfit = self.map_.misfit_
        return misfit if self.isotonic_ is None else min(misfit, super()._misfit(table, y, weight))

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._pooled_bounds(table, None)

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return self._pooled_bounds(table, level)

    def _pooled_bounds(
        self, table: FloatArray, level: float | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted means of the maps' bounds, widened to contain the probability.

        Without a level they are means of belief and plausibility. The base rates are left out: they
        keep probabilities away from 0 and 1, which may be the true ones.
        """
        u = self._scores_in_unit(table)
        lower, upper = self.map_.predict_bounds(self._features(u), level)
        if self.isotonic_ is not None:
            weight = self.pool_weights_[1] / self.pool_weights_[:2].sum()
            isotonic = self.isotonic_.predict_bounds(self._limited.slope * u, level)
            lower = (1 - weight) * lower + weight * isotonic.lower
            upper = (1 - weight) * upper + weight * isotonic.upper
        return including(self._proba(table), (lower, upper))

    def _scores_in_unit(self, table: FloatArray) -> FloatArray:
        """Return log scores in the units of the fit."""
        return np.asarray(self._log_scores(table, normalised=True) / self._unit)

    def _summary(self, total: float) -> str:
        """Return one sentence with the choices made."""
        first = f"temperature {1 / self.slope_:.3g}"
        if self.limit_ < np.inf:
            first += f" of scores limited to {self.limit_:.3g} below the best"
        second = "matrix" if self._has_matrix() else "vector"
        of_map, of_isotonic, of_base_rate = self.pool_weights_
        weights = f"{of_map:.3f} map"
        if self.isotonic_ is not None:
            weights += f", {of_isotonic:.3f} isotonic"
        elif self._has_rows_to_pool(total):
            weights += " (no isotonic map: too many equal scores)"
        return (
            f"{first}, then {second} scaling; weights {weights}, {of_base_rate:.3f} base rate "
            f"({total:.6g} rows, {len(self.classes_)} classes)"
        )
