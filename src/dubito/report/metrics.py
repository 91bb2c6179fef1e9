"""Metrics of each model, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import evaluate
from dubito.metrics.descriptions import describe_metric
from dubito.report.wording import plain

if TYPE_CHECKING:
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Bootstrap resamples for an interval; with more than `MANY_ROWS` rows fewer are enough.
RESAMPLES, FEW_RESAMPLES, MANY_ROWS = 200, 50, 200_000


def collect_metrics(
    all_outputs: list[ModelOutputs], rows: LabelledRows, random_state: int
) -> list[dict[str, Any]]:
    """Return a row for each metric, with the value and interval of each model."""
    n_boot = RESAMPLES if len(rows) <= MANY_ROWS else FEW_RESAMPLES
    found = [
        evaluate(
            rows.true_column,
            outputs.proba,
            bounds=outputs.bounds if outputs.has_wide_bounds else None,
            sets=outputs.sets,
            classes=np.arange(len(rows.classes)),
            n_boot=n_boot,
            random_state=random_state,
        )
        for outputs in all_outputs
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
        "meaning": metric.meaning,
        "better": metric.better,
        "is_fraction": metric.is_fraction,
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
