"""Internal calibration: fits of a calibrator's maps at all nodes of a tree.

Sigmoids and isotonic maps, evidential ones too, are fitted at all nodes at once. Of every other
calibrator a clone is fitted at each node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from dubito._numerics.log_odds import floored_log_odds
from dubito.calibration.errors import CalibrationInputError
from dubito.dichotomies._evidential_node_maps import EvidentialIsotonicMaps, EvidentialSigmoidMaps
from dubito.dichotomies._node_maps import (
    IdentityMaps,
    IsotonicMaps,
    NodeMaps,
    NodeRows,
    SigmoidMaps,
    finite,
)
from dubito.dichotomies._parallel import run_tasks

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator

#: Smallest probability of a calibrator that gives no training row 0 or 1.
_ROUNDING_FLOOR = 1e-16


def fit_node_maps(
    calibrator: BaseCalibrator | None,
    out_of_fold: FloatArray,
    start: IntArray,
    n_left: IntArray,
    *,
    weight: FloatArray,
    weight_start: IntArray,
    n_jobs: int | None = None,
) -> NodeMaps:
    """Return the fitted calibration maps of all nodes.

    Parameters
    ----------
    calibrator : calibrator or None
        A calibrator for two classes, cloned and fitted to log-odds, or to probabilities if its
        ``input`` is "proba". None: no calibration.
    out_of_fold : ndarray
        Out-of-fold log-odds of the right side, those of node t in
        ``out_of_fold[start[t]:start[t + 1]]``. A node whose scores contain nan, or that has none,
        is not calibrated. Not used without a calibrator.
    start : ndarray of shape (nodes + 1,)
        Start of the scores of each node, and the end.
    n_left : ndarray of shape (nodes,)
        Number of rows on the left side of each node; those on the right follow.
    weight : ndarray of shape (n,)
        Sample weights of all rows, in leaf order.
    weight_start : ndarray of shape (nodes,)
        Start of the rows of each node in leaf order.
    n_jobs : int or None
        Number of jobs, for maps that are costly to fit.
    """
    if calibrator is None:
        return IdentityMaps()
    rows = NodeRows(
        out_of_fold=out_of_fold,
        start=start,
        n_left=n_left,
        weight=weight,
        weight_start=weight_start,
    )
    # Maps that are fitted for all nodes at once take log-odds, not probabilities.
    spec = None if calibrator.input == "proba" else calibrator.node_map_spec()
    if spec is None:
        return _fit_clones(calibrator, rows, n_jobs)
    form, options = spec
    match form:
        case "sigmoid":
            return SigmoidMaps.fit(rows, **options)
        case "isotonic":
            return IsotonicMaps.fit(rows, **options)
        case "evidential_sigmoid":
            return EvidentialSigmoidMaps.fit(rows, **options, n_jobs=n_jobs)
        case "evidential_isotonic":
            return EvidentialIsotonicMaps.fit(rows, **options, n_jobs=n_jobs)
    raise NotImplementedError(
        f"{type(calibrator).__name__}.node_map_spec() returns unknown {form!r}."
    )


@dataclass(frozen=True, repr=False)
class CalibratorMaps(NodeMaps):
    """A fitted calibrator for each node, None for an uncalibrated one.

    `floor` is the smallest probability of a side of each node: 1e-16, or `NodeRows.floors` if its
    calibrator gives 0 or 1 for a training row.
    """

    calibrators: tuple[Any, ...]
    floor: FloatArray

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds."""
        out = finite(scores)
        for node, calibrator in enumerate(self.calibrators):
            if calibrator is not None:
                left, right = calibrator.predict_proba(_as_input(calibrator, out[:, node])).T
                out[:, node] = floored_log_odds(right, left, float(self.floor[node]))
        return out


@dataclass(frozen=True, repr=False)
class EvidentialCalibratorMaps(CalibratorMaps):
    """A fitted calibrator with bounds for each node, None for an uncalibrated one."""

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        return self._bounds(scores, None)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the calibrators' bounds at a confidence level."""
        return self._bounds(scores, level)

    def _bounds(self, scores: FloatArray, level: float | None) -> tuple[FloatArray, FloatArray]:
        scores = finite(scores)
        lower, upper = np.zeros(scores.shape), np.ones(scores.shape)
        for node, calibrator in enumerate(self.calibrators):
            if calibrator is not None:
                node_scores = _as_input(calibrator, scores[:, node])
                bounds = calibrator.predict_bounds(node_scores, level=level)
                lower[:, node], upper[:, node] = bounds.lower[:, 1], bounds.upper[:, 1]
        return lower, upper


def _fit_clones(calibrator: BaseCalibrator, rows: NodeRows, n_jobs: int | None) -> NodeMaps:
    """Return maps made of a fitted clone of the calibrator at each node."""
    usable, tasks = rows.usable(), rows.tasks(n_jobs)
    done = run_tasks(_fit_task, (calibrator, rows, usable), tasks, n_jobs=n_jobs)
    fitted: list[Any] = [None] * rows.n_nodes
    for task, clones in zip(tasks, done, strict=True):
        for node, one in zip(task, clones, strict=True):
            fitted[node] = one
    if hasattr(calibrator, "affine_logits") and calibrator.input != "proba":
        return SigmoidMaps.from_slopes([_slope_intercept(one) for one in fitted])
    maps = EvidentialCalibratorMaps if calibrator.evidential else CalibratorMaps
    return maps(tuple(fitted), _floors(fitted, rows))


def _fit_task(
    calibrator: BaseCalibrator, rows: NodeRows, usable: BoolArray, nodes: IntArray
) -> list[BaseCalibrator | None]:
    """Return the fitted clones of some nodes, None for those without scores to calibrate on."""
    return [_fit_clone(calibrator, rows, int(t)) if usable[t] else None for t in nodes]


def _fit_clone(calibrator: BaseCalibrator, rows: NodeRows, node: int) -> BaseCalibrator:
    """Return a clone fitted to the rows of a node; name the node if that fails."""
    score, event, weight = rows.of_node(node)
    try:
        one = clone(calibrator).set_params(classes=[0, 1])
        one.fit(_as_input(calibrator, score), event.astype(np.int64), sample_weight=weight)
        one.predict_proba(_as_input(calibrator, score[:1]))
    except (ValueError, TypeError) as error:
        left = rows.n_left[node]
        raise CalibrationInputError(
            f"internal={calibrator!r} cannot calibrate node {node} of the tree, which has {left} "
            f"rows on its left and {len(score) - left} on its right side: {error} Calibrate nodes "
            'with "platt", "isotonic" or a calibrator that takes one column of scores.'
        ) from error
    return one


def _as_input(calibrator: Any, log_odds: FloatArray) -> FloatArray:
    """Return log-odds as the `input` of the calibrator requires."""
    return expit(log_odds) if calibrator.input == "proba" else log_odds


def _slope_intercept(calibrator: Any) -> tuple[float, float]:
    """Return slope and intercept of an affine calibrator."""
    if calibrator is None:
        return 1.0, 0.0
    matrix, offset = calibrator.affine_logits()
    return float(matrix[0, 0]), float(offset[0])


def _floors(fitted: list[Any], rows: NodeRows) -> FloatArray:
    """Return the floor of the probabilities of each node, as in `CalibratorMaps`."""
    floors = np.full(len(fitted), _ROUNDING_FLOOR)
    of_certain_nodes = rows.floors()
    for node, calibrator in enumerate(fitted):
        if calibrator is not None:
            proba = calibrator.predict_proba(_as_input(calibrator, rows.of_node(node)[0]))
            if not (proba.min() > 0):
                floors[node] = of_certain_nodes[node]
    return floors
