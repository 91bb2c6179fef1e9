"""Draw coverage against the number of rows, for `docs/explanation/meaning.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from experiments.common.pictures import blank, save_figures
from scipy.stats import norm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from experiments.validity.tables import Row
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 100
TICKS = (10, 30, 100, 300, 1000)
#: Limit of the coverage of belief and plausibility, for a regular likelihood.
BELIEF_LIMIT = 2 * norm.cdf(np.sqrt(np.pi / 2)) - 1


class Line(NamedTuple):
    """A line of a figure: its label, and the cells it joins."""

    words: str
    part: str
    case: str
    method: str
    query: str = "typical"


LEVEL_LINES = (
    Line("logistic, one score", "two_classes", "one_medium_half", "level"),
    Line("joint, three scores", "two_classes", "three_medium_half", "level"),
    Line("one slope, 3 classes", "more_classes", "slope_3", "level"),
    Line("one slope, 10 classes", "more_classes", "slope_10", "level"),
    Line("joint, 3 classes", "more_classes", "joint_3", "level"),
    Line("matrix, 4 classes", "maps", "matrix_4", "level"),
    Line("isotonic", "monotone", "sigmoid", "level"),
    Line("isotonic, exact=True", "monotone", "sigmoid", "exact"),
    Line("bins, for the bin's mean", "monotone", "sigmoid", "bin mean"),
    Line("nested dichotomies", "trees", "balanced_4", "level, feature"),
)
BELIEF_LINES = (
    Line("logistic, one score", "two_classes", "one_medium_half", "belief"),
    Line("joint, three scores", "two_classes", "three_medium_half", "belief"),
    Line("one slope, 3 classes", "more_classes", "slope_3", "belief"),
    Line("one slope, 10 classes", "more_classes", "slope_10", "belief"),
    Line("joint, 3 classes", "more_classes", "joint_3", "belief"),
)
SET_LINES = (
    Line("best single class", "sets", "equal", "best single class", "new"),
    Line("interval dominance, belief", "sets", "equal", "dominance, belief", "new"),
    Line("interval dominance, level 0.9", "sets", "equal", "dominance, level 0.9", "new"),
    Line("conformal, split", "sets", "equal", "conformal, split", "new"),
    Line("conformal, cross", "sets", "equal", "conformal, cross", "new"),
)
BOX_LINES = (
    Line("box c/n, c = 1", "discriminant", "tied", "c/n, c=1"),
    Line("box c/n, c = 2", "discriminant", "tied", "c/n, c=2"),
    Line("standard errors, c = 1", "discriminant", "tied", "standard error, c=1"),
    Line("standard errors, c = 2", "discriminant", "tied", "standard error, c=2"),
)
WRONG_LINES = (
    Line("wrong link: bounds", "misfit", "wrong_link", "level 0.9"),
    Line("wrong link: warnings", "misfit", "wrong_link", "warning", "fit"),
    Line("offsets, one slope: bounds", "misfit", "shifted_scores", "level 0.9"),
    Line("offsets, one slope: warnings", "misfit", "shifted_scores", "warning", "fit"),
    Line("right link: warnings", "misfit", "right_link", "warning", "fit"),
)
MARKERS = "os^vDPX*<"


def draw_all(rows: Sequence[Row], folder: Path) -> int:
    """Write the figures of the parts that were run; raises ImportError without matplotlib."""
    return save_figures(_figures(rows), folder, DPI)


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    parts = {row.part for row in rows}
    if parts & {"two_classes", "more_classes", "maps", "monotone", "trees"}:
        yield "meaning_levels", levels(rows)
    if "sets" in parts:
        yield "meaning_sets", sets(rows)
    if parts & {"discriminant", "misfit"}:
        yield "meaning_limits", limits(rows)


def levels(rows: Sequence[Row]) -> Figure:
    """Return coverage of the true probability by bounds at level 0.9, and by belief."""
    figure, (left, right) = _two_axes()
    _draw(left, rows, LEVEL_LINES, level=0.9)
    _target(left, 0.9, "promised: 0.9")
    left.set(title="predict_bounds(X, level=0.9)", ylabel="true probability inside the bounds")
    _draw(right, rows, BELIEF_LINES)
    _target(right, BELIEF_LIMIT, f"limit: {BELIEF_LIMIT:.2f}")
    right.set_title("predict_bounds(X): belief and plausibility")
    for axes in (left, right):
        axes.set(ylim=(0.4, 1.01), xlabel="rows to calibrate on")
    return figure


def sets(rows: Sequence[Row]) -> Figure:
    """Return coverage of the true label by sets, and the number of classes in them."""
    figure, (left, right) = _two_axes()
    _draw(left, rows, SET_LINES)
    _target(left, 0.9, "conformal: 0.9 promised")
    left.set(title="true label in the set", ylabel="fraction of new rows", ylim=(0.6, 1.01))
    _draw(right, rows, SET_LINES, value="width")
    right.set(
        title="classes in the set", ylabel="median over replicates of the mean", ylim=(0.9, 3.05)
    )
    for axes in (left, right):
        axes.set_xlabel("rows to train and calibrate on")
    return figure


def limits(rows: Sequence[Row]) -> Figure:
    """Return coverage of the discriminant's bounds, and of maps of the wrong form."""
    figure, (left, right) = _two_axes()
    _draw(left, rows, BOX_LINES)
    left.set(
        title="imprecise discriminant, no level promised",
        xlabel="rows of each class",
        ylabel="true posterior inside the bounds",
        ylim=(0, 1.01),
    )
    _draw(right, rows, WRONG_LINES)
    _target(right, 0.9, "0.9, if the form were right")
    right.set(
        title="maps of the wrong form, level=0.9",
        xlabel="rows to calibrate on",
        ylabel="fraction",
        ylim=(-0.02, 1.01),
    )
    return figure


def _two_axes() -> tuple[Figure, tuple[Axes, Axes]]:
    figure = blank(10.0, 4.4)
    return figure, figure.subplots(1, 2)


def _draw(
    axes: Axes,
    rows: Sequence[Row],
    lines: Sequence[Line],
    *,
    value: str = "coverage",
    level: float | None = None,
) -> None:
    """Draw a value against n for each line that was run."""
    for line, marker in zip(lines, MARKERS, strict=False):
        some = sorted(
            (row.n, getattr(row, value))
            for row in rows
            if row[:2] == (line.part, line.case)
            and (row.method, row.query) == (line.method, line.query)
            and (level is None or row.promise == level)
        )
        if some:
            style = "--" if "warnings" in line.words else "-"
            axes.plot(
                *zip(*some, strict=True), style, marker=marker, ms=4, lw=1.2, label=line.words
            )
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [str(n) for n in TICKS], minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(fontsize=7.5, loc="best")


def _target(axes: Axes, height: float, words: str) -> None:
    axes.axhline(height, color="black", lw=0.9, ls=":")
    axes.annotate(
        words,
        (0.99, height),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=8,
    )
