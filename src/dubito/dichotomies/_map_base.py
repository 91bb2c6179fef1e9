"""What calibration maps of nodes are fitted on, and what each kind of them offers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from dubito._numerics.logistic_fit import LARGEST

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class NodeRows:
    """Out-of-fold log-odds of the rows of every node, packed one node after the other.

    Those of node t are ``cross[ptr[t]:ptr[t + 1]]``, and its right side, the event, begins at
    ``ptr[t] + middle[t]``. ``weight`` are those of all rows in leaf order; the node's begin at
    ``first[t]``. A node whose scores hold nan, or that has none, is left uncalibrated: with a
    single row on a side there is nothing to cross-fit.
    """

    cross: FloatArray
    ptr: IntArray
    middle: IntArray
    weight: FloatArray
    first: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "cross", finite(self.cross))
        object.__setattr__(self, "weight", contiguous(self.weight))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.middle)

    @property
    def sizes(self) -> IntArray:
        """Rows of each node."""
        return np.diff(self.ptr)

    @property
    def packed(self) -> tuple[Any, ...]:
        """What the compiled kernels take."""
        integers = (self.ptr, self.middle, self.first)
        ptr, middle, first = (np.require(a, np.int64, ["C", "W"]) for a in integers)
        return self.cross, ptr, middle, self.weight, first

    def usable(self) -> BoolArray:
        """Return which nodes have scores to be calibrated on."""
        nans = np.concatenate([[0], np.cumsum(np.isnan(self.cross))])
        return (nans[self.ptr[1:]] == nans[self.ptr[:-1]]) & (self.sizes > 0)

    def total_weight(self) -> FloatArray:
        """Return the weight of the rows of each node."""
        sums = np.concatenate([[0.0], np.cumsum(self.weight)])
        return sums[self.first + self.sizes] - sums[self.first]

    def side_weights(self) -> FloatArray:
        """Return the weights of the left and of the right side of each node, (nodes, 2)."""
        sums = np.concatenate([[0.0], np.cumsum(self.weight)])
        ends = sums[np.stack([self.first, self.first + self.middle, self.first + self.sizes])]
        return np.diff(ends, axis=0).T

    def of(self, node: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return scores, whether each row is on the right side, and weights of a node's rows."""
        scores = self.cross[self.ptr[node] : self.ptr[node + 1]]
        first = self.first[node]
        event = np.arange(len(scores)) >= self.middle[node]
        return scores, event, self.weight[first : first + len(scores)]


class NodeMaps(metaclass=ABCMeta):
    """Calibrated log-odds of the right side of every node; rows are treated one by one."""

    #: Whether the maps know lower and upper probabilities that differ.
    has_bounds: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds (n, nodes) of log-odds (n, nodes); always finite."""

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper probability of the right side, each (n, nodes).

        Those of precise maps are equal.
        """
        proba = expit(self.log_odds(scores))
        return proba, proba

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold the probability of the right side at a level, each (n, nodes).

        They need not hold the estimate. Those of an uncalibrated node are 0 and 1.
        """
        raise NotImplementedError  # asked only of maps with bounds

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """Slope and intercept of each node, where a linear model may take them into its weights."""
        return None


def contiguous(scores: FloatArray) -> FloatArray:
    """Return scores as compiled kernels take them: of one type and layout, or they compile anew."""
    return np.require(scores, np.float64, ["C", "W"])


def finite(scores: FloatArray) -> FloatArray:
    """Return scores within what sums along a path can hold."""
    return np.clip(contiguous(scores), -LARGEST, LARGEST)
