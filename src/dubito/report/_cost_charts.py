"""The charts that the slider moves: errors and costs, over what is declined and what it costs."""

from __future__ import annotations

from typing import Any

import altair as alt

from dubito.report._spec import colours, dashes, numbered, shapes, short, whole

COST = "reject_cost"
#: Of a point, so that it stands out from the line below it.
_RIM: dict[str, Any] = {"stroke": "var(--page)", "strokeWidth": 1.5}


def error_reject(rejecting: dict[str, Any], drawn: int) -> dict[str, Any]:
    """Draw error among the decided over the share declined; the slider moves the points."""
    methods = len(rejecting["methods"][:drawn])
    curves = [
        {"method": i, **short(point)}
        for i, method in enumerate(rejecting["methods"][:drawn])
        for point in method["curve"]
    ]
    axis, title = alt.Axis(format="%", tickCount=5), "Wrong among the decided"
    scale = alt.Scale(domain=[0, _highest(rejecting["methods"][:drawn])], clamp=True)
    y = alt.Y("error:Q", axis=axis, scale=scale, title=title)
    x = alt.X(
        "declined:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
        title="Share of cases declined",
    )
    base = alt.Chart(alt.NamedData("curves")).encode(x=x, color=colours(methods))
    band = (
        base.transform_filter("datum.method === 0")
        .mark_area(opacity=0.14)
        .encode(alt.Y("low:Q", axis=axis, scale=scale, title=title), alt.Y2("high:Q"))
    )
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dashes(methods))
    here = f"{_at_cost()} && isValid(datum.error)"
    now = alt.Chart(alt.NamedData("stops")).transform_filter(here)
    now = now.encode(x=x, y=y, color=colours(methods))
    points = now.mark_point(filled=True, size=130, opacity=1, **_RIM)
    inward = "datum.declined > 0.6"  # at the right edge words would push the chart aside
    words = now.transform_filter("datum.method === 0").mark_text(
        align=alt.ExprRef(expr=f"{inward} ? 'right' : 'left'"),
        dx=alt.ExprRef(expr=f"{inward} ? -10 : 10"),
        dy=-10,
        fontWeight="bold",
        fontSize=13,
    )
    layers = alt.layer(
        band,
        line,
        points.encode(shape=shapes(methods), tooltip=_stop_tooltip()),
        words.encode(text="said:N"),
    )
    data = {"curves": curves, "stops": _stops(rejecting, drawn)}
    return whole(layers.add_params(_slider(rejecting)), data)


def _highest(methods: list[dict[str, Any]]) -> float:
    """Return where the axis of errors ends: where few cases are left, chance would fill it."""
    points = [(point, i) for i, method in enumerate(methods) for point in method["curve"]]
    errors = [point["error"] for point, _ in points if point["declined"] <= 0.9]
    limits = [point["high"] for point, i in points if i == 0 and point["declined"] <= 0.5]
    return min(1.05 * max([*errors, *limits, 0.01]), 1.0)


def cost_curves(rejecting: dict[str, Any], drawn: int) -> dict[str, Any]:
    """Draw the cost of a case over the cost of declining, and what never declining costs."""
    methods = len(rejecting["methods"][:drawn])
    x = alt.X(
        "cost:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(tickCount=5),
        title="Cost of declining (a mistake costs 1)",
    )
    axis, title = alt.Axis(tickCount=5), "Cost of a case"
    y = alt.Y("mean:Q", axis=axis, title=title)
    base = alt.Chart(alt.NamedData("stops")).encode(x=x, color=colours(methods))
    never = base.transform_filter("datum.method === 0").mark_line(strokeDash=[2, 4], strokeWidth=1)
    here = base.transform_filter(_at_cost())
    points = here.mark_point(filled=True, size=130, opacity=1, **_RIM)
    layers = alt.layer(
        never.encode(y=alt.Y("never:Q", axis=axis, title=title)),
        base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dashes(methods)),
        here.transform_filter("datum.method === 0")
        .mark_rule(opacity=0.5)
        .encode(x=x, color=alt.value("currentColor")),
        points.encode(y=y, shape=shapes(methods), tooltip=_stop_tooltip()),
    )
    cost = alt.param(name=COST, value=rejecting["start"])
    return whole(layers.add_params(cost), {"stops": _stops(rejecting, drawn)})


def _slider(rejecting: dict[str, Any]) -> Any:
    return alt.param(
        name=COST,
        value=rejecting["start"],
        bind=alt.binding_range(
            min=0, max=1, step=rejecting["step"], name="Cost of declining ", element="#cost-slider"
        ),
    )


def _stops(rejecting: dict[str, Any], drawn: int) -> list[dict[str, Any]]:
    """Return what happens at each stop of the slider."""
    values = []
    for i, method in enumerate(rejecting["methods"][:drawn]):
        columns = (rejecting["costs"], method["declined"], method["error"], method["cost"])
        for cost, declined, error, mean in zip(*columns, strict=True):
            values.append(
                short(
                    {
                        **numbered(i, method["name"]),
                        "cost": cost,
                        "declined": declined,
                        "error": error,
                        "mean": mean,
                        "never": method["never"],
                        "said": f"cost {cost:g}",
                    }
                )
            )
    return values


def _stop_tooltip() -> list[Any]:
    return [
        alt.Tooltip("name:N", title="method"),
        alt.Tooltip("cost:Q", title="cost of declining"),
        alt.Tooltip("declined:Q", title="declined", format=".1%"),
        alt.Tooltip("error:Q", title="wrong among the decided", format=".1%"),
        alt.Tooltip("mean:Q", title="cost of a case", format=".3f"),
    ]


def _at_cost() -> str:
    # Half the finest step: stops of the slider are decimals, which floats only approach.
    return f"abs(datum.cost - {COST}) < 0.0005"
