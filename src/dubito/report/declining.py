"""Rows declined, errors and mean cost at each cost of declining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import error_reject_curve, reject_cost_curve
from dubito.metrics.intervals import fraction_interval
from dubito.report.wording import INTERVAL_LEVEL, plain

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Possible steps of the cost slider; the largest that divides the given cost is used.
STEPS = (0.01, 0.005, 0.001)
#: Points of a drawn error-reject curve.
MOST_POINTS = 150


def slider_costs(cost: float) -> tuple[FloatArray, float, float]:
    """Return the costs the slider can take, its step, and its initial value.

    >>> costs, step, initial = slider_costs(0.2)
    >>> len(costs), step, initial
    (101, 0.01, 0.2)
    >>> slider_costs(0.125)[1:], slider_costs(1 / 3)[1:]
    ((0.005, 0.125), (0.001, 0.333))
    """
    initial = round(cost, 3)
    step = next(step for step in STEPS if abs(initial / step - round(initial / step)) < 1e-9)
    return np.arange(round(1 / step) + 1) / round(1 / step), step, initial


def collect_declining(
    all_outputs: list[ModelOutputs], rows: LabelledRows, strategy: str, cost: float
) -> dict[str, Any]:
    """Return the fraction declined, the error of the rest and the mean cost, by cost and model."""
    costs, step, initial = slider_costs(cost)
    return {
        "costs": costs.tolist(),
        "step": step,
        "start": initial,
        "models": [_costs_of_model(outputs, rows, strategy, costs) for outputs in all_outputs],
    }


def _costs_of_model(
    outputs: ModelOutputs, rows: LabelledRows, strategy: str, costs: FloatArray
) -> dict[str, Any]:
    confidence = outputs.confidence(strategy)
    by_cost = reject_cost_curve(rows.true_column, outputs.predicted, confidence, costs=costs)
    decided = np.round((1 - by_cost.rejection) * len(rows))
    wrong = np.round(by_cost.error * len(rows))
    low, high = _error_interval(wrong, decided)
    return {
        "name": outputs.name,
        "strategy": outputs.strategy(strategy),
        "error_without_declining": float(np.mean(outputs.predicted != rows.true_column)),
        "declined": by_cost.rejection.tolist(),
        "error": [plain(1 - accuracy) for accuracy in by_cost.accuracy],  # of the decided rows
        "low": [plain(bound) for bound in low],
        "high": [plain(bound) for bound in high],
        "cost": by_cost.mean_cost.tolist(),
        "curve": _error_reject_points(outputs, rows, confidence),
    }


def _error_reject_points(
    outputs: ModelOutputs, rows: LabelledRows, confidence: FloatArray
) -> list[dict[str, float]]:
    """Return up to `MOST_POINTS` points of the error-reject curve, with intervals."""
    curve = error_reject_curve(rows.true_column, outputs.predicted, confidence)
    grid = np.linspace(0, 1, MOST_POINTS)
    kept = np.unique(np.searchsorted(curve.rejection, grid).clip(max=len(curve.rejection) - 1))
    declined, error = curve.rejection[kept], curve.error[kept]
    decided = np.round((1 - declined) * len(rows))
    low, high = _error_interval(np.round(error * decided), decided)
    return [
        dict(zip(("declined", "error", "low", "high"), map(float, point), strict=True))
        for point in zip(declined, error, low, high, strict=True)
    ]


def _error_interval(wrong: FloatArray, decided: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval of the error rate; nan where nothing is decided."""
    n = np.maximum(decided, 1.0)
    low, high = fraction_interval(np.minimum(wrong / n, 1.0), n, INTERVAL_LEVEL)
    return np.where(decided > 0, low, np.nan), np.where(decided > 0, high, np.nan)
