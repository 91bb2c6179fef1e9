"""Reproduce Tables 2 to 5, Figure 3 and claims of P4: `python experiments/p4/run.py --quick`.

Finished rounds are kept: the same command continues where it was stopped.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

HERE = Path(__file__).resolve().parent
if str(HERE.parents[1]) not in sys.path:  # run as a script: the root is not on the path
    sys.path.insert(0, str(HERE.parents[1]))

from experiments.common.options import parse_parts, rounds_of  # noqa: E402
from experiments.common.pictures import draw_figures  # noqa: E402
from experiments.common.rounds import Task, carry_out  # noqa: E402
from experiments.common.store import Store  # noqa: E402
from experiments.common.tables import print_tables  # noqa: E402
from experiments.p4 import depths, figures, many, protocol, tables  # noqa: E402
from experiments.p4.data import DATASETS  # noqa: E402

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


class Part(NamedTuple):
    """An experiment: module, settings, datasets, rounds of a full and a quick run, tables."""

    module: Any
    settings: Any
    datasets: tuple[str, ...]
    rounds: int
    quick_rounds: int
    render: Callable[..., str]


#: Rounds of the first three are folds, ten to a repetition; of the others, random trees.
PARTS = {
    "described": Part(
        protocol,
        protocol.Settings("described", ("logistic", "gaussian")),
        DATASETS,
        100,
        2,
        tables.render_described,
    ),
    "redone": Part(
        protocol,
        protocol.Settings("redone", ("liblinear", "multinomial", "tree"), as_redone=True),
        DATASETS,
        100,
        1,
        tables.render_redone,
    ),
    "boosted": Part(
        protocol,
        protocol.Settings("boosted", ("boosting",)),
        DATASETS,
        100,
        1,
        tables.render_boosted,
    ),
    "sector": Part(
        many, many.Settings("sector", ("sector",)), ("sector",), 10, 1, tables.render_sector
    ),
    "synthetic": Part(
        many,
        many.Settings("synthetic", ("dense", "sparse")),
        ("dense", "sparse"),
        2,
        1,
        tables.render_synthetic,
    ),
    "depths": Part(depths, depths.Settings(), ("dense",), 5, 2, tables.render_depths),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the tables; return the exit code."""
    _, options = parse_parts(
        arguments,
        paper="P4",
        here=HERE,
        parts=PARTS,
        quick="a few folds of a few rows, and small problems",
    )
    tasks = {name: _task(name, options) for name in options.parts}
    code = carry_out(list(tasks.values()), title="P4", jobs=options.jobs, quiet=options.quiet)
    if code:
        return code
    results = {name: task.results() for name, task in tasks.items()}
    texts = {name: PARTS[name].render(results) for name in results}
    print_tables(texts, HERE / "README.md" if options.write_readme else None)
    if "depths" in results:
        draw_figures(partial(figures.draw_all, results), options.out / "figures")
    return 0


def _task(name: str, options: argparse.Namespace) -> Task:
    part = PARTS[name]
    rounds = rounds_of(part, options)
    settings = part.settings.quick() if options.quick else part.settings
    work = settings.work(rounds, part.datasets)
    return Task(work, part.module.run_cell, Store(options.out, settings))


if __name__ == "__main__":
    sys.exit(main())
