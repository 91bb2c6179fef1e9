"""Writing tables into files: complete or not at all, overwriting only with --force."""

from __future__ import annotations

import csv as python_csv
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from dubito.cli.console import CliError
from dubito.cli.csv_reader import non_text_content

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import pandas as pd

_SUFFIXES = (".csv", ".csv.gz", ".parquet")
#: Characters that make a CSV cell need quotes.
_QUOTED_CHARACTERS = '[",\r\n]'


class TableWriter:
    """Writes a table in chunks to a temporary file, which is renamed when it is complete.

    Parameters
    ----------
    path : Path or None
        ``.csv``, ``.csv.gz`` or ``.parquet``; None is CSV on stdout.
    force : bool
        Overwrite an existing file.

    Raises
    ------
    CliError
        If the file exists, its folder does not, or its suffix is unknown: before anything is
        computed.
    """

    def __init__(self, path: str | Path | None, *, force: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._sink: Any = None
        self._file: BinaryIO | None = None
        self._schema: pa.Schema | None = None
        if self.path is not None:
            check_output(self.path, force=force)
            self._suffix = _suffix(self.path)

    @property
    def is_text(self) -> bool:
        """Whether the file is CSV, in which numbers are text."""
        return self.path is None or self._suffix != ".parquet"

    def __enter__(self) -> Self:
        if self.path is None:
            self._sink = CsvSink(sys.stdout.buffer)
            return self
        self._draft = draft_path(self.path)
        try:
            self._file = self._draft.open("xb")
        except OSError as error:
            raise cannot_write(self.path, error) from error
        sinks = {".csv": CsvSink, ".csv.gz": GzipCsvSink, ".parquet": ParquetSink}
        self._sink = sinks[self._suffix](self._file)
        return self

    def write(self, rows: pd.DataFrame | Mapping[str, Any]) -> None:
        """Write some rows; columns and their types must be those of the first ones.

        Parameters
        ----------
        rows : DataFrame, or mapping of str to array
            Columns by name.
        """
        if isinstance(rows, Mapping):
            table = pa.table(dict(rows), schema=self._schema)
        else:
            table = pa.Table.from_pandas(rows, schema=self._schema, preserve_index=False)
        self._schema = table.schema
        try:
            self._sink.write(table)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self.path or Path("the output"), error) from error

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None or self.path is None:
            return
        try:
            if error_type is None:
                self._sink.close()
                self._file.close()
                self._draft.replace(self.path.resolve())
        except OSError as fault:
            raise cannot_write(self.path, fault) from fault
        finally:
            self._file.close()
            self._draft.unlink(missing_ok=True)


class CsvSink:
    """Writes CSV with quotes only where they are needed."""

    def __init__(self, file: Any) -> None:
        self._stream = self._opened(file)
        self._header_written = False

    def write(self, table: pa.Table) -> None:
        """Write rows, after the column names the first time."""
        if not self._header_written:
            _refuse_unwritable(table.schema)
            self._stream.write(_header(table.schema.names))
            self._header_written = True
        style = "needed" if _needs_quotes(table) else "none"
        csv.write_csv(
            table, self._stream, csv.WriteOptions(include_header=False, quoting_style=style)
        )

    def close(self) -> None:
        """Flush the stream; the file stays open."""
        self._stream.flush()

    def _opened(self, file: Any) -> Any:
        return file


class GzipCsvSink(CsvSink):
    """Writes gzipped CSV."""

    def close(self) -> None:
        """End the compressed stream."""
        self._stream.close()

    def _opened(self, file: Any) -> Any:
        import gzip  # noqa: PLC0415 - rarely needed

        return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5, mtime=0, filename="")


class ParquetSink:
    """Writes Parquet."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: parquet.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        if self._writer is None:
            plain = table.schema.remove_metadata()
            self._writer = parquet.ParquetWriter(self._file, plain)
        self._writer.write_table(table.replace_schema_metadata(None))

    def close(self) -> None:
        """Write the footer of the Parquet file."""
        if self._writer is not None:
            self._writer.close()


def check_outputs(outputs: Sequence[Path], inputs: Sequence[Path], *, force: bool) -> None:
    """Raise an error for outputs that overwrite each other or an input, or cannot be written.

    Parameters
    ----------
    outputs, inputs : sequence of Path
        The files of one command. A file that is both read and written is an error even with
        `force`.
    force : bool
        Overwrite existing outputs.

    Raises
    ------
    CliError
        If an output cannot be written.
    """
    resolved = [path.resolve() for path in (*inputs, *outputs)]
    for path in outputs:
        if resolved.count(path.resolve()) > 1:
            raise CliError(
                f"{path} is named twice: each file that is read or written needs a name of its own."
            )
        check_output(path, force=force)


def check_output(path: Path, *, force: bool) -> None:
    """Raise an error for an output that exists or cannot be written."""
    if path.is_dir():
        raise CliError(f"{path} is a folder. Name a file to write.")
    if path.exists() and not path.is_file():
        raise CliError(f"{path} is not an ordinary file. Leave --output out to write to stdout.")
    if path.exists() and not force:
        raise CliError(f"{path} exists already. Add --force to overwrite it, or name another file.")
    if not path.parent.is_dir():
        raise CliError(f"there is no folder {path.parent} to write {path.name} into.")
    if not os.access(path.parent, os.W_OK):
        raise CliError(f"{path.parent} may not be written to. Name a file in another folder.")


def draft_path(path: Path) -> Path:
    """Return the path of a hidden temporary file in the folder of `path`."""
    resolved = path.resolve()
    return resolved.with_name(f".{resolved.name}.{os.getpid()}.part")


def cannot_write(path: Path, error: OSError) -> CliError:
    """Return the error for a file that could not be written."""
    return CliError(f"{path} could not be written: {error.strerror or error}.")


def _suffix(path: Path) -> str:
    for suffix in _SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise CliError(f"{path} must end in {', '.join(_SUFFIXES)}: the name says what to write.")


def _refuse_unwritable(schema: pa.Schema) -> None:
    """Raise an error for columns that cannot be written as CSV."""
    for field in schema:
        content = non_text_content(field.type)
        if content:
            raise CliError(
                f"column {field.name!r} holds {content}, which have no place in a CSV file. Write "
                "to a .parquet file instead, or leave the column out."
            )


def _header(names: list[str]) -> bytes:
    """Return the line of column names; pyarrow would put every name in quotes."""
    text = io.StringIO()
    python_csv.writer(text, lineterminator="\n").writerow(names)
    return text.getvalue().encode()


def _needs_quotes(table: pa.Table) -> bool:
    """Return whether a text cell holds a comma, a quote or a line break."""
    return any(
        pc.any(pc.match_substring_regex(column, _QUOTED_CHARACTERS)).as_py()
        for column in table.columns
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    )
