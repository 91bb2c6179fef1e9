"""Evidential sigmoids of nodes: belief and plausibility, tabulated once for every score.

Bounds at a confidence level are tabulated when a level is first asked for, from the two likelihoods
that each node keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_fit import standardised
from dubito._numerics.logistic_level import (
    LogisticLevels,
    logistic_levels,
)
from dubito.dichotomies._map_base import NodeMaps, NodeRows, contiguous
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks
from dubito.dichotomies._platt_maps import SigmoidMaps, side_targets

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Work of a node besides its rows, in rows.
_FIXED_WORK = 100.0

#: Levels whose tables are kept, and what guards their making: threads ask at once.
_LEVELS_KEPT = 4
_MAKING = Lock()


@dataclass(frozen=True, repr=False)
class EvidentialSigmoidMaps(NodeMaps):
    """Sigmoids with tables of what their likelihood leaves open.

    Panels ``start[t]:start[t + 1]`` of `edges` and `series` are those of node t, over angles that
    its `frames` tell; an uncalibrated node has none, and None among `levels`. Bounds are those of
    ``EvidentialLogisticCalibrator(targets=targets)`` within 1e-8. A table costs 10 to 50
    milliseconds, however many the rows, a look-up a fifth of a microsecond.
    """

    has_bounds: ClassVar[bool] = True

    sigmoids: SigmoidMaps
    frames: FloatArray  # (nodes, 2)
    start: IntArray
    edges: FloatArray
    series: FloatArray
    levels: tuple[LogisticLevels | None, ...]
    gaps: tuple[FloatArray, ...]  # standardised scores between which a threshold separates sides

    @classmethod
    def fit(cls, rows: NodeRows, *, targets: str, n_jobs: int | None) -> Self:
        """Fit the maps of ``EvidentialLogisticCalibrator(targets=targets)`` at all nodes."""
        from dubito.dichotomies._kernels.sigmoid_belief_tables_compiled import DEGREE  # noqa: PLC0415 - loads numba

        sigmoids, usable = SigmoidMaps.fit(rows, targets), rows.usable()
        tasks = plan_tasks(np.where(usable, rows.sizes + _FIXED_WORK, 0.0), count_tasks(n_jobs))
        shared = (rows, sigmoids.coef, side_targets(rows, targets), usable)
        done = run_tasks(_tables_of, shared, tasks, n_jobs=n_jobs)
        frames = np.zeros((rows.n_nodes, 2))
        edges = [np.empty(0)] * rows.n_nodes
        series = [np.empty((0, 2, DEGREE + 1))] * rows.n_nodes
        levels: list[LogisticLevels | None] = [None] * rows.n_nodes
        gaps = [np.empty(0)] * rows.n_nodes
        for task, tables in zip(tasks, done, strict=True):
            for node, table in zip(task[usable[task]], tables, strict=True):
                frames[node], edges[node], series[node], levels[node], gaps[node] = table
        start = np.cumsum([0, *map(len, edges)])
        none = np.empty((0, 2, DEGREE + 1))  # there may be no nodes
        all_edges, all_series = np.concatenate([[], *edges]), np.concatenate([none, *series])
        return cls(sigmoids, frames, start, all_edges, all_series, tuple(levels), tuple(gaps))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of the estimate."""
        return self.sigmoids.log_odds(scores)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        from dubito.dichotomies._kernels.sigmoid_belief_tables_compiled import sigmoid_bounds  # noqa: PLC0415

        tables = (self.start, self.edges, self.series)
        return sigmoid_bounds(contiguous(scores), self.sigmoids.coef, self.frames, tables)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the hull of the cuts of each node's two likelihoods."""
        from dubito.dichotomies._kernels.sigmoid_level_tables_compiled import sigmoid_level_bounds  # noqa: PLC0415

        return sigmoid_level_bounds(contiguous(scores), self.sigmoids.coef, self._tables_at(level))

    def _tables_at(self, level: float) -> tuple[FloatArray, ...]:
        """Return the tables of a level, made once: of the levels asked for, the last few stay."""
        with _MAKING:
            known = self.__dict__.setdefault("_level_tables", {})
            if level not in known:
                while len(known) >= _LEVELS_KEPT:
                    known.pop(next(iter(known)))
                known[level] = _level_tables(self.levels, self.gaps, root_chi2_quantile(level))
            tables: tuple[FloatArray, ...] = known[level]
            return tables

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "_level_tables"}

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """None: the bounds are read from the scores as they come."""
        return None


def _tables_of(
    rows: NodeRows, coef: FloatArray, sides: FloatArray, usable: BoolArray, nodes: IntArray
) -> list[tuple[Any, ...]]:
    """Return tables and likelihoods of those nodes that have scores to be calibrated on."""
    return [_table_of(rows, coef[node], sides[node], int(node)) for node in nodes if usable[node]]


def _table_of(rows: NodeRows, coef: FloatArray, sides: FloatArray, node: int) -> tuple[Any, ...]:
    from dubito.dichotomies._kernels.sigmoid_belief_tables_compiled import tabulate  # noqa: PLC0415 - loads numba

    centre, scale, slope, level, _ = coef
    score, event, weight = rows.of(node)
    x, target = standardised(score, centre, scale), weight * sides[event.astype(np.intp)]
    order = np.argsort(x, kind="stable")
    points = np.stack([x[order], weight[order]])
    optimum = np.array([level, slope])
    table = tabulate(points, np.array([target.sum(), target @ x]), optimum)
    return (*table, logistic_levels(x, event, weight, optimum), _gap(x, event))


def _gap(x: FloatArray, event: BoolArray) -> FloatArray:
    """Return the scores next to a threshold that separates the sides; none where there is none."""
    left, right = x[~event], x[event]
    if right.min() >= left.max():
        return np.array([left.max(), right.min()])
    if left.min() >= right.max():
        return np.array([right.max(), left.min()])
    return np.empty(0)


def _level_tables(
    levels: tuple[LogisticLevels | None, ...], gaps: tuple[FloatArray, ...], t: float
) -> tuple[Any, ...]:
    """Return where the panels of each node begin, frames, edges and series."""
    from dubito.dichotomies._kernels.sigmoid_level_tables_compiled import DEGREE, tabulate_levels  # noqa: PLC0415

    frames = np.zeros((len(levels), 2))
    edges, series = [np.empty(0)] * len(levels), [np.empty((0, 4, DEGREE + 1))] * len(levels)
    for node, (own, gap) in enumerate(zip(levels, gaps, strict=True)):
        if own is not None:
            both = ((e.likelihood, e.model) for e in (own.shrunk, own.raw))
            frames[node], edges[node], series[node] = tabulate_levels(*both, gap, t)
    start = np.cumsum([0, *map(len, edges)])
    none = np.empty((0, 4, DEGREE + 1))  # there may be no nodes
    return start, frames, np.concatenate([[], *edges]), np.concatenate([none, *series])
