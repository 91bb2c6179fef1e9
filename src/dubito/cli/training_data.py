"""The rows `dubito train` learns from: which columns, which classes, and what it refuses."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._wording import counted, name_ends
from dubito.cli.console import CliError
from dubito.cli.labels import as_classes
from dubito.cli.recipes import MOST_VALUES
from dubito.cli.tables import Table, refuse_missing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from dubito._typing import AnyArray, FloatArray, IntArray

#: A numeric target is taken for a measurement, and refused unless --as-classes is given, when it
#: has more than `MOST_FRACTIONS` distinct values that are not all whole, or more than
#: `MOST_NUMBERS` and on average fewer than `ROWS_OF_EACH` rows of each.
MOST_FRACTIONS, MOST_NUMBERS, ROWS_OF_EACH = 10, 50, 20

#: A text column is taken for a name or an identifier, and left out, when it has more than
#: `MOST_VALUES` distinct values, or more than `FEW_VALUES` and fewer than two rows for each.
FEW_VALUES = 10

#: A column that increases by 1 from row to row is left out as a row number, from this many rows on.
ROWS_TO_COUNT = 20


class TrainingData(NamedTuple):
    """Features and labels of the rows to train on."""

    X: pd.DataFrame
    y: AnyArray
    types: dict[str, str]  # column -> "number" or "text"
    left_out: dict[str, str]  # column -> why it is not used
    notes: tuple[str, ...] = ()  # remarks to print

    def class_counts(self) -> tuple[AnyArray, IntArray]:
        """Return the classes and the rows of each."""
        return np.unique(self.y, return_counts=True)

    def text_values(self) -> dict[str, list[str]]:
        """Return the values of each text column that has at most `MOST_VALUES`."""
        texts = [name for name in self.X if self.types[name] == "text"]
        distinct = {name: self.X[name].dropna().unique() for name in texts}
        return {
            name: sorted(map(str, values))
            for name, values in distinct.items()
            if len(values) <= MOST_VALUES
        }


def read_training_data(
    path: Path, target: str, columns: str | None, *, impute: bool, numbers_are_classes: bool
) -> TrainingData:
    """Return the features and labels of a table, after checks that it can be learnt from.

    Parameters
    ----------
    path : Path
        CSV or Parquet.
    target : str
        The column of labels.
    columns : str or None
        The features, as ``a,b,c*``; None for all that are informative.
    impute : bool
        Whether empty cells will be filled in.
    numbers_are_classes : bool
        Accept a numeric target as classes however many values it has.

    Returns
    -------
    TrainingData
    """
    table = Table(path)
    if target not in table.names:
        raise table.missing(target)
    wanted = table.names if columns is None else table.select(columns)
    names = [name for name in wanted if name != target]
    frame = table.read([*names, target], types={target: "as_is"})
    if frame.empty:
        raise CliError(f"{path} has column names and no rows. There is nothing to learn from.")
    y = as_classes(frame.pop(target), path)
    _refuse_one_class(y, target, path)
    if not numbers_are_classes:
        _refuse_measurements(y, target, path)
    if y.dtype.kind == "f":  # fractional classes become text, as from a CSV file
        y = y.astype(np.str_)
    mixed, notes = mixed_columns(table, frame), []
    if columns is None:
        _refuse_stray_text(mixed, path)
        left_out = _uninformative(frame, mixed)
    else:
        left_out = _constant(frame)
        notes = [
            f"column {name!r} {column.description}: it is taken as text."
            for name, column in mixed.items()
        ]
    X = frame.drop(columns=list(left_out))
    if X.empty:
        reasons = "; ".join(f"{name!r} {why}" for name, why in left_out.items())
        raise CliError(
            f"{path} has no column to learn from besides {target!r}"
            f"{f': {reasons}' if reasons else ''}. --columns names the columns to use."
        )
    refuse_missing(X, path, empty_allowed=True)  # infinite numbers
    if not impute:
        _refuse_empty_cells(X, path)
    return TrainingData(X, y, {name: _column_type(X[name]) for name in X}, left_out, tuple(notes))


def _column_type(column: pd.Series) -> str:
    return "number" if column.dtype.kind == "f" else "text"


def _refuse_one_class(y: AnyArray, target: str, path: Path) -> None:
    if len(np.unique(y)) < 2:
        raise CliError(
            f"column {target!r} of {path} has one class only, {y[0].item()!r}, in "
            f"{counted(len(y), 'row')}. A classifier needs rows of at least two classes."
        )


def _refuse_measurements(y: AnyArray, target: str, path: Path) -> None:
    """Raise an error for a target that looks like a measurement."""
    numbers = _as_numbers(np.unique(y))
    if numbers is None:
        return
    fractions = len(numbers) > MOST_FRACTIONS and (numbers != np.floor(numbers)).any()
    many = len(numbers) > MOST_NUMBERS and len(y) < ROWS_OF_EACH * len(numbers)
    if not (fractions or many):
        return
    raise CliError(
        f"column {target!r} of {path} holds {len(numbers):,} different numbers from "
        f"{numbers.min():g} to {numbers.max():g} in {len(y):,} rows, which looks like a "
        "measurement and not like classes. Turn it into classes first (as in low, middle, high), "
        "name another column as --target, or add --as-classes if these are classes."
    )


def _as_numbers(labels: AnyArray) -> FloatArray | None:
    """Return labels as numbers, or None if some are not numbers."""
    try:
        return labels.astype(np.float64)
    except ValueError:
        return None


def _constant(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns that are empty or constant, and why they are left out."""
    reasons = {0: "is empty", 1: "holds one value only"}
    distinct = {name: frame[name].nunique(dropna=True) for name in frame}
    # One value beside empty cells is informative: whether a cell is empty differs.
    return {
        name: reasons[n]
        for name, n in distinct.items()
        if n == 0 or (n == 1 and not frame[name].isna().any())
    }


def _refuse_stray_text(mixed: Mapping[str, MixedColumn], path: Path) -> None:
    """Raise an error for a column of numbers with a few cells of text."""
    stray = {name: column.description for name, column in mixed.items() if column.few_texts}
    if not stray:
        return
    name, *others = stray
    more = f" The same goes for {name_ends([repr(other) for other in others])}." if others else ""
    raise CliError(
        f"column {name!r} of {path} {stray[name]}.{more} Correct or empty the cells that are no "
        "numbers (--impute fills empty ones). To leave the column out, or to take it as text, name "
        "the columns to use: --columns."
    )


def _uninformative(frame: pd.DataFrame, mixed: Mapping[str, MixedColumn]) -> dict[str, str]:
    """Return the columns that cannot help to predict new rows, and why they are left out."""
    left_out = _constant(frame)
    for name in frame:
        if name in left_out:
            continue
        why = (
            _identifier_reason(frame[name])
            if _column_type(frame[name]) == "text"
            else _counter_reason(frame[name])
        )
        if why:
            left_out[name] = f"{why} ({mixed[name].description})" if name in mixed else why
    return left_out


def _identifier_reason(column: pd.Series) -> str:
    distinct = column.nunique()
    if distinct > MOST_VALUES or (distinct > FEW_VALUES and 2 * distinct > len(column)):
        return f"holds {distinct:,} different texts"
    return ""


def _counter_reason(column: pd.Series) -> str:
    values = column.to_numpy()
    if len(values) >= ROWS_TO_COUNT and (np.diff(values) == 1).all():
        return "counts the rows"
    return ""


def _refuse_empty_cells(X: pd.DataFrame, path: Path) -> None:
    empty = {name: int(n) for name, n in X.isna().sum().items() if n}
    if not empty:
        return
    cells = [f"{name!r} in {n:,} of {len(X):,} rows" for name, n in empty.items()]
    raise CliError(
        f"{path} has empty cells: {name_ends(cells)}. Fill them, drop those rows, or add --impute: "
        "an empty number becomes the median of its column, an empty text counts as a value of its "
        "own."
    )


def split_training_data(
    rows: TrainingData, fraction: float, seed: int
) -> tuple[TrainingData, IntArray]:
    """Return the rows to train on, and the numbers of the rows set aside for a test.

    The fraction is taken of each class: at least one row, and never all of them.

    Parameters
    ----------
    rows : TrainingData
        All rows.
    fraction : float
        Fraction of the rows to set aside.
    seed : int
        Seed of the draw.

    Returns
    -------
    rows : TrainingData
        The others.
    aside : ndarray of int
        In ascending order.
    """
    rng = np.random.default_rng(seed)
    _, codes, counts = np.unique(rows.y, return_inverse=True, return_counts=True)
    taken = np.clip(np.round(fraction * counts), 1, counts).astype(int)
    taken = np.minimum(taken, counts - 1)
    drawn = [rng.permutation(np.flatnonzero(codes == k))[:n] for k, n in enumerate(taken)]
    aside = np.sort(np.concatenate(drawn))
    if not len(aside):
        raise CliError("no row can be set aside: every class has one row. Leave --set-aside out.")
    kept = np.setdiff1d(np.arange(len(rows.y)), aside)
    return rows._replace(X=rows.X.iloc[kept], y=rows.y[kept]), aside


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, stored in models to recognise their training file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def left_out_line(left_out: Mapping[str, str]) -> str:
    """Return a line on the columns that are not used, and how to use them."""
    columns = name_ends([f"{name!r} {why}" for name, why in left_out.items()])
    return f"Left out: column {columns}. (--columns names the columns to use.)"


#: Columns with at most this many distinct numbers may be codes such as 1, 2, 3, 3a.
FEW_NUMBERS = 10
#: A text in a numeric column is stray when there are ten numbers to each text, or at most three
#: distinct texts.
NUMBERS_PER_TEXT, FEW_DISTINCT_TEXTS = 10, 3
#: Cells listed in a message.
MOST_CELLS_LISTED = 3


class MixedColumn(NamedTuple):
    """A column of numbers and texts, and whether the texts are few enough to be mistakes."""

    description: str
    few_texts: bool


def mixed_columns(table: Table, frame: pd.DataFrame) -> dict[str, MixedColumn]:
    """Return the text columns in which most cells are numbers, with many distinct values.

    Parameters
    ----------
    table : Table
        The table of the columns.
    frame : DataFrame
        The columns.

    Returns
    -------
    dict of str to MixedColumn
    """
    texts = [name for name in frame if frame[name].dtype.kind != "f"]
    columns = {name: _mixed(table, frame[name]) for name in texts}
    return {name: mixed for name, mixed in columns.items() if mixed is not None}


def _mixed(table: Table, column: pd.Series) -> MixedColumn | None:
    are_numbers = table.are_numbers(column)
    numbers, texts = column[are_numbers], column[~are_numbers].dropna()
    if texts.empty or len(numbers) <= len(texts) or numbers.nunique() <= FEW_NUMBERS:
        return None
    few = len(numbers) >= NUMBERS_PER_TEXT * len(texts) or texts.nunique() <= FEW_DISTINCT_TEXTS
    cells = [f"row {row} holds {cell!r}" for row, cell in texts[:MOST_CELLS_LISTED].items()]
    if len(texts) > MOST_CELLS_LISTED:
        cells.append(f"and {counted(len(texts) - MOST_CELLS_LISTED, 'more row')} hold text")
    rows = f"{len(numbers):,} of {len(column):,} rows"
    return MixedColumn(f"holds numbers in {rows}; {', '.join(cells)}", few)
