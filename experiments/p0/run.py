"""Reproduce Table II of P0: `python experiments/p0/run.py --quick`.

Finished rounds are kept, so that the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
if str(HERE.parents[1]) not in sys.path:  # run as a script: only this folder is there
    sys.path.insert(0, str(HERE.parents[1]))

from experiments.p0 import tables  # noqa: E402
from experiments.p0.protocol import (  # noqa: E402
    DATASETS,
    SCENARIOS,
    SVMS,
    Cell,
    Settings,
    run_cell,
)
from experiments.p0.store import Store  # noqa: E402

from dubito.datasets import DatasetError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROUNDS = 20
QUICK_ROUNDS = 2
QUICK_DATASETS = ("satimage", "segment")


def cells(datasets: Sequence[str], rounds: int) -> list[Cell]:
    """List the work, whole rounds first: a run that is stopped has seen every dataset."""
    return [Cell(d, s, r) for r in range(rounds) for d in datasets for s in SCENARIOS]


def reproduce(
    work: Sequence[Cell],
    settings: Settings,
    store: Store,
    *,
    jobs: int = 1,
    done: Callable[[Cell], None] = lambda _: None,
) -> int:
    """Do what is not done yet, tell `done` of each round, and return how many were run."""
    missing = [cell for cell in work if not store.has(cell)]
    if jobs == 1:
        for cell in missing:
            done(_run_and_keep(cell, settings, store))
        return len(missing)
    # Leaving the block, by an interrupt too, ends the workers at once: rounds are kept whole.
    with get_context("spawn").Pool(jobs, initializer=_leave_interrupts_to_the_parent) as pool:
        one = partial(_run_and_keep, settings=settings, store=store)
        for cell in pool.imap_unordered(one, missing):
            done(cell)
    return len(missing)


def _run_and_keep(cell: Cell, settings: Settings, store: Store) -> Cell:
    with threadpool_limits(1):  # the matrices are small: more threads would only get in the way
        store.write(cell, run_cell(cell, settings))
    return cell


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Callable[[Cell], None]]:
    """Show a bar on a terminal's stderr, and nothing elsewhere."""
    if quiet or total == 0 or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - the bar is a courtesy
        from rich.progress import Progress  # noqa: PLC0415
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("P0", total=total)

        def done(cell: Cell) -> None:
            words = f"{cell.dataset}, scenario {cell.scenario}, round {cell.round + 1}"
            bar.update(task, advance=1, description=words)

        yield done


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, print the table; return the exit code."""
    options = _parse(arguments)
    settings = Settings(svm=options.svm)
    store = Store(options.out, settings)
    work = cells(options.datasets, options.rounds)
    left = sum(not store.has(cell) for cell in work)
    try:
        with progress(left, quiet=options.quiet) as done:
            reproduce(work, settings, store, jobs=options.jobs, done=done)
    except KeyboardInterrupt:
        kept = sum(store.has(cell) for cell in work)
        print(
            f"stopped: {kept} of {len(work)} rounds are kept in {store.folder}; "
            "run the same command again to go on.",
            file=sys.stderr,
        )
        return 130
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    summaries = tables.summarise([store.read(cell) for cell in work])
    text = tables.render(summaries, tables.read_expected(HERE / "expected.csv"))
    print(text)
    if options.write_readme:
        tables.insert(HERE / "README.md", settings.svm, text)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="experiments/p0/run.py",
        description="Reproduce Table II of P0. Finished rounds are kept: run it again to go on.",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_ROUNDS} rounds of {' and '.join(QUICK_DATASETS)}",
    )
    parser.add_argument("--rounds", type=_positive, help=f"rounds of each cell (default {ROUNDS})")
    parser.add_argument("--datasets", type=_names, help=f"of {','.join(DATASETS)} (default all)")
    parser.add_argument("--svm", choices=tuple(SVMS), default="grid", help="how kernels are chosen")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes (default 1)")
    parser.add_argument(
        "--out", type=Path, default=HERE / "results", help="where finished rounds are kept"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument(
        "--write-readme", action="store_true", help="put the table into README.md, with all rounds"
    )
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.datasets = options.datasets or (QUICK_DATASETS if options.quick else DATASETS)
    if options.write_readme and (options.rounds < ROUNDS or set(options.datasets) != set(DATASETS)):
        parser.error(f"--write-readme needs all datasets and at least {ROUNDS} rounds")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        known = ", ".join(DATASETS)
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; P0 has {known}")
    return names


if __name__ == "__main__":
    sys.exit(main())
