"""Any binary calibrator at every node: one fitted clone each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from dubito.calibration.affine import AffineMixin
from dubito.calibration.base import BaseCalibrator, is_evidential
from dubito.calibration.errors import CalibrationInputError
from dubito.dichotomies._map_base import NodeMaps, NodeRows, finite
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks
from dubito.dichotomies._platt_maps import SigmoidMaps
from dubito.dichotomies._step_maps import least_share

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: What probabilities of smooth maps are kept off 0 and 1: there only rounding takes them there.
_ROUNDING = 1e-16


@dataclass(frozen=True, repr=False)
class CalibratorMaps(NodeMaps):
    """A fitted calibrator for each node, None for an uncalibrated one.

    A node whose calibrator gives 0 or 1 at one of its own rows keeps all probabilities `cut` off
    them; where rounding alone takes probabilities there, `cut` is 1e-16.
    """

    calibrators: tuple[Any, ...]
    cut: FloatArray

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds."""
        out = finite(scores)
        for node, calibrator in enumerate(self.calibrators):
            if calibrator is not None:
                left, right = calibrator.predict_proba(_read(calibrator, out[:, node])).T
                cut = self.cut[node]
                out[:, node] = np.log(np.maximum(right, cut)) - np.log(np.maximum(left, cut))
        return out


@dataclass(frozen=True, repr=False)
class EvidentialCalibratorMaps(CalibratorMaps):
    """A fitted calibrator with bounds for each node."""

    has_bounds: ClassVar[bool] = True

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility; those of an uncalibrated node are 0 and 1."""
        return self._asked(scores, None)

    def level_bounds(self, scores: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the calibrators' own bounds at a level."""
        return self._asked(scores, level)

    def _asked(self, scores: FloatArray, level: float | None) -> tuple[FloatArray, FloatArray]:
        scores = finite(scores)
        lower, upper = np.zeros(scores.shape), np.ones(scores.shape)
        for node, calibrator in enumerate(self.calibrators):
            if calibrator is not None:
                bounds = calibrator.predict_bounds(_read(calibrator, scores[:, node]), level=level)
                lower[:, node], upper[:, node] = bounds.lower[:, 1], bounds.upper[:, 1]
        return lower, upper


def fit_calibrators(calibrator: BaseCalibrator, rows: NodeRows, *, n_jobs: int | None) -> NodeMaps:
    """Fit a clone of a calibrator at each node."""
    work = np.where(rows.usable(), rows.sizes + 100.0, 0.0)  # a fit costs about 100 rows itself
    tasks = plan_tasks(work, count_tasks(n_jobs))
    done = run_tasks(_fit_some, (calibrator, rows, rows.usable()), tasks, n_jobs=n_jobs)
    fitted: list[Any] = [None] * rows.n_nodes
    for task, clones in zip(tasks, done, strict=True):
        for node, one in zip(task, clones, strict=True):
            fitted[node] = one
    if isinstance(calibrator, AffineMixin) and calibrator.input != "proba":
        return SigmoidMaps.from_lines([_line(one) for one in fitted])
    kind = EvidentialCalibratorMaps if is_evidential(calibrator) else CalibratorMaps
    return kind(tuple(fitted), _cuts(fitted, rows))


def _fit_some(
    calibrator: BaseCalibrator, rows: NodeRows, usable: Any, nodes: IntArray
) -> list[BaseCalibrator | None]:
    return [_fit_one(calibrator, rows, int(t)) if usable[t] else None for t in nodes]


def _fit_one(calibrator: BaseCalibrator, rows: NodeRows, node: int) -> BaseCalibrator:
    score, event, weight = rows.of(node)
    try:
        one = clone(calibrator).set_params(classes=[0, 1])
        one.fit(_read(calibrator, score), event.astype(np.int64), sample_weight=weight)
        one.predict_proba(_read(calibrator, score[:1]))
    except (ValueError, TypeError) as error:
        left = rows.middle[node]
        raise CalibrationInputError(
            f"internal={calibrator!r} cannot calibrate node {node} of the tree, which has {left} "
            f"rows on its left and {len(score) - left} on its right side: {error} Calibrate nodes "
            'with "platt", "isotonic" or a calibrator that takes one column of scores.'
        ) from error
    return one


def _read(calibrator: Any, log_odds: FloatArray) -> FloatArray:
    """Return log-odds as the calibrator says it reads scores."""
    return expit(log_odds) if calibrator.input == "proba" else log_odds


def _line(calibrator: Any) -> tuple[float, float]:
    """Return slope and intercept of an affine calibrator."""
    if calibrator is None:
        return 1.0, 0.0
    matrix, offset = calibrator.affine_logits()
    return float(matrix[0, 0]), float(offset[0])


def _cuts(fitted: list[Any], rows: NodeRows) -> FloatArray:
    """Return what the probabilities of each node are kept off 0 and 1."""
    cut = np.full(len(fitted), _ROUNDING)
    least = least_share(rows)
    for node, calibrator in enumerate(fitted):
        if calibrator is not None:
            proba = calibrator.predict_proba(_read(calibrator, rows.of(node)[0]))
            if not (proba.min() > 0):
                cut[node] = least[node]
    return cut
