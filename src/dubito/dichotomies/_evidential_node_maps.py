"""Evidential maps of all nodes: belief and plausibility, and bounds at a confidence level.

For sigmoids both are tabulated over all scores: belief and plausibility in the fit, bounds at a
confidence level when the level is first used. For isotonic maps they are constant between training
scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.isotonic import belief_steps, neighbour_bounds, widened_bounds
from dubito._numerics.logistic_fit import standardised
from dubito._numerics.logistic_level import LogisticLevelLikelihoods, logistic_level_likelihoods
from dubito.dichotomies._node_maps import (
    NodeMaps,
    NodeRows,
    SigmoidMaps,
    contiguous,
    finite,
    pack,
)
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray


#: Number of confidence levels whose tables are kept, and a lock: threads may tabulate a new level.
_N_KEPT_LEVELS = 4
_TABLES_LOCK = Lock()


@dataclass(frozen=True, repr=False)
class EvidentialSigmoidMaps(NodeMaps):
    """Sigmoids with tables of belief and plausibility.

    Panels ``start[t]:start[t + 1]`` of `edges` and `series` are those of node t, over angles in its
    `angle_units`; an uncalibrated node has none. `level_likelihoods` are those from which bounds at
    a confidence level are computed, None at an uncalibrated node. Bounds are those of
    ``EvidentialLogisticCalibrator(targets=targets)`` within 1e-8. A table takes 10 to 50
    milliseconds for any number of rows, a look-up 0.2 microseconds.
    """

    sigmoids: SigmoidMaps
    angle_units: FloatArray  # (nodes, 2)
    start: IntArray
    edges: FloatArray
    series: FloatArray
    level_likelihoods: tuple[LogisticLevelLikelihoods | None, ...]
    gaps: tuple[FloatArray, ...]  # standardised scores next to a threshold that separates the sides

    @classmethod
    def fit(cls, rows: NodeRows, *, targets: str, n_jobs: int | None) -> Self:
        """Return fitted maps of ``EvidentialLogisticCalibrator(targets=targets)`` of all nodes."""
        from dubito.dichotomies._kernels.node_sigmoid_beliefs_compiled import DEGREE  # noqa: PLC0415 - loads numba

        sigmoids, usable = SigmoidMaps.fit(rows, targets=targets), rows.usable()
        tasks = rows.tasks(n_jobs)
        shared = (rows, sigmoids.coef, rows.side_targets(targets), usable)
        done = run_tasks(_tables_of_nodes, shared, tasks, n_jobs=n_jobs)
        units = np.zeros((rows.n_nodes, 2))
        edges = [np.empty(0)] * rows.n_nodes
        series = [np.empty((0, 2, DEGREE + 1))] * rows.n_nodes
        likelihoods: list[LogisticLevelLikelihoods | None] = [None] * rows.n_nodes
        gaps = [np.empty(0)] * rows.n_nodes
        for task, tables in zip(tasks, done, strict=True):
            for node, table in zip(task[usable[task]], tables, strict=True):
                units[node], edges[node], series[node], likelihoods[node], gaps[node] = table
        start = np.cumsum([0, *map(len, edges)])
        none = np.empty((0, 2, DEGREE + 1))  # there may be no nodes
        all_edges, all_series = np.concatenate([[], *edges]), np.concatenate([none, *series])
        return cls(sigmoids, units, start, all_edges, all_series, tuple(likelihoods), tuple(gaps))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of the estimate."""
        return self.sigmoids.log_odds(scores)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        from dubito.dichotomies._kernels.node_sigmoid_beliefs_compiled import sigmoid_bounds  # noqa: PLC0415 - loads numba

        tables = (self.start, self.angle_units, self.edges, self.series)
        return sigmoid_bounds(contiguous(scores), self.sigmoids.coef, tables)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds at a confidence level: the hull of the cuts of two contours."""
        from dubito.dichotomies._kernels.node_sigmoid_levels_compiled import sigmoid_level_bounds  # noqa: PLC0415 - loads numba

        return sigmoid_level_bounds(contiguous(scores), self.sigmoids.coef, self._tables_at(level))

    def _tables_at(self, level: float) -> tuple[FloatArray, ...]:
        """Return the tables of a level; those of the last few levels are kept."""
        with _TABLES_LOCK:
            kept = self.__dict__.setdefault("_level_tables", {})
            if level not in kept:
                while len(kept) >= _N_KEPT_LEVELS:
                    kept.pop(next(iter(kept)))
                kept[level] = _level_tables(
                    self.level_likelihoods, self.gaps, root_chi2_quantile(level)
                )
            tables: tuple[FloatArray, ...] = kept[level]
            return tables

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the tables of levels, which can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "_level_tables"}


def _tables_of_nodes(
    rows: NodeRows, coef: FloatArray, sides: FloatArray, usable: BoolArray, nodes: IntArray
) -> list[tuple[Any, ...]]:
    """Return the tables and likelihoods of those nodes that have scores to calibrate on."""
    return [
        _tables_of_node(rows, coef[node], sides[node], int(node)) for node in nodes if usable[node]
    ]


def _tables_of_node(
    rows: NodeRows, coef: FloatArray, sides: FloatArray, node: int
) -> tuple[Any, ...]:
    """Return angle units, edges and series of a node, its likelihoods, and its gap."""
    from dubito.dichotomies._kernels.node_sigmoid_beliefs_compiled import tabulate_beliefs  # noqa: PLC0415 - loads numba

    centre, scale, slope, intercept, _ = coef
    score, event, weight = rows.of_node(node)
    x, target = standardised(score, centre, scale), weight * sides[event.astype(np.intp)]
    order = np.argsort(x, kind="stable")
    points = np.stack([x[order], weight[order]])
    optimum = np.array([intercept, slope])
    table = tabulate_beliefs(points, np.array([target.sum(), target @ x]), optimum)
    return (*table, logistic_level_likelihoods(x, event, weight, optimum), _gap(x, event))


def _gap(x: FloatArray, event: BoolArray) -> FloatArray:
    """Return the two scores next to a threshold that separates the sides; empty if none does."""
    left, right = x[~event], x[event]
    if right.min() >= left.max():
        return np.array([left.max(), right.min()])
    if left.min() >= right.max():
        return np.array([right.max(), left.min()])
    return np.empty(0)


def _level_tables(
    likelihoods: tuple[LogisticLevelLikelihoods | None, ...],
    gaps: tuple[FloatArray, ...],
    root_quantile: float,
) -> tuple[Any, ...]:
    """Return tables of all nodes: start of their panels, angle units, panel edges and series."""
    from dubito.dichotomies._kernels.node_sigmoid_levels_compiled import DEGREE, tabulate_level_ends  # noqa: PLC0415 - loads numba

    units = np.zeros((len(likelihoods), 2))
    edges, series = (
        [np.empty(0)] * len(likelihoods),
        [np.empty((0, 4, DEGREE + 1))] * len(likelihoods),
    )
    for node, (pair, gap) in enumerate(zip(likelihoods, gaps, strict=True)):
        if pair is not None:
            fits = ((one.likelihood, one.model) for one in (pair.light, pair.raw))
            units[node], edges[node], series[node] = tabulate_level_ends(*fits, gap, root_quantile)
    start = np.cumsum([0, *map(len, edges)])
    none = np.empty((0, 4, DEGREE + 1))  # there may be no nodes
    return start, units, np.concatenate([[], *edges]), np.concatenate([none, *series])


@dataclass(frozen=True, repr=False)
class EvidentialIsotonicMaps(NodeMaps):
    """Belief and plausibility of each node, constant between its training scores.

    Columns ``start[t]:start[t + 1]`` of `pools` are the distinct scores of node t, with the sample
    weights of its right and of its left side there. The steps between and beyond these scores begin
    at column ``start[t] + t`` of `beliefs`. Bounds at a level are computed when they are needed;
    `exact` is that of the calibrator.
    """

    pools: FloatArray  # (3, total): scores, weights of the right side, of the left side
    start: IntArray
    beliefs: FloatArray  # (2, total + nodes): beliefs, plausibilities
    exact: bool

    @classmethod
    def fit(cls, rows: NodeRows, *, exact: bool, n_jobs: int | None) -> Self:
        """Return fitted maps of ``EvidentialIsotonicCalibrator(exact=exact)`` of all nodes."""
        from dubito.dichotomies._kernels.node_isotonic_compiled import pool_ties_of_nodes  # noqa: PLC0415 - loads numba

        pools, count = pool_ties_of_nodes(rows.packed)
        start, columns = pack(rows.start, count)
        pools = pools[:, columns]
        tasks = plan_tasks(count.astype(np.float64), count_tasks(n_jobs))
        done = run_tasks(_belief_steps_of_nodes, (pools, start), tasks, n_jobs=n_jobs)
        steps = np.empty((2, len(columns) + len(count)))
        for task, results in zip(tasks, done, strict=True):
            for node, result in zip(task, results, strict=True):
                steps[:, start[node] + node : start[node + 1] + node + 1] = result
        return cls(pools, start, steps, exact)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        from dubito.dichotomies._kernels.node_isotonic_compiled import step_bounds  # noqa: PLC0415 - loads numba

        return step_bounds(contiguous(scores), self.pools[0], self.start, self.beliefs)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds at a confidence level: ends of the contour's cut, or Clopper-Pearson's."""
        lower, upper = np.zeros(scores.shape), np.ones(scores.shape)
        bounds_at = neighbour_bounds if self.exact else widened_bounds
        for node, (low, end) in enumerate(pairwise(self.start)):
            if low < end:
                distinct, right, left = self.pools[:, low:end]
                score = scores[:, node]
                before = np.searchsorted(distinct, score)
                at_or_before = np.searchsorted(distinct, score, side="right")
                bounds = bounds_at(at_or_before, before, right, left, level)
                lower[:, node], upper[:, node] = bounds
        return lower, upper

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of the mean of belief and plausibility, which is never 0 or 1."""
        lower, upper = self.bounds(scores)
        out = np.log((lower + upper) / ((1 - lower) + (1 - upper)))
        uncalibrated = np.diff(self.start) == 0
        out[:, uncalibrated] = finite(scores[:, uncalibrated])
        return out


def _belief_steps_of_nodes(
    pools: FloatArray, start: IntArray, nodes: IntArray
) -> list[tuple[FloatArray, FloatArray]]:
    """Return belief and plausibility on the steps of some nodes."""
    return [_belief_steps_of_pool(pools[1:, start[node] : start[node + 1]]) for node in nodes]


def _belief_steps_of_pool(pool: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility on the steps of one node, from the weights of its scores."""
    if pool.shape[1] == 0:
        return np.zeros(1), np.ones(1)
    return belief_steps(np.ascontiguousarray(pool[0]), np.ascontiguousarray(pool[1]))
