"""Columns that would be numbers but for some cells: slips, or marks such as "unknown"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dubito._checks import counted

if TYPE_CHECKING:
    import pandas as pd

    from dubito.cli._tables import Table

#: No more different numbers may be names of kinds: 1, 2, 3, 3a.
FEW_NUMBERS = 10
#: Texts are few where numbers are so many times as many, or where no more than so many differ.
TIMES_AS_MANY, FEW_MARKS = 10, 3
#: Cells told one by one.
MOST_TOLD = 3


class Mixed(NamedTuple):
    """What is told of a column, and whether its texts are so few that numbers must be meant."""

    told: str
    few: bool


def mixed_columns(table: Table, frame: pd.DataFrame) -> dict[str, Mixed]:
    """Find the columns of text in which most cells, and many different ones, are numbers.

    Parameters
    ----------
    table : Table
        Where the columns come from.
    frame : DataFrame
        The columns.

    Returns
    -------
    dict of str to Mixed
    """
    texts = [name for name in frame if frame[name].dtype.kind != "f"]
    found = {name: _mixed(table, frame[name]) for name in texts}
    return {name: mixed for name, mixed in found.items() if mixed is not None}


def _mixed(table: Table, column: pd.Series) -> Mixed | None:
    are_numbers = table.are_numbers(column)
    numbers, texts = column[are_numbers], column[~are_numbers].dropna()
    if texts.empty or len(numbers) <= len(texts) or numbers.nunique() <= FEW_NUMBERS:
        return None
    few = len(numbers) >= TIMES_AS_MANY * len(texts) or texts.nunique() <= FEW_MARKS
    cells = [f"row {row} holds {cell!r}" for row, cell in texts[:MOST_TOLD].items()]
    if len(texts) > MOST_TOLD:
        cells.append(f"and {counted(len(texts) - MOST_TOLD, 'more row')} hold text")
    rows = f"{len(numbers):,} of {len(column):,} rows"
    return Mixed(f"holds numbers in {rows}; {', '.join(cells)}", few)
