"""Whether the percentages can be believed: what the model says beside how often it is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.report._words import between, percent, points

if TYPE_CHECKING:
    from dubito.report._answers import Answers, Rows

#: Below this, percentages rounded to whole ones are right on average: nothing to warn of.
LEAST_ERROR = 0.005
#: From here on 90% may mean 85%, and percentages are not to be relied on at all.
LARGE_ERROR = 0.05


def collect_percentages(
    model: Answers, rows: Rows, numbers: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the calibration error where its interval excludes calibration, else None.

    ``large`` tells an error of at least five percentage points, by the interval's lower end, from a
    smaller one. The interval is that of `dubito.metrics.evaluate`, which allows for what chance
    adds to a calibration error. ``said`` and ``right`` are the mean probability of the predicted
    class and how often it is the true one; their difference says in which direction percentages
    are wrong.
    """
    error = next(row["cells"][0] for row in numbers if row["key"] == "ece")
    if error is None or error["low"] is None or error["low"] < LEAST_ERROR:
        return None
    said = float(model.proba.max(axis=1).mean())
    right = float(np.mean(model.predicted == rows.column))
    return {
        **error,
        "large": error["low"] >= LARGE_ERROR,
        "said": said,
        "right": right,
        "line": _line(error, said, right),
    }


def _line(error: dict[str, float], said: float, right: float) -> str:
    """Say how far percentages are from what happens, and in which direction."""
    verdict = "cannot be believed" if error["low"] >= LARGE_ERROR else "are only roughly right"
    interval = between(error["low"], error["high"], points)
    return (
        f"Its percentages {verdict}: they are off by {points(error['value'])} percentage points on "
        f"average (95% interval: {interval}), more than chance explains. It says {percent(said)} "
        f"on average and is right in {percent(right)} of the cases: "
        f"{_direction(error['value'], said - right)}."
    )


def _direction(error: float, too_sure: float) -> str:
    """Say whether it is too sure or too modest, unless one outweighs the other by little."""
    if abs(too_sure) < error / 2:
        return "it is too sure in some cases and too modest in others"
    return "it is too sure of itself" if too_sure > 0 else "it is too modest"
