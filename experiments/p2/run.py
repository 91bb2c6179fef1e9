"""Reproduce tables, figures and claims of Denoeux 2019: `python experiments/p2/run.py --quick`.

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
from experiments.p2 import figures, fusion, heart, networks, perceptron, tables  # noqa: E402

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

WITHOUT_TORCH = (
    "networks left out (Tables 3 and 4, Figures 10 to 12 of the paper's network): they need torch, "
    'which is not installed. Get it by `make torch`, or pip install ".[torch]"; the '
    "perceptron of scikit-learn is in their place."
)


class Part(NamedTuple):
    """An experiment: its module, rounds of a full and of a quick run, and its tables."""

    module: Any
    rounds: int
    quick_rounds: int
    render: Callable[..., str]


PARTS = {
    "heart": Part(heart, 30, 3, tables.render_heart),
    "networks": Part(networks, 20, 2, tables.render_networks),
    "perceptron": Part(perceptron, 20, 2, tables.render_perceptron),
    "fusion": Part(fusion, 10, 1, tables.render_fusion),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the tables; return the exit code."""
    options = _parse(arguments)
    tasks = {name: _task(name, options) for name in options.parts if _can_run(name)}
    if tasks:
        code = carry_out(list(tasks.values()), title="P2", jobs=options.jobs, quiet=options.quiet)
        if code:
            return code
    results = {name: task.results() for name, task in tasks.items()}
    texts = {name: PARTS[name].render(found) for name, found in results.items()}
    print_tables(texts, HERE / "README.md" if options.write_readme else None)
    draw_figures(partial(figures.draw_all, results), options.out / "figures")
    return 0


def _can_run(name: str) -> bool:
    """Return whether the dependencies of a part are installed; print what is missing."""
    if name != "networks" or networks.available():
        return True
    print(WITHOUT_TORCH, file=sys.stderr)
    return False


def _task(name: str, options: argparse.Namespace) -> Task:
    part = PARTS[name]
    rounds = rounds_of(part, options)
    store = Store(options.out, part.module.Settings())
    return Task(part.module.cells(rounds, quick=options.quick), part.module.run_cell, store)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser, options = parse_parts(
        arguments,
        paper="P2",
        here=HERE,
        parts=PARTS,
        quick="a few rounds, of the networks the main variant alone",
    )
    if options.write_readme and "networks" in options.parts and not networks.available():
        parser.error("--write-readme needs torch for the networks: `make torch`")
    return options


if __name__ == "__main__":
    sys.exit(main())
