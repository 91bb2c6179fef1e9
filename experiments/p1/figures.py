"""Figures 1 to 3 from finished rounds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.common.pictures import blank, save_figures
from experiments.p1 import frontiers
from experiments.p1.claims import COST
from experiments.p1.curves import at_cost, gather, pooled
from experiments.p1.data import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Results = list[Mapping[str, Any]]

DPI = 120
COLOURS = {"probabilistic": "black", "optimistic": "tab:green", "pessimistic": "tab:red"}


def draw_all(results: Iterable[Mapping[str, Any]], folder: Path) -> int:
    """Write the figures and return their number; raises ImportError without matplotlib."""
    return save_figures(_figures(list(results)), folder, DPI)


def _figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Yield the figures by name, each with a panel for each of two sizes."""
    for name, sizes, panel in _panels(results):
        figure = blank(10, 4.5)
        for axes, size in zip(figure.subplots(1, 2), sizes, strict=True):
            panel(axes, size)
            axes.set_title(f"{size} examples")
            axes.legend()
        yield name, figure


def _panels(
    results: Results,
) -> Iterator[tuple[str, tuple[int, int], Callable[[Axes, int], None]]]:
    """Yield the figures: name, sizes of the two panels, function that draws a panel."""
    for variant in frontiers.VARIANTS:
        yield f"figure_1_{variant}", frontiers.SIZES, partial(_frontiers, variant=variant)
    groups: dict[tuple[str, str], Results] = {}
    for one in results:
        groups.setdefault((one["dataset"], one["kernel"]), []).append(one)
    for (dataset, kernel), found in groups.items():
        if dataset == SIMULATED:
            yield f"figure_2_{kernel}", frontiers.SIZES, _Rates(found, at_cost_only=True)
        yield f"figure_3_{dataset}_{kernel}", (45, 15), _Rates(found, at_cost_only=False)


def _frontiers(axes: Axes, size: int, *, variant: str) -> None:
    X, y = frontiers.training_rows()
    for k, mark in enumerate("ox"):
        axes.scatter(*X[y == k].T, marker=mark, color="0.6", s=15, label=f"class {k}")
    for method, margin in frontiers.margins(size, variant).items():
        lines = frontiers.LINES
        axes.contour(lines, lines, margin, levels=[0.0], colors=COLOURS[method])
        axes.plot([], [], color=COLOURS[method], label=method)
    axes.set_aspect("equal")


class _Rates:
    """Draws accuracy over error rate: a point for R_rej = 0.2, or the curve for all costs."""

    def __init__(self, results: Results, *, at_cost_only: bool) -> None:
        self.sizes = gather(results, "smoothed")
        self.at_cost_only = at_cost_only

    def __call__(self, axes: Axes, size: int) -> None:
        for method, counts in self.sizes[size].items():
            curve = pooled(at_cost(counts, COST) if self.at_cost_only else counts)
            axes.plot(
                100 * curve.error[0],
                100 * curve.accuracy[0],
                color=COLOURS[method],
                marker="o" if self.at_cost_only else ".",
                label=method,
            )
        axes.set_xlabel("error rate (%)")
        axes.set_ylabel("accuracy (%)")
