"""`dubito calibrate`: a calibrated model from a table of scores and labels."""

from pathlib import Path
from typing import Annotated

import typer

from dubito._calibrator_names import CALIBRATORS
from dubito.cli.console import Console, check_option
from dubito.cli.options import Columns, Force, Json, Quiet, Seed

#: Name of a method on the command line -> class in `dubito.calibration`, or `dubito.conformal`.
CALIBRATOR_CLASSES = {**CALIBRATORS, "conformal": "ConformalClassifier"}
INPUTS = ("margin", "logits", "proba", "log_proba")
#: The method for scores of several classifiers of the same two classes.
JOINT = "evidential-joint"
#: The methods that take ``targets=``.
TARGETS = ("evidential-multinomial", "evidential-logistic", JOINT)


def calibrate(  # noqa: PLR0913 - a command's options
    scores: Annotated[Path, typer.Argument(help="Table of scores and labels: CSV or Parquet.")],
    *,
    label: Annotated[
        str, typer.Option("--label", "-y", metavar="COLUMN", help="Column of the true labels.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file, as in model.skops.")
    ],
    columns: Columns = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(CALIBRATOR_CLASSES)}. By default auto, which chooses a map "
            f"with as many parameters as the rows support, and says which. Scores of several "
            f"classifiers: {JOINT}; label sets with a chosen coverage: conformal.",
        ),
    ] = "auto",
    input: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="What the scores are: margin (any number, higher is more likely; the default), "
            "logits (before a softmax), proba (probabilities) or log_proba (their natural "
            "logarithms; a column for each class).",
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"What replaces the labels 0 and 1 in the likelihood of {', '.join(TARGETS)}: "
            "light (the default; a quarter of a pseudo-observation), smoothed (as published) or "
            "raw (0 and 1).",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="The class each column is about, in the order of the columns. Not needed where "
            "columns are named after classes, as in cat, p_cat or cat_score.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="With one column of scores: the class that higher scores mean. By default the "
            "second in sorted order.",
        ),
    ] = None,
    cv: Annotated[
        int,
        typer.Option(min=0, help="Folds of the cross-validation behind the numbers; 0: none."),
    ] = 5,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Turn scores into calibrated probabilities with bounds.

    The model is fitted on all rows. The numbers printed are from rows held out of the fit, before
    and after it: before, probabilities are taken as they are, and margins and logits go through a
    softmax (one column: a logistic function).
    """
    check_option("--method", method, CALIBRATOR_CLASSES)
    check_option("--input", input, INPUTS)
    check_option("--targets", targets, ("smoothed", "light", "raw"))
    from dubito.cli import score_calibration  # noqa: PLC0415 - slow to import
    from dubito.cli.score_columns import ColumnOptions  # noqa: PLC0415
    from dubito.cli.tables import split_names  # noqa: PLC0415
    from dubito.cli.writer import check_outputs  # noqa: PLC0415
    from dubito.saving import save  # noqa: PLC0415

    console = Console(quiet=quiet, json=json)
    check_outputs([output], [scores], force=force)
    task = score_calibration.read_task(
        scores,
        label,
        ColumnOptions(columns, split_names(classes) if classes else None, positive),
        score_calibration.CalibrationOptions(method, input, targets),
    )
    folds, why = score_calibration.choose_folds(task, cv)
    console.say(score_calibration.start_line(task))
    for note in task.notes:
        console.note(f"note: {note}")
    with console.progress(folds + 1, "Calibrating", unit="fits") as advance:
        numbers = score_calibration.held_out_errors(task, folds, seed, advance)
        model = task.fitted()
        advance(1)
    chosen = score_calibration.selection_summary(model)
    save(
        model,
        output,
        columns=task.match.columns,
        kind="scores",
        label=label,
        method=task.method,
        rows=len(task.codes),
        options=task.options() | chosen,
        force=force,
    )
    if chosen:
        console.say(f"Chosen: {chosen['chosen']}.")
    console.say(f"{score_calibration.result_line(task, numbers, folds, why)} · saved {output}")
    console.result(
        {"model": str(output), **task.as_dict(), **chosen, "folds": folds, "why": why, **numbers}
    )
