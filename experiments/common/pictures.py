"""Figures of an experiment, where they can be drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from experiments.common.store import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from matplotlib.figure import Figure


def draw_figures(draw_all: Callable[[Path], int], folder: Path) -> None:
    """Draw the figures into a folder, or print that matplotlib is missing."""
    try:
        count = draw_all(folder)
    except ImportError:
        print('figures left out: they need matplotlib (pip install ".[plots]")', file=sys.stderr)
    else:
        print(f"{count} figures are in {folder}", file=sys.stderr)


def save_figures(figures: Iterable[tuple[str, Figure]], folder: Path, dpi: float) -> int:
    """Write named figures as PNG files, each drawn as it is reached; return their number."""
    count = 0
    for name, figure in figures:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / f"{name}.png") as draft:
            figure.savefig(draft, format="png", dpi=dpi)
        count += 1
    return count


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of that size, in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - tables do not need matplotlib

    return Figure(figsize=(width, height), layout="constrained")
