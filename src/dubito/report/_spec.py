"""What all charts share: Altair's specification of a chart that fits the page.

Colours are the page's own (CSS variables and ``currentColor``), so that charts follow light and
dark. Methods, classes and rows go by number; their names are only ever shown, so that no name can
be read as a path, a key or an expression. Every chart is as wide as its place on the page.
"""

from __future__ import annotations

from typing import Any

import altair as alt

DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 4, 1, 4])
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
#: Labels of axes are cut to this many pixels.
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


def numbered(place: int, name: str) -> dict[str, Any]:
    return {"method": place, "name": name}


def colours(methods: int) -> Any:
    scale = alt.Scale(domain=list(range(methods)), range=[f"var(--m{i})" for i in range(methods)])
    return alt.Color("method:N", scale=scale, legend=None)


def dashes(methods: int) -> Any:
    scale = alt.Scale(domain=list(range(methods)), range=list(DASHES[:methods]))
    return alt.StrokeDash("method:N", scale=scale, legend=None)


def shapes(methods: int) -> Any:
    scale = alt.Scale(domain=list(range(methods)), range=list(SHAPES[:methods]))
    return alt.Shape("method:N", scale=scale, legend=None)


def named_axis(**options: Any) -> Any:
    """Return an axis that shows the names of numbered things, given by `_names`."""
    return alt.Axis(labelExpr="names[datum.value]", **options)


def shown_names(names: list[str]) -> Any:
    return alt.param(name="names", value=names)


def short(point: dict[str, Any]) -> dict[str, Any]:
    """Return a point with numbers of as many digits as a picture can show."""
    return {key: round(v, 5) if isinstance(v, float) else v for key, v in point.items()}


def whole(
    chart: Any, data: dict[str, list[dict[str, Any]]], *, height: int = 300
) -> dict[str, Any]:
    """Return the specification of a chart as wide as its place."""
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec = chart.properties(width="container", height=height, autosize=size).to_dict()
    # By name and once: several layers of a chart read the same rows.
    spec["datasets"] = data
    spec.pop("config", None)  # of whatever theme the user has; the page has its own
    return spec
