"""Reading CSV files: other separators, decimal commas, gzip; errors name the row and the column.

Rows in messages are counted as in pandas: data rows from 0, without blank lines.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dubito._wording import counted
from dubito.cli.console import CliError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Bytes read at a time; no row may be longer.
BLOCK_BYTES = 2**22
#: Bytes read to find the encoding and the separator.
_HEAD = 2**16
#: Lines used to find the separator and the decimal mark.
_LINES = 50

# First bytes of files that are not plain UTF-8 text.
_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}

_BAD_CELL = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \w+: (invalid value '(.*)')?",
    re.DOTALL,
)
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


class BadCellError(CliError):
    """A cell that is not the number its column should hold."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Dialect:
    """Separator, decimal mark and compression of one CSV file.

    Parameters
    ----------
    separator : str
        Separator between cells.
    decimal : str
        The decimal point or comma.
    compression : str or None
        "gzip", or None.
    """

    separator: str = ","
    decimal: str = "."
    compression: str | None = None

    @property
    def note(self) -> str:
        """Description of an unusual separator or decimal mark; empty for commas."""
        if self.separator == ",":
            return ""
        comma = ", decimal commas" if self.decimal == "," else ""
        return f"separated by {_SEPARATORS[self.separator]}{comma}"


def non_text_content(arrow_type: pa.DataType) -> str:
    """Return what cells of a type hold if they cannot be written as text; empty if they can.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dubito.cli.csv_reader import non_text_content
    >>> non_text_content(pa.list_(pa.int64())), non_text_content(pa.int64())
    ('lists or records', '')
    """
    if pa.types.is_nested(arrow_type):
        return "lists or records"
    raw = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return "bytes" if any(is_raw(arrow_type) for is_raw in raw) else ""


def detect_dialect(path: Path) -> Dialect:
    """Return the dialect of a CSV file; other kinds of files are an error."""
    with path.open("rb") as file:
        compression = "gzip" if file.read(2) == _GZIP else None
    with _readable_errors(path, []), pa.input_stream(str(path), compression=compression) as stream:
        head = stream.read(_HEAD)
    _refuse_other_formats(path, head)
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise CliError(f"{path} is empty. A table needs a first line with the column names.")
    if len(head) == _HEAD and len(lines) > 1:
        del lines[-1]  # truncated
    separator = _separator(path, lines)
    return Dialect(separator, _decimal(lines[1:], separator), compression)


def read_names(path: Path, dialect: Dialect) -> list[str]:
    """Return the column names."""
    with _readable_errors(path, []), _open(path, dialect) as reader:
        return list(reader.schema.names)


def infer_types(path: Path, dialect: Dialect) -> dict[str, str]:
    """Return "number" or "text" for each column, from the first rows."""
    with _readable_errors(path, []), _open(path, dialect) as reader:
        return {field.name: _column_type(field.type) for field in reader.schema}


def read_batches(
    path: Path, dialect: Dialect, names: list[str], types: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns in blocks of rows.

    Parameters
    ----------
    path : Path
        The file.
    dialect : Dialect
        Its separator, decimal mark and compression.
    names : list of str
        All its columns.
    types : mapping of str to str
        The columns wanted, in order, and "number" for those to be read as numbers; others are
        text.

    Yields
    ------
    RecordBatch
    """
    arrow_types = {
        name: pa.float64() if own == "number" else pa.string() for name, own in types.items()
    }
    options = csv.ConvertOptions(include_columns=list(arrow_types), column_types=arrow_types)
    with _readable_errors(path, names), _open(path, dialect, options) as reader:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(
                [_empty_to_null(column) for column in batch.columns], names=batch.schema.names
            )


def _empty_to_null(column: pa.Array) -> pa.Array:
    """Return text with null in place of empty cells."""
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _open(path: Path, dialect: Dialect, options: Any = None) -> Any:
    options = options or csv.ConvertOptions()
    options.decimal_point = dialect.decimal
    return csv.open_csv(
        pa.input_stream(str(path), compression=dialect.compression),
        # Only with one thread do errors have a row number.
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        convert_options=options,
    )


def _refuse_other_formats(path: Path, head: bytes) -> None:
    """Raise an error for spreadsheets, other encodings and binary data."""
    if head.startswith(_ZIP):
        raise CliError(
            f"{path} is a spreadsheet, a model file or a zip archive, not a table of text. Save a "
            "spreadsheet as CSV (UTF-8); a model comes before the table on the command line."
        )
    if head.startswith(_UTF16):
        raise CliError(f"{path} is text in UTF-16. Save it as CSV in UTF-8.")
    if b"\x00" in head:
        raise CliError(f"{path} holds binary data. dubito reads tables as CSV or Parquet.")


def _separator(path: Path, lines: list[str]) -> str:
    """Return the separator: a mark that occurs equally often in every line, commas first.

    Without such a mark it is one that occurs in the first line. Quoted cells are not counted.
    """
    unquoted = [re.sub(r'"[^"]*"', "", line) for line in lines[:_LINES]]
    if ".tsv" in path.suffixes and "\t" in unquoted[0]:
        return "\t"
    even = [mark for mark in _SEPARATORS if len({line.count(mark) for line in unquoted}) == 1]
    return next((mark for mark in (*even, *_SEPARATORS) if mark in unquoted[0]), ",")


def _decimal(lines: list[str], separator: str) -> str:
    """Return the decimal mark: a comma if cells look like 0,5 and none like 0.5."""
    if separator == ",":
        return "."
    cells = [cell.strip() for line in lines[:_LINES] for cell in line.split(separator)]
    commas = any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
    points = any(re.fullmatch(r"[-+]?\d+\.\d+", cell) for cell in cells)
    return "," if commas and not points else "."


def _column_type(arrow_type: pa.DataType) -> str:
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    return "number" if any(is_type(arrow_type) for is_type in numeric) else "text"


@contextmanager
def _readable_errors(path: Path, names: list[str]) -> Iterator[None]:
    """Turn errors of pyarrow into messages that say what to do."""
    try:
        yield
    except UnicodeDecodeError as error:  # of the column names
        raise CliError(
            f"{path} is not UTF-8 text in its first line. Save it as CSV in UTF-8."
        ) from error
    except pa.ArrowInvalid as error:
        _raise_readable(path, names, str(error), error)
    except OSError as error:  # the file was there: its gzip stream is damaged
        raise CliError(f"{path} could not be read ({error}). Is it complete?") from error


def _raise_readable(path: Path, names: list[str], message: str, error: Exception) -> NoReturn:
    """Raise the error of the command line for an error message of pyarrow."""
    if cell := _BAD_CELL.search(message):
        row = _in_row(cell[2])
        if "UTF8" in message:
            raise CliError(f"{path} is not UTF-8 text{row}. Save it as CSV in UTF-8.") from error
        name = names[int(cell[1])] if int(cell[1]) < len(names) else cell[1]
        raise BadCellError(
            f"column {name!r} of {path} holds {cell[4]!r}{row}, which is not a number. Correct "
            "it, or leave the column out.",
            name,
        ) from error
    if line := _RAGGED.search(message):
        raise CliError(
            f"{path} has {counted(int(line[3]), 'cell')}{_in_row(line[1])}, but "
            f"{counted(int(line[2]), 'column')}. Correct the line; a cell that holds the separator "
            "must be in quotes."
        ) from error
    if "Empty CSV" in message:
        raise CliError(
            f"{path} has one line only. A table needs a first line with the column names, and the "
            "rows below it."
        ) from error
    if "straddl" in message:
        raise CliError(
            f"{path} has a line of more than {BLOCK_BYTES // 2**20} MB. Is a quote left open?"
        ) from error
    raise CliError(f"{path} could not be read as CSV: {message}") from error


def _in_row(number: str | None) -> str:
    """Return " in row N", N counted from 0; pyarrow counts lines from 1, the header first."""
    return "" if number is None else f" in row {int(number) - 2}"
