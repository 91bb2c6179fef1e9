"""`dubito evaluate`: every measure of a saved model on labelled rows, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dubito.cli.console import Console, check_fraction_option
from dubito.cli.options import (  # noqa: TC001 - typer reads them
    Compare,
    Coverage,
    Json,
    Label,
    Level,
    Model,
    Quiet,
    Seed,
    Test,
    Trust,
)

if TYPE_CHECKING:
    from dubito.metrics import Estimate


def evaluate(  # noqa: PLR0913 - a command's options
    model: Model,
    test: Test,
    *,
    label: Label = None,
    compare: Compare = None,
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

    Each measure has a 95% confidence interval for its value over all rows of this kind. The
    column of labels is the one the model was fitted with, unless --label names another. For
    conformal models, the requested and the observed coverage are printed too.
    """
    check_fraction_option("--level", level)
    check_fraction_option("--coverage", coverage)
    from dubito._models import is_conformal  # noqa: PLC0415 - slow to import
    from dubito.cli.metric_tables import (  # noqa: PLC0415
        bounds_lines,
        coverage_facts,
        coverage_line,
        estimates_for_json,
        metric_table,
    )
    from dubito.cli.saved_models import (  # noqa: PLC0415
        check_level_and_coverage,
        compute_outputs,
        load_models,
        training_file_note,
    )
    from dubito.cli.tables import Table  # noqa: PLC0415
    from dubito.metrics import evaluate as measure  # noqa: PLC0415

    console = Console(quiet=quiet, json=json)
    table = Table(test)
    models = load_models([model, *(compare or [])], trust or [])
    for saved in models.values():
        check_level_and_coverage(saved.model, level, coverage)
    estimates: dict[str, dict[str, Estimate]] = {}
    covered: dict[str, dict[str, Any]] = {}
    for name, saved in models.items():
        with console.progress(table.estimated_rows, name) as advance:
            outputs = compute_outputs(saved, test, label, advance, level=level, coverage=coverage)
        if outputs.bounds is None:
            console.note(f"note: {name} has no bounds; measures of bounds and sets are left out.")
        estimates[name] = measure(
            outputs.y,
            outputs.proba,
            bounds=outputs.bounds,
            sets=outputs.sets,
            classes=saved.stamp.classes,
            n_boot=n_boot,
            random_state=seed,
        )
        if outputs.sets is not None and is_conformal(saved.model):
            observed = estimates[name]["coverage"]
            covered[name] = coverage_facts(outputs, saved.stamp.classes, coverage, observed)
    rows, n_classes = len(outputs.y), len(saved.stamp.classes)
    counted = "1 row" if rows == 1 else f"{rows:,} rows"
    console.say(f"{test}: {counted}, {n_classes:,} classes; 95% intervals in brackets.")
    console.say(metric_table(estimates))
    for line in bounds_lines(models, level):
        console.say(line)
    for name, facts in covered.items():
        console.say(coverage_line(facts, name if len(models) > 1 else None))
    note = training_file_note(models, test)
    if note:
        console.note(note)
    console.result(
        {
            "file": str(test),
            "rows": rows,
            "classes": n_classes,
            "n_boot": n_boot,
            "level": level,
            "coverage": covered,
            "trained_on_this_file": bool(note),
            "models": {name: estimates_for_json(one) for name, one in estimates.items()},
        }
    )
