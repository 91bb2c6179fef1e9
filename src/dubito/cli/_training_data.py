"""The rows `dubito train` learns from: which columns, which classes, and what it refuses."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._checks import counted
from dubito.cli._console import CliError
from dubito.cli._inputs import as_classes, refuse_missing
from dubito.cli._mixed_columns import mixed_columns
from dubito.cli._recipes import MOST_VALUES
from dubito.cli._tables import Table, listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from dubito.cli._mixed_columns import Mixed

#: A numeric target is taken for a measurement, and refused unless --as-classes is given, when it
#: has more than `MOST_FRACTIONS` distinct values that are not all whole, or more than
#: `MOST_NUMBERS` and on average fewer than `ROWS_OF_EACH` rows of each.
MOST_FRACTIONS, MOST_NUMBERS, ROWS_OF_EACH = 10, 50, 20

#: A text column is taken for a name or an identifier, and left out, when it has more than
#: `MOST_VALUES` distinct values, or more than this and in more than half of the rows another one.
FEW_VALUES = 10

#: A column that counts the rows is left out where there are at least so many.
ROWS_TO_COUNT = 20


class TrainingData(NamedTuple):
    """Features, labels, what the columns hold, which were left out and why, and notes."""

    X: pd.DataFrame
    y: npt.NDArray[Any]
    types: dict[str, str]
    left_out: dict[str, str]
    notes: tuple[str, ...] = ()

    def class_counts(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
        """Return the classes and the rows of each."""
        return np.unique(self.y, return_counts=True)

    def text_values(self) -> dict[str, list[str]]:
        """Return the values of each text column, where they are few: others are unseen ones."""
        seen = {
            name: self.X[name].dropna().unique() for name in self.X if self.types[name] == "text"
        }
        return {
            name: sorted(map(str, values))
            for name, values in seen.items()
            if len(values) <= MOST_VALUES
        }


def read_training_data(
    path: Path, target: str, columns: str | None, *, impute: bool, numbers_are_classes: bool
) -> TrainingData:
    """Read a table and check that a classifier can be trained on it.

    Parameters
    ----------
    path : Path
        CSV or Parquet.
    target : str
        The column of labels.
    columns : str or None
        The features, as ``a,b,c*``; None: all that are of use.
    impute : bool
        Whether empty cells will be filled in.
    numbers_are_classes : bool
        Take a numeric target for classes however many values it has.

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
    if y.dtype.kind == "f":  # classes of fractions are names, as they are in a CSV file
        y = y.astype(np.str_)
    mixed, notes = mixed_columns(table, frame), []
    if columns is None:
        _refuse_slips(mixed, path)
        left_out = _of_no_use(frame, mixed)
    else:
        left_out = _constant(frame)
        notes = [f"column {name!r} {it.told}: it is taken as text." for name, it in mixed.items()]
    X = frame.drop(columns=list(left_out))
    if X.empty:
        told = "; ".join(f"{name!r} {why}" for name, why in left_out.items())
        raise CliError(
            f"{path} has no column to learn from besides {target!r}"
            f"{f': {told}' if told else ''}. --columns names the columns to use."
        )
    refuse_missing(X, path, empty_allowed=True)  # infinite numbers
    if not impute:
        _refuse_empty_cells(X, path)
    return TrainingData(X, y, {name: _kind(X[name]) for name in X}, left_out, tuple(notes))


def _kind(column: pd.Series) -> str:
    return "number" if column.dtype.kind == "f" else "text"


def _refuse_one_class(y: npt.NDArray[Any], target: str, path: Path) -> None:
    if len(np.unique(y)) < 2:
        raise CliError(
            f"column {target!r} of {path} has one class only, {y[0].item()!r}, in "
            f"{counted(len(y), 'row')}. A classifier needs rows of at least two classes."
        )


def _refuse_measurements(y: npt.NDArray[Any], target: str, path: Path) -> None:
    """Refuse a target that is a quantity rather than a class."""
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


def _as_numbers(labels: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Return labels as numbers where all of them read so."""
    try:
        return labels.astype(np.float64)
    except ValueError:
        return None


def _constant(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns that say nothing, and why."""
    reasons = {0: "is empty", 1: "holds one value only"}
    distinct = {name: frame[name].nunique(dropna=True) for name in frame}
    # An empty cell beside one value does say something, once it is filled in or counted.
    return {
        name: reasons[n]
        for name, n in distinct.items()
        if n == 0 or (n == 1 and not frame[name].isna().any())
    }


def _refuse_slips(mixed: Mapping[str, Mixed], path: Path) -> None:
    """Refuse a column of numbers that a few cells make one of text."""
    slips = {name: it.told for name, it in mixed.items() if it.few}
    if not slips:
        return
    name, *others = slips
    more = f" The same goes for {listed([repr(other) for other in others])}." if others else ""
    raise CliError(
        f"column {name!r} of {path} {slips[name]}.{more} Correct or empty the cells that are no "
        "numbers (--impute fills empty ones). To leave the column out, or to take it as text, name "
        "the columns to use: --columns."
    )


def _of_no_use(frame: pd.DataFrame, mixed: Mapping[str, Mixed]) -> dict[str, str]:
    """Return the columns that say nothing about rows to come, and why."""
    left_out = _constant(frame)
    for name in frame:
        if name in left_out:
            continue
        why = (
            _like_a_name(frame[name])
            if _kind(frame[name]) == "text"
            else _like_a_count(frame[name])
        )
        if why:
            left_out[name] = f"{why} ({mixed[name].told})" if name in mixed else why
    return left_out


def _like_a_name(column: pd.Series) -> str:
    distinct = column.nunique()
    if distinct > MOST_VALUES or (distinct > FEW_VALUES and 2 * distinct > len(column)):
        return f"holds {distinct:,} different texts"
    return ""


def _like_a_count(column: pd.Series) -> str:
    values = column.to_numpy()
    if len(values) >= ROWS_TO_COUNT and (np.diff(values) == 1).all():
        return "counts the rows"
    return ""


def _refuse_empty_cells(X: pd.DataFrame, path: Path) -> None:
    empty = {name: int(n) for name, n in X.isna().sum().items() if n}
    if not empty:
        return
    told = [f"{name!r} in {n:,} of {len(X):,} rows" for name, n in empty.items()]
    raise CliError(
        f"{path} has empty cells: {listed(told)}. Fill them, drop those rows, or add --impute: an "
        "empty number becomes the median of its column, an empty text counts as a value of its own."
    )


def set_aside(
    rows: TrainingData, share: float, seed: int
) -> tuple[TrainingData, npt.NDArray[np.intp]]:
    """Return the rows to train on, and the numbers of those kept for a test.

    Of each class the share is taken, but at least one row and never the last.

    Parameters
    ----------
    rows : TrainingData
        All rows.
    share : float
        Part of the rows to keep.
    seed : int
        Draws them.

    Returns
    -------
    rows : TrainingData
        The others.
    aside : ndarray of int
        In ascending order.
    """
    rng = np.random.default_rng(seed)
    _, codes, counts = np.unique(rows.y, return_inverse=True, return_counts=True)
    taken = np.clip(np.round(share * counts), 1, counts).astype(int)
    taken = np.minimum(taken, counts - 1)
    drawn = [rng.permutation(np.flatnonzero(codes == k))[:n] for k, n in enumerate(taken)]
    aside = np.sort(np.concatenate(drawn))
    if not len(aside):
        raise CliError("no row can be set aside: every class has one row. Leave --set-aside out.")
    kept = np.setdiff1d(np.arange(len(rows.y)), aside)
    return rows._replace(X=rows.X.iloc[kept], y=rows.y[kept]), aside


def digest(path: Path) -> str:
    """Return what tells a file from others, so that a test on the training rows is noticed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tell_left_out(left_out: Mapping[str, str]) -> str:
    """Say which columns are not used, and how to have them used."""
    told = listed([f"{name!r} {why}" for name, why in left_out.items()])
    return f"Left out: column {told}. (--columns names the columns to use.)"
