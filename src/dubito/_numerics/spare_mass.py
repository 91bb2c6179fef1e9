"""Probability mass left above lower bounds, given to classes in order up to their upper bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Largest mass that counts as rounding error with up to ten classes; with more it grows with K.
_ROUNDING = 1e-14


def distribute_mass(spare: FloatArray | float, width: FloatArray) -> FloatArray:
    """Return the part of `spare` that each class receives in order, at most its width (.., K).

    A remainder within rounding counts as 0, also where a logarithm is taken of what is received.
    """
    remaining = spare - (np.cumsum(width, axis=-1) - width)
    remaining[remaining < _ROUNDING * max(width.shape[-1] / 10, 1.0)] = 0.0
    return np.asarray(np.minimum(remaining, width))
