"""Read and write copies of a dataset: gzipped CSV files, and OpenML.

The CSV files have a header row, the features first, and the labels in a last column ``target``.
"""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from http.client import HTTPException
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import datasets as sklearn_datasets

from dubito._files import write_whole
from dubito.datasets.records import DatasetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dubito._typing import AnyArray, FloatArray
    from dubito.datasets.records import OpenML


class LabelledData(NamedTuple):
    """Features and labels of one copy of a dataset; its counts are not checked yet."""

    feature_names: list[str]
    X: FloatArray
    y: AnyArray


def parse_labels(labels: Sequence[str]) -> AnyArray:
    """Return labels as integers when every label is one, else as strings.

    >>> parse_labels(["2", "10"]), parse_labels(["2", "b"])
    (array([ 2, 10]), array(['2', 'b'], dtype='<U1'))
    """
    texts = np.array(labels, dtype=np.str_)
    try:
        return texts.astype(np.int64)
    except ValueError:
        return texts


def parse_csv(content: bytes, text_values: Mapping[str, float], path: str) -> LabelledData:
    """Return the data in the bytes of a gzipped CSV file.

    Parameters
    ----------
    content : bytes
        The file.
    text_values : mapping of str to float
        Text of cells that are not numbers, and the number that replaces each.
    path : str
        Path of the file, for messages.

    Returns
    -------
    LabelledData
    """

    def to_number(cell: str) -> float:
        return text_values[cell] if cell in text_values else float(cell)

    header, *body = _unpack(content, path).splitlines() or [""]
    lines = [line for line in body if line]
    names = next(csv.reader([header]), [])
    if names[-1:] != ["target"]:
        raise DatasetError(
            f"{path} must have a header row whose last column is 'target'; "
            f"it begins with {header[:60]!r}."
        )
    if not lines:
        raise DatasetError(f"{path} has a header row and no data.")
    features, _, labels = zip(*(line.rpartition(",") for line in lines), strict=True)
    try:
        X = np.loadtxt(
            features,
            delimiter=",",
            comments=None,
            converters=to_number if text_values else None,  # None: numpy's fast parser
            ndmin=2,
            encoding="utf-8",
        )
    except ValueError as error:
        raise DatasetError(f"{path} has a row that cannot be read: {error}.") from error
    if X.shape != (len(lines), len(names) - 1):
        raise DatasetError(
            f"{path} names {len(names) - 1} features and has {len(lines)} rows, "
            f"but its cells form a table of shape {X.shape}."
        )
    return LabelledData(names[:-1], np.ascontiguousarray(X), parse_labels(labels))


def _unpack(content: bytes, path: str) -> str:
    try:
        return gzip.decompress(content).decode("utf-8")
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{path} is truncated or not a gzipped CSV file ({error}). Delete it and get it again."
        ) from error


def write_csv(path: Path, data: LabelledData) -> None:
    """Write a gzipped CSV file that `parse_csv` reads back; it replaces an old one in one step."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*data.feature_names, "target"])
    for row, label in zip(data.X.tolist(), data.y.tolist(), strict=True):
        # repr is the shortest text that reads back as the same float; nan is an empty cell.
        writer.writerow([*("" if isnan(x) else repr(x) for x in row), label])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, gzip.compress(text.getvalue().encode("utf-8")), force=True)


def fetch_from_openml(openml: OpenML) -> LabelledData:
    """Return the copy of a dataset on OpenML, in the catalogue's format; counts not checked."""
    raw = _download(openml.data_id)
    try:
        names = list(openml.columns or raw.feature_names)
        X = np.column_stack([_numeric_column(raw, name) for name in names])
    except ValueError as error:
        raise DatasetError(
            f"OpenML dataset {openml.data_id} has other columns than expected: {error}."
        ) from error
    labels = [_label_text(label) for label in raw.target]
    return LabelledData(
        names, X, parse_labels([openml.labels.get(label, label) for label in labels])
    )


def _download(data_id: int) -> Any:
    with warnings.catch_warnings():
        # scikit-learn warns before each retry; after the last one it raises the error.
        warnings.filterwarnings("ignore", message="A network error occurred")
        try:
            return sklearn_datasets.fetch_openml(
                data_id=data_id, as_frame=False, parser="liac-arff", cache=False
            )
        except (OSError, HTTPException, ValueError) as error:
            raise DatasetError(f"OpenML dataset {data_id} could not be fetched: {error}") from error


def _numeric_column(raw: Any, name: str) -> FloatArray:
    """Return a column as numbers; OpenML stores a category as its index in a list of numbers."""
    column = np.array(raw.data[:, list(raw.feature_names).index(name)], dtype=np.float64)
    categories = raw.categories.get(name)
    if categories is None:
        return column
    known = ~np.isnan(column)
    column[known] = np.array(categories, dtype=np.float64)[column[known].astype(int)]
    return column


def _label_text(label: Any) -> str:
    """Return a label as the original source writes it: 3 where OpenML has the float 3.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
