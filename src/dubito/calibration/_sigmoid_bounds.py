"""Bounds of a sigmoid from its likelihood, for calibrators that fit it in one way or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dubito._kernels.logistic_level import LogisticLevels, level_bounds
from dubito._kernels.logistic_profile import (
    LogisticEvidence,
    belief_and_plausibility,
    contour_of,
    fewer_rows,
)

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray

#: Rows up to which a likelihood is kept row by row; of more, a few points do the same.
KEPT_ROWS = 4096


class EventRows(NamedTuple):
    """What the likelihood of an event needs: scores, where it took place, and weights."""

    x: FloatArray
    event: BoolArray
    weight: FloatArray


def kept_rows(
    x: FloatArray, event: BoolArray, weight: FloatArray, coef: tuple[float, float]
) -> EventRows:
    """Return rows with the same likelihood as those given; few of them where they are many.

    Parameters
    ----------
    x, event, weight : array (n,)
        Scores, where the event took place, and weights.
    coef : tuple
        Level and slope of the fitted log-odds.
    """
    if len(x) <= KEPT_ROWS:
        return EventRows(x, event, weight)
    return EventRows(*fewer_rows(x, event, weight, coef))


class SigmoidBounds:
    """Bounds of a map whose `evidence` and `levels` are likelihoods of standardised scores."""

    evidence: LogisticEvidence
    levels: LogisticLevels

    def standardised(self, score: FloatArray) -> FloatArray:
        """Return standardised scores."""
        raise NotImplementedError

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        return belief_and_plausibility(self.evidence, self.standardised(score))

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold the event's probability at a confidence level, each (n,)."""
        return level_bounds(self.levels, self.standardised(score), level)

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability at each score, (n, len(theta))."""
        return contour_of(self.evidence, self.standardised(score), theta)
