"""Formulas of evidence by the numba kernels of `dubito._numerics`, on CPU tensors.

The counterpart of `_triton`, for tensors that need no gradient; see `_torch_rows.kernels_for`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dubito._numerics import evidence_weights

if TYPE_CHECKING:
    from collections.abc import Callable

#: Entries that a thread computes at a time: 512 kB, to stay in its cache.
_CHUNK_ENTRIES = 2**16


def bounds(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return belief and plausibility of each class, (n, K) each."""
    lower, upper = (w_plus.new_empty(w_plus.shape) for _ in range(2))
    _write((lower, upper), evidence_weights.bounds, w_plus, w_minus)
    return lower, upper


def conflict(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the empty set before normalising, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _write((result,), lambda *w: (evidence_weights.conflict(*w),), w_plus, w_minus)
    return result


def ignorance(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the whole frame, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _write((result,), lambda *w: (evidence_weights.ignorance(*w),), w_plus, w_minus)
    return result


def totals(
    centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums of positive and negative parts of the weights over features, (n, K) each."""
    plus, minus = (centred.new_empty(len(centred), slope.shape[1]) for _ in range(2))
    features = np.arange(len(slope) + 1)  # one feature per piece of evidence
    layer = (
        _as_float64(slope.detach().numpy()),
        np.zeros(len(slope)),
        _as_float64(base.detach().numpy()),
    )
    layout = features[:-1], features
    _write((plus, minus), lambda rows: evidence_weights.totals(rows, layer, layout), centred)
    return plus, minus


def _write(
    results: tuple[torch.Tensor, ...],
    kernel: Callable[..., tuple[Any, ...]],
    *inputs: torch.Tensor,
) -> None:
    """Write the results of a kernel for all rows, in as many threads as torch uses."""
    n = len(inputs[0])
    step = max(1, _CHUNK_ENTRIES // max(1, results[0][:1].numel(), inputs[0][:1].numel()))
    # numpy from here on: torch operations would start threads of their own.
    given = [x.detach().numpy() for x in inputs]
    written = [x.numpy() for x in results]

    def write_block(start: int) -> None:
        rows = slice(start, start + step)
        numbers = [_as_float64(x[rows]) for x in given]
        # The kernels compare numbers and do not propagate nan.
        not_finite = ~np.isfinite(sum(x.sum(axis=1) for x in numbers))
        for result, array in zip(written, kernel(*numbers), strict=True):
            result[rows] = array
            result[rows][not_finite] = np.nan

    threads = torch.get_num_threads()
    if threads == 1 or n <= step:
        for start in range(0, n, step):
            write_block(start)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(write_block, range(0, n, step)):  # raises the exceptions of the threads
            pass


def _as_float64(x: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.ascontiguousarray(x, dtype=np.float64)
