"""Coverage of bounds and sets, by simulation: `python experiments/validity/run.py --quick`.

Finished cells are kept: the same command continues where it was stopped.
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
from experiments.validity import (  # noqa: E402
    discriminant,
    figures,
    maps,
    misfit,
    monotone,
    more_classes,
    sets,
    shift,
    tables,
    trees,
    two_classes,
)
from experiments.validity.cells import Settings  # noqa: E402

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

#: Where the pictures of `docs/explanation/meaning.md` are.
IMAGES = HERE.parents[1] / "docs" / "images"


class Part(NamedTuple):
    """Cells of one kind: their module, and the replicates of a full and of a quick run."""

    module: Any
    rounds: int
    quick_rounds: int


PARTS = {
    "two_classes": Part(two_classes, 300, 40),
    "more_classes": Part(more_classes, 300, 40),
    "maps": Part(maps, 300, 20),
    "monotone": Part(monotone, 300, 40),
    "discriminant": Part(discriminant, 200, 20),
    "trees": Part(trees, 150, 10),
    "sets": Part(sets, 100, 10),
    "misfit": Part(misfit, 300, 20),
    "shift": Part(shift, 60, 5),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the tables; return the exit code."""
    _, options = parse_parts(
        arguments,
        paper="validity",
        here=HERE,
        parts=PARTS,
        quick="a few cells of each part with few replicates",
    )
    tasks = {name: _task(name, options) for name in options.parts}
    code = carry_out(list(tasks.values()), title="validity", jobs=options.jobs, quiet=options.quiet)
    if code:
        return code
    rows = tables.rows_of({name: task.results() for name, task in tasks.items()})
    tables.write_csv(options.out / "validity.csv", rows)
    texts = {name: tables.render_part([r for r in rows if r.part == name]) for name in tasks}
    texts["summary"] = tables.render_summary(rows)
    print_tables(texts, HERE / "README.md" if options.write_readme else None)
    draw_figures(partial(figures.draw_all, rows), options.out / "figures")
    if options.write_readme:
        draw_figures(partial(figures.draw_all, rows), IMAGES)
    return 0


def _task(name: str, options: argparse.Namespace) -> Task:
    part = PARTS[name]
    store = Store(options.out, Settings(name, rounds_of(part, options)))
    return Task(part.module.cells(quick=options.quick), part.module.run_cell, store)


if __name__ == "__main__":
    sys.exit(main())
