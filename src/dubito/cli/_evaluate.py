"""`dubito evaluate`: every measure of a saved model on labelled rows, with its interval."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from dubito.cli._console import Console
from dubito.cli._options import Json, Label, Quiet, Seed, Trust  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from dubito.metrics import Estimate


def evaluate(  # noqa: PLR0913 - a command's options
    model: Annotated[Path, typer.Argument(help="A model saved by dubito.")],
    test: Annotated[Path, typer.Argument(help="CSV or Parquet: rows it has not seen, labelled.")],
    *,
    label: Label = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help="Another model to put beside it; may be repeated."),
    ] = None,
    n_boot: Annotated[
        int, typer.Option(min=0, help="Resamples of the rows behind the intervals.")
    ] = 200,
    seed: Seed = 0,
    trust: Trust = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure a model on rows it was not fitted on.

    Each measure comes with a 95% interval: between its ends it varies when the rows are drawn
    anew. The column of labels is the one the model was fitted with, unless --label names another.
    """
    from dubito.cli._measures import as_plain, show  # noqa: PLC0415 - heavy
    from dubito.cli._tables import Table  # noqa: PLC0415
    from dubito.cli._test_rows import answers_of, load_models, trained_on  # noqa: PLC0415
    from dubito.metrics import evaluate as measure  # noqa: PLC0415

    console = Console(quiet=quiet, json=json)
    table = Table(test)
    models = load_models([model, *(compare or [])], trust or [])
    estimates: dict[str, dict[str, Estimate]] = {}
    for name, saved in models.items():
        with console.progress(table.estimated_rows, name) as done:
            answers = answers_of(saved, test, label, done)
        if answers.bounds is None:
            console.note(f"note: {name} gives no bounds; measures of doubt are left out.")
        estimates[name] = measure(
            answers.y,
            answers.proba,
            bounds=answers.bounds,
            sets=answers.sets,
            classes=saved.stamp.classes,
            n_boot=n_boot,
            random_state=seed,
        )
    rows, n_classes = len(answers.y), len(saved.stamp.classes)
    counted = "1 row" if rows == 1 else f"{rows:,} rows"
    console.say(f"{test}: {counted}, {n_classes:,} classes; 95% intervals in brackets.")
    console.say(show(estimates))
    remembered = trained_on(models, test)
    if remembered:
        console.note(remembered)
    console.result(
        {
            "file": str(test),
            "rows": rows,
            "classes": n_classes,
            "n_boot": n_boot,
            "trained_on_this_file": bool(remembered),
            "models": {name: as_plain(one) for name, one in estimates.items()},
        }
    )
