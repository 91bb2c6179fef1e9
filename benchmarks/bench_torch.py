"""Bounds on tensors against torch's softmax alone, on the CPU and, where there is one, a GPU.

`python benchmarks/bench_torch.py` prints times, ratios, bytes moved per second and peak memory;
`--rows`, `--classes` and `--device` choose what is measured.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING

try:
    import torch
except ModuleNotFoundError:
    torch = None

from comparison import Comparison

if torch is not None:
    from dubito.evidence.torch import (
        EvidentialHead,
        bounds_from_weights,
        conflict_from_weights,
        ignorance_from_weights,
    )

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING = "bench_torch: torch is not installed (`make torch`); nothing is measured."


def weights(rows: int, classes: int, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return random total weights for and against every class."""
    generator = torch.Generator(device=device).manual_seed(0)
    w_plus, w_minus = (
        torch.rand(rows, classes, generator=generator, device=device) * scale for scale in (4, 5)
    )
    return w_plus, w_minus


def head_of(features: int, classes: int, device: str = "cpu") -> EvidentialHead:
    """Return a head with random parameters."""
    generator = torch.Generator(device=device).manual_seed(0)
    coef, intercept, mean = (
        torch.randn(shape, generator=generator, device=device) * features**-0.5
        for shape in ((classes, features), (classes,), (features,))
    )
    return EvidentialHead(coef, intercept, mean)


def comparisons() -> list[Comparison]:
    """Return the claims of this benchmark."""
    if torch is None:
        print(MISSING)
        return []
    torch.set_num_threads(1)  # CPU time is summed over all cores
    w_plus, w_minus = weights(5_000, 1_000)
    logits = w_plus - w_minus
    with_grad = w_plus.clone().requires_grad_(), w_minus
    head, features = head_of(100, 1_000), torch.randn(50, 100)
    return [
        Comparison(
            task="Bounds on tensors, 5,000 rows, K=1,000, float32, CPU",
            rival="torch.softmax of the same logits",
            ours=lambda: bounds_from_weights(w_plus, w_minus),
            theirs=lambda: torch.softmax(logits, dim=1),
            target=0.05,
        ),
        Comparison(
            task="Bounds on tensors, 5,000 rows, K=1,000, float32, CPU",
            rival="the same in torch operations, kept for the gradient",
            ours=lambda: bounds_from_weights(w_plus, w_minus),
            theirs=lambda: bounds_from_weights(*with_grad),
            target=2,
            repeats=3,
        ),
        Comparison(
            task="Totals of a torch head, 50 rows, 100 features, K=1,000",
            rival="torch operations on the weights (n, J, K)",
            ours=lambda: head.totals(features),
            theirs=lambda: parts_of_weights(head, features),
            target=2,
            repeats=3,
        ),
    ]


def parts_of_weights(
    head: EvidentialHead, features: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sums of positive and negative parts of all weights."""
    w = head.weights(features)
    return w.relu().sum(1), (-w).relu().sum(1)


def seconds(run: Callable[[], object], device: str, repeats: int = 9) -> float:
    """Return the median time of a call, after two to warm up."""
    spent = []
    for i in range(repeats + 2):
        if device == "cpu":
            start = time.perf_counter()
            run()
            spent.append(time.perf_counter() - start)
        else:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            run()
            last.record()
            torch.cuda.synchronize()
            spent.append(first.elapsed_time(last) / 1e3)
        if i == 1:
            spent.clear()
    return sorted(spent)[repeats // 2]


def report(rows: int, classes: int, device: str) -> None:
    """Print the measurements of one size on one device."""
    name = (
        torch.cuda.get_device_name() if device == "cuda" else f"threads: {torch.get_num_threads()}"
    )
    print(f"\n{device} ({name}), torch {torch.__version__}")
    print(f"{rows:,} rows, {classes:,} classes, float32")
    report_weights(*weights(rows, classes, device))
    report_head(head_of(512, classes, device), torch.randn(rows // 10, 512, device=device))


def report_weights(w_plus: torch.Tensor, w_minus: torch.Tensor) -> None:
    """Print times of bounds, conflict and ignorance beside that of the softmax."""
    device, table = w_plus.device.type, w_plus.nbytes
    softmax = seconds(lambda: torch.softmax(w_plus, dim=1), device)
    _line("torch.softmax", softmax, softmax, 2 * table)
    tasks = {
        "bounds": (bounds_from_weights, 4 * table),
        "conflict": (conflict_from_weights, 2 * table),
        "ignorance": (ignorance_from_weights, 2 * table),
    }
    for task, (function, moved) in tasks.items():
        _line(task, seconds(partial(function, w_plus, w_minus), device), softmax, moved)
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        bounds_from_weights(w_plus, w_minus)
        extra = (torch.cuda.max_memory_allocated() - before) / table
        print(f"peak memory of bounds: {extra:.2f} times the logits, of which 2 are the result")


def report_head(head: EvidentialHead, features: torch.Tensor) -> None:
    """Print the time of a head's bounds beside that of its logits."""
    device = features.device.type
    linear = seconds(lambda: head(features), device, repeats=3)
    ours = seconds(lambda: head.bounds(features), device, repeats=3)
    pieces = len(features) * head.n_features * head.n_classes
    print(
        f"head of {head.n_features} features, {len(features):,} rows: bounds {1e3 * ours:.1f} ms, "
        f"{pieces / ours / 1e9:.3g} billion weights a second; the layer alone {1e3 * linear:.2f} ms"
    )


def _line(task: str, spent: float, softmax: float, moved: int) -> None:
    print(
        f"{task:14} {1e3 * spent:9.2f} ms {spent / softmax:7.2f} x softmax "
        f"{moved / spent / 1e9:8.4g} GB/s"
    )


def main() -> None:
    """Measure on the CPU, and on the GPU where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="20,000 on the CPU, 1,000,000 on a GPU")
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--device", choices=["cpu", "cuda"], help="all there are by default")
    options = parser.parse_args()
    if torch is None:
        print(MISSING)
        return
    devices = [options.device] if options.device else ["cpu", "cuda"]
    for device in devices:
        if device == "cuda" and not torch.cuda.is_available():
            print("\nno GPU here: nothing measured on cuda")
        else:
            report(
                options.rows or {"cpu": 20_000, "cuda": 1_000_000}[device], options.classes, device
            )


if __name__ == "__main__":
    main()
