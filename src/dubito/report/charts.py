"""Vega-Lite specifications of the charts, built with Altair.

Colours are the page's own (CSS variables and ``currentColor``), so that charts follow light and
dark mode. Models, classes and rows are encoded by number; their names are only ever displayed, so
that no name can be read as a path, a key or an expression. Every chart fills the width of its
container.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from dubito.report.rows import OTHERS, WIDE

#: Line dashes and point shapes of the models, in order.
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 4, 1, 4])
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
#: Width in pixels beyond which axis labels are truncated.
LABEL_WIDTH = 120

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",  # by name: Vega must measure its labels
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "domainOpacity": 0.4,
        "tickOpacity": 0.4,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": LABEL_WIDTH,
    },
    "text": {"color": "currentColor", "fontSize": 12},
    "rule": {"color": "currentColor"},
}


def model_fields(index: int, name: str) -> dict[str, Any]:
    """Return the fields of a data row that identify its model."""
    return {"model": index, "name": name}


def model_colours(n_models: int) -> Any:
    """Return the colour encoding of models."""
    scale = alt.Scale(domain=list(range(n_models)), range=[f"var(--m{i})" for i in range(n_models)])
    return alt.Color("model:N", scale=scale, legend=None)


def model_dashes(n_models: int) -> Any:
    """Return the line-dash encoding of models."""
    scale = alt.Scale(domain=list(range(n_models)), range=list(DASHES[:n_models]))
    return alt.StrokeDash("model:N", scale=scale, legend=None)


def model_shapes(n_models: int) -> Any:
    """Return the point-shape encoding of models."""
    scale = alt.Scale(domain=list(range(n_models)), range=list(SHAPES[:n_models]))
    return alt.Shape("model:N", scale=scale, legend=None)


def named_axis(**options: Any) -> Any:
    """Return an axis whose numbers are displayed as the names given by `names_parameter`."""
    return alt.Axis(labelExpr="names[datum.value]", **options)


def names_parameter(names: list[str]) -> Any:
    """Return the chart parameter with the names for `named_axis`."""
    return alt.param(name="names", value=names)


def rounded(point: dict[str, Any]) -> dict[str, Any]:
    """Return a point with its numbers rounded to what a chart can show."""
    return {key: round(v, 5) if isinstance(v, float) else v for key, v in point.items()}


def specification(
    chart: Any, data: dict[str, list[dict[str, Any]]], *, height: int = 300
) -> dict[str, Any]:
    """Return the specification of a chart with its data, as wide as its container."""
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec = chart.properties(width="container", height=height, autosize=size).to_dict()
    # Named data is stored once, although several layers of a chart use it.
    spec["datasets"] = data
    spec.pop("config", None)  # from the user's Altair theme; the page has its own
    return spec


#: Highest opacity of a tile, so that the number on it stays readable.
MOST_OPAQUE = 0.45
#: Ends of the line on which calibrated probabilities lie.
DIAGONAL = [{"probability": 0, "frequency": 0}, {"probability": 1, "frequency": 1}]


def reliability(curves: list[dict[str, Any]]) -> dict[str, Any]:
    """Return reliability curves of the predicted class, with a band for each model."""
    values = [
        {**model_fields(i, c["model"]), **rounded(p)}
        for i, c in enumerate(curves)
        for p in c["points"]
    ]
    return specification(_reliability_layers(curves), {"points": values, "diagonal": DIAGONAL})


def class_reliability(classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return reliability curves of one class at a time, selected in a list."""
    values = [
        {"class": k, **model_fields(i, c["model"]), **rounded(p)}
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
    return specification(layers.add_params(chosen), {"points": values, "diagonal": DIAGONAL})


def _reliability_layers(curves: list[dict[str, Any]], where: str = "true") -> Any:
    n_models = len(curves)
    unit = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("probability:Q", scale=unit, axis=axis, title="Probability")
    title = "Observed frequency"
    y = alt.Y("frequency:Q", scale=unit, axis=axis, title=title)
    chosen = alt.Chart(alt.NamedData("points")).transform_filter(where)
    base = chosen.encode(x=x, color=model_colours(n_models))
    band = base.mark_area(opacity=0.16, interpolate="linear").encode(
        alt.Y("low:Q", scale=unit, axis=axis, title=title), alt.Y2("high:Q")
    )
    bars = base.mark_rule(opacity=0.5).encode(
        alt.Y("low:Q", scale=unit, axis=axis, title=title), alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=model_dashes(n_models))
    points = base.mark_point(filled=True, size=48, opacity=1).encode(
        y=y,
        shape=model_shapes(n_models),
        tooltip=[
            alt.Tooltip("name:N", title="method"),
            alt.Tooltip("probability:Q", title="probability", format=".1%"),
            alt.Tooltip("frequency:Q", title="observed", format=".1%"),
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
    """Return a bar chart of set sizes, divided by whether sets contain the true class."""
    total = sum(bar["rows"] for bar in sets["bars"])
    parts = ("contains the true class", "misses it")
    values = [
        {"size": bar["size"], "part": part, "rows": count, "fraction": round(count / total, 5)}
        for bar in sets["bars"]
        for part, count in zip(parts, (bar["covered"], bar["rows"] - bar["covered"]), strict=True)
    ]
    return specification(
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
            alt.Y("fraction:Q", axis=alt.Axis(format="%", tickCount=5), title="Fraction of cases"),
            alt.Color(
                "part:N",
                scale=alt.Scale(domain=parts, range=["var(--m0)", "var(--bad)"]),
                legend=None,
            ),
            tooltip=[
                alt.Tooltip("size:N", title="classes left open"),
                alt.Tooltip("part:N", title="the set"),
                alt.Tooltip("rows:Q", title="cases", format=","),
                alt.Tooltip("fraction:Q", title="fraction", format=".1%"),
            ],
        ),
        {"bars": values},
        height=240,
    )


def confusion_map(confusions: dict[str, Any]) -> dict[str, Any]:
    """Return a heat map of the confusion counts: the stronger the colour, the more frequent."""
    labels, counts = confusions["labels"], confusions["counts"]
    values = [
        {
            "truth": i,
            "predicted": j,
            "true class": labels[i],
            "guess": labels[j],
            "rows": counts[i][j],
            "fraction": round(counts[i][j] / sum(counts[i]), 5),
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
            alt.Tooltip("fraction:Q", title="of the true class", format=".1%"),
        ],
    )
    wrong = alt.Scale(domain=[False, True], range=["var(--m0)", "var(--bad)"])
    strength = alt.Scale(type="sqrt", domain=[0, 1], range=[0.04, MOST_OPAQUE])
    tiles = base.mark_rect(stroke="var(--page)", strokeWidth=1).encode(
        alt.Color("wrong:N", scale=wrong, legend=None),
        alt.Opacity("fraction:Q", scale=strength, legend=None),
    )
    layers = alt.layer(tiles, base.mark_text(baseline="middle").encode(text="rows:Q"))
    height = max(120, 30 * len(labels) + 20)
    return specification(
        layers.add_params(names_parameter(labels)), {"tiles": values}, height=height
    )


def doubt_bars(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a bar chart of the doubt about the least certain rows, in its two parts."""
    parts = ((WIDE, "width"), (OTHERS, "others"))
    values = [
        {
            "row": i,
            "name": row["name"],
            "part": words,
            "place": place,
            "fraction": round(row[key], 5),
        }
        for i, row in enumerate(rows)
        for place, (words, key) in enumerate(parts)
    ]
    x = alt.X(
        "fraction:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
        title="Doubt about the predicted class",
    )
    part_colours = alt.Scale(domain=[WIDE, OTHERS], range=["var(--wide)", "var(--other)"])
    bars = (
        alt.Chart(alt.NamedData("parts"))
        .mark_bar()
        .encode(
            x,
            alt.Y("row:O", axis=named_axis(), title="Row"),
            alt.Color("part:N", scale=part_colours, legend=None),
            alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("name:N", title="row"),
                alt.Tooltip("part:N", title="part of the doubt"),
                alt.Tooltip("fraction:Q", title="fraction", format=".1%"),
            ],
        )
    )
    names = names_parameter([row["name"] for row in rows])
    return specification(bars.add_params(names), {"parts": values}, height=max(60, 18 * len(rows)))


#: Name of the chart parameter that the slider sets.
COST = "reject_cost"
#: Outline of a point, so that it stands out from the line below it.
_OUTLINE: dict[str, Any] = {"stroke": "var(--page)", "strokeWidth": 1.5}


def error_reject(declining: dict[str, Any], drawn: int) -> dict[str, Any]:
    """Return error-reject curves; the slider moves a point along each."""
    n_models = len(declining["models"][:drawn])
    curves = [
        {"model": i, **rounded(point)}
        for i, model in enumerate(declining["models"][:drawn])
        for point in model["curve"]
    ]
    axis, title = alt.Axis(format="%", tickCount=5), "Wrong among the decided"
    scale = alt.Scale(domain=[0, _error_axis_end(declining["models"][:drawn])], clamp=True)
    y = alt.Y("error:Q", axis=axis, scale=scale, title=title)
    x = alt.X(
        "declined:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
        title="Fraction of cases declined",
    )
    base = alt.Chart(alt.NamedData("curves")).encode(x=x, color=model_colours(n_models))
    band = (
        base.transform_filter("datum.model === 0")
        .mark_area(opacity=0.14)
        .encode(alt.Y("low:Q", axis=axis, scale=scale, title=title), alt.Y2("high:Q"))
    )
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=model_dashes(n_models))
    at_slider = alt.Chart(alt.NamedData("stops")).transform_filter(
        f"{_at_cost()} && isValid(datum.error)"
    )
    at_slider = at_slider.encode(x=x, y=y, color=model_colours(n_models))
    points = at_slider.mark_point(filled=True, size=130, opacity=1, **_OUTLINE)
    far_right = "datum.declined > 0.6"  # text beyond the right edge would widen the chart
    cost_text = at_slider.transform_filter("datum.model === 0").mark_text(
        align=alt.ExprRef(expr=f"{far_right} ? 'right' : 'left'"),
        dx=alt.ExprRef(expr=f"{far_right} ? -10 : 10"),
        dy=-10,
        fontWeight="bold",
        fontSize=13,
    )
    layers = alt.layer(
        band,
        line,
        points.encode(shape=model_shapes(n_models), tooltip=_slider_tooltip()),
        cost_text.encode(text="text:N"),
    )
    data = {"curves": curves, "stops": _slider_data(declining, drawn)}
    return specification(layers.add_params(_slider(declining)), data)


def _error_axis_end(models: list[dict[str, Any]]) -> float:
    """Return the end of the error axis, ignoring the noisy part where few cases are decided."""
    points = [(point, i) for i, model in enumerate(models) for point in model["curve"]]
    errors = [point["error"] for point, _ in points if point["declined"] <= 0.9]
    limits = [point["high"] for point, i in points if i == 0 and point["declined"] <= 0.5]
    return min(1.05 * max([*errors, *limits, 0.01]), 1.0)


def cost_curves(declining: dict[str, Any], drawn: int) -> dict[str, Any]:
    """Return mean cost over the cost of declining, beside the cost of never declining."""
    n_models = len(declining["models"][:drawn])
    x = alt.X(
        "cost:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(tickCount=5),
        title="Cost of declining (a mistake costs 1)",
    )
    axis, title = alt.Axis(tickCount=5), "Cost of a case"
    y = alt.Y("mean:Q", axis=axis, title=title)
    base = alt.Chart(alt.NamedData("stops")).encode(x=x, color=model_colours(n_models))
    never = base.transform_filter("datum.model === 0").mark_line(strokeDash=[2, 4], strokeWidth=1)
    at_slider = base.transform_filter(_at_cost())
    points = at_slider.mark_point(filled=True, size=130, opacity=1, **_OUTLINE)
    layers = alt.layer(
        never.encode(y=alt.Y("never:Q", axis=axis, title=title)),
        base.mark_line(strokeWidth=2).encode(y=y, strokeDash=model_dashes(n_models)),
        at_slider.transform_filter("datum.model === 0")
        .mark_rule(opacity=0.5)
        .encode(x=x, color=alt.value("currentColor")),
        points.encode(y=y, shape=model_shapes(n_models), tooltip=_slider_tooltip()),
    )
    cost = alt.param(name=COST, value=declining["start"])
    return specification(layers.add_params(cost), {"stops": _slider_data(declining, drawn)})


def _slider(declining: dict[str, Any]) -> Any:
    return alt.param(
        name=COST,
        value=declining["start"],
        bind=alt.binding_range(
            min=0, max=1, step=declining["step"], name="Cost of declining ", element="#cost-slider"
        ),
    )


def _slider_data(declining: dict[str, Any], drawn: int) -> list[dict[str, Any]]:
    """Return the data of each model at each cost of the slider."""
    values = []
    for i, model in enumerate(declining["models"][:drawn]):
        columns = (declining["costs"], model["declined"], model["error"], model["cost"])
        for cost, declined, error, mean in zip(*columns, strict=True):
            values.append(
                rounded(
                    {
                        **model_fields(i, model["name"]),
                        "cost": cost,
                        "declined": declined,
                        "error": error,
                        "mean": mean,
                        "never": model["error_without_declining"],
                        "text": f"cost {cost:g}",
                    }
                )
            )
    return values


def _slider_tooltip() -> list[Any]:
    return [
        alt.Tooltip("name:N", title="method"),
        alt.Tooltip("cost:Q", title="cost of declining"),
        alt.Tooltip("declined:Q", title="declined", format=".1%"),
        alt.Tooltip("error:Q", title="wrong among the decided", format=".1%"),
        alt.Tooltip("mean:Q", title="cost of a case", format=".3f"),
    ]


def _at_cost() -> str:
    """Return the filter expression for the data at the cost of the slider."""
    # Half the finest step: decimal costs are not exact as floats.
    return f"abs(datum.cost - {COST}) < 0.0005"
