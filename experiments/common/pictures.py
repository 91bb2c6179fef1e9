"""Figures of an experiment, where they can be drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure


def draw_or_say_why_not(draw_all: Callable[[Path], int], folder: Path) -> None:
    """Draw into a folder and count, or say what is missing."""
    try:
        count = draw_all(folder)
    except ImportError:
        print(
            'figures left out: they need matplotlib (pip install "dubito[plots]")', file=sys.stderr
        )
    else:
        print(f"{count} figures are in {folder}", file=sys.stderr)


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of that size, in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the tables need none

    return Figure(figsize=(width, height), layout="constrained")
