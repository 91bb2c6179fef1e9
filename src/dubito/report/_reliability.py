"""Whether probabilities came true: curves of the predicted class and of single classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.metrics import reliability_curve

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray
    from dubito.report._answers import Answers, Rows

MOST_BINS, ROWS_IN_A_BIN = 12, 25
#: Rows that are less probably of a class than this share one bin.
UNLIKELY = 0.05
#: With more classes than this, only those that matter most get curves of their own.
MOST_CLASSES = 12
#: As many methods are drawn; the tables hold them all.
MOST_METHODS = 6


def collect_reliability(answers: list[Answers], rows: Rows, labels: list[str]) -> dict[str, Any]:
    """Return the curves of the predicted class and of the classes that matter most."""
    drawn = answers[:MOST_METHODS]
    columns, chosen_by = _classes_that_matter(answers[0], rows)
    return {
        "top": [_curve(model, rows, None) for model in drawn],
        "classes": [
            {
                "label": labels[k],
                "rows": int((rows.column == k).sum()),
                "curves": [_curve(model, rows, int(k)) for model in drawn],
            }
            for k in columns
        ],
        "chosen_by": chosen_by,
    }


def _curve(model: Answers, rows: Rows, column: int | None) -> dict[str, Any]:
    """Return bins of equal weight, with rows enough in each to say something."""
    if column is None:
        said, happened = model.proba.max(axis=1), model.predicted == rows.column
        points = _points(said, happened, MOST_BINS)
    else:
        said, happened = model.proba[:, column], rows.column == column
        # Most rows are surely not of a given class, and need no more than one point.
        unlikely = said < UNLIKELY
        points = _points(said[unlikely], happened[unlikely], 1)
        points += _points(said[~unlikely], happened[~unlikely], MOST_BINS)
    return {"method": model.name, "points": points}


def _points(said: FloatArray, happened: BoolArray, most: int) -> list[dict[str, Any]]:
    if not len(said):
        return []
    n_bins = min(most, max(len(said) // ROWS_IN_A_BIN, 1))
    curve = reliability_curve(happened, said, n_bins=n_bins, classes=[False, True])
    columns = zip(
        curve.mean_probability, curve.frequency, curve.lower, curve.upper, curve.n_rows, strict=True
    )
    names = ("said", "happened", "low", "high")
    return [
        {**dict(zip(names, map(float, point[:4]), strict=True)), "rows": int(point[4])}
        for point in columns
    ]


def _classes_that_matter(model: Answers, rows: Rows) -> tuple[IntArray, str]:
    """Choose all classes or, of many, the most frequent and those farthest from the truth."""
    k = len(rows.classes)
    if k <= MOST_CLASSES:
        return np.arange(k), "all"
    seen = np.bincount(rows.column, minlength=k)
    gap = np.abs(model.proba.sum(axis=0) - seen)
    frequent = np.argsort(-seen, kind="stable")[: MOST_CLASSES // 2]
    rest = [j for j in np.argsort(-gap, kind="stable").tolist() if j not in frequent]
    return np.append(frequent, rest[: MOST_CLASSES // 2]).astype(np.intp), "frequent and off"
