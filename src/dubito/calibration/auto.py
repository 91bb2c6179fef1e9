"""The default calibrator: the map that fits the rows at hand, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dubito._kernels.softmax import spread_rows
from dubito.belief import Bounds
from dubito.calibration._base import BaseCalibrator
from dubito.calibration._limited import fit_limited_slope
from dubito.calibration._log_odds_bounds import holding
from dubito.calibration._pooling import balanced, fit_weights, folds_by_margin
from dubito.calibration._shrinkage import in_safe_units
from dubito.calibration._two_classes import TwoClassMass
from dubito.calibration.isotonic import IsotonicCalibrator
from dubito.calibration.matrix import MatrixCalibrator
from dubito.calibration.vector import VectorCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray, IntArray

    Pair = tuple[FloatArray, FloatArray]

#: Classes up to which every score may speak for every class; beyond, a slope and a bias each.
_MATRIX_CLASSES = 100
#: Rows, and rows for each class, from which an isotonic map is tried beside it, and classes up to
#: which it is.
_POOL_ROWS, _POOL_ROWS_PER_CLASS, _POOL_CLASSES = 200, 30, 50
#: Rows on which the weights are chosen at most; a fixed random sample of more.
_MOST_FOLDED = 5000
_FOLDS = 5
#: Rows that count for the map, the isotonic map and the base rates before any is seen.
_PRIOR_ROWS = np.array([4.0, 0.1, 0.02])
#: Weight of the base rate where it is not cross-validated, in rows.
_BASE_ROWS = 0.25


class AutoCalibrator(TwoClassMass, BaseCalibrator):
    r"""Calibration without a choice to make: good with twenty rows and with twenty thousand.

    Three steps, each kept as simple as the rows allow:

    1. *Robust temperature.* :math:`p=\mathrm{softmax}(\theta v)`, one slope for all classes, of
       scores whose gap to the best is limited, :math:`v_k=-d_k/(1+d_k/L)`. The limit L is chosen
       among six quantiles of the gaps, and none, by likelihood; it must gain four units.
    2. *Matrix scaling* of its logarithm, shrunken towards it by evidence (`MatrixCalibrator`;
       beyond 100 classes `VectorCalibrator`): offsets and slopes of classes, and what a score says
       of other classes.
    3. *Pooling.* The probability is the mean :math:`w_1p_\text{map}+w_2p_\text{isotonic}+w_3\pi`
       with π the base rates. From 200 rows and 30 for each class on, up to 50 classes, the weights
       maximise the likelihood of rows left out in five folds; with fewer rows :math:`w_2=0` and
       :math:`w_3=1/(4(n+1))`, so that no class is called impossible after n rows.

    Parameters
    ----------
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken, or their logarithms.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken. "auto" is half of
        the smallest positive one in the fit, within 1e-16 and 0.01: what a forest calls impossible
        is then a little less likely than what it has seen once.
    classes : array-like of shape (K,), optional
        Labels of the columns, where y lacks some of them.

    Attributes
    ----------
    summary_ : str
        What was chosen, in a sentence.
    limit_ : float
        Limit L of the gaps between scores; infinite where there is none.
    slope_ : float
        Slope θ of the robust temperature map.
    map_ : MatrixCalibrator or VectorCalibrator
        Fitted to the logarithm of the temperature map.
    isotonic_ : IsotonicCalibrator or None
        None with few rows, many classes, or where it has no weight.
    weights_ : ndarray of shape (3,)
        Weights of the map, of the isotonic map and of the base rates.
    base_rate_ : ndarray of shape (K,)
        Frequencies of the classes, one row of unknown label added.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    See Also
    --------
    MatrixCalibrator : The second step alone.
    CalibratedClassifier : Calibrates any classifier, by this unless told otherwise.

    Notes
    -----
    Bounds are the means of those of the two maps, with the same weights, widened to hold the
    probability. Limit and weights count as known.

    The number of limits tried, the gain of four units, 200 rows, a quarter of a row and the prior
    weights of the pool were chosen on digits, breast cancer and wine, also with few features, noisy
    labels and merged classes; `benchmarks/QUALITY.md` has the results on other data. Folds do not
    depend on the order of rows or classes, but that of more than 5,000 rows a fixed sample of
    positions chooses the weights. Where so many scores are equal that one fold would hold more than
    half of the rows, there is no isotonic map.

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

    _working_set: ClassVar[int] = 16

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
        self.base_rate_ = base_rate(np.bincount(y, weight, n_classes))
        self.isotonic_: IsotonicCalibrator | None = None
        floor = _BASE_ROWS / (total + 1)
        self.weights_ = np.array([1 - floor, 0.0, floor])
        if self._has_rows_to_pool(total):
            self._pool(u, y, weight)
        self.summary_ = self._sentence(total)

    def _has_rows_to_pool(self, total: float) -> bool:
        """Say whether rows suffice for an isotonic map beside the other."""
        n_classes = len(self.classes_)
        enough = max(_POOL_ROWS, _POOL_ROWS_PER_CLASS * n_classes)
        return n_classes <= _POOL_CLASSES and total >= enough

    def _pool(self, u: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit the isotonic map and the weights of all three parts, unless rows are too alike."""
        rows = spread_rows(len(u), _MOST_FOLDED)
        some_u, some_y, some_weight = u[rows], y[rows], weight[rows]
        fold = folds_by_margin(some_u, some_y, _FOLDS)
        if not balanced(fold, some_weight, _FOLDS):
            return
        likelihood = np.empty((len(rows), 3))
        for k in range(_FOLDS):
            kept, left = fold != k, fold == k
            parts = self._left_out(some_u, some_y, some_weight, kept, left)
            likelihood[left] = np.column_stack([p[np.arange(len(p)), some_y[left]] for p in parts])
        self.weights_ = fit_weights(likelihood, some_weight, _PRIOR_ROWS)
        self.isotonic_ = self._fresh_isotonic().fit(self._limited.slope * u, y, weight)

    def _left_out(
        self, u: FloatArray, y: IntArray, weight: FloatArray, kept: BoolArray, left: BoolArray
    ) -> list[FloatArray]:
        """Return what each part, fitted to the rows kept, says of the rows left out."""
        logits = self._limited.slope * u
        isotonic = self._fresh_isotonic().fit(logits[kept], y[kept], weight[kept])
        base = base_rate(np.bincount(y[kept], weight[kept], u.shape[1]))
        features = self._features(u)
        proba = self.map_.left_out_proba(features[kept], y[kept], weight[kept], features[left])
        return [proba, isotonic.predict_proba(logits[left]), np.broadcast_to(base, proba.shape)]

    def _fresh_map(self) -> MatrixCalibrator | VectorCalibrator:
        """Return the second step, to be fitted."""
        n_classes = len(self.classes_)
        kind = MatrixCalibrator if n_classes <= _MATRIX_CLASSES else VectorCalibrator
        return kind(classes=np.arange(n_classes))._trusting_labels()

    def _features(self, u: FloatArray) -> FloatArray:
        """Return what the second step reads.

        Log-probabilities, or the margin of two classes. A constant added to a row of margins is
        information, and stays where they are not limited.
        """
        if len(self.classes_) == 2:
            log_proba = self._limited.log_proba(u)
            return log_proba[:, 1:] - log_proba[:, :1]
        if self.input == "margin" and self._limited.limit == np.inf:
            return self._limited.slope * u
        return self._limited.log_proba(u)

    def _fresh_isotonic(self) -> IsotonicCalibrator:
        """Return the isotonic map, to be fitted."""
        fresh = IsotonicCalibrator(input="logits", classes=np.arange(len(self.classes_)))
        return fresh._trusting_labels()

    def _proba(self, table: FloatArray) -> FloatArray:
        u = self._scores(table)
        proba = self.weights_[0] * self.map_.predict_proba(self._features(u))
        if self.isotonic_ is not None:
            logits = self._limited.slope * u
            proba += self.weights_[1] * self.isotonic_.predict_proba(logits)
        return proba + self.weights_[2] * self.base_rate_

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return that of the second step, unless the isotonic map makes up for it."""
        misfit = self.map_.misfit_
        return misfit if self.isotonic_ is None else min(misfit, super()._misfit(table, y, weight))

    def _bounds(self, table: FloatArray) -> Pair:
        return self._pooled_bounds(table, None)

    def _level_bounds(self, table: FloatArray, level: float) -> Pair:
        return self._pooled_bounds(table, level)

    def _pooled_bounds(self, table: FloatArray, level: float | None) -> Pair:
        """Return the weighted means of the maps' bounds, widened to hold the probability.

        The base rates have no part in it: they keep probabilities off 0 and 1, where the truth may
        well be.
        """
        u = self._scores(table)
        bounds = self.map_.predict_bounds(self._features(u), level)
        if self.isotonic_ is not None:
            weight = self.weights_[1] / self.weights_[:2].sum()
            more = self.isotonic_.predict_bounds(self._limited.slope * u, level)
            pair = zip(bounds, more, strict=True)
            bounds = Bounds(*((1 - weight) * side + weight * other for side, other in pair))
        return holding(self._proba(table), (bounds.lower, bounds.upper))

    def _scores(self, table: FloatArray) -> FloatArray:
        """Return log scores in the units of the fit."""
        return np.asarray(self._log_scores(table, normalised=True) / self._unit)

    def _sentence(self, total: float) -> str:
        """Say what was chosen."""
        first = f"temperature {1 / self.slope_:.3g}"
        if self.limit_ < np.inf:
            first += f" of scores limited to {self.limit_:.3g} below the best"
        second = "matrix" if isinstance(self.map_, MatrixCalibrator) else "vector"
        weights = f"{self.weights_[0]:.3f} map"
        if self.isotonic_ is not None:
            weights += f", {self.weights_[1]:.3f} isotonic"
        elif self._has_rows_to_pool(total):
            weights += " (no isotonic map: too many equal scores)"
        return (
            f"{first}, then {second} scaling; weights {weights}, {self.weights_[2]:.3f} base rate "
            f"({total:.6g} rows, {len(self.classes_)} classes)"
        )


def base_rate(counts: npt.NDArray[Any]) -> FloatArray:
    """Return frequencies of the classes, one row of unknown label added."""
    return np.asarray((counts + 1 / len(counts)) / (counts.sum() + 1))
