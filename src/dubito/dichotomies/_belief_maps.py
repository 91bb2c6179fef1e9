"""Evidential sigmoids of nodes: belief and plausibility, tabulated once for every score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dubito._kernels.logistic import smoothed_targets, standardised
from dubito.dichotomies._map_base import NodeMaps, NodeRows, contiguous
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks
from dubito.dichotomies._platt_maps import SigmoidMaps

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray

#: Work of a node besides its rows, in rows.
_FIXED_WORK = 100.0


@dataclass(frozen=True, repr=False)
class EvidentialSigmoidMaps(NodeMaps):
    """Platt's sigmoids with tables of what their likelihood leaves open.

    Panels ``start[t]:start[t + 1]`` of `edges` and `series` are those of node t, over angles that
    its `frames` tell; an uncalibrated node has none. Bounds are those of
    ``EvidentialLogisticCalibrator()`` within 1e-8. A table costs 10 to 50 milliseconds, however
    many the rows, a look-up a fifth of a microsecond.
    """

    has_bounds: ClassVar[bool] = True

    sigmoids: SigmoidMaps
    frames: FloatArray  # (nodes, 2)
    start: IntArray
    edges: FloatArray
    series: FloatArray

    @classmethod
    def fit(cls, rows: NodeRows, *, n_jobs: int | None) -> Self:
        """Fit the maps of ``EvidentialLogisticCalibrator()`` at all nodes."""
        from dubito._kernels.node_beliefs_compiled import DEGREE  # noqa: PLC0415 - loads numba

        sigmoids, usable = SigmoidMaps.fit(rows), rows.usable()
        tasks = plan_tasks(np.where(usable, rows.sizes + _FIXED_WORK, 0.0), count_tasks(n_jobs))
        shared = (rows, sigmoids.coef, usable)
        done = run_tasks(_tables_of, shared, tasks, n_jobs=n_jobs)
        frames = np.zeros((rows.n_nodes, 2))
        edges = [np.empty(0)] * rows.n_nodes
        series = [np.empty((0, 2, DEGREE + 1))] * rows.n_nodes
        for task, tables in zip(tasks, done, strict=True):
            for node, table in zip(task[usable[task]], tables, strict=True):
                frames[node], edges[node], series[node] = table
        start = np.cumsum([0, *map(len, edges)])
        none = np.empty((0, 2, DEGREE + 1))  # there may be no nodes
        all_edges, all_series = np.concatenate([[], *edges]), np.concatenate([none, *series])
        return cls(sigmoids, frames, start, all_edges, all_series)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of the estimate."""
        return self.sigmoids.log_odds(scores)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        from dubito._kernels.node_beliefs_compiled import sigmoid_bounds  # noqa: PLC0415

        tables = (self.start, self.edges, self.series)
        return sigmoid_bounds(contiguous(scores), self.sigmoids.coef, self.frames, tables)

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """None: the bounds are read from the scores as they come."""
        return None


def _tables_of(
    rows: NodeRows, coef: FloatArray, usable: BoolArray, nodes: IntArray
) -> list[tuple[Any, ...]]:
    """Return the tables of those nodes that have scores to be calibrated on."""
    return [_table_of(rows, coef[node], int(node)) for node in nodes if usable[node]]


def _table_of(rows: NodeRows, coef: FloatArray, node: int) -> tuple[Any, ...]:
    from dubito._kernels.node_beliefs_compiled import tabulate  # noqa: PLC0415 - loads numba

    centre, scale, slope, level, _ = coef
    score, event, weight = rows.of(node)
    x, share = standardised(score, centre, scale), weight * smoothed_targets(event, weight)
    order = np.argsort(x, kind="stable")
    points = np.stack([x[order], weight[order]])
    return tabulate(points, np.array([share.sum(), share @ x]), np.array([level, slope]))
