"""Hypothesis strategies for probabilities, mass functions and bounds.

Masses are ratios of small whole numbers, so zeros, ties and certainty come up often, and failing
examples shrink to something readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dubito.belief import Bounds, Frame, MassBatch

if TYPE_CHECKING:
    from dubito._typing import FloatArray

__all__ = ["bounds", "mass_batches", "probabilities"]

_LABELS = tuple("abcdefghijklmnopqrst")


@st.composite
def probabilities(
    draw: st.DrawFn, *, n_classes: int | None = None, max_rows: int = 4
) -> FloatArray:
    """Draw an (n, K) array whose rows sum to 1."""
    k = draw(st.integers(1, 6)) if n_classes is None else n_classes
    return _fractions(draw, draw(st.integers(1, max_rows)), k)


@st.composite
def mass_batches(
    draw: st.DrawFn,
    *,
    n_classes: int | None = None,
    rows: int | None = None,
    dogmatic: bool = True,
) -> MassBatch:
    """Draw a dense batch; with ``dogmatic=False`` every row has some mass on the whole frame."""
    k = draw(st.integers(1, 5)) if n_classes is None else n_classes
    n = draw(st.integers(1, 4)) if rows is None else rows
    frame = Frame(_LABELS[:k])
    mass = _fractions(draw, n, 2**k - 1)
    if not dogmatic:
        mass *= 0.9
        mass[:, -1] += 0.1
    return MassBatch(frame, frame.subsets(), mass)


@st.composite
def bounds(draw: st.DrawFn, *, n_classes: int | None = None) -> Bounds:
    """Draw bounds of random mass functions."""
    return draw(mass_batches(n_classes=n_classes)).bounds()


def _fractions(draw: st.DrawFn, n: int, size: int) -> FloatArray:
    counts = draw(hnp.arrays(np.int64, (n, size), elements=st.integers(0, 9)))
    counts[counts.sum(axis=1) == 0, draw(st.integers(0, size - 1))] = 1
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
