"""Tables on disk: gzipped CSV with a header row, features first, last column ``target``."""

from __future__ import annotations

import csv
import gzip
import zlib
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dubito.datasets._errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Table(NamedTuple):
    """Features and labels of one copy of a dataset, unchecked."""

    feature_names: list[str]
    X: npt.NDArray[np.float64]
    y: npt.NDArray[Any]


def as_labels(labels: Sequence[str]) -> npt.NDArray[Any]:
    """Return integers when every label is one, else strings.

    >>> as_labels(["2", "10"]), as_labels(["2", "b"])
    (array([ 2, 10]), array(['2', 'b'], dtype='<U1'))
    """
    words = np.array(labels, dtype=np.str_)
    try:
        return words.astype(np.int64)
    except ValueError:
        return words


def read_table(content: bytes, words: Mapping[str, float], place: str) -> Table:
    """Parse the bytes of the file at `place`; `words` are the cells that stand for a number."""
    header, *body = _unpack(content, place).splitlines() or [""]
    lines = [line for line in body if line]
    names = next(csv.reader([header]), [])
    if names[-1:] != ["target"]:
        raise DatasetError(
            f"{place} must have a header row whose last column is 'target'; "
            f"it begins with {header[:60]!r}."
        )
    if not lines:
        raise DatasetError(f"{place} has a header row and no data.")
    features, _, labels = zip(*(line.rpartition(",") for line in lines), strict=True)
    try:
        X = np.loadtxt(
            features,
            delimiter=",",
            comments=None,
            converters=_cell_reader(words),
            ndmin=2,
            encoding="utf-8",
        )
    except ValueError as error:
        raise DatasetError(f"{place} has a row that cannot be read: {error}.") from error
    if X.shape != (len(lines), len(names) - 1):
        raise DatasetError(
            f"{place} names {len(names) - 1} features and has {len(lines)} rows, "
            f"but its cells form a table of shape {X.shape}."
        )
    return Table(names[:-1], np.ascontiguousarray(X), as_labels(labels))


def _unpack(content: bytes, place: str) -> str:
    try:
        return gzip.decompress(content).decode("utf-8")
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{place} is truncated or not a gzipped CSV file ({error}). Delete it and get it again."
        ) from error


def _cell_reader(words: Mapping[str, float]) -> Callable[[str], float] | None:
    """Return a reader of cells, or None where plain numbers let numpy's fast path do it."""
    if not words:
        return None
    return lambda cell: words[cell] if cell in words else float(cell)


def write_table(path: Path, table: Table) -> None:
    """Write `table` so that `path` is at every moment absent, the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".partial-") as folder:
        partial = Path(folder) / path.name
        with gzip.open(partial, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*table.feature_names, "target"])
            for row, label in zip(table.X.tolist(), table.y.tolist(), strict=True):
                # repr is the shortest text that reads back as the same float; nan is left empty.
                writer.writerow([*("" if isnan(x) else repr(x) for x in row), label])
        partial.replace(path)
