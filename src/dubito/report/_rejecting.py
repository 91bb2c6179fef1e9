"""What declining costs and buys, at every cost of declining the slider can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import error_reject_curve, reject_cost_curve
from dubito.metrics._intervals import share_interval
from dubito.report._words import plain

if TYPE_CHECKING:
    from dubito._checks import FloatArray
    from dubito.report._answers import Answers, Rows

#: Between two stops of the slider: the largest that reaches the asked cost.
STEPS = (0.01, 0.005, 0.001)
#: Points of a drawn curve.
MOST_POINTS = 150
CONFIDENCE = 0.95


def slider_costs(cost: float) -> tuple[FloatArray, float, float]:
    """Return the costs the slider can take, its step, and where it starts.

    >>> costs, step, start = slider_costs(0.2)
    >>> len(costs), step, start
    (101, 0.01, 0.2)
    >>> slider_costs(0.125)[1:], slider_costs(1 / 3)[1:]
    ((0.005, 0.125), (0.001, 0.333))
    """
    start = round(cost, 3)
    step = next(step for step in STEPS if abs(start / step - round(start / step)) < 1e-9)
    return np.arange(round(1 / step) + 1) / round(1 / step), step, start


def collect_rejecting(
    answers: list[Answers], rows: Rows, strategy: str, cost: float
) -> dict[str, Any]:
    """Return share declined, errors among the decided and cost of a case, by cost and method."""
    costs, step, start = slider_costs(cost)
    return {
        "costs": costs.tolist(),
        "step": step,
        "start": start,
        "methods": [_of_method(model, rows, strategy, costs) for model in answers],
    }


def _of_method(model: Answers, rows: Rows, strategy: str, costs: FloatArray) -> dict[str, Any]:
    sure = model.confidence(strategy)
    prices = reject_cost_curve(rows.column, model.predicted, sure, costs=costs)
    decided = np.round((1 - prices.rejection) * len(rows))
    wrong = np.round(prices.error * len(rows))
    low, high = _error_interval(wrong, decided)
    return {
        "name": model.name,
        "strategy": model.strategy(strategy),
        "never": float(np.mean(model.predicted != rows.column)),
        "declined": prices.rejection.tolist(),
        "error": [plain(1 - share) for share in prices.accuracy],
        "low": [plain(share) for share in low],
        "high": [plain(share) for share in high],
        "cost": prices.mean_cost.tolist(),
        "curve": _curve(model, rows, sure),
    }


def _curve(model: Answers, rows: Rows, sure: FloatArray) -> list[dict[str, float]]:
    """Return error among the decided over the share declined, thinned."""
    curve = error_reject_curve(rows.column, model.predicted, sure)
    even = np.linspace(0, 1, MOST_POINTS)
    kept = np.unique(np.searchsorted(curve.rejection, even).clip(max=len(curve.rejection) - 1))
    declined, error = curve.rejection[kept], curve.error[kept]
    decided = np.round((1 - declined) * len(rows))
    low, high = _error_interval(np.round(error * decided), decided)
    return [
        dict(zip(("declined", "error", "low", "high"), map(float, point), strict=True))
        for point in zip(declined, error, low, high, strict=True)
    ]


def _error_interval(wrong: FloatArray, decided: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval of the error rate; nan where nothing is decided."""
    some = np.maximum(decided, 1.0)
    low, high = share_interval(np.minimum(wrong / some, 1.0), some, CONFIDENCE)
    return np.where(decided > 0, low, np.nan), np.where(decided > 0, high, np.nan)
