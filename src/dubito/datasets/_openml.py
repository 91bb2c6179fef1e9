"""A copy from OpenML, brought into the catalogue's form."""

from __future__ import annotations

import warnings
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import fetch_openml

from dubito.datasets._errors import DatasetError
from dubito.datasets._tables import Table, as_labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.datasets._records import OpenML


def fetch_table(openml: OpenML) -> Table:
    """Fetch a dataset by its number; what it holds is for `check_counts` to judge."""
    raw = _fetch(openml.data_id)
    try:
        names = list(openml.columns or raw.feature_names)
        X = np.column_stack([_numbers(raw, name) for name in names])
    except ValueError as error:
        raise DatasetError(
            f"OpenML dataset {openml.data_id} has other columns than expected: {error}."
        ) from error
    labels = [_as_text(label) for label in raw.target]
    return Table(names, X, as_labels([openml.labels.get(label, label) for label in labels]))


def _fetch(data_id: int) -> Any:
    with warnings.catch_warnings():
        # The failure that follows the last retry is reported; its forerunners would only repeat it.
        warnings.filterwarnings("ignore", message="A network error occurred")
        try:
            return fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", cache=False)
        except (OSError, HTTPException, ValueError) as error:
            raise DatasetError(f"OpenML dataset {data_id} could not be fetched: {error}") from error


def _numbers(raw: Any, name: str) -> npt.NDArray[np.float64]:
    """Return one column as numbers; OpenML gives a category by its place in the list of them."""
    column = np.array(raw.data[:, list(raw.feature_names).index(name)], dtype=np.float64)
    categories = raw.categories.get(name)
    if categories is None:
        return column
    known = ~np.isnan(column)
    column[known] = np.array(categories, dtype=np.float64)[column[known].astype(int)]
    return column


def _as_text(label: Any) -> str:
    """Name a label as the source does: a numeric target comes as 3.0 where the source says 3."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
