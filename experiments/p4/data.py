"""Rows of every part: three datasets of Table 1, a part of sector, and simulated problems."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import load_npz

from dubito.datasets import DatasetError, load, make_many_classes

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]


class Rows(NamedTuple):
    """Features, dense or sparse, and classes numbered from 0."""

    X: Any
    y: Ints


class Published(NamedTuple):
    """A line of Table 1."""

    rows: int
    features: int
    classes: int


class Problem(NamedTuple):
    """The size of a simulated problem, and whether its features are sparse."""

    rows: int
    classes: int
    features: int
    sparse: bool
    test_rows: int


#: By their names in `dubito.datasets`, in the paper's order.
TABLE_1 = {
    "optdigits": Published(5620, 64, 10),
    "micromass": Published(571, 1301, 20),
    "letter": Published(20000, 16, 26),
}
DATASETS = tuple(TABLE_1)

#: In place of ALOI and ODP-5K, which are not available here.
PROBLEMS = {
    "dense": Problem(44_000, 1000, 128, sparse=False, test_rows=4000),
    "sparse": Problem(55_000, 5000, 50_000, sparse=True, test_rows=5000),
}
QUICK_PROBLEMS = {
    "dense": Problem(600, 30, 16, sparse=False, test_rows=150),
    "sparse": Problem(800, 40, 500, sparse=True, test_rows=200),
}

SECTOR = "sector_partial.npz"


def rows_of(name: str, *, per_class: int | None = None) -> Rows:
    """Return the rows of a dataset of Table 1, or the first few of each class."""
    bunch = load(name)
    X, y = bunch.X, np.unique(bunch.y, return_inverse=True)[1]
    if per_class is not None:
        kept = np.sort(np.concatenate([np.flatnonzero(y == k)[:per_class] for k in np.unique(y)]))
        X, y = X[kept], y[kept]
    return Rows(X, y)


def sector() -> tuple[Rows, Rows]:
    """Return the available part of sector: rows of its held-out part to train on, and test rows."""
    path = Path(os.environ.get("DUBITO_DATA") or ".").expanduser() / SECTOR
    if not path.is_file():
        raise DatasetError(
            f"the available part of sector, {SECTOR}, is not in {path.parent}. Set "
            "DUBITO_DATA to its folder, or leave out this part."
        )
    X = load_npz(path)
    with np.load(path) as arrays:
        y = np.unique(arrays["y"], return_inverse=True)[1]
        train = arrays["part"] == 0
    return Rows(X[train], y[train]), Rows(X[~train], y[~train])


def simulate(problem: Problem, seed: int) -> tuple[Rows, Rows]:
    """Return training and test rows of a simulated problem; every class has a training row."""
    X, y = make_many_classes(
        problem.rows,
        problem.classes,
        problem.features,
        sparse=problem.sparse,
        random_state=seed,
    )
    _, first, y = np.unique(y, return_index=True, return_inverse=True)
    free = np.setdiff1d(np.arange(len(y)), first)
    held = np.zeros(len(y), dtype=bool)
    held[np.random.default_rng(seed).choice(free, problem.test_rows, replace=False)] = True
    return Rows(X[~held], y[~held]), Rows(X[held], y[held])
