"""The column of true labels: which one it is, and its values as classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._wording import name_ends, name_rows, name_some
from dubito.cli.console import CliError
from dubito.cli.csv_reader import non_text_content

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pandas as pd

    from dubito._typing import AnyArray, IntArray
    from dubito.saving import Saved

#: Floats represent every integer below `_EXACT`, 64-bit integers every one of `_DIGITS` digits.
_EXACT, _DIGITS = 2**53, 18


def true_labels(
    saved: Saved, frame: pd.DataFrame, label: str | None, *, path: str | Path
) -> AnyArray:
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
        If there is no such column, or labels are missing or unknown to the model.
    """
    name = label_column(saved, label)
    if name not in frame.columns:
        raise CliError(f"column {name!r} is missing from {path}. Say --label COLUMN.")
    classes = saved.stamp.classes
    codes = label_codes(frame[name], classes, path=path)
    return np.asarray(classes)[codes]


def label_column(saved: Saved, label: str | None) -> str:
    """Return the name of the column of labels: `label`, or else the one of the model's stamp."""
    name = label or saved.stamp.label
    if name is None:
        raise CliError("which column holds the true labels? Say --label COLUMN.")
    return name


def label_codes(column: pd.Series, classes: Sequence[Any], *, path: str | Path) -> IntArray:
    """Return the position of each label among the classes.

    A label from a CSV file is text: it matches the class with the same text, or the number or
    boolean that it stands for.

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
        If labels are missing or unknown.
    """
    check_labels(column, path)
    codes, distinct = column.factorize()
    positions = class_positions(distinct, classes)
    unknown = [
        value for value, position in zip(distinct, positions, strict=True) if position is None
    ]
    if unknown:
        row = column.index[int(np.argmax(column.to_numpy() == unknown[0]))]
        names = name_some([str(value) for value in unknown])
        raise CliError(
            f"column {column.name!r} of {path} has labels that are not among the classes: {names} "
            f"(first: row {row}). The classes are {name_ends(classes)}."
        )
    return np.asarray(positions, dtype=np.intp)[codes]


def class_positions(values: Iterable[Any], classes: Sequence[Any]) -> list[int | None]:
    """Return the index of each value among the classes, or None.

    Examples
    --------
    >>> from dubito.cli.labels import class_positions
    >>> class_positions(["2", "1.0", "x"], [1, 2]), class_positions(["True", "1"], [False, True])
    ([1, 0, None], [1, None])
    >>> class_positions(["01", "1"], ["01", "02"])
    [0, None]
    """
    by_text = {str(name): position for position, name in enumerate(classes)}
    by_value = {
        _canonical(name): position
        for position, name in enumerate(classes)
        if not isinstance(name, str)
    }
    return [by_text.get(str(value), by_value.get(_canonical(value))) for value in values]


def as_classes(column: pd.Series, path: str | Path) -> AnyArray:
    """Return labels as classes: whole numbers as integers, everything else as text.

    Text such as 01 or 1.5 stays text; 1 and 1.0 both become the integer 1.

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
    check_labels(column, path)
    codes, distinct = column.factorize()
    values = np.asarray(distinct)
    if values.dtype.kind == "f" and ((values == np.floor(values)) & (abs(values) < _EXACT)).all():
        values = values.astype(np.int64)  # pandas reads integers beside empty cells as floats
    elif values.dtype.kind not in "biuf":
        values = np.asarray([str(value) for value in values])
        whole = [value.removesuffix(".0") for value in values]  # pandas writes 1.0
        if all(_is_integer(value) for value in whole):
            values = np.asarray(whole, dtype=np.int64)
    return values[codes]


def check_labels(column: pd.Series, path: str | Path) -> None:
    """Raise an error for rows without a label, and for columns of lists or bytes."""
    arrow_type = getattr(column.dtype, "pyarrow_dtype", None)
    content = "" if arrow_type is None else non_text_content(arrow_type)
    if content:
        raise CliError(
            f"column {column.name!r} of {path} holds {content}, and labels are text or whole "
            "numbers. Turn it into such a column, or name another."
        )
    missing = column.index[column.isna().to_numpy()]
    if len(missing):
        raise CliError(
            f"column {column.name!r} of {path} has no label in {name_rows(missing)}. Drop such "
            "rows first."
        )


def _canonical(value: Any) -> str:
    """Return one text for equal labels: for 1, 1.0 and "1", and for true and True."""
    text = str(value)
    try:
        return repr(float(text))
    except ValueError:
        return text.lower()


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
    return plain and (text == "0" or digits[0] != "0")
