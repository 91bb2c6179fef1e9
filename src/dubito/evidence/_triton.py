"""Fused GPU kernels (Triton), imported by `_torch_rows.kernels_for` on a machine with a GPU.

Each number is read and written once. A program (Triton's block of threads) computes whole rows, in
float32; reductions over the classes are sums and products of non-negative numbers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def bounds(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return belief and plausibility of each class, (n, K) each."""
    lower = torch.empty_like(w_plus, memory_format=torch.contiguous_format)
    upper = torch.empty_like(lower)
    _launch(w_plus, w_minus, lower=lower, upper=upper)
    return lower, upper


def ignorance(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the whole frame, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _launch(w_plus, w_minus, ignorance=result)
    return result


def conflict(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the empty set before normalising, (n,)."""
    result = w_plus.new_empty(len(w_plus))
    _launch(w_plus, w_minus, conflict=result)
    return result


def _launch(w_plus: torch.Tensor, w_minus: torch.Tensor, **results: torch.Tensor) -> None:
    """Compute the given results, by name, and write them into their tensors."""
    n, n_classes = w_plus.shape
    if not n:
        return
    w_plus, w_minus = (w if w.stride(1) == 1 else w.contiguous() for w in (w_plus, w_minus))
    block = triton.next_power_of_2(n_classes)
    rows, warps = _launch_size(block)
    with torch.cuda.device(w_plus.device):
        _belief_kernel[(triton.cdiv(n, rows),)](
            w_plus,
            w_minus,
            *(results.get(name, w_plus) for name in ("lower", "upper", "ignorance", "conflict")),
            n,
            n_classes,
            w_plus.stride(0),
            w_minus.stride(0),
            ROWS=rows,
            BLOCK=block,
            BOUNDS="lower" in results,
            IGNORANCE="ignorance" in results,
            CONFLICT="conflict" in results,
            num_warps=warps if "lower" in results else max(1, warps // 2),
        )


def _launch_size(block: int) -> tuple[int, int]:
    """Return rows and warps per program, the fastest of those tried on an H200.

    Up to 128 classes a row stays within one warp; beyond that a thread has 4 to 16 classes.
    """
    if block <= 128:
        return (128 if block <= 8 else 256) // block, 1
    return max(1, 512 // block), min(32, block // (128 if block <= 1024 else 256))


def totals(
    centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums of positive and negative parts of the weights over features, (n, K) each."""
    n, n_features = centred.shape
    n_classes = slope.shape[1]
    plus = centred.new_empty(n, n_classes)
    minus = torch.empty_like(plus)
    if not n:
        return plus, minus
    classes = min(128, max(16, triton.next_power_of_2(n_classes)))
    rows = 1024 // classes
    with torch.cuda.device(centred.device):
        _totals_kernel[(triton.cdiv(n, rows), triton.cdiv(n_classes, classes))](
            centred.T.contiguous(),  # contiguous along rows, the order of reading
            slope.contiguous(),
            base,
            plus,
            minus,
            n,
            n_features,
            n_classes,
            ROWS=rows,
            CLASSES=classes,
            RUN=32,
            num_warps=4,
        )
    return plus, minus


@triton.jit
def _belief_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    plus_at, minus_at, lower_at, upper_at, ignorance_at, conflict_at,
    n, n_classes, plus_step, minus_step,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
    BOUNDS: tl.constexpr, IGNORANCE: tl.constexpr, CONFLICT: tl.constexpr,
):  # fmt: skip
    """Write the formulas of `_torch_belief` for the rows of a program."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    valid = (row < n)[:, None] & (column < n_classes)
    at = row[:, None]
    plus = tl.load(plus_at + at * plus_step + column, mask=valid, other=0.0).to(tl.float32)
    minus = tl.load(minus_at + at * minus_step + column, mask=valid, other=0.0).to(tl.float32)
    # Minima and maxima drop nan. This is 0, or nan if a weight is nan, and is added to the results.
    zero_or_nan = tl.sum(plus + minus, axis=1) * 0.0
    no_support = tl.exp(-plus)
    support = _support(plus, no_support)
    opposition = tl.where(valid, _support(minus, tl.exp(-minus)), 1.0)
    if BOUNDS or IGNORANCE:
        difference = plus - minus
        minus_b = difference - plus
        error = (plus - (difference - minus_b)) - (minus + minus_b)
        difference = tl.where(valid, difference, -float("inf"))
        shift = tl.max(difference, axis=1)
        plausible = tl.exp((difference - shift[:, None]) + error)
        least, others, not_all_opposed = tl.reduce(
            (opposition, tl.full(opposition.shape, 1.0, tl.float32), plausible * no_support),
            1,
            _combine_products,
        )
        total = tl.sum(plausible * support, axis=1) + not_all_opposed
        if BOUNDS:
            # `others` leaves out the class of least opposition; times least / own, it leaves out
            # this class instead.
            ratio = tl.where(opposition == 0.0, 1.0, least[:, None] / opposition)
            belief_ratio = support + no_support * (others[:, None] * ratio)
            upper = tl.minimum(plausible * (1.0 / total)[:, None], 1.0)
            lower = upper * tl.minimum(belief_ratio, 1.0) + zero_or_nan[:, None]
            upper += zero_or_nan[:, None]
            tl.store(lower_at + at * n_classes + column, lower, mask=valid)
            tl.store(upper_at + at * n_classes + column, upper, mask=valid)
        if IGNORANCE:
            log_frame = -tl.sum(minus, axis=1) - shift - tl.log(total)
            tl.store(
                ignorance_at + row, tl.exp(tl.minimum(log_frame, 0.0)) + zero_or_nan, mask=row < n
            )
    if CONFLICT:
        supported = tl.where(valid, support, 0.0)
        none, _, one_opposed, several, against = tl.reduce(
            (no_support, supported, supported * opposition, tl.zeros_like(supported), opposition),
            1,
            _combine_conflict,
        )
        empty = several + one_opposed + none * against
        tl.store(conflict_at + row, tl.minimum(empty, 1.0) + zero_or_nan, mask=row < n)


@triton.jit
def _support(weight, no_support):  # type: ignore[no-untyped-def]
    """Return 1 - exp(-w), by its Taylor series for w < 0.25."""
    series = 1.0 - weight * (1.0 / 5) * (1.0 - weight * (1.0 / 6))
    series = 1.0 - weight * (1.0 / 3) * (1.0 - weight * (1.0 / 4) * series)
    series = weight * (1.0 - weight * (1.0 / 2) * series)
    return tl.where(weight < 0.25, series, 1.0 - no_support)


@triton.jit
def _combine_products(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    least_a, others_a, first_a, least_b, others_b, first_b
):
    """Return three terms of the union of two groups of classes, a before b, from those of each.

    They are the least factor, the product of the others, and 1 - product of all (scaled).
    """
    return (
        tl.minimum(least_a, least_b),
        others_a * others_b * tl.maximum(least_a, least_b),
        first_a + least_a * others_a * first_b,
    )


@triton.jit
def _combine_conflict(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    none_a, one_a, opposed_a, several_a, against_a, none_b, one_b, opposed_b, several_b, against_b
):
    """Return five masses of the union of two groups of classes, a and b, from those of each.

    They are the masses that no class is supported, that one is, that one is and is opposed as well,
    and that several are; and the mass that all classes are opposed.
    """
    return (
        none_a * none_b,
        one_a * none_b + none_a * one_b,
        opposed_a * none_b + none_a * opposed_b,
        several_a + one_a * (one_b + several_b) + none_a * several_b,
        against_a * against_b,
    )


@triton.jit
def _totals_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    phi_at, slope_at, base_at, plus_at, minus_at,
    n, n_features, n_classes,
    ROWS: tl.constexpr, CLASSES: tl.constexpr, RUN: tl.constexpr,
):  # fmt: skip
    """Write `_torch_weights.totals` of a tile of rows and classes; RUN features per partial sum."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * CLASSES + tl.arange(0, CLASSES)
    base = tl.load(base_at + column, mask=column < n_classes, other=0.0)[None, :]
    plus = tl.zeros((ROWS, CLASSES), tl.float32)
    minus = tl.zeros((ROWS, CLASSES), tl.float32)
    zero_or_nan = tl.zeros((ROWS, 1), tl.float32)  # minima and maxima drop nan
    for start in range(0, n_features, RUN):
        plus_run = tl.zeros((ROWS, CLASSES), tl.float32)
        minus_run = tl.zeros((ROWS, CLASSES), tl.float32)
        for _ in range(start, tl.minimum(start + RUN, n_features)):
            phi = tl.load(phi_at + row, mask=row < n, other=0.0)[:, None]
            slope = tl.load(slope_at + column, mask=column < n_classes, other=0.0)[None, :]
            zero_or_nan += phi * 0.0
            weight = phi * slope + base
            plus_run += tl.maximum(weight, 0.0)
            minus_run -= tl.minimum(weight, 0.0)
            phi_at += n
            slope_at += n_classes
        plus += plus_run
        minus += minus_run
    at = row[:, None] * n_classes + column[None, :]
    valid = (row < n)[:, None] & (column < n_classes)[None, :]
    tl.store(plus_at + at, plus + zero_or_nan, mask=valid)
    tl.store(minus_at + at, minus + zero_or_nan, mask=valid)
