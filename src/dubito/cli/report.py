"""`dubito report`: an HTML page on how far a saved model can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dubito.cli.console import CliError, Console, check_fraction_option
from dubito.cli.options import (  # noqa: TC001 - typer reads them
    Compare,
    Coverage,
    Force,
    Json,
    Label,
    Level,
    Model,
    Output,
    Quiet,
    Seed,
    Test,
    Trust,
)


def report(  # noqa: PLR0913 - a command's options
    model: Model,
    test: Test,
    *,
    label: Label = None,
    output: Output = None,
    compare: Compare = None,
    reject_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Cost of declining a row (asking a person), where a mistake costs 1. By default "
            "that of a RejectClassifier, for other models 0.2.",
        ),
    ] = None,
    level: Level = None,
    coverage: Coverage = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the names of the rows on the page, such as an id; by default rows are "
            "numbered from 0.",
        ),
    ] = None,
    seed: Seed = 0,
    trust: Trust = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write an HTML page about a model: how often it is right, and which rows it declines.

    It also shows how many errors declining avoids. The page needs no network and can be sent by
    mail. The column of labels is the one the model was fitted with, unless --label names another.
    The command needs the extra "report" of the package.
    """
    from dubito._validation import DEFAULT_COVERAGE  # noqa: PLC0415 - slow to import
    from dubito.cli.saved_models import (  # noqa: PLC0415
        check_level_and_coverage,
        labelled_chunks,
        load_models,
        training_file_note,
    )
    from dubito.cli.tables import Table  # noqa: PLC0415
    from dubito.cli.writer import check_outputs  # noqa: PLC0415

    check_fraction_option("--level", level)
    check_fraction_option("--coverage", coverage)
    console = Console(quiet=quiet, json=json)
    target = Path("report.html") if output is None else output
    check_outputs([target], [model, test, *(compare or [])], force=force)
    _refuse_without_extra()
    from dubito.report import collect, write_page  # noqa: PLC0415 - an extra

    table = Table(test)  # errors of the file come before models are loaded
    row_names = None if names is None else table.read([names], {names: "as_is"})[names].astype(str)
    models = load_models([model, *(compare or [])], trust or [])
    for saved in models.values():
        check_level_and_coverage(saved.model, level, coverage)
    chunks = {
        name: next(labelled_chunks(saved, test, label, whole=True))
        for name, saved in models.items()
    }
    with console.progress(None, "collecting", unit="steps"):
        collected = collect(
            {name: saved.model for name, saved in models.items()},
            {name: chunk.X for name, chunk in chunks.items()},
            next(iter(chunks.values())).y,
            title=title,
            cost=reject_cost,
            level=level,
            coverage=coverage or DEFAULT_COVERAGE,
            row_names=row_names,
            random_state=seed,
        )
        write_page(collected, target, force=force)
    for line in collected["summary"]["lines"]:
        console.say(line)
    note = training_file_note(models, test)
    if note:
        console.note(note)
    console.say(f"Report: {target.resolve()} (open it in a browser)")
    facts = {"rows": collected["rows"], "trained_on_this_file": bool(note)}
    console.result({"file": str(target)} | facts | collected["summary"])


def _refuse_without_extra() -> None:
    """Raise an error that says what to install, before anything is read."""
    from importlib.util import find_spec  # noqa: PLC0415

    missing = [name for name in ("altair", "jinja2", "vl_convert") if find_spec(name) is None]
    if missing:
        raise CliError(
            f"a report needs {', '.join(missing)}, which is not installed: pip install "
            '".[report]" in a checkout of dubito'
        )
