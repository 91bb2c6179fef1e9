"""`dubito train`: a model with bounds from a table, measured by cross-validation."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 - typer reads it
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dubito.cli.console import CliError, Console, did_you_mean
from dubito.cli.options import FLAG, Columns, Force, Json, Output, Quiet, Seed
from dubito.cli.recipes import DEFAULT, RECIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dubito._typing import AnyArray, IntArray
    from dubito.cli.recipes import Recipe
    from dubito.cli.training_data import TrainingData
    from dubito.metrics import Estimate

#: Folds within a model, for calibration and for tuning.
INNER_FOLDS = 5

#: From this many rows on, boosted trees gain from several threads.
ROWS_FOR_THREADS = 10_000

#: Metrics that are printed; `dubito evaluate` prints all.
SHOWN_METRICS = ("accuracy", "log_loss", "ece", "coverage", "mean_set_size", "u80")

_MODELS = "; ".join(f"{name} ({recipe.summary})" for name, recipe in RECIPES.items())


def train(  # noqa: PLR0913 - a command's options
    data: Annotated[Path, typer.Argument(help="CSV or Parquet: one row for each case.")],
    *,
    target: Annotated[
        str | None,
        typer.Option("--target", "--label", "-y", metavar="COLUMN", help="Column of the classes."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help=f"One of {_MODELS}.")
    ] = DEFAULT,
    columns: Columns = None,
    output: Output = None,
    cv: Annotated[
        int, typer.Option(min=0, help="Folds of the cross-validation behind the numbers; 0: none.")
    ] = 5,
    set_aside: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep a part of the rows out of the training, and write it here to test on.",
        ),
    ] = None,
    aside: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Fraction of the rows to set aside.")
    ] = 0.3,
    impute: Annotated[
        bool,
        typer.Option("--impute", metavar=FLAG, help="Fill empty cells; else they are an error."),
    ] = False,
    as_classes: Annotated[
        bool,
        typer.Option(
            "--as-classes", metavar=FLAG, help="Take numbers for classes, however many they are."
        ),
    ] = False,
    conformal: Annotated[
        bool,
        typer.Option(
            "--conformal",
            metavar=FLAG,
            help="Label sets with a chosen coverage, requested later by predict --coverage (0.9 by "
            "default).",
        ),
    ] = False,
    novelty: Annotated[
        bool,
        typer.Option(
            "--novelty",
            metavar=FLAG,
            help="Detect rows unlike those of the training, and widen their bounds: predict then "
            "writes the familiarity of each row.",
        ),
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model on a table, measure it on rows it has not seen, and save it.

    Numbers are standardised where the model needs it, and a column of texts becomes one feature
    for each text, all inside the saved model: `dubito predict` takes tables like this one. A text
    value that did not occur in training is encoded as none of the known values. Row numbers,
    constant columns and columns with a different text in almost every row are left out, and
    listed.
    """
    console = Console(quiet=quiet, json=json)
    recipe = _recipe(model)
    target, output = _check_required(target, output, data)
    from dubito.cli import training_data as training  # noqa: PLC0415 - slow to import
    from dubito.cli.writer import check_outputs  # noqa: PLC0415

    check_outputs([output, *([set_aside] if set_aside else [])], [data], force=force)
    if cv == 1:
        raise CliError("--cv 1 leaves nothing to learn from. Give 2 or more folds, or 0 for none.")
    rows = training.read_training_data(
        data, target, columns, impute=impute, numbers_are_classes=as_classes
    )
    tested = None
    if set_aside is not None:
        rows, tested = training.split_training_data(rows, aside, seed)
    wrappers = Wrappers(conformal, novelty)
    facts = _print_rows(rows, target, model, wrappers, console)
    for note in (*rows.notes, *recipe.slow_notes(len(rows.y), len(facts["classes"]))):
        console.note(f"note: {note}")
    build = _builder(recipe, model, rows, wrappers, impute=impute, seed=seed)
    started = perf_counter()
    fitted, measured, notes = fit_and_measure(build, rows, cv, seed, console)
    if conformal and measured["folds"]:
        observed = measured["cross_validation"]["coverage"]["value"]
        console.say(f"Coverage of the sets: requested 90.0%, observed {observed:.1%}.")
    chosen = _calibration_choice(fitted)
    if chosen:
        console.say(f"Calibration: {chosen['calibration']}.")
    for note in notes:
        console.note(f"note: {note}")
    options = {"impute": impute, "seed": seed, "values": rows.text_values()}
    options |= {"conformal": conformal, "novelty": novelty}
    options |= {"data": training.digest(data)} | chosen
    with _write_aside(set_aside, data, tested, force=force):
        _save(fitted, output, rows, options, target=target, model=model, force=force)
    seconds = perf_counter() - started
    _print_files(output, set_aside, tested, seconds, console)
    files = {"file": str(output), "set_aside": None if set_aside is None else str(set_aside)}
    console.result(
        facts | measured | chosen | {"notes": notes, "seconds": round(seconds, 3)} | files
    )


class Wrappers(NamedTuple):
    """The wrappers around the model: conformal sets, and the familiarity of rows."""

    conformal: bool
    novelty: bool

    def wrap(self, model: Any, folds: int) -> Any:
        """Return the model inside the chosen wrappers."""
        import dubito  # noqa: PLC0415 - its classes are loaded on first use

        if self.conformal:
            model = dubito.ConformalClassifier(model, cv=folds)
        return dubito.NoveltyAwareClassifier(model, cv=folds) if self.novelty else model

    def words(self) -> str:
        """Return a phrase that names the wrappers; empty without any."""
        parts = [
            words
            for wanted, words in (
                (self.conformal, "conformal sets"),
                (self.novelty, "the familiarity of each row"),
            )
            if wanted
        ]
        return f" with {' and '.join(parts)}" if parts else ""


@contextmanager
def _write_aside(
    path: Path | None, data: Path, rows: IntArray | None, *, force: bool
) -> Iterator[None]:
    """Write the rows set aside, unchanged; the file is removed if the block raises."""
    if path is None:
        yield
        return
    from dubito.cli.tables import Table  # noqa: PLC0415 - slow to import
    from dubito.cli.writer import TableWriter  # noqa: PLC0415

    table = Table(data)
    with TableWriter(path, force=force) as writer:
        writer.write(table.read(types=dict.fromkeys(table.names, "as_is")).iloc[rows])
        yield


def _print_files(
    output: Path, aside: Path | None, tested: IntArray | None, seconds: float, console: Console
) -> None:
    console.say(f"Saved {output} after {seconds:.1f} s.")
    if aside is None or tested is None:
        console.say(f"Next: dubito predict {output} NEW.csv -o decisions.csv")
    else:
        console.say(f"Set aside {len(tested):,} rows that it has not seen: {aside}.")
        console.say(f"Next: dubito report {output} {aside} -o report.html")


def _recipe(name: str) -> Recipe:
    if name in RECIPES:
        return RECIPES[name]
    hint = did_you_mean(name, RECIPES)
    raise CliError(
        f"there is no model {name!r}.{hint} The models are {', '.join(RECIPES)}; "
        "dubito train --help says what each is."
    )


def _check_required(target: str | None, output: Path | None, data: Path) -> tuple[str, Path]:
    """Raise an error if the target or the output is not given; return both."""
    from dubito._wording import name_ends  # noqa: PLC0415 - slow to import
    from dubito.cli.tables import Table  # noqa: PLC0415

    if target is None:
        names = name_ends(Table(data).names)
        raise CliError(
            f"which column holds the classes? Say --target COLUMN. The columns are {names}."
        )
    if output is None:
        raise CliError("no output file given. Say -o model.skops.")
    return target, output


def _print_rows(
    rows: TrainingData, target: str, model: str, wrappers: Wrappers, console: Console
) -> dict[str, Any]:
    """Print what was read and what is trained, and return the same for JSON."""
    from dubito._wording import name_ends  # noqa: PLC0415 - slow to import
    from dubito.cli.training_data import left_out_line  # noqa: PLC0415

    classes, counts = rows.class_counts()
    types = list(rows.types.values())
    console.say(
        f"Read {len(rows.y):,} rows, {len(types)} columns ({types.count('number')} of numbers, "
        f"{types.count('text')} of text), {len(classes):,} classes in column {target!r} "
        f"({name_ends(classes.tolist())})."
    )
    if rows.left_out:
        console.say(left_out_line(rows.left_out))
    single = classes[counts == 1].tolist()
    if single:
        console.say(
            f"Classes with one row: {name_ends(single)}. They are learnt from, but cannot be "
            "tested."
        )
    console.say(f"Training {model} ({RECIPES[model].summary}){wrappers.words()} …")
    return {
        "model": model,
        **wrappers._asdict(),
        "rows": len(rows.y),
        "columns": rows.types,
        "left_out": rows.left_out,
        "target": target,
        "classes": classes.tolist(),
    }


def _builder(
    recipe: Recipe, model: str, rows: TrainingData, wrappers: Wrappers, *, impute: bool, seed: int
) -> Callable[[AnyArray], Any]:
    """Return the function that builds an unfitted model for given labels."""
    from dubito.cli.recipes import ColumnPlan  # noqa: PLC0415

    def build(y: AnyArray) -> Any:
        import numpy as np  # noqa: PLC0415

        folds = min(INNER_FOLDS, int(np.unique(y, return_counts=True)[1].max()))
        if folds < 2 and (recipe.needs_two_rows or any(wrappers)):
            raise CliError(
                f"{model}{wrappers.words()} sets rows aside for calibration or tuning, and among "
                f"{len(y)} rows no class has two of them. Give more rows, or --model "
                "evidential-logistic, or --cv 0."
            )
        built = recipe.build(ColumnPlan(rows.types, impute, folds, seed))
        return wrappers.wrap(built, folds)

    return build


def fit_and_measure(
    build: Callable[[AnyArray], Any],
    rows: TrainingData,
    cv: int,
    seed: int,
    console: Console,
) -> tuple[Any, dict[str, Any], list[str]]:
    """Return the model fitted on all rows, its cross-validated metrics, and warnings as notes."""
    from dubito.cli.cross_validation import (  # noqa: PLC0415 - slow to import
        cross_validate,
        stratified_folds,
    )
    from dubito.cli.metric_tables import estimates_for_json  # noqa: PLC0415

    folds = stratified_folds(rows.y, cv, seed)
    with (
        _limit_threads(len(rows.y)),
        _collected_warnings() as notes,
        console.progress(len(folds) + 1, "training", unit="fits") as advance,
    ):
        estimates = cross_validate(build, rows, folds, advance)
        fitted = build(rows.y).fit(rows.X, rows.y)
        advance(1)
    _print_metrics(estimates, len(folds), cv, console)
    measured = {"folds": len(folds), "cross_validation": estimates_for_json(estimates)}
    return fitted, measured, notes


@contextmanager
def _limit_threads(n_rows: int) -> Iterator[None]:
    """Use one OpenMP thread for few rows: on a busy machine threads wait for each other."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    with threadpool_limits(1 if n_rows < ROWS_FOR_THREADS else None, user_api="openmp"):
        yield


def _calibration_choice(fitted: Any) -> dict[str, str]:
    """Return the summary of a calibrator that selects among several; else an empty dict."""
    pairs = getattr(fitted, "calibrated_classifiers_", None)
    summary = getattr(pairs[0].calibrator, "summary_", None) if pairs else None
    return {} if summary is None else {"calibration": summary}


def _print_metrics(estimates: dict[str, Estimate], folds: int, cv: int, console: Console) -> None:
    from dubito.cli.metric_tables import metric_table  # noqa: PLC0415

    if estimates:
        console.say(f"On rows a model had not seen ({folds} folds):")
        console.say(metric_table({"": estimates}, SHOWN_METRICS))
    elif cv:
        console.say("Not measured: no class has two rows, one to learn from and one to test.")


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Yield a list that holds one note for each category of warning after the block."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Expected: small classes are absent from some inner folds.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield notes
    messages = {warning.category: str(warning.message) for warning in reversed(caught)}
    for category, message in reversed(messages.items()):
        times = sum(warning.category is category for warning in caught)
        first = message.strip().splitlines()[0]
        notes.append(f"{first} (said {times} times)" if times > 1 else first)


def _save(
    fitted: Any,
    output: Path,
    rows: TrainingData,
    options: dict[str, Any],
    *,
    target: str,
    model: str,
    force: bool,
) -> None:
    from dubito import saving  # noqa: PLC0415 - slow to import

    saving.save(
        fitted,
        output,
        columns=rows.types,
        kind="features",
        label=target,
        method=model,
        rows=len(rows.y),
        options=options,
        force=force,
    )
