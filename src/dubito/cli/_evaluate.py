"""`dubito evaluate`: every measure of a saved model on labelled rows, with its interval."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dubito.cli._console import Console, check_fraction
from dubito.cli._options import (  # noqa: TC001 - typer reads them
    Coverage,
    Json,
    Label,
    Level,
    Quiet,
    Seed,
    Trust,
)

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
    level: Level = None,
    coverage: Coverage = None,
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
    Of conformal models, the coverage that was promised and the coverage observed are told too.
    """
    check_fraction("--level", level)
    check_fraction("--coverage", coverage)
    from dubito._promises import is_conformal  # noqa: PLC0415 - heavy
    from dubito.cli._measures import as_plain, show  # noqa: PLC0415
    from dubito.cli._promised import coverage_facts, kinds_of_bounds, tell_coverage  # noqa: PLC0415
    from dubito.cli._tables import Table  # noqa: PLC0415
    from dubito.cli._test_rows import (  # noqa: PLC0415
        answers_of,
        check_promises,
        load_models,
        trained_on,
    )
    from dubito.metrics import evaluate as measure  # noqa: PLC0415

    console = Console(quiet=quiet, json=json)
    table = Table(test)
    models = load_models([model, *(compare or [])], trust or [])
    for saved in models.values():
        check_promises(saved.model, level, coverage)
    estimates: dict[str, dict[str, Estimate]] = {}
    covered: dict[str, dict[str, Any]] = {}
    for name, saved in models.items():
        with console.progress(table.estimated_rows, name) as done:
            answers = answers_of(saved, test, label, done, level=level, coverage=coverage)
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
        if answers.sets is not None and is_conformal(saved.model):
            observed = estimates[name]["coverage"]
            covered[name] = coverage_facts(answers, saved.stamp.classes, coverage, observed)
    rows, n_classes = len(answers.y), len(saved.stamp.classes)
    counted = "1 row" if rows == 1 else f"{rows:,} rows"
    console.say(f"{test}: {counted}, {n_classes:,} classes; 95% intervals in brackets.")
    console.say(show(estimates))
    for line in kinds_of_bounds(models, level):
        console.say(line)
    for name, facts in covered.items():
        console.say(tell_coverage(facts, name if len(models) > 1 else None))
    remembered = trained_on(models, test)
    if remembered:
        console.note(remembered)
    console.result(
        {
            "file": str(test),
            "rows": rows,
            "classes": n_classes,
            "n_boot": n_boot,
            "level": level,
            "coverage": covered,
            "trained_on_this_file": bool(remembered),
            "models": {name: as_plain(one) for name, one in estimates.items()},
        }
    )
