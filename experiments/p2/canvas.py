"""Blank figures, and how finely they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    Floats = npt.NDArray[np.float64]

#: Points along each axis at which classifiers are asked.
RESOLUTION = 150
DPI = 120


def blank(width: float, height: float) -> Figure:
    """Return a figure of that size, in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the tables need none

    return Figure(figsize=(width, height), layout="constrained")


def grid_over(X: Floats) -> tuple[list[Floats], Floats]:
    """Return the lines of a grid over two features, and its points, row by row."""
    ends = zip(X.min(axis=0), X.max(axis=0), strict=True)
    lines = [np.linspace(low, high, RESOLUTION) for low, high in ends]
    return lines, np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
