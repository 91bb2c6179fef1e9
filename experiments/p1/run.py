"""Reproduce the figures and claims of Minary et al. 2017: `python experiments/p1/run.py --quick`.

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
from experiments.p1 import (  # noqa: E402
    comparison,
    data,
    figures,
    multiclass,
    multiclass_tables,
    rates,
    tables,
)
from experiments.p1.claims import read_claims  # noqa: E402

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence


class Part(NamedTuple):
    """An experiment: its module, rounds of a full and of a quick run, its work and its tables."""

    module: Any
    rounds: int
    quick_rounds: int
    cells: Callable[..., Sequence[Any]]
    render: Callable[..., str]


def _beyond_the_paper(results: Sequence[Mapping[str, Any]], _: object) -> str:
    """Return the tables of the part the paper makes no claims about."""
    return multiclass_tables.render(results)


PARTS = {
    "rates": Part(rates, 100, 5, data.cells, tables.render_rates),
    "comparison": Part(comparison, 100, 5, data.cells, tables.render_comparison),
    "multiclass": Part(multiclass, 20, 2, multiclass.cells, _beyond_the_paper),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the tables; return the exit code."""
    _, options = parse_parts(
        arguments,
        paper="P1",
        here=HERE,
        parts=PARTS,
        quick="a few rounds with one kernel; of the multiclass part segment",
    )
    tasks = {name: _task(name, options) for name in options.parts}
    code = carry_out(list(tasks.values()), title="P1", jobs=options.jobs, quiet=options.quiet)
    if code:
        return code
    claims = read_claims(HERE / "expected.csv")
    texts = {name: PARTS[name].render(task.results(), claims) for name, task in tasks.items()}
    print_tables(texts, HERE / "README.md" if options.write_readme else None)
    if "rates" in tasks:
        found = tasks["rates"].results()
        draw_figures(partial(figures.draw_all, found), options.out / "figures")
    return 0


def _task(name: str, options: argparse.Namespace) -> Task:
    part = PARTS[name]
    rounds = rounds_of(part, options)
    store = Store(options.out, part.module.Settings())
    return Task(part.cells(rounds, quick=options.quick), part.module.run_cell, store)


if __name__ == "__main__":
    sys.exit(main())
