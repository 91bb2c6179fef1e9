"""The command line: parse, call, print. ``dubito --help`` lists the commands.

It needs ``pip install "dubito[cli]"``. What goes wrong is told on stderr after "error:", with exit
code 2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import dubito  # its rooms open on first use, so that `dubito --version` need not load them

try:
    import typer
except ImportError:  # a plain install: `main` says what to do
    _READY = False
else:
    _READY = True

if TYPE_CHECKING:
    from dubito.datasets._records import Dataset

_NEEDS_TYPER = 'error: the command line needs typer: pip install "dubito[cli]"'


def main() -> None:
    """Run the command line."""
    if not _READY:
        sys.stderr.write(f"{_NEEDS_TYPER}\n")
        raise SystemExit(2)
    build_app()(prog_name="dubito")


def build_app() -> typer.Typer:
    """Return the commands."""
    app = typer.Typer(no_args_is_help=True, add_completion=False)
    app.callback()(about)
    app.command()(datasets)
    pass_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(context_settings=pass_on)(reproduce)
    return app


def about(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda asked: _print_version() if asked else None,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Classifiers that know when to doubt."""


def datasets() -> None:
    """List the benchmark datasets, their sizes, and whether each is at hand."""
    head = ("name", "rows", "features", "classes", "paper", "at hand")
    catalogue = dubito.datasets.catalogue.CATALOGUE
    rows = [head, *(_described(catalogue[name]) for name in sorted(catalogue))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def reproduce(
    context: typer.Context,
    paper: Annotated[str, typer.Argument(help="The paper's experiments, as in p0.")],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of it, in a minute or so.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes to use.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for finished parts, to go on from later.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Run a paper's experiments and print its table beside ours.

    The experiments are not part of the installed package: run this inside a checkout of dubito.
    Options not listed here go to the experiment as they are; its README.md tells them.
    """
    run = find_run(paper, Path.cwd())
    arguments = [
        *(["--quick"] if quick else []),
        *(["--jobs", str(jobs)] if jobs is not None else []),
        *(["--out", str(out)] if out is not None else []),
        *(["--quiet"] if quiet else []),
        *context.args,
    ]
    raise typer.Exit(_run_script(run, arguments))


def find_run(paper: str, start: Path) -> Path:
    """Return ``experiments/<paper>/run.py`` of the checkout that `start` lies in."""
    for root in (start, *start.parents):
        if (root / "src" / "dubito" / "__init__.py").is_file():
            known = sorted(run.parent.name for run in root.glob("experiments/*/run.py"))
            if paper in known:
                return root / "experiments" / paper / "run.py"
            have = ", ".join(known) or "none"
            raise _failure(f"no experiments for {paper!r}; this checkout has {have}.")
    raise _failure(
        f"no checkout of dubito in {start} or above it. The experiments are not installed with "
        "the package: clone the repository and run this inside it."
    )


def _run_script(script: Path, arguments: list[str]) -> int:
    """Run a script with this Python and return its exit code."""
    process = subprocess.Popen([sys.executable, str(script), *arguments])  # noqa: S603 - our own
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the script got it too: it tidies up and says how to go on
            continue


def _described(dataset: Dataset) -> tuple[str, ...]:
    numbers = (dataset.rows, dataset.features, len(dataset.classes))
    return dataset.name, *map(str, numbers), dataset.paper, "yes" if _at_hand(dataset) else "no"


def _at_hand(dataset: Dataset) -> bool:
    """Whether `load` would find it without the network."""
    named = os.environ.get("DUBITO_DATA")
    cache = dubito.datasets._load._cache_folder(None)
    folders = [*([Path(named).expanduser()] if named else []), cache]
    return dataset.bundled or any((folder / dataset.file_name).is_file() for folder in folders)


def _print_version() -> None:
    typer.echo(f"dubito {dubito.__version__}")
    raise typer.Exit


def _failure(message: str) -> typer.Exit:
    typer.echo(f"error: {message}", err=True)
    return typer.Exit(2)


if __name__ == "__main__":
    main()
