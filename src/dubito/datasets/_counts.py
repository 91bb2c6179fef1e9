"""No copy leaves this room with other counts than the catalogue's."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING

import numpy as np

from dubito.datasets._errors import DatasetError

if TYPE_CHECKING:
    from dubito.datasets._records import Dataset
    from dubito.datasets._tables import Table


def check_counts(table: Table, dataset: Dataset, place: str) -> None:
    """Raise a `DatasetError` naming every count of `table` that differs from the catalogue's."""
    n, d = table.X.shape
    found: dict[str, object] = {
        "rows": n,
        "features": d,
        "rows per class": _per_class(table.y),
        "missing values": int(np.count_nonzero(~np.isfinite(table.X))),
    }
    expected: dict[str, object] = {
        "rows": dataset.rows,
        "features": dataset.features,
        "rows per class": dict(dataset.classes),
        "missing values": dataset.missing,
    }
    if dataset.train_classes:
        found["training rows per class"] = _per_class(table.y[: dataset.train_rows])
        expected["training rows per class"] = dict(
            zip(dataset.classes, dataset.train_classes, strict=True)
        )
    wrong = [
        f"{what}: expected {expected[what]}, found {found[what]}"
        for what in expected
        if found[what] != expected[what]
    ]
    if not wrong and not _same_scale(table, dataset):
        mean = np.nanmean(table.X)
        wrong = [f"mean of all values: expected {dataset.mean:.6g}, found {mean:.6g}"]
    if wrong:
        raise DatasetError(
            f"{place} is not the dataset {dataset.name!r}. " + "; ".join(wrong) + ". "
            f"The data come from {dataset.origin}."
        )


def _per_class(y: np.ndarray) -> dict[int | str, int]:
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _same_scale(table: Table, dataset: Dataset) -> bool:
    """Whether the mean agrees as far as copies rounded to three decimals agree."""
    return isclose(np.nanmean(table.X), dataset.mean, rel_tol=1e-3, abs_tol=1e-3)
