"""Figure 3: calibration error over the depth of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from experiments.common.pictures import blank, save_figures
from experiments.p4 import depths, measures
from experiments.p4.schemes import HEADINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from experiments.p4.measures import Results
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 120
#: Depths of the reliability diagrams.
SHOWN = (1, 2, 3, 5, 8, 12)
COLOURS = {"baseline": "tab:blue", "external": "tab:orange"}


def draw_all(results: Mapping[str, Results], folder: Path) -> int:
    """Write the figures of the parts that were run; raises ImportError without matplotlib."""
    return save_figures(_figures(results), folder, DPI)


def _figures(results: Mapping[str, Results]) -> Iterator[tuple[str, Figure]]:
    if "depths" in results:
        yield "figure_3", reliability(results["depths"])
        yield "figure_3_ece", growth(results["depths"])


def reliability(results: Results) -> Figure:
    """Draw diagrams at growing depths: without external calibration above, with it below."""
    figure = blank(3 * len(SHOWN), 6)
    found = measures.of_depths(results)
    for scheme, line in zip(depths.SCHEMES, figure.subplots(2, len(SHOWN)), strict=True):
        for axes, depth in zip(line, SHOWN, strict=True):
            at = depths.DEPTHS.index(depth)
            _diagram(axes, [one["schemes"][scheme][at] for one in results])
            ece = found[f"{scheme}.ece"][:, at].mean() / 100
            axes.set_title(f"{HEADINGS[scheme]}, depth {depth}\nECE = {ece:.3f}", fontsize=10)
        line[0].set_ylabel("accuracy")
    return figure


def _diagram(axes: Axes, bins: list[dict[str, list[float]]]) -> None:
    """Draw accuracy over confidence, of the rows of all trees, and where rows are."""
    rows, confidence, hits = (
        np.sum([one[name] for one in bins], axis=0) for name in ("rows", "confidence", "hits")
    )
    some = rows > 0
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    width = 1 / len(rows)
    places = width * (np.arange(len(rows)) + 0.5)
    axes.bar(places, rows / rows.sum(), width=width, color="0.85")
    axes.plot(confidence[some] / rows[some], hits[some] / rows[some], marker="o", markersize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")


def growth(results: Results) -> Figure:
    """Draw the calibration error over the depth, mean of trees with their range."""
    figure = blank(6, 4)
    axes = figure.subplots()
    found = measures.of_depths(results)
    for scheme, colour in COLOURS.items():
        values = found[f"{scheme}.ece"] / 100
        axes.plot(depths.DEPTHS, values.mean(axis=0), color=colour, label=HEADINGS[scheme])
        ends = values.min(axis=0), values.max(axis=0)
        axes.fill_between(depths.DEPTHS, *ends, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="depth", ylabel="ECE", ylim=(0, None))
    axes.legend()
    return figure
