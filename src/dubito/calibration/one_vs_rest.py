r"""Calibrators of K classes by one binary map for each class against the rest, then normalised.

With :math:`q_k\in[l_k,u_k]` the probability of class k against the rest, the probability is
:math:`p_k=q_k/\sum_jq_j`, and its exact range over the box is

.. math:: \frac{l_k}{l_k+\sum_{j\ne k}u_j}\;\le\;p_k\;\le\;\frac{u_k}{u_k+\sum_{j\ne k}l_j}.

Each map may give a class the probability 0. Probabilities of more than two classes are therefore
mixed with the base rate, with the weight of one row,

.. math:: (1-\epsilon)\,p_k+\epsilon\,b_k,\qquad\epsilon=\frac1{n+1},\quad b_k=\frac{n_k+1}{n+K},

and so are their bounds; n is the number of rows of the fit, or their total weight, :math:`n_k` that
of class k, and the base rate has K rows of unknown label added (Laplace's rule). No probability is
then 0, and the log loss is finite. Bounds at a level are those of the maps, widened where they do
not include the mixed probability.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dubito._numerics.sums_of_others import sums_of_others
from dubito._numerics.targets import base_rate
from dubito.belief.bounds import including
from dubito.calibration.base import BaseCalibrator, TwoClassMassMixin, check_theta
from dubito.calibration.scores import binary_log_odds, class_log_odds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


class BinaryMap(Protocol):
    """A fitted map from one score to the probability of one event, with its bounds."""

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the probability of the event for each score, (n,)."""

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability of the event at each score, (n, t)."""


class MiddleOfBoundsMixin:
    """Mixin for binary maps whose probability is the middle of belief and plausibility."""

    if TYPE_CHECKING:

        def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Return belief and plausibility of the event for each score, each (n,)."""

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the pignistic probability of the event for each score, (n,)."""
        lower, upper = self.bounds(score)
        return 0.5 * (lower + upper)


class OneVsRestCalibrator(TwoClassMassMixin, BaseCalibrator):
    """A calibrator that fits binary maps: one for two classes, else one per class against the rest.

    A subclass implements `_fit_map(score, event, weight)`, which must accept rows that are all
    events or all not: a class may be missing from the calibration rows.
    """

    maps_: list[Any]
    base_rate_: FloatArray
    base_weight_: float

    @abstractmethod
    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> BinaryMap:
        """Return the map fitted to the scores of one event."""

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self.maps_ = [
            self._fit_map(np.ascontiguousarray(log_odds), event, weight)
            for log_odds, event in self._events(table, y)
        ]
        self._set_base_rate(y, weight)

    def _events(self, table: FloatArray, y: IntArray) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Yield log-odds and occurrence of each map's event: the second class of two, or each."""
        log_odds = self._log_odds(table)
        first = 1 if log_odds.shape[1] == 1 else 0
        return ((log_odds[:, k], y == first + k) for k in range(log_odds.shape[1]))

    def _set_base_rate(self, y: IntArray, weight: FloatArray) -> None:
        """Set the base rate that probabilities of more than two classes are mixed with."""
        n_classes = len(self.classes_)
        self.base_rate_ = base_rate(y, weight, n_classes, n_classes)
        self.base_weight_ = 1 / (float(weight.sum()) + 1) if n_classes > 2 else 0.0

    def _mixed(self, proba: FloatArray) -> FloatArray:
        """Return probabilities, or bounds of them, mixed with the base rate."""
        if self.base_weight_ == 0:
            return proba
        return (1 - self.base_weight_) * proba + self.base_weight_ * self.base_rate_

    def _log_odds(self, table: FloatArray) -> FloatArray:
        """Return log-odds of each event: (n, 1) for two classes, (n, K) for more."""
        if len(self.classes_) == 2:
            return binary_log_odds(table, self.input, self.floor_)[:, None]
        return class_log_odds(table, self.input, self.floor_)

    def _proba(self, table: FloatArray) -> FloatArray:
        log_odds = self._log_odds(table)
        events = np.stack([m.proba(log_odds[:, k]) for k, m in enumerate(self.maps_)], axis=1)
        return self._mixed(normalise_proba(events))

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_odds = self._log_odds(table)
        bounds = [m.bounds(log_odds[:, k]) for k, m in enumerate(self.maps_)]
        lower, upper = normalise_bounds(*np.stack(bounds, axis=-1))
        return self._mixed(lower), self._mixed(upper)

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return each class's interval against the rest, widened to contain its probability.

        The interval of the map of class k includes :math:`P(k|s)` at the level if the map's form
        is right; normalising would widen it by the uncertainty of the other classes.
        """
        log_odds = self._log_odds(table)
        bounds = [m.level_bounds(log_odds[:, k], level) for k, m in enumerate(self.maps_)]
        lower, upper = np.stack(bounds, axis=-1)
        if len(self.maps_) == 1:
            lower, upper = normalise_bounds(lower, upper)
        return including(self._proba(table), (lower, upper))

    def contour(self, scores: Any, theta: npt.ArrayLike) -> FloatArray:
        r"""Return the contour: the plausibility of each value of the probability at each score.

        It is the relative likelihood of :math:`\theta`, 1 for the most plausible value.

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        theta : array-like of shape (t,)
            Probabilities of ``classes_[1]``; with more than two classes, of each class against the
            rest.

        Returns
        -------
        ndarray of shape (n, t), or (n, K, t) with more than two classes
        """
        values = check_theta(theta)
        log_odds = self._log_odds(self._read_new_scores(scores))
        contours = [m.contour(log_odds[:, k], values) for k, m in enumerate(self.maps_)]
        return contours[0] if len(contours) == 1 else np.stack(contours, axis=1)


def normalise_proba(events: FloatArray) -> FloatArray:
    """Return probabilities (n, K) that sum to 1, from those of one event (n, 1) or of K."""
    if events.shape[1] == 1:
        return np.hstack([1 - events, events])
    total = events.sum(axis=1, keepdims=True)
    uniform = np.full_like(events, 1 / events.shape[1])
    return np.divide(events, total, out=uniform, where=total > 0)


def normalise_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the range of the normalised probabilities, from bounds of one event or of K."""
    if lower.shape[1] == 1:
        return np.hstack([1 - upper, lower]), np.hstack([1 - lower, upper])
    return _fraction(lower, sums_of_others(upper), 0.0), _fraction(
        upper, sums_of_others(lower), 1.0
    )


def _fraction(part: FloatArray, rest: FloatArray, otherwise: float) -> FloatArray:
    """Return part / (part + rest), or `otherwise` where both are 0."""
    return np.divide(part, part + rest, out=np.full_like(part, otherwise), where=part + rest > 0)
