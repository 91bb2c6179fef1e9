"""Measure every speed claim and write the table to RESULTS.md (`make bench`)."""

from __future__ import annotations

import importlib
import platform
import sys
import tracemalloc
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from bench_belief import dense_pair, discounted_pair  # noqa: E402

from dubito.belief import MassBatch, dempster  # noqa: E402

HEAD = """# Speed, measured

Ratios of CPU time, rival over ours, best of several rounds in one run: 10 means ours is ten times
faster. Written by `make bench`; machines differ, so run it on yours.

| task | rival | times faster | aim |
|---|---|---|---|
"""


def peak_over_output(a: MassBatch, b: MassBatch) -> float:
    """Return the peak memory of Dempster's rule over the size of its result."""
    dempster(a, b)
    tracemalloc.start()
    result = dempster(a, b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / result.mass.nbytes


def main() -> int:
    """Run all benchmark modules; return 1 when an aim is missed."""
    lines, missed = [], 0
    for module in sorted(HERE.glob("bench_*.py")):
        for comparison in importlib.import_module(module.stem).comparisons():
            ratio = comparison.ratio()
            missed += ratio < comparison.target
            line = (
                f"| {comparison.task} | {comparison.rival} "
                f"| {ratio:.3g} | ≥ {comparison.target:g} |"
            )
            print(line, flush=True)
            lines.append(line)
    memory = ", ".join(
        f"{peak_over_output(*draw(k, rows)):.1f} ({kind}, K={k}, {rows:,} rows)"
        for kind, draw, k, rows in [
            ("dense", dense_pair, 16, 100),
            ("dense", dense_pair, 5, 100_000),
            ("listed", discounted_pair, 1000, 10_000),
        ]
    )
    note = f"\nPeak memory of Dempster's rule over the size of its result: {memory}.\n"
    print(note)
    machine = f"\nPython {platform.python_version()}, {platform.machine()}.\n"
    results = HERE / "RESULTS.md"
    draft = results.with_suffix(".tmp")
    draft.write_text(HEAD + "\n".join(lines) + "\n" + note + machine, encoding="utf-8")
    draft.replace(results)
    print(f"{missed} of {len(lines)} aims missed" if missed else f"all {len(lines)} aims met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
