"""Reading Parquet files: their columns, and cells converted to numbers or text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dubito.cli.console import CliError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def open_parquet(path: Path) -> parquet.ParquetFile:
    """Return the opened file; a damaged one is an error."""
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise CliError(f"{path} is a damaged Parquet file ({error}).") from error


def infer_types(path: Path) -> dict[str, str]:
    """Return "number" or "text" for each column, from the schema."""
    numeric = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return {
        field.name: "number" if any(is_type(field.type) for is_type in numeric) else "text"
        for field in open_parquet(path).schema_arrow
    }


def text_columns(path: Path) -> list[str]:
    """Return the columns of text, without dates, booleans and lists."""
    return [field.name for field in open_parquet(path).schema_arrow if _is_text(field.type)]


def _is_text(arrow_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def read_batches(path: Path, types: Mapping[str, str], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield some columns in batches of rows.

    Parameters
    ----------
    path : Path
        The file.
    types : mapping of str to str
        The columns wanted, in order, each with "number", "text", or "as_is" for its own type.
    n_rows : int
        Largest number of rows of a batch.

    Yields
    ------
    RecordBatch
    """
    start = 0
    for batch in open_parquet(path).iter_batches(batch_size=n_rows, columns=list(types)):
        arrays = [
            _converted(batch.column(name), column_type, name, path, start)
            for name, column_type in types.items()
        ]
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays(arrays, names=list(types))


def _converted(array: pa.Array, column_type: str, name: str, path: Path, start: int) -> pa.Array:
    """Return a column converted to the type it is read as; its first row has number `start`."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if column_type == "as_is":
        return array
    try:
        return pc.cast(array, pa.float64() if column_type == "number" else pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row, cell = _first_non_number(array)
        raise CliError(
            f"column {name!r} of {path} holds {cell!r} in row {start + row}, which is not a "
            f"{column_type}. Correct it, or leave the column out."
        ) from error


def _first_non_number(array: pa.Array) -> tuple[int, object]:
    """Return index and value of the first cell that is no number; of the first cell if all are."""
    for row, cell in enumerate(array.to_pylist()):
        try:
            float(cell)
        except (TypeError, ValueError):
            if cell is not None:
                return row, cell
    return 0, array[0].as_py()
