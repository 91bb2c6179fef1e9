"""Measures of all rows: metrics, calibration, reliability curves, and the cost of declining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import error_reject_curve, evaluate, reject_cost_curve, reliability_curve
from dubito.metrics.descriptions import describe_metric
from dubito.metrics.intervals import fraction_interval
from dubito.report.wording import CONFIDENCE, calibration_line, plain

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Bootstrap resamples for an interval; with more than `MANY_ROWS` rows fewer are enough.
RESAMPLES, FEW_RESAMPLES, MANY_ROWS = 200, 50, 200_000


def collect_numbers(
    methods: list[ModelOutputs], rows: LabelledRows, random_state: int
) -> list[dict[str, Any]]:
    """Return a row for each metric, with the value and interval of each method."""
    n_boot = RESAMPLES if len(rows) <= MANY_ROWS else FEW_RESAMPLES
    found = [
        evaluate(
            rows.column,
            outputs.proba,
            bounds=outputs.bounds if outputs.has_bounds else None,
            sets=outputs.sets,
            classes=np.arange(len(rows.classes)),
            n_boot=n_boot,
            random_state=random_state,
        )
        for outputs in methods
    ]
    keys = dict.fromkeys(key for estimates in found for key in estimates)
    return [_metric_row(key, [estimates.get(key) for estimates in found]) for key in keys]


def _metric_row(key: str, estimates: list[Any]) -> dict[str, Any]:
    metric = describe_metric(key)
    cells = [
        None
        if estimate is None or plain(estimate.value) is None
        else {
            "value": plain(estimate.value),
            "low": plain(estimate.low),
            "high": plain(estimate.high),
        }
        for estimate in estimates
    ]
    return {
        "key": key,
        "label": metric.name if metric.name == key else metric.name[:1].upper() + metric.name[1:],
        "says": metric.meaning,
        "better": metric.better,
        "shown": "share" if metric.is_fraction else "number",
        "cells": cells,
        "best": _best(cells, metric.better),
    }


def _best(cells: list[dict[str, Any] | None], better: str | None) -> list[int]:
    """Return the indices of the best values; none if all are equal or the metric has no order."""
    values = [cell["value"] for cell in cells if cell]
    if better is None or len(set(values)) < 2:
        return []
    best = max(values) if better == "high" else min(values)
    return [i for i, cell in enumerate(cells) if cell and cell["value"] == best]


#: Calibration errors below half a percentage point vanish in rounding: no warning.
LEAST_ERROR = 0.005
#: From five percentage points on (90% may mean 85%) the page warns against relying on percentages.
LARGE_ERROR = 0.05


def collect_percentages(
    outputs: ModelOutputs, rows: LabelledRows, numbers: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the calibration error where its interval excludes calibration, else None.

    ``large`` is whether the lower end of the interval is at least five percentage points. The
    interval is that of `dubito.metrics.evaluate`, corrected for the upward bias of the calibration
    error. ``said`` is the mean probability of the predicted class and ``right`` its accuracy; the
    sign of their difference is the direction of the miscalibration.
    """
    error = next(row["cells"][0] for row in numbers if row["key"] == "ece")
    if error is None or error["low"] is None or error["low"] < LEAST_ERROR:
        return None
    forecast = float(outputs.proba.max(axis=1).mean())
    right = float(np.mean(outputs.predicted == rows.column))
    large = error["low"] >= LARGE_ERROR
    return {
        **error,
        "large": large,
        "said": forecast,
        "right": right,
        "line": calibration_line(error, forecast, right, large=large),
    }


MOST_BINS, ROWS_IN_A_BIN = 12, 25
#: Rows where the probability of a class is below this are put into one bin of its curve.
UNLIKELY = 0.05
#: With more classes than this, only some get reliability curves of their own.
MOST_CURVES = 12
#: Methods that are drawn in charts; the tables hold them all.
MOST_METHODS = 6


def collect_reliability(
    methods: list[ModelOutputs], rows: LabelledRows, labels: list[str]
) -> dict[str, Any]:
    """Return the reliability curves of the predicted class and of single classes."""
    drawn = methods[:MOST_METHODS]
    columns, chosen_by = _classes_with_curves(methods[0], rows)
    return {
        "top": [_reliability_curve(outputs, rows, None) for outputs in drawn],
        "classes": [
            {
                "label": labels[k],
                "rows": int((rows.column == k).sum()),
                "curves": [_reliability_curve(outputs, rows, int(k)) for outputs in drawn],
            }
            for k in columns
        ],
        "chosen_by": chosen_by,
    }


def _reliability_curve(
    outputs: ModelOutputs, rows: LabelledRows, column: int | None
) -> dict[str, Any]:
    """Return a reliability curve of one class, or of the predicted class for None."""
    if column is None:
        forecast, happened = outputs.proba.max(axis=1), outputs.predicted == rows.column
        points = _points(forecast, happened, MOST_BINS)
    else:
        forecast, happened = outputs.proba[:, column], rows.column == column
        # Most rows have a tiny probability of a given class; one point is enough for them.
        unlikely = forecast < UNLIKELY
        points = _points(forecast[unlikely], happened[unlikely], 1)
        points += _points(forecast[~unlikely], happened[~unlikely], MOST_BINS)
    return {"method": outputs.name, "points": points}


def _points(forecast: FloatArray, happened: BoolArray, most: int) -> list[dict[str, Any]]:
    """Return bins of about equally many rows: at most `most`, with `ROWS_IN_A_BIN` or more each."""
    if not len(forecast):
        return []
    n_bins = min(most, max(len(forecast) // ROWS_IN_A_BIN, 1))
    curve = reliability_curve(happened, forecast, n_bins=n_bins, classes=[False, True])
    columns = zip(
        curve.mean_probability, curve.frequency, curve.lower, curve.upper, curve.n_rows, strict=True
    )
    names = ("said", "happened", "low", "high")
    return [
        {**dict(zip(names, map(float, point[:4]), strict=True)), "rows": int(point[4])}
        for point in columns
    ]


def _classes_with_curves(outputs: ModelOutputs, rows: LabelledRows) -> tuple[IntArray, str]:
    """Return all classes or, of many, the most frequent and those with the largest total error."""
    k = len(rows.classes)
    if k <= MOST_CURVES:
        return np.arange(k), "all"
    seen = np.bincount(rows.column, minlength=k)
    gap = np.abs(outputs.proba.sum(axis=0) - seen)
    frequent = np.argsort(-seen, kind="stable")[: MOST_CURVES // 2]
    rest = [j for j in np.argsort(-gap, kind="stable").tolist() if j not in frequent]
    return np.append(frequent, rest[: MOST_CURVES // 2]).astype(np.intp), "frequent and off"


#: Possible steps of the cost slider; the largest that divides the given cost is used.
STEPS = (0.01, 0.005, 0.001)
#: Points of a drawn error-reject curve.
MOST_POINTS = 150


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


def collect_declining(
    methods: list[ModelOutputs], rows: LabelledRows, strategy: str, cost: float
) -> dict[str, Any]:
    """Return the fraction declined, the error of the rest and the mean cost, by cost and method."""
    costs, step, start = slider_costs(cost)
    return {
        "costs": costs.tolist(),
        "step": step,
        "start": start,
        "methods": [_costs_of_method(outputs, rows, strategy, costs) for outputs in methods],
    }


def _costs_of_method(
    outputs: ModelOutputs, rows: LabelledRows, strategy: str, costs: FloatArray
) -> dict[str, Any]:
    confidence = outputs.confidence(strategy)
    by_cost = reject_cost_curve(rows.column, outputs.predicted, confidence, costs=costs)
    decided = np.round((1 - by_cost.rejection) * len(rows))
    wrong = np.round(by_cost.error * len(rows))
    low, high = _error_interval(wrong, decided)
    return {
        "name": outputs.name,
        "strategy": outputs.strategy(strategy),
        "never": float(np.mean(outputs.predicted != rows.column)),
        "declined": by_cost.rejection.tolist(),
        "error": [plain(1 - accuracy) for accuracy in by_cost.accuracy],
        "low": [plain(bound) for bound in low],
        "high": [plain(bound) for bound in high],
        "cost": by_cost.mean_cost.tolist(),
        "curve": _error_reject_points(outputs, rows, confidence),
    }


def _error_reject_points(
    outputs: ModelOutputs, rows: LabelledRows, confidence: FloatArray
) -> list[dict[str, float]]:
    """Return up to `MOST_POINTS` points of the error-reject curve, with intervals."""
    curve = error_reject_curve(rows.column, outputs.predicted, confidence)
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
    some = np.maximum(decided, 1.0)
    low, high = fraction_interval(np.minimum(wrong / some, 1.0), some, CONFIDENCE)
    return np.where(decided > 0, low, np.nan), np.where(decided > 0, high, np.nan)
