"""Chunks of rows, so that memory is bounded, and random samples of rows, so that time is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito._typing import IntArray

#: Largest number of entries in the arrays of a chunk, unless a caller says otherwise: 4 MiB.
CHUNK_ENTRIES = 2**19


def row_chunks(n_rows: int, row_size: int, n_entries: int = CHUNK_ENTRIES) -> Iterator[slice]:
    """Return slices of consecutive rows with at most `n_entries` entries each, or of one row.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    row_size : int
        Entries of arrays that the computation holds for each row.
    n_entries : int
        Limit for a chunk.

    Examples
    --------
    >>> from dubito._numerics.row_subsets import row_chunks
    >>> list(row_chunks(5, row_size=10, n_entries=25))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, n_entries // row_size)
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def subsample_rows(n: int, count: int) -> IntArray:
    """Return `count` random rows of n in order, the same on every run; all if n is no larger."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))
