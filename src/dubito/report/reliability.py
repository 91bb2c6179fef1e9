"""The calibration error, where chance does not explain it, and reliability curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import reliability_curve
from dubito.report.wording import calibration_line

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Calibration errors below half a percentage point vanish in rounding: no warning.
LEAST_ERROR = 0.005
#: From five percentage points on (90% may mean 85%) the page warns against relying on percentages.
LARGE_ERROR = 0.05


def collect_miscalibration(
    outputs: ModelOutputs, rows: LabelledRows, metrics: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the calibration error if its interval excludes calibration, else None.

    ``large`` is whether the lower end of the interval is at least five percentage points. The
    interval is that of `dubito.metrics.evaluate`, corrected for the upward bias of the calibration
    error. ``mean_confidence`` is the mean probability of the predicted class: the model is
    overconfident where it is above ``accuracy``.
    """
    error = next(row["cells"][0] for row in metrics if row["key"] == "ece")
    if error is None or error["low"] is None or error["low"] < LEAST_ERROR:
        return None
    confidence = float(outputs.proba.max(axis=1).mean())
    accuracy = float(np.mean(outputs.predicted == rows.true_column))
    large = error["low"] >= LARGE_ERROR
    return {
        **error,
        "large": large,
        "mean_confidence": confidence,
        "accuracy": accuracy,
        "line": calibration_line(error, confidence, accuracy, large=large),
    }


#: Bins of a reliability curve, and the fewest rows in each.
MOST_BINS, ROWS_IN_A_BIN = 12, 25
#: Rows where the probability of a class is below this are one bin of its curve.
UNLIKELY = 0.05
#: With more classes than this, only some get reliability curves of their own.
MOST_CURVES = 12
#: Models that are drawn in charts; the tables hold them all.
MOST_MODELS = 6


def collect_reliability(
    all_outputs: list[ModelOutputs], rows: LabelledRows, labels: list[str]
) -> dict[str, Any]:
    """Return the reliability curves of the predicted class and of single classes."""
    drawn = all_outputs[:MOST_MODELS]
    columns = _classes_with_curves(all_outputs[0], rows)
    return {
        "top": [_reliability_curve(outputs, rows, None) for outputs in drawn],
        "classes": [
            {
                "label": labels[k],
                "rows": int((rows.true_column == k).sum()),
                "curves": [_reliability_curve(outputs, rows, int(k)) for outputs in drawn],
            }
            for k in columns
        ],
        "all_classes": len(columns) == len(labels),
    }


def _reliability_curve(
    outputs: ModelOutputs, rows: LabelledRows, column: int | None
) -> dict[str, Any]:
    """Return a reliability curve of one class, or of the predicted class for None."""
    if column is None:
        probability, happened = outputs.proba.max(axis=1), outputs.predicted == rows.true_column
        points = _points(probability, happened, MOST_BINS)
    else:
        probability, happened = outputs.proba[:, column], rows.true_column == column
        # Most rows have a tiny probability of a given class; one point is enough for them.
        unlikely = probability < UNLIKELY
        points = _points(probability[unlikely], happened[unlikely], 1)
        points += _points(probability[~unlikely], happened[~unlikely], MOST_BINS)
    return {"model": outputs.name, "points": points}


def _points(probability: FloatArray, happened: BoolArray, most: int) -> list[dict[str, Any]]:
    """Return the points of a curve: up to `most` bins of `ROWS_IN_A_BIN` rows or more."""
    if not len(probability):
        return []
    n_bins = min(most, max(len(probability) // ROWS_IN_A_BIN, 1))
    curve = reliability_curve(happened, probability, n_bins=n_bins, classes=[False, True])
    columns = zip(
        curve.mean_probability, curve.frequency, curve.lower, curve.upper, curve.n_rows, strict=True
    )
    names = ("probability", "frequency", "low", "high")
    return [
        {**dict(zip(names, map(float, point[:4]), strict=True)), "rows": int(point[4])}
        for point in columns
    ]


def _classes_with_curves(outputs: ModelOutputs, rows: LabelledRows) -> IntArray:
    """Return all columns or, of many, those of the most frequent and the worst forecast classes.

    The worst are those whose probabilities differ most, in sum, from the number of their rows.
    """
    k = len(rows.classes)
    if k <= MOST_CURVES:
        return np.arange(k)
    seen = np.bincount(rows.true_column, minlength=k)
    gap = np.abs(outputs.proba.sum(axis=0) - seen)
    frequent = np.argsort(-seen, kind="stable")[: MOST_CURVES // 2]
    rest = [j for j in np.argsort(-gap, kind="stable").tolist() if j not in frequent]
    return np.append(frequent, rest[: MOST_CURVES // 2]).astype(np.intp)
