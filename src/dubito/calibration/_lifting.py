r"""From two classes to K: one binary map for each class against the rest, then normalised.

With :math:`q_k\in[l_k,u_k]` the probability of class k against the rest, the lifted probability is
:math:`p_k=q_k/\sum_jq_j`, and its exact range over the box is

.. math:: \frac{l_k}{l_k+\sum_{j\ne k}u_j}\;\le\;p_k\;\le\;\frac{u_k}{u_k+\sum_{j\ne k}l_j}.

Maps that are fitted apart may agree that a class is impossible, and be wrong together: so
probabilities of more than two classes are mixed with the base rate at the weight of one row,

.. math:: (1-\epsilon)\,p_k+\epsilon\,b_k,\qquad\epsilon=\frac1{n+1},\quad b_k=\frac{n_k+1}{n+K},

and their bounds alike, which so hold them; n are the rows of the fit, or their weight, :math:`n_k`
those of class k. No probability is then 0, and a log loss is finite. Bounds at a level are those of
the maps, widened where they do not hold the mixed probability.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dubito.calibration._base import BaseCalibrator
from dubito.calibration._scores import binary_log_odds, class_log_odds
from dubito.calibration._two_classes import TwoClassMass, read_theta

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray, IntArray


class BinaryMap(Protocol):
    """A fitted map from one score to the probability of one event."""

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the probability of the event for each score, (n,)."""


class EvidentialMap(BinaryMap, Protocol):
    """A fitted map that also knows how sure it is."""

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold the event's probability at a confidence level, each (n,)."""

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability of the event at each score, (n, t)."""


class LiftedCalibrator(BaseCalibrator):
    """A calibrator that fits binary maps: one for two classes, K one-against-rest for more.

    A subclass writes `_fit_map(score, event, weight)`, which must take data without an event or
    without its opposite: a class may be missing from the calibration set.
    """

    maps_: list[Any]
    base_rate_: FloatArray
    base_weight_: float

    @abstractmethod
    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> BinaryMap:
        """Fit the map of one event."""

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        odds = self._log_odds(table)
        first = 1 if odds.shape[1] == 1 else 0  # two classes: the event is the second
        self.maps_ = [
            self._fit_map(np.ascontiguousarray(odds[:, k]), y == first + k, weight)
            for k in range(odds.shape[1])
        ]

        self._keep_base_rate(y, weight)

    def _keep_base_rate(self, y: IntArray, weight: FloatArray) -> None:
        """Keep what probabilities of more than two classes are mixed with, and how far."""
        n_classes, n = len(self.classes_), float(weight.sum())
        self.base_rate_ = (np.bincount(y, weight, n_classes) + 1) / (n + n_classes)
        self.base_weight_ = 1 / (n + 1) if n_classes > 2 else 0.0

    def _mixed(self, proba: FloatArray) -> FloatArray:
        """Mix probabilities, or bounds of them, with the base rate."""
        if self.base_weight_ == 0:
            return proba
        return (1 - self.base_weight_) * proba + self.base_weight_ * self.base_rate_

    def _log_odds(self, table: FloatArray) -> FloatArray:
        """Return log-odds of each event: (n, 1) for two classes, (n, K) for more."""
        if len(self.classes_) == 2:
            return binary_log_odds(table, self.input, self.floor_)[:, None]
        return class_log_odds(table, self.input, self.floor_)

    def _proba(self, table: FloatArray) -> FloatArray:
        odds = self._log_odds(table)
        events = np.stack([m.proba(odds[:, k]) for k, m in enumerate(self.maps_)], axis=1)
        return self._mixed(lift_proba(events))


class LiftedEvidentialCalibrator(TwoClassMass, LiftedCalibrator):
    """A lifted calibrator whose maps are evidential."""

    @abstractmethod
    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> EvidentialMap:
        """Fit the map of one event."""

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        odds = self._log_odds(table)
        pairs = [m.bounds(odds[:, k]) for k, m in enumerate(self.maps_)]
        lower, upper = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        lower, upper = lift_bounds(lower, upper)
        return self._mixed(lower), self._mixed(upper)

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return each class's own interval against the rest, widened to hold its probability.

        The interval of the map of class k holds :math:`P(k|s)` at the level where the map's form
        is right; normalising over the classes would add the others' doubts to it.
        """
        odds = self._log_odds(table)
        pairs = [m.level_bounds(odds[:, k], level) for k, m in enumerate(self.maps_)]
        lower, upper = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        if len(self.maps_) == 1:
            lower, upper = lift_bounds(lower, upper)
        proba = self._proba(table)
        return np.minimum(lower, proba), np.maximum(upper, proba)

    def contour(self, scores: Any, theta: npt.ArrayLike) -> FloatArray:
        r"""Return the contour: how plausible each value of the probability is at each score.

        The relative likelihood of :math:`\theta`, 1 for the most plausible.

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
        values = read_theta(theta)
        odds = self._log_odds(self._read(scores))
        contours = [m.contour(odds[:, k], values) for k, m in enumerate(self.maps_)]
        return contours[0] if len(contours) == 1 else np.stack(contours, axis=1)


def lift_proba(events: FloatArray) -> FloatArray:
    """Return probabilities of K classes from those of the events, (n, 1) or (n, K)."""
    if events.shape[1] == 1:
        return np.hstack([1 - events, events])
    total = events.sum(axis=1, keepdims=True)
    uniform = np.full_like(events, 1 / events.shape[1])
    return np.divide(events, total, out=uniform, where=total > 0)


def lift_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper probabilities of K classes from those of the events."""
    if lower.shape[1] == 1:
        return np.hstack([1 - upper, lower]), np.hstack([1 - lower, upper])
    return _share(lower, _rest(upper), 0.0), _share(upper, _rest(lower), 1.0)


def _rest(values: FloatArray) -> FloatArray:
    """Sum the other entries of each row; taking one off the total would cancel."""
    rest = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=rest[:, 1:])
    rest[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return rest


def _share(part: FloatArray, rest: FloatArray, otherwise: float) -> FloatArray:
    """Divide each part by itself and the rest; `otherwise` where both are zero."""
    return np.divide(part, part + rest, out=np.full_like(part, otherwise), where=part + rest > 0)
