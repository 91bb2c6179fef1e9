"""Evaluation of row-wise formulas on tensors: in chunks, or by a compiled kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, reduce
from typing import Any, TypeAlias

import torch
from torch.autograd.forward_ad import unpack_dual

#: A function of tensors of rows that returns tensors of rows.
Formula: TypeAlias = Callable[..., tuple[torch.Tensor, ...]]

#: Largest number of entries of one temporary tensor, on CPU and GPU.
_ENTRIES_ON_CPU, _ENTRIES_ON_GPU = 2**20, 2**25

#: Types of tensors for which there are compiled kernels on the CPU.
_CPU_DTYPES = (torch.float32, torch.float64)
#: Types of tensors, and number of classes, for which there are compiled kernels on a GPU.
_GPU_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MAX_GPU_CLASSES = 2**14


def check_floating(name: str, x: Any) -> None:
    """Raise an error unless x is a tensor of floating-point numbers."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        given = str(x.dtype) if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a floating-point tensor; got {given}.")


def working_dtype(given: torch.dtype) -> torch.dtype:
    """Return the dtype to compute in: float32 for anything narrower."""
    return torch.promote_types(given, torch.float32)


def chunk_size(device: torch.device) -> int:
    """Return the largest number of entries of one temporary tensor."""
    return _ENTRIES_ON_CPU if device.type == "cpu" else _ENTRIES_ON_GPU


def needs_grad(*tensors: torch.Tensor) -> bool:
    """Return whether reverse-mode or forward-mode gradients are needed."""
    if any(unpack_dual(x).tangent is not None for x in tensors):
        return True
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_transformed(*tensors: torch.Tensor) -> bool:
    """Return whether torch is compiling, tracing, or transforming by `torch.func`."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    return any(_is_wrapped(x) for x in tensors)


def _is_wrapped(x: torch.Tensor) -> bool:
    # Tensors within `torch.func` have no data; torch has no public test for them.
    functorch = getattr(torch._C, "_functorch", None)
    return functorch is not None and bool(functorch.is_functorch_wrapped_tensor(x))


def by_rows(formula: Formula, *inputs: torch.Tensor, width: int) -> tuple[torch.Tensor, ...]:
    """Return a formula evaluated in chunks of rows, to limit temporary memory.

    `width` is the number of elements of a temporary tensor per row. Half precision is computed in
    float32 and returned in half precision. With gradients there is one chunk: the graph stores
    all intermediate tensors anyway.
    """
    given = reduce(torch.promote_types, (x.dtype for x in inputs))
    inside = working_dtype(given)

    def evaluate(*rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = formula(*(x.to(inside) for x in rows))
        return tuple(x.to(given) if x.is_floating_point() else x for x in results)

    n = len(inputs[0])
    step = max(1, chunk_size(inputs[0].device) // width)
    if n <= step or needs_grad(*inputs):
        return evaluate(*inputs)
    results: tuple[torch.Tensor, ...] = ()
    for i in range(0, n, step):
        chunk = evaluate(*(x[i : i + step] for x in inputs))
        results = results or tuple(x.new_empty((n, *x.shape[1:])) for x in chunk)
        for result, x in zip(results, chunk, strict=True):
            result[i : i + step] = x
    return results


def kernels_for(*inputs: torch.Tensor) -> Any:
    """Return a module of compiled kernels for these tensors, or None if there is none.

    There is none where gradients are needed or torch is compiling, tracing or transforming.
    """
    if is_transformed(*inputs) or needs_grad(*inputs):
        return None
    if all(x.device.type == "cpu" and x.dtype in _CPU_DTYPES for x in inputs):
        from dubito.evidence import _torch_cpu  # noqa: PLC0415 - loads numba

        return _torch_cpu
    on_gpu = all(x.is_cuda and x.dtype in _GPU_DTYPES for x in inputs)
    if on_gpu and inputs[-1].shape[-1] <= _MAX_GPU_CLASSES:
        return _built_kernels(inputs[0].device)
    return None


@cache
def _built_kernels(device: torch.device) -> Any:
    """Return the Triton kernels, or None if a trial run fails: Triton needs a C compiler."""
    try:
        from dubito.evidence import _triton  # noqa: PLC0415 - needs a GPU

        probe = torch.ones(1, 2, device=device)
        _triton.bounds(probe, probe)
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - any failure of Triton: use torch
        warnings.warn(
            f"Triton cannot build kernels for {device} ({error}); plain torch operations are "
            "used, which are several times slower.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return _triton
