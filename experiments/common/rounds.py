"""Run the rounds that are not done yet, with a progress bar, and keep results on interruption."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from threadpoolctl import threadpool_limits

from dubito.datasets import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from experiments.common.store import Cell, Store


class Task(NamedTuple):
    """Rounds to run, the function that runs one of them, and the store of their results."""

    work: Sequence[Cell]
    run_cell: Callable[[Any, Any], dict[str, Any]]
    store: Store

    def missing(self) -> list[Cell]:
        """List the rounds that are not done yet."""
        return [cell for cell in self.work if not self.store.has(cell)]

    def results(self) -> list[dict[str, Any]]:
        """Return the results of all rounds, which must be done."""
        return [self.store.read(cell) for cell in self.work]


def carry_out(tasks: Sequence[Task], *, title: str, jobs: int, quiet: bool) -> int:
    """Run the rounds that are missing, with progress and errors on stderr; return the exit code."""
    try:
        with progress(title, sum(len(task.missing()) for task in tasks), quiet=quiet) as done:
            for task in tasks:
                reproduce(task, jobs=jobs, done=done)
    except KeyboardInterrupt:
        total = sum(len(task.work) for task in tasks)
        kept = total - sum(len(task.missing()) for task in tasks)
        folder = Path(os.path.commonpath([task.store.folder for task in tasks]))
        print(
            f"stopped: {kept} of {total} rounds are kept in {folder}; "
            "run the same command again to continue.",
            file=sys.stderr,
        )
        return 130
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def reproduce(task: Task, *, jobs: int = 1, done: Callable[[Cell], None] = lambda _: None) -> int:
    """Run the rounds that are missing, call `done` after each, and return how many were run."""
    missing = task.missing()
    if jobs == 1:
        for cell in missing:
            done(_run_and_keep(cell, task))
        return len(missing)
    # Leaving the block, also by an interrupt, ends the workers at once; result files are complete.
    with get_context("spawn").Pool(jobs, initializer=_ignore_interrupts) as pool:
        one = partial(_run_and_keep, task=task._replace(work=()))
        for cell in pool.imap_unordered(one, missing):
            done(cell)
    return len(missing)


def _run_and_keep(cell: Cell, task: Task) -> Cell:
    with threadpool_limits(1):  # the matrices are small: more threads are slower
        task.store.write(cell, task.run_cell(cell, task.store.settings))
    return cell


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def progress(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[Cell], None]]:
    """Yield a callback for each finished round; it moves a bar if stderr is a terminal."""
    if quiet or total == 0 or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - optional
        from rich.progress import Progress  # noqa: PLC0415
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda cell: bar.update(task, advance=1, description=cell.words)
