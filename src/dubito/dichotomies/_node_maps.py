"""Calibration maps of all nodes of a tree: their training rows, the interface, maps without bounds.

Maps of one type are packed into arrays, one node after the other, and evaluated by compiled code.
All maps give finite log-odds, so that no class gets probability 0, and treat rows one by one. A
node without scores to calibrate on keeps its own log-odds; its bounds, where maps have bounds, are
0 and 1.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit

from dubito._numerics.logistic_fit import LARGEST
from dubito._numerics.targets import target_table
from dubito.dichotomies._parallel import count_tasks, plan_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest slope and offset for which slope (s - centre) / scale + intercept may be rewritten as
#: slope s + intercept without losing too many digits.
_LARGEST_AFFINE = 1e6

#: Time of a map's fit that does not depend on its rows, as a number of rows.
_FIXED_COST = 100.0


@dataclass(frozen=True, kw_only=True)
class NodeRows:
    """Out-of-fold log-odds of the rows of every node, packed one node after the other.

    Those of node t are ``out_of_fold[start[t]:start[t + 1]]``; the rows of its right side, the
    event, begin at ``start[t] + n_left[t]``. ``weight`` holds the sample weights of all rows in
    leaf order; those of node t begin at ``weight_start[t]``. A node whose scores contain nan, or
    that has none, is not calibrated; they are nan where a side has a single row, without which
    nothing can be fitted.
    """

    out_of_fold: FloatArray
    start: IntArray
    n_left: IntArray
    weight: FloatArray
    weight_start: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "out_of_fold", finite(self.out_of_fold))
        object.__setattr__(self, "weight", contiguous(self.weight))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.n_left)

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each node."""
        return np.diff(self.start)

    @property
    def packed(self) -> tuple[Any, ...]:
        """The arrays in the types and order that the compiled kernels take."""
        integers = (self.start, self.n_left, self.weight_start)
        start, n_left, weight_start = (np.require(a, np.int64, ["C", "W"]) for a in integers)
        return self.out_of_fold, start, n_left, self.weight, weight_start

    def usable(self) -> BoolArray:
        """Return which nodes have scores to calibrate on."""
        nans = np.concatenate([[0], np.cumsum(np.isnan(self.out_of_fold))])
        return (nans[self.start[1:]] == nans[self.start[:-1]]) & (self.sizes > 0)

    def tasks(self, n_jobs: int | None) -> list[IntArray]:
        """Return groups of nodes whose maps take a similar time to fit."""
        cost = np.where(self.usable(), self.sizes + _FIXED_COST, 0.0)
        return plan_tasks(cost, count_tasks(n_jobs))

    def total_weight(self) -> FloatArray:
        """Return the total sample weight of each node."""
        sums = np.concatenate([[0.0], np.cumsum(self.weight)])
        return sums[self.weight_start + self.sizes] - sums[self.weight_start]

    def side_weights(self) -> FloatArray:
        """Return the sample weights of the left and the right side of each node, (nodes, 2)."""
        sums = np.concatenate([[0.0], np.cumsum(self.weight)])
        start = self.weight_start
        ends = sums[np.stack([start, start + self.n_left, start + self.sizes])]
        return np.diff(ends, axis=0).T

    def side_targets(self, targets: str) -> FloatArray:
        """Return the target of the rows on the left and the right of each node, (nodes, 2)."""
        sides = np.arange(2)
        tables = [target_table(sides, weights, 2, targets)[:, 1] for weights in self.side_weights()]
        return np.array(tables).reshape(-1, 2)

    def floors(self) -> FloatArray:
        r"""Return the probability that replaces 0 at each node: :math:`1/(2(w+1))`.

        w is the total sample weight of the node: half the frequency of an event in one more row.
        """
        return 0.5 / (self.total_weight() + 1)

    def of_node(self, node: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return scores, whether each row is on the right side, and weights of a node's rows."""
        scores = self.out_of_fold[self.start[node] : self.start[node + 1]]
        event = np.arange(len(scores)) >= self.n_left[node]
        start = self.weight_start[node]
        return scores, event, self.weight[start : start + len(scores)]


class NodeMaps(metaclass=ABCMeta):
    """Maps from the scores of all nodes to calibrated log-odds of their right sides."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds (n, nodes) of log-odds (n, nodes); always finite."""

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper probability of the right side, each (n, nodes).

        Those of maps without bounds are equal.
        """
        proba = expit(self.log_odds(scores))
        return proba, proba

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the right side's probability at a confidence level, each (n, nodes).

        They need not include the estimate. Those of an uncalibrated node are 0 and 1.
        """
        raise NotImplementedError  # called for maps with bounds only

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """Slope and intercept of each node, if a linear model can absorb the maps; else None."""
        return None


class IdentityMaps(NodeMaps):
    """The node models' own log-odds, without calibration."""

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the scores themselves, clipped to finite values."""
        return finite(scores)

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """Slope 1 and intercept 0, for any number of nodes."""
        return np.ones(1), np.zeros(1)


@dataclass(frozen=True, repr=False)
class SigmoidMaps(NodeMaps):
    """Log-odds slope (s - centre) / scale + intercept of each node's scores s.

    Columns 0 to 3 of `coef` are centre, scale, slope and intercept; column 4 is the largest
    component of the gradient at the end of the fit, per unit of sample weight. An uncalibrated node
    has the identity.
    """

    coef: FloatArray

    @classmethod
    def fit(cls, rows: NodeRows, *, targets: str) -> Self:
        """Return fitted sigmoids of all nodes; with smoothed targets they are Platt's."""
        from dubito.dichotomies._kernels.node_sigmoids_compiled import fit_sigmoids  # noqa: PLC0415 - loads numba

        return cls(fit_sigmoids(rows.packed, rows.side_targets(targets)))

    @classmethod
    def from_slopes(cls, slopes_intercepts: Sequence[tuple[float, float]]) -> Self:
        """Return maps of given slopes and intercepts."""
        slope, intercept = np.array(slopes_intercepts, dtype=np.float64).reshape(-1, 2).T
        zeros = np.zeros(len(slope))
        return cls(np.column_stack([zeros, np.ones(len(slope)), slope, intercept, zeros]))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds."""
        from dubito.dichotomies._kernels.node_sigmoids_compiled import affine_log_odds  # noqa: PLC0415 - loads numba

        return affine_log_odds(contiguous(scores), self.coef)

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """Slope and intercept of each node; None if these would lose digits.

        They would where the scores of a node are far from 0 compared with their spread.
        """
        centre, scale, slope, intercept, _ = self.coef.T
        constant = ~(scale > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            steepness = np.where(constant, 0.0, slope / np.where(constant, 1.0, scale))
            shift = steepness * centre
        if not ((np.abs(steepness) < _LARGEST_AFFINE) & (np.abs(shift) < _LARGEST_AFFINE)).all():
            return None
        return steepness, intercept - shift


@dataclass(frozen=True, repr=False)
class IsotonicMaps(NodeMaps):
    """Isotonic probabilities of each node, linear between knots.

    Columns ``start[t]:start[t + 1]`` of `knots` are scores and values of node t: only both ends of
    each block of equal values are kept. Values are clipped to [floor, 1 - floor];
    `floor` is 0 where they are never 0 or 1.
    """

    knots: FloatArray  # (2, total): scores, values
    start: IntArray
    floor: FloatArray

    @classmethod
    def fit(cls, rows: NodeRows, *, smoothing: float) -> Self:
        """Return fitted maps of ``IsotonicCalibrator(smoothing=smoothing)`` of all nodes."""
        from dubito.dichotomies._kernels.node_isotonic_compiled import (  # noqa: PLC0415 - loads numba
            isotonic_knots,
            pool_ties_of_nodes,
        )

        pools, count = pool_ties_of_nodes(rows.packed)
        knots, used = isotonic_knots(pools, rows.packed[1], count, float(smoothing))
        start, columns = pack(rows.start, used)
        floor = np.where(smoothing > 0, 0.0, rows.floors())
        return cls(knots[:, columns], start, floor)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds; an uncalibrated node keeps its scores."""
        from dubito.dichotomies._kernels.node_isotonic_compiled import isotonic_log_odds  # noqa: PLC0415 - loads numba

        return isotonic_log_odds(contiguous(scores), self.knots, self.start, self.floor)


def pack(start: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return the start of each node if it keeps its first `count` columns, and those columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.dichotomies._node_maps import pack
    >>> pack(np.array([0, 4, 9]), np.array([2, 3]))
    (array([0, 2, 5]), array([0, 1, 4, 5, 6]))
    """
    packed_start = np.concatenate([[0], np.cumsum(count)])
    shift = np.asarray(start)[:-1] - packed_start[:-1]
    return packed_start, np.arange(packed_start[-1]) + np.repeat(shift, count)


def contiguous(scores: FloatArray) -> FloatArray:
    """Return scores in the one type and layout for which the kernels are compiled."""
    return np.require(scores, np.float64, ["C", "W"])


def finite(scores: FloatArray) -> FloatArray:
    """Return scores clipped so that their sums along a path are finite."""
    return np.clip(contiguous(scores), -LARGEST, LARGEST)
