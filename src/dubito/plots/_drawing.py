"""Axes, and the names and colours of classes and sets; matplotlib is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from dubito._typing import BoolArray, FloatArray

#: The colours of Okabe and Ito, distinguishable with any kind of colour vision, without their
#: yellow, which is too pale for lines.
_HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: Dashes and hatches distinguish sets whose mixed colours are alike.
DASHES = ("--", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (6, 2)), (0, (5, 1, 1, 1)))
HATCHES = ("//", "\\\\", "xx", "--", "++", "..")
#: Options of a legend to the right of the axes.
BESIDE_AXES: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}


def set_name(inside: BoolArray, classes: Iterable[Any]) -> str:
    """Return the name of a set of classes: its members in braces, or "all".

    >>> set_name(np.array([True, False, True]), ["cod", "eel", "ray"])
    '{cod, ray}'
    >>> set_name(np.array([True, True, True]), ["cod", "eel", "ray"])
    'all'
    """
    if inside.all() and len(inside) > 2:
        return "all"
    members = [str(k) for k, is_member in zip(classes, inside, strict=True) if is_member]
    return f"{{{', '.join(members)}}}"


def class_colours(n_classes: int) -> FloatArray:
    """Return one colour per class, (K, 3)."""
    from matplotlib import colormaps, colors  # noqa: PLC0415 - drawing only

    if n_classes <= len(_HUES):
        return np.array([colors.to_rgb(hue) for hue in _HUES[:n_classes]])
    # For many classes a continuous scale, which is also readable in grey.
    return colormaps["viridis"](np.linspace(0, 1, n_classes))[:, :3]


def set_colour(inside: BoolArray) -> FloatArray:
    """Return the colour of a set: the mean of its members' colours; dark grey for the frame."""
    if inside.all():
        return np.full(3, 0.2)
    return class_colours(len(inside))[inside].mean(axis=0)


def pale(colour: FloatArray, opacity: float = 0.45) -> FloatArray:
    """Return a colour mixed with white."""
    return 1 - opacity * (1 - colour)


class SingleAxesDisplay:
    """Base class of displays on one axes."""

    def _set_axes(self, ax: Axes | None) -> None:
        """Set ``ax_`` and ``figure_`` to the given axes, or to new ones."""
        if ax is None:
            _, ax = pyplot().subplots()
        self.ax_: Any = ax
        self.figure_: Any = ax.figure


def pyplot() -> Any:
    """Return matplotlib.pyplot."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - drawing only
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib: pip install ".[plots]" in a checkout of dubito'
        ) from error
    return plt


def new_axes(height: float = 4.8) -> Any:
    """Return new axes in a figure with space for a legend beside them."""
    return pyplot().subplots(figsize=(6.4, height), layout="constrained")[1]
