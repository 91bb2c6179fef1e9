"""Metrics of models as a table and as JSON; lines on their bounds and coverage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._bounds_meaning import bounds_meaning
from dubito._models import has_bounds
from dubito._validation import DEFAULT_COVERAGE
from dubito.cli.console import side_by_side
from dubito.metrics import class_coverage
from dubito.metrics.descriptions import LOW_COVERAGE, describe_metric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dubito.cli.saved_models import LabelledOutputs
    from dubito.metrics import Estimate
    from dubito.saving import Saved

#: Which values are better, as printed in the column "better".
_BETTER = {"high": "higher", "low": "lower", None: ""}


def estimates_for_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    """Return estimates for JSON, with None for values that are not finite."""
    return {
        key: {field: _finite(value) for field, value in estimate._asdict().items()}
        for key, estimate in estimates.items()
    }


def metric_table(estimates: Mapping[str, Mapping[str, Estimate]], keys: Sequence[str] = ()) -> str:
    """Return a table of the metrics of one model or several, as wide as the terminal allows.

    Parameters
    ----------
    estimates : mapping of name to estimates
        One column for each name.
    keys : sequence of str
        The metrics to show; all by default.

    Returns
    -------
    str
    """
    present = dict.fromkeys(key for one in estimates.values() for key in one)
    shown = [key for key in present if not keys or key in keys]
    columns = [_column(shown, one) for one in estimates.values()]
    metrics = ["", *(describe_metric(key).name for key in shown)]
    better = ["better", *(_BETTER[describe_metric(key).better] for key in shown)]
    models = list(estimates) if len(estimates) > 1 else ["95% interval"]
    numbers = [[model, *column] for model, column in zip(models, columns, strict=True)]
    return side_by_side(list(zip(metrics, *numbers, better, strict=True)))


def _column(keys: Sequence[str], estimates: Mapping[str, Estimate]) -> list[str]:
    """Return values with their intervals, aligned at the brackets."""
    cells = [_cell(key, estimates.get(key)) for key in keys]
    width = max(len(value) for value, _ in cells)
    return [f"{value:<{width}} {interval}".rstrip() for value, interval in cells]


def _cell(key: str, estimate: Estimate | None) -> tuple[str, str]:
    """Return a value and its interval in brackets; "-" and no interval where it is not finite."""
    if estimate is None or _finite(estimate.value) is None:
        return "-", ""
    is_fraction = describe_metric(key).is_fraction
    value, low, high = (100 * number if is_fraction else number for number in estimate)
    digits, unit = (1, "%") if is_fraction else (3, "")
    if _finite(low) is None or _finite(high) is None:
        return f"{value:.{digits}f}{unit}", ""
    return f"{value:.{digits}f}{unit}", f"({low:.{digits}f}-{high:.{digits}f}{unit})"


def _finite(value: Any) -> float | None:
    """Return a number, or None for nan and infinity."""
    return float(value) if math.isfinite(value) else None


def bounds_lines(models: dict[str, Saved], level: float | None) -> list[str]:
    """Return lines on what the bounds of models mean; none for models without bounds."""
    meanings = {
        name: bounds_meaning(saved.model, level).both
        for name, saved in models.items()
        if has_bounds(saved.model)
    }
    if level is not None and meanings:
        return [f"Bounds are at level {level:.15g}."]
    if len(set(meanings.values())) == 1:
        return [f"Bounds are {next(iter(meanings.values()))}."]
    return [f"Bounds of {name} are {words}." for name, words in meanings.items()]


def coverage_facts(
    outputs: LabelledOutputs, classes: Sequence[Any], requested: float | None, observed: Estimate
) -> dict[str, Any]:
    """Return the coverage requested and observed, overall and of the least covered class."""
    by_class = class_coverage(outputs.y, np.asarray(outputs.sets), classes=classes)
    worst = int(np.nanargmin(by_class))
    return {
        "promised": requested or DEFAULT_COVERAGE,
        "observed": observed.value,
        "low": observed.low,
        "high": observed.high,
        "worst_class": classes[worst],
        "worst_observed": float(by_class[worst]),
        "worst_rows": int((outputs.y == classes[worst]).sum()),
    }


def coverage_line(facts: dict[str, Any], name: str | None) -> str:
    """Return a line on the coverage requested and observed, with the name of the model if given."""
    before = "" if name is None else f"{name}: "
    few = f" {LOW_COVERAGE}" if facts["high"] < facts["promised"] else ""
    return (
        f"{before}coverage requested {facts['promised']:.1%}, observed {facts['observed']:.1%} "
        f"({facts['low']:.1%} to {facts['high']:.1%}); least in class {facts['worst_class']}, "
        f"{facts['worst_observed']:.1%} of {facts['worst_rows']:,}.{few}"
    )
