"""The compiled kernels of `dubito.evidence` on CPU tensors, float32 or float64 alike.

As `_triton` on a GPU: for tensors that need no gradient, through `_torch_rows.kernels_for`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dubito._kernels import evidence

if TYPE_CHECKING:
    from collections.abc import Callable

#: Numbers of one kind that a thread takes at once: they stay in its cache.
_SHARE = 2**16


def bounds(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return belief and plausibility of each class, (n, K) each."""
    lower, upper = (w_plus.new_empty(w_plus.shape) for _ in range(2))
    _write((lower, upper), evidence.bounds, w_plus, w_minus)
    return lower, upper


def conflict(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the empty set before normalising, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _write((result,), lambda *w: (evidence.conflict(*w),), w_plus, w_minus)
    return result


def ignorance(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the whole frame, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _write((result,), lambda *w: (evidence.ignorance(*w),), w_plus, w_minus)
    return result


def totals(
    centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add up positive and negative parts of the weights over features, (n, K) each."""
    plus, minus = (centred.new_empty(len(centred), slope.shape[1]) for _ in range(2))
    features = np.arange(len(slope) + 1)  # each is a piece of evidence by itself
    layer = _wide(slope.detach().numpy()), np.zeros(len(slope)), _wide(base.detach().numpy())
    pieces = features[:-1], features
    _write((plus, minus), lambda rows: evidence.totals(rows, layer, pieces), centred)
    return plus, minus


def _write(
    results: tuple[torch.Tensor, ...],
    kernel: Callable[..., tuple[Any, ...]],
    *inputs: torch.Tensor,
) -> None:
    """Fill the results with what a kernel makes of the inputs' rows, in torch's threads."""
    n = len(inputs[0])
    step = max(1, _SHARE // max(1, results[0][:1].numel(), inputs[0][:1].numel()))
    # Arrays from here on: torch's operations would start their own threads in each of these.
    given = [x.detach().numpy() for x in inputs]
    written = [x.numpy() for x in results]

    def part(start: int) -> None:
        rows = slice(start, start + step)
        numbers = [_wide(x[rows]) for x in given]
        # The kernels compare, and a comparison with nan is just false.
        lost = ~np.isfinite(sum(x.sum(axis=1) for x in numbers))
        for result, array in zip(written, kernel(*numbers), strict=True):
            result[rows] = array
            result[rows][lost] = np.nan

    threads = torch.get_num_threads()
    if threads == 1 or n <= step:
        for start in range(0, n, step):
            part(start)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(part, range(0, n, step)):  # to raise what a part raised
            pass


def _wide(x: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.ascontiguousarray(x, dtype=np.float64)
