"""How formulas of rows are run on tensors: in chunks, by a compiled kernel where there is one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, reduce
from typing import Any, TypeAlias

import torch
from torch.autograd.forward_ad import unpack_dual

#: Rows of tensors in, their results out.
Formula: TypeAlias = Callable[..., tuple[torch.Tensor, ...]]

#: Numbers of one kind that plain torch operations hold at once besides the result.
_ROOM_ON_CPU, _ROOM_ON_GPU = 2**20, 2**25

#: What compiled kernels take: types on the CPU; types, and classes that fit registers, on a GPU.
_WIDE = (torch.float32, torch.float64)
_NARROW = (torch.float32, torch.bfloat16, torch.float16)
_MOST_FUSED = 2**14


def check_floating(name: str, x: Any) -> None:
    """Refuse what is not a tensor of floating-point numbers."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = str(x.dtype) if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a floating-point tensor; got {kind}.")


def working_dtype(given: torch.dtype) -> torch.dtype:
    """Return the type to compute in: float32 for anything narrower."""
    return torch.promote_types(given, torch.float32)


def room(device: torch.device) -> int:
    """Return how many numbers of one kind to hold at once besides the result."""
    return _ROOM_ON_CPU if device.type == "cpu" else _ROOM_ON_GPU


def needs_grad(*tensors: torch.Tensor) -> bool:
    """Say whether a gradient will be asked for, or is on its way forward."""
    if any(unpack_dual(x).tangent is not None for x in tensors):
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_transformed(*tensors: torch.Tensor) -> bool:
    """Say whether torch looks on: compiling, tracing, or transforming by `torch.func`."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    return any(_is_wrapped(x) for x in tensors)


def _is_wrapped(x: torch.Tensor) -> bool:
    # What `torch.func` hands over has no numbers of its own; torch has no public word for it.
    functorch = getattr(torch._C, "_functorch", None)
    return functorch is not None and bool(functorch.is_functorch_wrapped_tensor(x))


def by_rows(formula: Formula, *inputs: torch.Tensor, width: int) -> tuple[torch.Tensor, ...]:
    """Apply a formula to runs of rows, so that only its results are held for all rows.

    `width` is how many numbers of one kind the formula holds for each row. Half precision is
    computed in float32 and returned as it came. Where gradients are needed the graph keeps
    everything in any case, and all rows go at once.
    """
    given = reduce(torch.promote_types, (x.dtype for x in inputs))
    inside = working_dtype(given)

    def part(*rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = formula(*(x.to(inside) for x in rows))
        return tuple(x.to(given) if x.is_floating_point() else x for x in results)

    n = len(inputs[0])
    step = max(1, room(inputs[0].device) // width)
    if n <= step or needs_grad(*inputs):
        return part(*inputs)
    results: tuple[torch.Tensor, ...] = ()
    for i in range(0, n, step):
        some = part(*(x[i : i + step] for x in inputs))
        results = results or tuple(x.new_empty((n, *x.shape[1:])) for x in some)
        for result, x in zip(results, some, strict=True):
            result[i : i + step] = x
    return results


def kernels_for(*inputs: torch.Tensor) -> Any:
    """Return a module of fused kernels where one serves, None where torch operations are to do.

    None serves where a gradient will be asked for or torch looks on.
    """
    if is_transformed(*inputs) or needs_grad(*inputs):
        return None
    if all(x.device.type == "cpu" and x.dtype in _WIDE for x in inputs):
        from dubito.evidence import _torch_cpu  # noqa: PLC0415 - where it is used

        return _torch_cpu
    narrow = all(x.is_cuda and x.dtype in _NARROW for x in inputs)
    if narrow and inputs[-1].shape[-1] <= _MOST_FUSED:
        return _built_kernels(inputs[0].device)
    return None


@cache
def _built_kernels(device: torch.device) -> Any:
    """Load the kernels and try them once: Triton needs a C compiler and a GPU that it knows."""
    try:
        from dubito.evidence import _triton  # noqa: PLC0415 - only where a GPU is

        probe = torch.ones(1, 2, device=device)
        _triton.bounds(probe, probe)
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever stops Triton, torch goes on
        warnings.warn(
            f"Triton cannot build kernels for {device} ({error}); plain torch operations are "
            "used, which are several times slower.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return _triton
