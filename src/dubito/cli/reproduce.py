"""`dubito reproduce`: run the experiments of a paper, or of validity, in a checkout."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from dubito.cli.console import CliError
from dubito.cli.options import FLAG

#: Options not listed here go to the experiment as they are.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}

#: Exit code of an interrupted script.
INTERRUPTED = 130


def reproduce(
    context: typer.Context,
    paper: Annotated[str, typer.Argument(help="A paper's experiments, p0 to p4, or validity.")],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", metavar=FLAG, help="A small part of it, in a minute or so.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            metavar=FLAG,
            help="Keep finished parts in experiments/PAPER/results, and continue from those there.",
        ),
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes to use.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Like --resume, with another folder for finished parts.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar=FLAG, help="No progress bar.")
    ] = False,
) -> None:
    """Run a paper's experiments and print its table beside ours, or simulations of validity.

    p0 to p4 are the papers. validity has simulations with a known truth: how often bounds contain
    the true probability, and how often sets contain the true label.

    Without --resume and --out all of it is computed anew. Interrupt it at any time: what is
    finished is kept, and the last line printed is the command that continues.

    The experiments are not part of the installed package: run this inside a checkout of dubito.
    Options not listed here go to the experiment as they are; its README.md lists them.
    """
    if resume and out is not None:
        raise CliError(
            "--resume and --out both say where finished parts are. Give one of them: --out alone "
            "continues from what its folder contains."
        )
    run = find_run(paper, Path.cwd())
    options = [
        *(["--quick"] if quick else []),
        *(["--jobs", str(jobs)] if jobs is not None else []),
    ]
    rest = [*(["--quiet"] if quiet else []), *context.args]
    folder = _new_folder(run.parent / "results") if out is None and not resume else out
    code = _run_script(run, [*options, *([] if folder is None else ["--out", str(folder)]), *rest])
    if code == INTERRUPTED and out is None and not resume:
        again = ["dubito", "reproduce", paper, *options, "--out", str(folder), *rest]
        typer.echo(f"to continue: {shlex.join(again)}", err=True)
    raise typer.Exit(code)


def find_run(paper: str, start: Path) -> Path:
    """Return ``experiments/<paper>/run.py`` of the checkout that `start` lies in."""
    for root in (start, *start.parents):
        if (root / "src" / "dubito" / "__init__.py").is_file():
            known = sorted(run.parent.name for run in root.glob("experiments/*/run.py"))
            if paper in known:
                return root / "experiments" / paper / "run.py"
            have = ", ".join(known) or "none"
            raise CliError(f"no experiments for {paper!r}; this checkout has {have}.")
    raise CliError(
        f"no checkout of dubito in {start} or above it. The experiments are not installed with "
        "the package: clone the repository and run this inside it."
    )


def _new_folder(results: Path) -> Path:
    """Return a folder, named after the time, that no earlier run has used."""
    now = datetime.now().astimezone()
    folder = results / f"run-{now:%Y%m%d-%H%M%S}"
    return folder if not folder.exists() else results / f"run-{now:%Y%m%d-%H%M%S-%f}"


def _run_script(script: Path, arguments: list[str]) -> int:
    """Run a script with this Python and return its exit code."""
    process = subprocess.Popen([sys.executable, str(script), *arguments])  # noqa: S603 - our own
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the script gets it too, and ends by itself
            continue
