"""The charts that stand still: reliability, sizes of sets, confusions, and the doubt of rows."""

from __future__ import annotations

from typing import Any

import altair as alt

from dubito.report._doubt import OTHERS, WIDE
from dubito.report._spec import (
    colours,
    dashes,
    named_axis,
    numbered,
    shapes,
    short,
    shown_names,
    whole,
)

#: Opacity of the strongest tile: the number on it can still be read.
STRONGEST = 0.45
DIAGONAL = [{"said": 0, "happened": 0}, {"said": 1, "happened": 1}]


def reliability(curves: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw how often forecasts came true, with a band for each method."""
    values = [
        {**numbered(i, c["method"]), **short(p)} for i, c in enumerate(curves) for p in c["points"]
    ]
    return whole(_reliability_layers(curves), {"points": values, "diagonal": DIAGONAL})


def class_reliability(classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw the same for one class at a time, chosen in a list."""
    values = [
        {"class": k, **numbered(i, c["method"]), **short(p)}
        for k, one in enumerate(classes)
        for i, c in enumerate(one["curves"])
        for p in c["points"]
    ]
    chosen = alt.param(
        name="shown_class",
        value=0,
        bind=alt.binding_select(
            options=list(range(len(classes))),
            labels=[one["label"] for one in classes],
            name="Class ",
            element="#class-choice",
        ),
    )
    layers = _reliability_layers(classes[0]["curves"], where="datum.class === shown_class")
    return whole(layers.add_params(chosen), {"points": values, "diagonal": DIAGONAL})


def _reliability_layers(curves: list[dict[str, Any]], where: str = "true") -> Any:
    methods = len(curves)
    unit = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("said:Q", scale=unit, axis=axis, title="How probable it said")
    title = "How often it came true"
    y = alt.Y("happened:Q", scale=unit, axis=axis, title=title)
    chosen = alt.Chart(alt.NamedData("points")).transform_filter(where)
    base = chosen.encode(x=x, color=colours(methods))
    band = base.mark_area(opacity=0.16, interpolate="linear").encode(
        alt.Y("low:Q", scale=unit, axis=axis, title=title), alt.Y2("high:Q")
    )
    bars = base.mark_rule(opacity=0.5).encode(
        alt.Y("low:Q", scale=unit, axis=axis, title=title), alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dashes(methods))
    points = base.mark_point(filled=True, size=48, opacity=1).encode(
        y=y,
        shape=shapes(methods),
        tooltip=[
            alt.Tooltip("name:N", title="method"),
            alt.Tooltip("said:Q", title="it said", format=".1%"),
            alt.Tooltip("happened:Q", title="came true", format=".1%"),
            alt.Tooltip("low:Q", title="at least", format=".1%"),
            alt.Tooltip("high:Q", title="at most", format=".1%"),
            alt.Tooltip("rows:Q", title="cases", format=","),
        ],
    )
    ideal = (
        alt.Chart(alt.NamedData("diagonal"))
        .mark_line(color="currentColor", strokeDash=[3, 3], opacity=0.6, strokeWidth=1)
        .encode(x, y)
    )
    return alt.layer(ideal, band, bars, line, points)


def set_sizes(sets: dict[str, Any]) -> dict[str, Any]:
    """Draw how many rows have sets of each size, and how many of these hold the truth."""
    total = sum(bar["rows"] for bar in sets["bars"])
    parts = (("holds the true class", "held"), ("misses it", "missed"))
    values = [
        {
            "size": bar["size"],
            "part": words,
            "rows": (count := bar["held"] if part == "held" else bar["rows"] - bar["held"]),
            "share": round(count / total, 5),
        }
        for bar in sets["bars"]
        for words, part in parts
    ]
    order = [words for words, _ in parts]
    return whole(
        alt.Chart(alt.NamedData("bars"))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            alt.X(
                "size:N",
                sort=[bar["size"] for bar in sets["bars"]],
                axis=alt.Axis(labelAngle=0),
                scale=alt.Scale(paddingInner=0.35, paddingOuter=0.35),
                title="Classes left open",
            ),
            alt.Y("share:Q", axis=alt.Axis(format="%", tickCount=5), title="Share of cases"),
            alt.Color(
                "part:N",
                scale=alt.Scale(domain=order, range=["var(--m0)", "var(--bad)"]),
                legend=None,
            ),
            tooltip=[
                alt.Tooltip("size:N", title="classes left open"),
                alt.Tooltip("part:N", title="the set"),
                alt.Tooltip("rows:Q", title="cases", format=","),
                alt.Tooltip("share:Q", title="share", format=".1%"),
            ],
        ),
        {"bars": values},
        height=240,
    )


def confusion_map(confusions: dict[str, Any]) -> dict[str, Any]:
    """Draw what was predicted for each true class: the stronger the colour, the more often."""
    labels, counts = confusions["labels"], confusions["counts"]
    values = [
        {
            "truth": i,
            "predicted": j,
            "true class": labels[i],
            "guess": labels[j],
            "rows": counts[i][j],
            "share": round(counts[i][j] / sum(counts[i]), 5),
            "wrong": i != j,
        }
        for i in range(len(labels))
        for j in range(len(labels))
        if counts[i][j]
    ]
    scale = alt.Scale(domain=list(range(len(labels))))
    angle = 0 if max(map(len, labels)) <= 3 else -40
    across = named_axis(labelAngle=angle, orient="top", labelLimit=90)
    base = alt.Chart(alt.NamedData("tiles")).encode(
        alt.X("predicted:N", scale=scale, axis=across, title="Predicted"),
        alt.Y("truth:N", scale=scale, axis=named_axis(), title="True class"),
        tooltip=[
            alt.Tooltip("true class:N"),
            alt.Tooltip("guess:N", title="predicted"),
            alt.Tooltip("rows:Q", title="cases", format=","),
            alt.Tooltip("share:Q", title="of the true class", format=".1%"),
        ],
    )
    wrong = alt.Scale(domain=[False, True], range=["var(--m0)", "var(--bad)"])
    strength = alt.Scale(type="sqrt", domain=[0, 1], range=[0.04, STRONGEST])
    tiles = base.mark_rect(stroke="var(--page)", strokeWidth=1).encode(
        alt.Color("wrong:N", scale=wrong, legend=None),
        alt.Opacity("share:Q", scale=strength, legend=None),
    )
    layers = alt.layer(tiles, base.mark_text(baseline="middle").encode(text="rows:Q"))
    height = max(120, 30 * len(labels) + 20)
    return whole(layers.add_params(shown_names(labels)), {"tiles": values}, height=height)


def doubt_bars(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw the doubt about the least certain rows, divided into its two parts."""
    parts = ((WIDE, "width"), (OTHERS, "others"))
    values = [
        {"row": i, "name": row["name"], "part": words, "place": place, "share": round(row[key], 5)}
        for i, row in enumerate(rows)
        for place, (words, key) in enumerate(parts)
    ]
    x = alt.X(
        "share:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
        title="Doubt about the predicted class",
    )
    colours = alt.Scale(domain=[WIDE, OTHERS], range=["var(--wide)", "var(--other)"])
    bars = (
        alt.Chart(alt.NamedData("parts"))
        .mark_bar()
        .encode(
            x,
            alt.Y("row:O", axis=named_axis(), title="Row"),
            alt.Color("part:N", scale=colours, legend=None),
            alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("name:N", title="row"),
                alt.Tooltip("part:N", title="part of the doubt"),
                alt.Tooltip("share:Q", title="share", format=".1%"),
            ],
        )
    )
    names = shown_names([row["name"] for row in rows])
    return whole(bars.add_params(names), {"parts": values}, height=max(60, 18 * len(rows)))
