"""`dubito explain`: the reasons for a prediction of one row, and the parts of its doubt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dubito.cli.console import CliError, Console, check_fraction_option, did_you_mean
from dubito.cli.options import Json, Level, Model, Quiet, Trust  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from dubito.saving import Saved

#: Name of the row that is given on the command line.
GIVEN = "as given"


def explain(
    model: Model,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE | NAME=VALUE...",
            help="A CSV or Parquet file, or a value for each of the model's columns.",
        ),
    ],
    *,
    row: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Row of the table, from 0; may be repeated. Row 0 by default."),
    ] = None,
    level: Level = None,
    trust: Trust = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Explain the prediction of a model for a row: of a table, or of values given here.

    dubito explain model.skops new.csv --row 17

    dubito explain model.skops age=31 ldl=7.9

    All models give probabilities, bounds and the parts of their doubt; some give more:
    evidential ones what speaks for which class, imprecise ones how far other classes are from
    being the best answer, nested ones the splits on the way, a fusion what each member predicts.
    """
    from dubito import saving  # noqa: PLC0415 - slow to import
    from dubito.cli.row_explanations import explain_rows  # noqa: PLC0415
    from dubito.cli.saved_models import (  # noqa: PLC0415
        check_level_and_coverage,
        model_inputs,
        naming_file_in_errors,
    )

    check_fraction_option("--level", level)
    console = Console(quiet=quiet, json=json)
    saved = saving.load(model, trusted=trust or ())
    check_level_and_coverage(saved.model, level, None)
    if _is_table(what, saved):
        source, frame = what[0], _rows_of_table(saved, Path(what[0]), row or [0])
    else:
        if row:
            raise CliError("--row goes with a table; values given by name are one row already.")
        source, frame = "the command line", _row_of_values(saved, what)
    X = model_inputs(saved, frame, path=source)
    with naming_file_in_errors(source):
        explained = explain_rows(saved, X, frame, level)
    console.say("\n\n".join(text for text, _ in explained))
    console.result({"model": str(model), "rows": [facts for _, facts in explained]})


def _is_table(what: Sequence[str], saved: Saved) -> bool:
    """Return whether the argument is a table: a single one that is a file or has no "="."""
    if len(what) > 1:
        without = [word for word in what if "=" not in word]
        if without:
            raise CliError(
                f"give one table, or values as NAME=VALUE; {without[0]!r} has no '='. "
                f"The model's columns are {', '.join(saved.stamp.columns)}."
            )
        return False
    if what[0].isdigit() and not Path(what[0]).exists():
        raise CliError(f"row {what[0]} of which table? Say TABLE --row {what[0]}.")
    return Path(what[0]).exists() or "=" not in what[0]


def _rows_of_table(saved: Saved, path: Path, wanted: Sequence[int]) -> pd.DataFrame:
    """Return some rows of a table, in the given order, reading it in chunks."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    from dubito.cli.saved_models import model_types  # noqa: PLC0415
    from dubito.cli.tables import Table, chunk_rows  # noqa: PLC0415

    table = Table(path)
    types = model_types(saved, table)
    parts, last = [], -1
    for chunk in table.chunks(list(types), types, chunk_rows(len(types))):
        parts.append(chunk.loc[chunk.index.isin(wanted)])
        last = int(chunk.index[-1])
        if last >= max(wanted):
            break
    beyond = [number for number in wanted if number > last]
    if beyond:
        has = f"its rows are 0 to {last}" if last >= 0 else "it has no rows"
        raise CliError(f"{path} has no row {beyond[0]}: {has}.")
    return pd.concat(parts).loc[list(dict.fromkeys(wanted))]


def _row_of_values(saved: Saved, assignments: Sequence[str]) -> pd.DataFrame:
    """Return a table of one row from arguments NAME=VALUE."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    types = dict(zip(saved.stamp.columns, saved.stamp.column_types, strict=True))
    if not types:
        raise CliError("this model's columns have no names; give a table and --row instead.")
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, text = _split_assignment(assignment, list(types))
        if name in values:
            raise CliError(f"{name!r} is given twice. Give each column one value.")
        values[name] = _parse(name, text, types[name])
    missing = [name for name in types if name not in values]
    if missing:
        raise CliError(
            f"{'a value is' if len(missing) == 1 else 'values are'} missing for "
            f"{', '.join(missing)}. The model needs all of {', '.join(types)}."
        )
    return pd.DataFrame({name: [values[name]] for name in types}, index=[GIVEN])


def _split_assignment(assignment: str, known: list[str]) -> tuple[str, str]:
    """Return name and value of NAME=VALUE; a name may contain "=" too."""
    for name in sorted(known, key=len, reverse=True):
        if assignment.startswith(f"{name}="):
            return name, assignment.removeprefix(f"{name}=")
    name = assignment.partition("=")[0]
    hint = did_you_mean(name, known, repr)
    raise CliError(f"the model has no column {name!r}.{hint} Its columns are {', '.join(known)}.")


def _parse(name: str, text: str, column_type: str) -> Any:
    """Return the value of a cell; missing if it is empty."""
    if not text:
        return float("nan") if column_type == "number" else None
    if column_type == "text":
        return text
    try:
        return float(text)
    except ValueError:
        raise CliError(f"{name}={text}: column {name!r} takes numbers.") from None
