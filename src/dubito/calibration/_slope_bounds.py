"""Bounds of temperature scaling from the likelihood of its slope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels import couplings, multinomial, slope_levels
from dubito._kernels.level_nodes import Nodes, level_nodes
from dubito._kernels.softmax import softmax_rows, spread_rows
from dubito.calibration._kept import WithoutCache
from dubito.calibration._log_odds_bounds import holding
from dubito.calibration._misfit import events_of, frequent_classes, misfit_of

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray

#: Scores that are kept, and rows at least; of more a sample.
_KEPT_SCORES = 2**17
_FEWEST_ROWS = 256

#: Points of each panel of the rule that integrates over the level.
_NODES = 16


def prepared(scores: FloatArray, nodes: Nodes) -> FloatArray:
    """Return scores less the largest of their row, scaled to range 1 where nodes ask for it."""
    scores = scores - scores.max(axis=1, keepdims=True)
    if nodes.relative:
        reach = -scores.min(axis=1, keepdims=True)
        scores /= np.where(reach > 0, reach, 1.0)
    return scores


def slope_belief(
    scores: FloatArray, nodes: Nodes, slope: float, coupling: str
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility at `prepared` scores, holding the probability."""
    return holding(softmax_rows(slope * scores), couplings.bounds(scores, nodes, coupling))


def slope_at_level(
    scores: FloatArray, levels: slope_levels.SlopeLevels, slope: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds at a level at `prepared` scores, holding the probability."""
    interval = slope_levels.slope_interval(levels, level)
    return holding(softmax_rows(slope * scores), slope_levels.envelope(scores, interval))


class _Pulls(NamedTuple):
    """Linear terms of the likelihoods of the slope, by their targets."""

    fitted: float
    raw: float
    shrunken: float


@dataclass(frozen=True)
class SlopeRows(WithoutCache):
    """Rows with the likelihood of a fitted slope; those of large data are a sample.

    The weights of a sample make its curvature at the slope that of all rows, and its linear terms
    the slope its own maximum: the likelihood is then right to second order at the estimate, and
    with so many rows it does not reach further.
    """

    scores: FloatArray
    y: IntArray
    weight: FloatArray
    pulls: _Pulls
    factor: float = 1.0  # rows that each row stands for

    @cached_property
    def fit(self) -> multinomial.Fit:
        """The likelihood behind belief and plausibility."""
        return multinomial.fit_likelihood(self.scores, self.weight, self.pulls.fitted)

    @cached_property
    def nodes(self) -> Nodes:
        """The level sets of that likelihood."""
        return level_nodes(self.fit, _NODES)

    @cached_property
    def levels(self) -> slope_levels.SlopeLevels:
        """The two likelihoods behind bounds at a level."""
        return slope_levels.from_pulls(
            self.scores, self.weight, self.pulls.raw, self.pulls.shrunken
        )

    def misfit(self, slope: float) -> float:
        """Return the fraction of rows that contradict the form of the map."""
        weight = self.weight / self.factor  # a sample knows no more than its rows
        classes = frequent_classes(self.y, weight, self.scores.shape[1])
        proba = softmax_rows(slope * (self.scores - self.scores.max(axis=1, keepdims=True)))
        fitted, event = events_of(proba, self.y, classes)
        return misfit_of(fitted, event, weight)


def slope_rows(
    scores: FloatArray, y: IntArray, weight: FloatArray, slope: float, pseudo: float
) -> SlopeRows:
    """Return the rows to keep of a slope fitted with some pseudo-observations."""
    pulls = _pulls(scores, y, weight, pseudo)
    rows = spread_rows(len(scores), max(_KEPT_SCORES // scores.shape[1], _FEWEST_ROWS))
    if len(rows) == len(scores):
        return SlopeRows(scores, y, weight, pulls)
    part_scores, part_y, part_weight = scores[rows], y[rows], weight[rows]
    first, second = _slope_derivatives(scores, y, weight, slope)
    part_first, part_second = _slope_derivatives(part_scores, part_y, part_weight, slope)
    if part_second > 0 and pulls.raw < 0:
        factor = second / part_second
        part_raw = multinomial.target_pull(part_scores, part_y, part_weight, "raw")
        shift = factor * (part_first + part_raw) - (first + pulls.raw)
        pulls = _Pulls(*(pull + shift for pull in pulls))
    else:  # the true class always comes first, or probabilities are 0 and 1
        factor = weight.sum() / part_weight.sum()
        pulls = _pulls(part_scores, part_y, factor * part_weight, pseudo)
    return SlopeRows(part_scores, part_y, factor * part_weight, pulls, factor)


def _slope_derivatives(
    scores: FloatArray, y: IntArray, weight: FloatArray, slope: float
) -> tuple[float, float]:
    """Return two derivatives of the negative log-likelihood of raw labels in the slope."""
    from dubito._kernels.softmax_compiled import temperature_sums  # noqa: PLC0415 - loads numba

    _, first, second, _ = temperature_sums(scores, y, weight, 0.0, slope)
    return first, second


def _pulls(scores: FloatArray, y: IntArray, weight: FloatArray, pseudo: float) -> _Pulls:
    """Return the linear terms, as `multinomial.target_pull` has them, in one pass."""
    n_classes, n = scores.shape[1], float(weight.sum())
    raw = multinomial.target_pull(scores, y, weight, "raw")
    spread = (
        float(weight @ scores.sum(axis=1)) - n_classes * float(weight @ scores.max(axis=1))
    ) / n_classes
    # Raw targets have no maximum where the true class always comes first: nor has a belief.
    pseudo = multinomial.LIGHT if pseudo == 0 and raw == 0 else pseudo
    shares = [c / (n + c) for c in (pseudo, slope_levels.PSEUDO)]
    fitted, shrunken = ((1 - share) * raw + share * spread for share in shares)
    return _Pulls(fitted, raw, shrunken)
