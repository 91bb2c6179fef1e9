"""The figures of the page: chart, description in words, and a table of the numbers."""

from __future__ import annotations

from typing import Any

from dubito._wording import counted
from dubito.report import charts
from dubito.report.reliability import MOST_MODELS
from dubito.report.rows import WIDE
from dubito.report.wording import cases, cost_text, percent

#: Longer tables of numbers are left out.
MOST_ROWS_IN_TABLE = 60


def make_figures(collected: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures by name, without those that have nothing to show."""
    declining, reliability = collected["declining"], collected["reliability"]
    figures = {
        "error_reject": _figure(
            "Errors left as more cases are declined",
            "Line chart",
            _describe_declining(collected),
            charts.error_reject(declining, MOST_MODELS),
        ),
        "costs": _figure(
            "What a case costs",
            "Line chart over the cost of declining",
            _describe_costs(collected),
            charts.cost_curves(declining, MOST_MODELS),
        ),
        "reliability": _figure(
            "All classes: the one it predicts",
            "Line chart of how often the predicted class is right, over the forecast "
            "probability; calibrated probabilities lie on the diagonal",
            [_describe_curve(curve) for curve in reliability["top"]],
            charts.reliability(reliability["top"]),
            _reliability_table(reliability["top"]),
        ),
        "classes": _figure(
            "One class at a time",
            "Line chart of how often a class is the true one, over its forecast probability",
            ["The class is chosen in the list above the chart."],
            charts.class_reliability(reliability["classes"]),
            _class_reliability_table(reliability["classes"]),
        ),
    }
    if collected["sets"]["single"] < 1:
        figures["sets"] = _figure(
            "How many classes are left open",
            "Bar chart",
            [_describe_sets(collected["sets"])],
            charts.set_sizes(collected["sets"]),
            _sets_table(collected["sets"]),
        )
    if collected["confusions"]["map"]:
        figures["confusions"] = _figure(
            "What was predicted for each true class",
            "Heat map",
            [_describe_confusions(collected["confusions"])],
            charts.confusion_map(collected["confusions"]["map"]),
            _confusions_table(collected["confusions"]["map"]),
        )
    if collected["doubt"]["has_bounds"] and collected["doubt"]["rows"]:
        figures["doubt"] = _figure(
            "What the doubt is made of, row by row",
            "Bar chart",
            [_describe_doubt(collected["doubt"])],
            charts.doubt_bars(collected["doubt"]["rows"]),
        )
    return figures


def _figure(
    title: str,
    kind: str,
    sentences: list[str],
    spec: dict[str, Any],
    table: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a figure: screen readers get all sentences, the caption the first."""
    return {
        "title": title,
        "kind": kind,
        "description": " ".join(sentences),
        "caption": sentences[0],
        "spec": spec,
        "table": table,
    }


def _describe_declining(collected: dict[str, Any]) -> list[str]:
    sentences = []
    for model in collected["declining"]["models"][:MOST_MODELS]:
        curve = model["curve"]
        half = min(curve, key=lambda point: abs(point["declined"] - 0.5))
        sentences.append(
            f"{model['name']}: {percent(curve[0]['error'])} wrong when nothing is declined, "
            f"{percent(half['error'])} of the rest when {percent(half['declined'])} are."
        )
    return sentences


def _describe_costs(collected: dict[str, Any]) -> list[str]:
    declining = collected["declining"]
    initial = declining["start"]
    at = declining["costs"].index(initial)
    return [
        f"{model['name']}: {cost_text(model['cost'][at])} where declining costs {initial:g}, "
        f"{cost_text(model['error_without_declining'])} when nothing is declined."
        for model in declining["models"][:MOST_MODELS]
    ]


def _describe_curve(curve: dict[str, Any]) -> str:
    points = curve["points"]
    outside = sum(not point["low"] <= point["probability"] <= point["high"] for point in points)
    worst = max(points, key=lambda point: abs(point["probability"] - point["frequency"]))
    return (
        f"{curve['model']}: {outside or 'none'} of {counted(len(points), 'point')} off the "
        f"diagonal by more than chance; farthest off, it said {percent(worst['probability'])} and "
        f"was right in {percent(worst['frequency'])}."
    )


def _describe_sets(sets: dict[str, Any]) -> str:
    return (
        f"One class is named in {percent(sets['single'])} of the cases, {sets['mean']:.2f} classes "
        f"on average; {percent(sets['covered'])} of the sets contain the true class."
    )


def _describe_confusions(confusions: dict[str, Any]) -> str:
    if not confusions["mistaken"]:
        return "No case is mistaken."
    worst = confusions["mistaken"][0]
    return (
        f"The most frequent mistake: {worst['truth']} taken for {worst['predicted']}, "
        f"in {cases(worst['rows'])}."
    )


def _describe_doubt(doubt: dict[str, Any]) -> str:
    n = len(doubt["rows"])
    wide = sum(row["cause"] == WIDE for row in doubt["rows"])
    return (
        f"The most doubtful rows of both kinds: {_of(wide, n)} mostly for wide bounds, "
        f"{_of(n - wide, n)} mostly for other classes."
    )


def _of(some: int, n: int) -> str:
    return f"{some or 'none'} of {n}"


RELIABILITY_HEAD = ["Probability", "Observed frequency", "95% interval", "Cases"]


def _reliability_table(curves: list[dict[str, Any]]) -> dict[str, Any] | None:
    rows = [[curve["model"], *cells] for curve in curves for cells in _reliability_cells(curve)]
    head = ["Method", *RELIABILITY_HEAD]
    return {"head": head, "rows": rows} if len(rows) <= MOST_ROWS_IN_TABLE else None


def _class_reliability_table(classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the points of all classes, for the first model only."""
    curves = [(one["label"], one["curves"][0]) for one in classes]
    rows = [[label, *cells] for label, curve in curves for cells in _reliability_cells(curve)]
    head = [f"Class ({curves[0][1]['model']})", *RELIABILITY_HEAD]
    return {"head": head, "rows": rows} if len(rows) <= MOST_ROWS_IN_TABLE else None


def _reliability_cells(curve: dict[str, Any]) -> list[list[str]]:
    return [
        [
            percent(point["probability"]),
            percent(point["frequency"]),
            f"{percent(point['low'])} to {percent(point['high'])}",
            f"{point['rows']:,}",
        ]
        for point in curve["points"]
    ]


def _confusions_table(confusions: dict[str, Any]) -> dict[str, Any]:
    labels, counts = confusions["labels"], confusions["counts"]
    rows = [
        [label, *(f"{count:,}" for count in row)] for label, row in zip(labels, counts, strict=True)
    ]
    return {"head": ["True class, and what was predicted", *labels], "rows": rows}


def _sets_table(sets: dict[str, Any]) -> dict[str, Any]:
    rows = [[bar["size"], f"{bar['rows']:,}", f"{bar['covered']:,}"] for bar in sets["bars"]]
    return {"head": ["Classes left open", "Cases", "Containing the true class"], "rows": rows}
