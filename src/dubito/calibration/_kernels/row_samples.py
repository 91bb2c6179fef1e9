"""Chunks of rows, so that memory is bounded, and random samples of rows, so that time is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito._typing import FloatArray, IntArray

#: Floats that a pass over the rows holds at once: 4 MiB.
CHUNK = 2**19


def row_chunks(u: FloatArray, width: int = 1) -> Iterator[slice]:
    """Return slices of consecutive rows for which `width` arrays fit in a chunk."""
    step = max(1, CHUNK // (width * u.shape[1]))
    return (slice(i, min(i + step, len(u))) for i in range(0, len(u), step))


def subsample_rows(n: int, count: int) -> IntArray:
    """Return `count` random rows of n in order, the same on every run; all if n is no larger."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))
