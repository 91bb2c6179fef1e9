"""Run a row-wise kernel on blocks of rows in several threads; the kernel releases the GIL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

#: Number of blocks for each thread: rows differ in cost, and a thread that ends early takes another
#: block.
_BLOCKS_PER_THREAD = 8


def over_blocks(
    kernel: Callable[..., npt.NDArray[Any]], arrays: tuple[npt.NDArray[Any], ...], *, threads: int
) -> npt.NDArray[Any]:
    """Return `kernel(*arrays)`, whose rows are independent, computed in blocks of rows."""
    n = len(arrays[0])
    n_blocks = min(n, _BLOCKS_PER_THREAD * threads)
    if threads == 1 or n_blocks < 2:
        return kernel(*arrays)
    blocks = zip(*(np.array_split(array, n_blocks) for array in arrays), strict=True)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(lambda block: kernel(*block), blocks)))
