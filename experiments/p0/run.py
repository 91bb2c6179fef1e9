"""Reproduce Table II of P0: `python experiments/p0/run.py --quick`.

Finished rounds are kept: the same command continues where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
if str(HERE.parents[1]) not in sys.path:  # run as a script: the root is not on the path
    sys.path.insert(0, str(HERE.parents[1]))

from experiments.common.options import add_common, names_of, positive  # noqa: E402
from experiments.common.rounds import Task, carry_out  # noqa: E402
from experiments.common.store import Store  # noqa: E402
from experiments.common.tables import insert  # noqa: E402
from experiments.p0 import tables  # noqa: E402
from experiments.p0.protocol import (  # noqa: E402
    DATASETS,
    SCENARIOS,
    SVMS,
    Cell,
    Settings,
    run_cell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 20
QUICK_ROUNDS = 2
QUICK_DATASETS = ("satimage", "segment")


def cells(datasets: Sequence[str], rounds: int) -> list[Cell]:
    """List the work by rounds: a run that is stopped early has covered every dataset."""
    return [Cell(d, s, r) for r in range(rounds) for d in datasets for s in SCENARIOS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the table; return the exit code."""
    options = _parse(arguments)
    settings = Settings(svm=options.svm)
    work = cells(options.datasets, options.rounds)
    task = Task(work, run_cell, Store(options.out, settings))
    code = carry_out([task], title="P0", jobs=options.jobs, quiet=options.quiet)
    if code:
        return code
    summaries = tables.summarise(task.results())
    text = tables.render(summaries, tables.read_expected(HERE / "expected.csv"))
    print(text)
    if options.write_readme:
        insert(HERE / "README.md", settings.svm, text)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="experiments/p0/run.py",
        description="Reproduce Table II of P0. Finished rounds are kept: run it again to continue.",
    )
    quick = f"{QUICK_ROUNDS} rounds of {' and '.join(QUICK_DATASETS)}"
    add_common(parser, HERE, quick=quick)
    parser.add_argument("--rounds", type=positive, help=f"rounds of each cell (default {ROUNDS})")
    names = names_of(DATASETS, "P0")
    parser.add_argument("--datasets", type=names, help=f"of {','.join(DATASETS)} (default all)")
    parser.add_argument("--svm", choices=tuple(SVMS), default="grid", help="how kernels are chosen")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.datasets = options.datasets or (QUICK_DATASETS if options.quick else DATASETS)
    if options.write_readme and (options.rounds < ROUNDS or set(options.datasets) != set(DATASETS)):
        parser.error(f"--write-readme needs all datasets and at least {ROUNDS} rounds")
    return options


if __name__ == "__main__":
    sys.exit(main())
