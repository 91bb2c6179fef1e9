"""Figures of an experiment, where they can be drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
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


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of that size, in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - tables do not need matplotlib

    return Figure(figsize=(width, height), layout="constrained")
