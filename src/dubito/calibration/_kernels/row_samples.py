"""Random samples of rows, so that time is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import IntArray


def subsample_rows(n: int, count: int) -> IntArray:
    """Return `count` random rows of n in order, the same on every run; all if n is no larger."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))
