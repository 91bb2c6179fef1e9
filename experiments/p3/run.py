"""Reproduce Table 2, figures and claims of P3: `python experiments/p3/run.py --quick`.

P3 is Carranza Alarcón and Destercke 2019.

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
from experiments.p3 import figures, protocol, tables, times  # noqa: E402
from experiments.p3.data import DATASETS, FEW_ROWS, MANY_ROWS, QUICK_DATASETS  # noqa: E402
from experiments.p3.protocol import Settings, cells  # noqa: E402

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
    quick_datasets: tuple[str, ...] = QUICK_DATASETS


PARTS = {
    "table": Part(protocol, Settings("table"), DATASETS, 10, 2, tables.render_table),
    "plain": Part(
        protocol, Settings("plain", stratified=False), FEW_ROWS, 10, 1, tables.render_plain
    ),
    "wide": Part(
        protocol,
        Settings("wide", c_factor=20),
        MANY_ROWS,
        3,
        1,
        tables.render_wide,
        QUICK_DATASETS[:2],  # with the many classes of vowel, large c are slow
    ),
    "beyond": Part(
        protocol, Settings("beyond", protocol.BEYOND), DATASETS, 5, 1, tables.render_beyond
    ),
    "times": Part(times, times.Settings(), DATASETS, 5, 1, tables.render_times),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the tables; return the exit code."""
    _, options = parse_parts(
        arguments,
        paper="P3",
        here=HERE,
        parts=PARTS,
        quick="one or two rounds of three folds on iris, seeds and vowel",
    )
    tasks = {name: _task(name, options) for name in options.parts}
    code = carry_out(list(tasks.values()), title="P3", jobs=options.jobs, quiet=options.quiet)
    if code:
        return code
    results = {name: task.results() for name, task in tasks.items()}
    texts = {name: PARTS[name].render(results) for name in results}
    print_tables(texts, HERE / "README.md" if options.write_readme else None)
    draw_figures(partial(figures.draw_all, results), options.out / "figures")
    return 0


def _task(name: str, options: argparse.Namespace) -> Task:
    part = PARTS[name]
    rounds = rounds_of(part, options)
    settings = part.settings.quick() if options.quick else part.settings
    work = cells(rounds, part.quick_datasets if options.quick else part.datasets)
    return Task(work, part.module.run_cell, Store(options.out, settings))


if __name__ == "__main__":
    sys.exit(main())
