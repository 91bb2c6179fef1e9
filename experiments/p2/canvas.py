"""Resolution of the figures, and grids over two features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Points along each axis at which classifiers predict.
RESOLUTION = 150
DPI = 120


def grid_over(X: Floats) -> tuple[list[Floats], Floats]:
    """Return the coordinates of a grid over two features, and its points, row by row."""
    ends = zip(X.min(axis=0), X.max(axis=0), strict=True)
    lines = [np.linspace(low, high, RESOLUTION) for low, high in ends]
    return lines, np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
