"""How classes and sets of them are named and coloured, the same in every picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dubito._checks import BoolArray, FloatArray

# Okabe and Ito's colours, told apart by readers with any kind of colour vision; their yellow is
# too pale for lines.
_HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: Dashes and hatches tell sets apart where mixed colours cannot.
DASHES = ("--", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (6, 2)), (0, (5, 1, 1, 1)))
HATCHES = ("//", "\\\\", "xx", "--", "++", "..")


def set_name(inside: BoolArray, classes: Iterable[Any]) -> str:
    """Name a set of classes by its members.

    >>> set_name(np.array([True, False, True]), ["cod", "eel", "ray"])
    '{cod, ray}'
    >>> set_name(np.array([True, True, True]), ["cod", "eel", "ray"])
    'all'
    """
    if inside.all() and len(inside) > 2:
        return "all"
    return f"{{{', '.join(str(k) for k, kept in zip(classes, inside, strict=True) if kept)}}}"


def class_colours(n_classes: int) -> FloatArray:
    """Return one colour per class, (K, 3)."""
    from matplotlib import colormaps, colors  # noqa: PLC0415 - only drawing needs it

    if n_classes <= len(_HUES):
        return np.array([colors.to_rgb(hue) for hue in _HUES[:n_classes]])
    # No palette names so many classes; an even scale at least stays readable in grey.
    return colormaps["viridis"](np.linspace(0, 1, n_classes))[:, :3]


def set_colour(inside: BoolArray) -> FloatArray:
    """Return the colour of a set: its members' colours mixed; the whole frame is dark."""
    if inside.all():
        return np.full(3, 0.2)
    return class_colours(len(inside))[inside].mean(axis=0)


def pale(colour: FloatArray, share: float = 0.45) -> FloatArray:
    """Return a colour thinned with white."""
    return 1 - share * (1 - colour)
