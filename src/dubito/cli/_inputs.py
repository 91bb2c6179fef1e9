"""From the columns of a table to what a saved model takes: its columns in order, its labels."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._checks import counted, name_rows
from dubito.cli._console import CliError
from dubito.cli._csv import unlike_text
from dubito.cli._tables import Table, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from dubito.saving import Saved

#: Floats are whole numbers up to here, and 64 bits hold all integers of so many digits.
_EXACT, _DIGITS = 2**53, 18


def model_types(saved: Saved, table: Table) -> dict[str, str]:
    """Return the columns that a model takes, in its order, and what each is to be read as.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    table : Table
        Where the columns should be.

    Returns
    -------
    dict of str to str
        For `Table.read` and `Table.chunks`: name to "number" or "text".
    """
    stamp = saved.stamp
    if not stamp.columns:
        return _unnamed_columns(saved, table)
    for name in stamp.columns:
        if name not in table.names:
            raise table.missing(name, _fitted_on(stamp.columns), stamp.columns)
    return dict(zip(stamp.columns, stamp.column_types, strict=True))


def model_inputs(saved: Saved, frame: pd.DataFrame, *, path: str | Path) -> Any:
    """Return what the model's methods take: an array of scores, or a table of features.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    frame : DataFrame
        Rows, with the model's columns among its own.
    path : str or Path
        The file they come from, for messages.

    Returns
    -------
    ndarray or DataFrame
        Scores (n, columns); or features as the model knows them.

    Raises
    ------
    CliError
        Where a column is missing, or a cell that the model needs.
    """
    stamp = saved.stamp
    names = list(stamp.columns) or list(frame.columns)
    for name in names:
        if name not in frame.columns:
            raise CliError(f"column {name!r} is missing from {path}. {_fitted_on(names)}")
    part = frame[names]
    refuse_missing(part, path, empty_allowed=bool(stamp.options.get("impute")))
    if stamp.kind == "scores" or not stamp.columns:
        return part.to_numpy(dtype=float)
    return part


def refuse_missing(frame: pd.DataFrame, path: str | Path, *, empty_allowed: bool = False) -> None:
    """Refuse rows with empty cells, nan or infinite numbers.

    Parameters
    ----------
    frame : DataFrame
        The columns that count.
    path : str or Path
        Where they come from.
    empty_allowed : bool
        Let empty cells and nan pass.
    """
    cells = frame.to_numpy()
    if cells.dtype.kind == "f" and np.isfinite(cells).all():
        return  # as nearly always; column by column is slow where there are thousands
    first: dict[str, npt.NDArray[np.intp]] = {}
    for name in frame.columns:
        column = frame[name]
        bad = np.zeros(len(frame), bool) if empty_allowed else column.isna().to_numpy()
        if column.dtype.kind == "f":
            bad = bad | np.isinf(column.to_numpy())
        if bad.any():
            first[name] = np.flatnonzero(bad)
    if not first:
        return
    rows = np.unique(np.concatenate(list(first.values())))
    name = min(first, key=lambda name: first[name][0])
    what = "infinite numbers" if empty_allowed else "empty cells, nan or infinite numbers"
    raise CliError(
        f"{path} has {counted(len(rows), 'row')} with {what} (first: row "
        f"{frame.index[rows[0]]}, column {name!r}). Drop or fill these rows first."
    )


@contextmanager
def told_in(path: str | Path) -> Iterator[None]:
    """Name the file when a model refuses its rows."""
    try:
        yield
    except ValueError as error:
        raise CliError(f"the model could not take the rows of {path}: {error}") from error


def truth(
    saved: Saved, frame: pd.DataFrame, label: str | None, *, path: str | Path
) -> npt.NDArray[Any]:
    """Return the true labels, as the model's own classes.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    frame : DataFrame
        Rows; the label column read "as_is".
    label : str or None
        The column of labels; by default the one the model was fitted with.
    path : str or Path
        The file they come from.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    CliError
        Where there is no such column, or labels are missing or not the model's.
    """
    name = label_column(saved, label)
    if name not in frame.columns:
        raise CliError(f"column {name!r} is missing from {path}. Say --label COLUMN.")
    classes = saved.stamp.classes
    codes = label_codes(frame[name], classes, path=path)
    return np.asarray(classes)[codes]


def label_column(saved: Saved, label: str | None) -> str:
    """Return the column of labels that was named, or that the model was fitted with."""
    name = label or saved.stamp.label
    if name is None:
        raise CliError("which column holds the true labels? Say --label COLUMN.")
    return name


def label_codes(
    column: pd.Series, classes: Sequence[Any], *, path: str | Path
) -> npt.NDArray[np.intp]:
    """Return the position of each label among the classes.

    A label from a CSV file is text: it is the class that is written so, or the number or truth
    value that it reads as.

    Parameters
    ----------
    column : Series
        Labels.
    classes : sequence
        The classes, in order.
    path : str or Path
        The file they come from.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    CliError
        Where labels are missing or unknown.
    """
    refuse_no_label(column, path)
    codes, distinct = column.factorize()
    positions = class_positions(distinct, classes)
    unknown = [value for value, at in zip(distinct, positions, strict=True) if at is None]
    if unknown:
        row = column.index[int(np.argmax(column.to_numpy() == unknown[0]))]
        names = ", ".join(repr(str(value)) for value in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise CliError(
            f"column {column.name!r} of {path} has labels that are not among the classes: {names}"
            f"{more} (first: row {row}). The classes are {listed(classes)}."
        )
    return np.asarray(positions, dtype=np.intp)[codes]


def class_positions(values: Iterable[Any], classes: Sequence[Any]) -> list[int | None]:
    """Return where each value stands among the classes, or None.

    Examples
    --------
    >>> from dubito.cli._inputs import class_positions
    >>> class_positions(["2", "1.0", "x"], [1, 2]), class_positions(["True", "1"], [False, True])
    ([1, 0, None], [1, None])
    >>> class_positions(["01", "1"], ["01", "02"])
    [0, None]
    """
    as_written = {str(name): position for position, name in enumerate(classes)}
    as_read = {
        _as_read(name): position
        for position, name in enumerate(classes)
        if not isinstance(name, str)
    }
    return [as_written.get(str(value), as_read.get(_as_read(value))) for value in values]


def as_classes(column: pd.Series, path: str | Path) -> npt.NDArray[Any]:
    """Return labels as classes: whole numbers as such, everything else as it is written.

    Text such as 01 or 1.5 stays text: only 1 and 1.0, how whole numbers are written, become one.

    Parameters
    ----------
    column : Series
        Labels, read "as_is".
    path : str or Path
        The file they come from.

    Returns
    -------
    ndarray
    """
    refuse_no_label(column, path)
    codes, distinct = column.factorize()
    values = np.asarray(distinct)
    if values.dtype.kind == "f" and ((values == np.floor(values)) & (abs(values) < _EXACT)).all():
        values = values.astype(np.int64)  # whole numbers, beside cells that were empty elsewhere
    elif values.dtype.kind not in "biuf":
        values = np.asarray([str(value) for value in values])
        whole = [value.removesuffix(".0") for value in values]  # as pandas writes floats
        if all(_is_integer(value) for value in whole):
            values = np.asarray(whole, dtype=np.int64)
    return values[codes]


def refuse_no_label(column: pd.Series, path: str | Path) -> None:
    """Refuse rows without a label, and columns whose cells are no labels."""
    kind = getattr(column.dtype, "pyarrow_dtype", None)
    held = "" if kind is None else unlike_text(kind)
    if held:
        raise CliError(
            f"column {column.name!r} of {path} holds {held}, and labels are text or whole numbers. "
            "Turn it into such a column, or name another."
        )
    missing = column.index[column.isna().to_numpy()]
    if len(missing):
        raise CliError(
            f"column {column.name!r} of {path} has no label in {name_rows(missing)}. Drop such "
            "rows first."
        )


def _unnamed_columns(saved: Saved, table: Table) -> dict[str, str]:
    """Return a table's numbers for a model that was fitted on a plain array."""
    needed = getattr(saved.model, "n_features_in_", None)
    numbers = [name for name in table.number_columns() if name != saved.stamp.label]
    if needed is not None and len(numbers) != needed:
        raise CliError(
            f"the model was fitted on {needed} columns without names, but {table.path} has "
            f"{counted(len(numbers), 'column')} of numbers ({listed(numbers)}). Keep those of the "
            "model only, in its order, or save the model with columns=."
        )
    return dict.fromkeys(numbers, "number")


def _fitted_on(names: Sequence[str]) -> str:
    return f"The model was fitted on columns {listed(names)}."


def _as_read(value: Any) -> str:
    """Return a label as it reads: 1, 1.0 and "1" are one, and so are true and True."""
    text = str(value)
    try:
        return repr(float(text))
    except ValueError:
        return text.lower()


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
    return plain and (text == "0" or digits[0] != "0")
