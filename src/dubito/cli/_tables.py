"""Tables in files, read by column and in chunks: CSV (also gzipped), TSV and Parquet.

What a file is is seen from its first bytes, not from its name.
"""

from __future__ import annotations

import csv as python_csv
import difflib
import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dubito.cli import _csv
from dubito.cli._console import CliError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

#: Cells a chunk may hold: 32 MiB of numbers.
CELLS = 2**22


def chunk_rows(columns: int) -> int:
    """Return how many rows of so many columns to take at once, so that memory stays bounded."""
    return max(1, min(65_536, CELLS // max(1, columns)))


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
        _refuse_no_file(self.path)
        with self.path.open("rb") as file:
            self._parquet = file.read(4) == b"PAR1"
        self._dialect = _csv.Dialect() if self._parquet else _csv.recognise(self.path)
        self.names = self._read_names()
        _refuse_twins(self.path, self.names)

    @property
    def note(self) -> str:
        """Say how the file is written where that is not as usual, or nothing."""
        return self._dialect.note

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known without reading them all."""
        return self._parquet_file().metadata.num_rows if self._parquet else None

    @cached_property
    def estimated_rows(self) -> int | None:
        """About how many rows there are; None for a gzipped file."""
        if self._parquet:
            return self.rows
        if self._dialect.compression:
            return None
        with self.path.open("rb") as file:
            head = file.read(2**20)
        lines = max(1, head.count(b"\n"))
        return max(0, round(self.path.stat().st_size * lines / len(head)) - 1)

    def select(self, wanted: str) -> list[str]:
        """Return the columns that a list such as ``a,b,c*`` means, in its order.

        Parameters
        ----------
        wanted : str
            Names or patterns, with commas between; a name that holds a comma goes in quotes.

        Returns
        -------
        list of str
        """
        found: dict[str, None] = {}
        for part in split_names(wanted):
            if part in self.names:
                matches = [part]
            else:
                matches = [name for name in self.names if fnmatch.fnmatchcase(name, part)]
            if not matches:
                raise self.missing(part)
            found.update(dict.fromkeys(matches))
        return list(found)

    def number_columns(self) -> list[str]:
        """Return the columns of numbers, and those of text in which most cells are numbers.

        The latter are read as numbers by whoever needs them, so that the odd cell is told.
        """
        mostly = self._mostly_numbers(self._texts())
        return [name for name in self.names if self.types[name] == "number" or name in mostly]

    def are_numbers(self, column: pd.Series) -> npt.NDArray[np.bool_]:
        """Return which cells of a column of text read as numbers, as this file writes them."""
        import pandas as pd  # noqa: PLC0415 - heavy

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

    def _texts(self) -> list[str]:
        """Return the columns of text; those of dates, truth values or lists in Parquet are none."""
        if self._parquet:
            return [
                field.name for field in self._parquet_file().schema_arrow if _is_text(field.type)
            ]
        return [name for name, kind in self.types.items() if kind == "text"]

    def missing(self, name: str, why: str = "", taken: Collection[str] = ()) -> CliError:
        """Return the error for a column that is not there.

        Parameters
        ----------
        name : str
            The column.
        why : str
            What needs it; by default the columns that are there are listed.
        taken : collection of str
            Columns that are something else, so not misspelled.

        Returns
        -------
        CliError
        """
        free = [other for other in self.names if other not in taken]
        near = difflib.get_close_matches(name, free, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        why = why or f"Its columns are {listed(self.names)}."
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
        kinds = self._kinds(columns, types)
        while True:
            try:
                batches = list(self._batches(kinds))
            except _csv.BadCellError as error:
                if error.column in (types or {}):
                    raise
                kinds[error.column] = "text"  # its first rows only looked like numbers
            else:
                return _frame(batches, kinds)

    def chunks(
        self,
        columns: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        rows: int = 65_536,
    ) -> Iterator[pd.DataFrame]:
        """Yield columns, some rows at a time.

        Parameters
        ----------
        columns, types
            As for `read`.
        rows : int
            Rows in each chunk; the last may have fewer.

        Yields
        ------
        DataFrame
            With the rows' numbers as its index.
        """
        kinds = self._kinds(columns, types)
        start, held, count = 0, [], 0
        for batch in self._batches(kinds, rows):
            held.append(batch)
            count += batch.num_rows
            while count >= rows:
                table = pa.Table.from_batches(held)
                yield _frame(table.slice(0, rows).to_batches(), kinds, start)
                held, start, count = table.slice(rows).to_batches(), start + rows, count - rows
        if count:
            yield _frame(held, kinds, start)

    def _read_names(self) -> list[str]:
        if self._parquet:
            return list(self._parquet_file().schema_arrow.names)
        return _csv.read_names(self.path, self._dialect)

    def _parquet_file(self) -> parquet.ParquetFile:
        try:
            return parquet.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise CliError(f"{self.path} is a damaged Parquet file ({error}).") from error

    def _kinds(
        self, columns: Sequence[str] | None, types: Mapping[str, str] | None
    ) -> dict[str, str]:
        """Return the columns wanted, in order, with what each is to be read as."""
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
        """What each column is taken for: "number" or "text", by the first rows."""
        if self._parquet:
            return {
                field.name: "number" if _is_number(field.type) else "text"
                for field in self._parquet_file().schema_arrow
            }
        return _csv.infer_types(self.path, self._dialect)

    def _batches(self, kinds: Mapping[str, str], rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        if not self._parquet:
            yield from _csv.read_batches(self.path, self._dialect, self.names, kinds)
            return
        start = 0
        for batch in self._parquet_file().iter_batches(batch_size=rows, columns=list(kinds)):
            arrays = [
                _cast(batch.column(name), kind, name, self.path, start)
                for name, kind in kinds.items()
            ]
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, names=list(kinds))


def split_names(text: str) -> list[str]:
    """Return the names in ``a,b,c``; one that holds a comma goes in quotes.

    Examples
    --------
    >>> from dubito.cli._tables import split_names
    >>> split_names('a, "b,c"')
    ['a', 'b,c']
    """
    return next(python_csv.reader([text], skipinitialspace=True), [])


def listed(names: Sequence[object], most: int = 8) -> str:
    """Return names with commas between, the middle left out where they are many.

    Examples
    --------
    >>> from dubito.cli._tables import listed
    >>> listed(["a", "b"]), listed(range(100))
    ('a, b', '0 … 99')
    """
    if not names:
        return "none"
    if len(names) > most:
        return f"{names[0]} … {names[-1]}"
    return ", ".join(str(name) or "(no name)" for name in names)


def _refuse_no_file(path: Path) -> None:
    if path.is_dir():
        raise CliError(f"{path} is a folder, not a table. Name a CSV or Parquet file.")
    if str(path) == "-":
        raise CliError("dubito reads a table twice, so not from stdin: save it, and name the file.")
    if not path.exists():
        near = difflib.get_close_matches(path.name, _neighbours(path), n=1, cutoff=0.8)
        hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
        raise CliError(f"there is no file {path}.{hint}")
    if not path.is_file():
        raise CliError(
            f"{path} is not a file that can be read twice, as dubito needs to: save it first."
        )


def _neighbours(path: Path) -> list[str]:
    return [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []


def _refuse_twins(path: Path, names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1}) if names else []
    if twins:
        raise CliError(
            f"{path} has several columns named {listed(twins)}. Give each column its own name; the "
            "first line must hold the names."
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _cast(array: pa.Array, kind: str, name: str, path: Path, start: int) -> pa.Array:
    """Return a column of a Parquet file as what it is to be read as."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind == "as_is":
        return array
    try:
        if kind == "number":
            return pc.cast(array, pa.float64())
        return pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row, cell = _first_uncastable(array)
        raise CliError(
            f"column {name!r} of {path} holds {cell!r} in row {start + row}, which is not a "
            f"{kind}. Correct it, or leave the column out."
        ) from error


def _first_uncastable(array: pa.Array) -> tuple[int, object]:
    for row, cell in enumerate(array.to_pylist()):
        try:
            float(cell)
        except (TypeError, ValueError):
            if cell is not None:
                return row, cell
    return 0, array[0].as_py()


def _frame(batches: list[pa.RecordBatch], kinds: Mapping[str, str], start: int = 0) -> pd.DataFrame:
    """Return batches as one frame, its index the rows' numbers."""
    import pandas as pd  # noqa: PLC0415 - heavy

    if not batches:
        empty = {"number": float, "text": object, "as_is": object}
        return pd.DataFrame({name: pd.Series(dtype=empty[kind]) for name, kind in kinds.items()})
    table = pa.Table.from_batches(batches)
    exact = [name for name, kind in kinds.items() if kind == "as_is"]
    frame = table.select([name for name in kinds if name not in exact]).to_pandas()
    for name in exact:  # pandas would turn integers beside empty cells into floats
        frame[name] = pd.Series(pd.array(table[name], dtype=pd.ArrowDtype(table[name].type)))
    frame.index = pd.RangeIndex(start, start + len(table))
    return frame[list(kinds)]
