"""Tables in files, read by column and in chunks: CSV (also gzipped), TSV and Parquet.

The format is detected from the first bytes, not from the file name.
"""

from __future__ import annotations

import csv as python_csv
import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dubito._wording import counted, name_ends
from dubito.cli import csv_reader, parquet_reader
from dubito.cli.console import CliError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pandas as pd

    from dubito._typing import BoolArray, IntArray

#: Largest number of cells of a chunk: 32 MiB of numbers.
CELLS = 2**22
#: Largest number of rows of a chunk.
CHUNK_ROWS = 65_536


def chunk_rows(columns: int) -> int:
    """Return the number of rows in a chunk of so many columns, so that memory stays bounded."""
    return max(1, min(CHUNK_ROWS, CELLS // max(1, columns)))


class Table:
    """A table in a file.

    Columns are read as "number" (float64), "text", or "as_is" (text from CSV, so that 01 stays 01;
    its own type from Parquet). Empty cells are missing: nan, or None. Types that are not given are
    inferred: numbers where the first rows are numbers, else text.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    CliError
        Where the file is missing, empty, no table, or has two columns of one name.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _refuse_unreadable(self.path)
        with self.path.open("rb") as file:
            self._parquet = file.read(4) == b"PAR1"
        self._dialect = (
            csv_reader.Dialect() if self._parquet else csv_reader.detect_dialect(self.path)
        )
        self.names = self._read_names()
        _refuse_duplicate_names(self.path, self.names)

    @property
    def note(self) -> str:
        """Description of an unusual CSV dialect; empty otherwise."""
        return self._dialect.note

    @property
    def rows(self) -> int | None:
        """The number of rows, of a Parquet file; None for CSV, which would have to be read."""
        if not self._parquet:
            return None
        return parquet_reader.open_parquet(self.path).metadata.num_rows

    @cached_property
    def estimated_rows(self) -> int | None:
        """The number of rows, of CSV estimated from its first MiB; None for a gzipped file."""
        if self._parquet:
            return self.rows
        if self._dialect.compression:
            return None
        with self.path.open("rb") as file:
            head = file.read(2**20)
        lines = max(1, head.count(b"\n"))
        return max(0, round(self.path.stat().st_size * lines / len(head)) - 1)

    def select(self, wanted: str) -> list[str]:
        """Return the columns that a list such as ``a,b,c*`` selects, in its order.

        Parameters
        ----------
        wanted : str
            Names or patterns, with commas between; a name that holds a comma goes in quotes.

        Returns
        -------
        list of str
        """
        selected: dict[str, None] = {}
        for pattern in split_names(wanted):
            if pattern in self.names:
                matches = [pattern]
            else:
                matches = [name for name in self.names if fnmatch.fnmatchcase(name, pattern)]
            if not matches:
                raise self.missing(pattern)
            selected.update(dict.fromkeys(matches))
        return list(selected)

    def number_columns(self) -> list[str]:
        """Return the columns of numbers, and those of text in which most cells are numbers.

        Reading the latter as numbers then gives an error that names the first bad cell.
        """
        mostly = self._mostly_numbers(self._text_columns())
        return [name for name in self.names if self.types[name] == "number" or name in mostly]

    def are_numbers(self, column: pd.Series) -> BoolArray:
        """Return which cells of a text column are numbers in the notation of this file."""
        import pandas as pd  # noqa: PLC0415 - slow to import

        decimal = str.maketrans({".": "?", self._dialect.decimal: "."})
        numbers = pd.to_numeric(column.str.translate(decimal), errors="coerce")
        return numbers.notna().to_numpy(dtype=bool)

    def _mostly_numbers(self, names: list[str]) -> set[str]:
        """Return the columns of text in which more than half of the first cells are numbers."""
        chunks = self.chunks(names, dict.fromkeys(names, "text"), chunk_rows(len(names)))
        first = next(chunks, None) if names else None
        if first is None:
            return set()
        cells = {name: first[name].dropna() for name in names}
        return {
            name
            for name, column in cells.items()
            if 2 * self.are_numbers(column).sum() > len(column)
        }

    def _text_columns(self) -> list[str]:
        """Return the text columns, without the dates, booleans and lists of Parquet files."""
        if self._parquet:
            return parquet_reader.text_columns(self.path)
        return [name for name, own in self.types.items() if own == "text"]

    def missing(self, name: str, why: str = "", taken: Collection[str] = ()) -> CliError:
        """Return the error for a column that does not exist.

        Parameters
        ----------
        name : str
            The column.
        why : str
            Why it is needed; by default the existing columns are listed.
        taken : collection of str
            Columns that are not suggested as the correct spelling.

        Returns
        -------
        CliError
        """
        free = [other for other in self.names if other not in taken]
        hint = did_you_mean(name, free, repr)
        why = why or f"Its columns are {name_ends(self.names)}."
        if len(self.names) == 1:
            why += (
                f" All of {self.path} is one column, {self.names[0]!r}: are its cells separated by "
                "commas, semicolons or tabs?"
            )
        return CliError(f"column {name!r} is missing from {self.path}.{hint} {why}")

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, str] | None = None
    ) -> pd.DataFrame:
        """Return columns of all rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Their names; all by default.
        types : mapping of str to str, optional
            "number", "text" or "as_is" for some of them; others are inferred.

        Returns
        -------
        DataFrame
        """
        read_as = self._column_types(columns, types)
        while True:
            try:
                batches = list(self._batches(read_as))
            except csv_reader.BadCellError as error:
                if error.column in (types or {}):
                    raise
                read_as[error.column] = "text"  # only the first rows are numbers
            else:
                return _frame(batches, read_as)

    def chunks(
        self,
        columns: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        n_rows: int = CHUNK_ROWS,
    ) -> Iterator[pd.DataFrame]:
        """Yield columns, some rows at a time.

        Parameters
        ----------
        columns, types
            As for `read`.
        n_rows : int
            Rows in each chunk; the last may have fewer.

        Yields
        ------
        DataFrame
            With the rows' numbers as its index.
        """
        read_as = self._column_types(columns, types)
        start, pending, count = 0, [], 0
        for batch in self._batches(read_as, n_rows):
            pending.append(batch)
            count += batch.num_rows
            while count >= n_rows:
                table = pa.Table.from_batches(pending)
                yield _frame(table.slice(0, n_rows).to_batches(), read_as, start)
                pending = table.slice(n_rows).to_batches()
                start, count = start + n_rows, count - n_rows
        if count:
            yield _frame(pending, read_as, start)

    def _read_names(self) -> list[str]:
        if self._parquet:
            return list(parquet_reader.open_parquet(self.path).schema_arrow.names)
        return csv_reader.read_names(self.path, self._dialect)

    def _column_types(
        self, columns: Sequence[str] | None, types: Mapping[str, str] | None
    ) -> dict[str, str]:
        """Return the wanted columns, in order, with the type each is read as."""
        columns = self.names if columns is None else columns
        for name in columns:
            if name not in self.names:
                raise self.missing(name)
        known = dict(types or {})
        if any(name not in known for name in columns):
            known = self.types | known
        return {name: known[name] for name in columns}

    @cached_property
    def types(self) -> dict[str, str]:
        """Type of each column, "number" or "text", from the first rows."""
        if self._parquet:
            return parquet_reader.infer_types(self.path)
        return csv_reader.infer_types(self.path, self._dialect)

    def _batches(
        self, types: Mapping[str, str], n_rows: int = CHUNK_ROWS
    ) -> Iterator[pa.RecordBatch]:
        if self._parquet:
            return parquet_reader.read_batches(self.path, types, n_rows)
        return csv_reader.read_batches(self.path, self._dialect, self.names, types)


def split_names(text: str) -> list[str]:
    """Return the names in ``a,b,c``; one that holds a comma goes in quotes.

    Examples
    --------
    >>> from dubito.cli.tables import split_names
    >>> split_names('a, "b,c"')
    ['a', 'b,c']
    """
    return next(python_csv.reader([text], skipinitialspace=True), [])


def _refuse_unreadable(path: Path) -> None:
    """Raise an error for folders, stdin, missing files, and pipes, which can be read only once."""
    if path.is_dir():
        raise CliError(f"{path} is a folder, not a table. Name a CSV or Parquet file.")
    if str(path) == "-":
        raise CliError("dubito reads a table twice, so not from stdin: save it, and name the file.")
    if not path.exists():
        files = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, files, path.with_name, cutoff=0.8)
        raise CliError(f"there is no file {path}.{hint}")
    if not path.is_file():
        raise CliError(
            f"{path} is not a file that can be read twice, as dubito needs to: save it first."
        )


def _refuse_duplicate_names(path: Path, names: list[str]) -> None:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise CliError(
            f"{path} has several columns named {name_ends(duplicates)}. Give each column its own "
            "name; the first line must hold the names."
        )


def _frame(batches: list[pa.RecordBatch], types: Mapping[str, str], start: int = 0) -> pd.DataFrame:
    """Return batches as one data frame, with row numbers from `start` as its index."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    if not batches:
        empty = {"number": float, "text": object, "as_is": object}
        return pd.DataFrame({name: pd.Series(dtype=empty[own]) for name, own in types.items()})
    table = pa.Table.from_batches(batches)
    as_is = [name for name, own in types.items() if own == "as_is"]
    frame = table.select([name for name in types if name not in as_is]).to_pandas()
    for name in as_is:  # pandas would turn integers beside empty cells into floats
        frame[name] = pd.Series(pd.array(table[name], dtype=pd.ArrowDtype(table[name].type)))
    frame.index = pd.RangeIndex(start, start + len(table))
    return frame[list(types)]


def refuse_missing(frame: pd.DataFrame, path: str | Path, *, empty_allowed: bool = False) -> None:
    """Raise an error for rows with empty cells, nan or infinite numbers.

    Parameters
    ----------
    frame : DataFrame
        The columns to check.
    path : str or Path
        The file they come from, for the message.
    empty_allowed : bool
        Allow empty cells and nan.
    """
    cells = frame.to_numpy()
    if cells.dtype.kind == "f" and np.isfinite(cells).all():
        return  # fast path; checking thousands of columns one by one is slow
    bad_rows: dict[str, IntArray] = {}
    for name in frame.columns:
        column = frame[name]
        bad = np.zeros(len(frame), bool) if empty_allowed else column.isna().to_numpy()
        if column.dtype.kind == "f":
            bad = bad | np.isinf(column.to_numpy())
        if bad.any():
            bad_rows[name] = np.flatnonzero(bad)
    if not bad_rows:
        return
    rows = np.unique(np.concatenate(list(bad_rows.values())))
    name = min(bad_rows, key=lambda name: bad_rows[name][0])
    what = "infinite numbers" if empty_allowed else "empty cells, nan or infinite numbers"
    raise CliError(
        f"{path} has {counted(len(rows), 'row')} with {what} (first: row "
        f"{frame.index[rows[0]]}, column {name!r}). Drop or fill these rows first."
    )
