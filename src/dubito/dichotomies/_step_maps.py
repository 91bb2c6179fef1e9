"""Isotonic maps of nodes: tables that are packed together and looked up by compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from dubito._numerics.isotonic import belief_steps, neighbour_bounds, widened_bounds
from dubito.dichotomies._map_base import NodeMaps, NodeRows, contiguous, finite
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray


@dataclass(frozen=True, repr=False)
class IsotonicMaps(NodeMaps):
    """Values of each node, linear between knots: columns ``start[t]:start[t + 1]`` of `knots`.

    Only both ends of each block of equal values are kept. `cut` is 0 where the values keep off 0
    and 1 by themselves, else what probabilities are kept off them.
    """

    knots: FloatArray  # (2, all): places, values
    start: IntArray
    cut: FloatArray

    @classmethod
    def fit(cls, rows: NodeRows, *, smoothing: float) -> Self:
        """Fit the maps of ``IsotonicCalibrator(smoothing=smoothing)`` at all nodes."""
        from dubito.dichotomies._kernels.packed_isotonic_compiled import (  # noqa: PLC0415 - loads numba
            isotonic_knots,
            pool_ties,
        )

        pools, count = pool_ties(rows.packed)
        knots, used = isotonic_knots(pools, rows.packed[1], count, float(smoothing))
        start, place = pack(rows.ptr, used)
        return cls(knots[:, place], start, np.where(smoothing > 0, 0.0, least_share(rows)))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds; an uncalibrated node keeps its scores."""
        from dubito.dichotomies._kernels.packed_isotonic_compiled import isotonic_log_odds  # noqa: PLC0415

        return isotonic_log_odds(contiguous(scores), self.knots, self.start, self.cut)


@dataclass(frozen=True, repr=False)
class EvidentialIsotonicMaps(NodeMaps):
    """Belief and plausibility of each node, steps between the scores seen.

    Columns ``start[t]:start[t + 1]`` of `pools` are the scores of node t, with the weights of its
    right and of its left side there; its steps, one more than those, begin at column
    ``start[t] + t`` of `beliefs`: beliefs, plausibilities. Bounds at a level are computed when they
    are asked for; `exact` says which, as that of the calibrator.
    """

    has_bounds: ClassVar[bool] = True

    pools: FloatArray  # (3, all): places, weights of the right side, of the left side
    start: IntArray
    beliefs: FloatArray  # (2, all)
    exact: bool

    @classmethod
    def fit(cls, rows: NodeRows, *, exact: bool, n_jobs: int | None) -> Self:
        """Fit the maps of ``EvidentialIsotonicCalibrator(exact=exact)`` at all nodes."""
        from dubito.dichotomies._kernels.packed_isotonic_compiled import pool_ties  # noqa: PLC0415 - loads numba

        pools, count = pool_ties(rows.packed)
        start, place = pack(rows.ptr, count)
        pools = pools[:, place]
        tasks = plan_tasks(count.astype(np.float64), count_tasks(n_jobs))
        done = run_tasks(_steps_of, (pools, start), tasks, n_jobs=n_jobs)
        steps = np.empty((2, len(place) + len(count)))
        for task, results in zip(tasks, done, strict=True):
            for node, result in zip(task, results, strict=True):
                steps[:, start[node] + node : start[node + 1] + node + 1] = result
        return cls(pools, start, steps, exact)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        from dubito.dichotomies._kernels.packed_isotonic_compiled import step_bounds  # noqa: PLC0415

        return step_bounds(contiguous(scores), self.pools[0], self.start, self.beliefs)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the cut of each node's contour, or Clopper-Pearson limits."""
        lower, upper = np.zeros(scores.shape), np.ones(scores.shape)
        read = neighbour_bounds if self.exact else widened_bounds
        for node, (first, last) in enumerate(pairwise(self.start)):
            if first < last:
                places, right, left = self.pools[:, first:last]
                score = scores[:, node]
                before = np.searchsorted(places, score)
                at_or_before = np.searchsorted(places, score, side="right")
                lower[:, node], upper[:, node] = read(at_or_before, before, right, left, level)
        return lower, upper

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of the middle of belief and plausibility, which is never 0 or 1."""
        lower, upper = self.bounds(scores)
        out = np.log((lower + upper) / ((1 - lower) + (1 - upper)))
        unknown = np.diff(self.start) == 0
        out[:, unknown] = finite(scores[:, unknown])
        return out


def _steps_of(
    pools: FloatArray, start: IntArray, nodes: IntArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Return belief and plausibility on the steps of some nodes."""
    return [_steps(pools[1:, start[node] : start[node + 1]]) for node in nodes]


def _steps(pool: FloatArray) -> tuple[FloatArray, FloatArray]:
    if pool.shape[1] == 0:
        return np.zeros(1), np.ones(1)
    return belief_steps(np.ascontiguousarray(pool[0]), np.ascontiguousarray(pool[1]))


def pack(ptr: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return where nodes start that keep their first `count` columns, and which columns these are.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.dichotomies._step_maps import pack
    >>> pack(np.array([0, 4, 9]), np.array([2, 3]))
    (array([0, 2, 5]), array([0, 1, 4, 5, 6]))
    """
    start = np.concatenate([[0], np.cumsum(count)])
    return start, np.arange(start[-1]) + np.repeat(np.asarray(ptr)[:-1] - start[:-1], count)


def least_share(rows: NodeRows) -> FloatArray:
    r"""Return what a probability of 0 is raised to: :math:`1/(2(w+1))`, w the node's weight.

    Half the share that an event would have as one more row: no class is ever impossible.
    """
    return 0.5 / (rows.total_weight() + 1)
