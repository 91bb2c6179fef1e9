"""The catalogue of benchmark datasets: its records, their lookup by name, and their local files.

The data are in ``catalogue.toml`` beside this file, read once when this module is imported.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class DatasetError(RuntimeError):
    """A dataset cannot be found, cannot be read, or differs from its catalogue entry."""


@dataclass(frozen=True, kw_only=True)
class OpenML:
    """The copy of a dataset on OpenML, and how its format differs from the catalogue's.

    Parameters
    ----------
    data_id : int
        OpenML's number of the dataset, which also fixes its version.
    columns : tuple of str, default=()
        The feature columns to keep, in order; all of them when empty.
    labels : mapping of str to str, default={}
        Label of the original source for each label of OpenML; others stay as they are.
    """

    data_id: int
    columns: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The catalogue entry of one dataset: the counts every copy must have, and its origin.

    Parameters
    ----------
    name : str
        Name for `load`; the file is ``<name>.csv.gz``.
    title : str
        What the data are, in one line.
    paper : str
        The experiment of this project that uses it, "P0" to "P4".
    features : int
        Number of feature columns.
    classes : mapping of label to int
        Rows of each class, labels sorted.
    mean : float
        Mean of all feature values that are not missing: a rescaled copy has another one.
    sha256 : str
        Checksum of the file that the published reproductions use.
    origin : str
        Where the data come from.
    mirror : str
        Where the checksummed file was taken from.
    licence : str
        Licence as far as it is known.
    missing : int, default=0
        Number of missing feature values.
    train_classes : tuple of int, default=()
        Rows of each class in the official training part, which is the first rows of the file;
        empty when there is no official split.
    text_values : mapping of str to float, default={}
        Text of feature cells that are not numbers, and the number that replaces each.
    openml : OpenML or None, default=None
        Its copy on OpenML, or None when no copy there is known to be the same data.
    bundled : bool, default=False
        Whether scikit-learn ships it.
    groups_file : str or None, default=None
        File in the same folder with one row per row of the data and a column ``speaker``.
    notes : str, default=""
        Meaning of labels and features, and peculiarities of the data.
    """

    name: str
    title: str
    paper: str
    features: int
    classes: Mapping[int, int] | Mapping[str, int]
    mean: float
    sha256: str
    origin: str
    mirror: str
    licence: str
    missing: int = 0
    train_classes: tuple[int, ...] = ()
    text_values: Mapping[str, float] = field(default_factory=dict)
    openml: OpenML | None = None
    bundled: bool = False
    groups_file: str | None = None
    notes: str = ""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.classes.values())

    @property
    def train_rows(self) -> int:
        """Number of rows of the official training part, 0 when there is none."""
        return sum(self.train_classes)

    @property
    def file_name(self) -> str:
        """Name of the file in a data folder or the cache."""
        return f"{self.name}.csv.gz"


def list_datasets(*, paper: str | None = None) -> list[str]:
    """Return the names of the datasets that `load` can return, sorted.

    Parameters
    ----------
    paper : {"P0", "P1", "P2", "P3", "P4"} or None, default=None
        Keep only the datasets of this experiment (``dubito reproduce p0`` to ``p4``).

    Returns
    -------
    list of str

    Examples
    --------
    >>> from dubito.datasets import list_datasets
    >>> len(list_datasets())
    23
    >>> list_datasets(paper="P1")
    ['australian', 'diabetes', 'heart', 'ionosphere']
    """
    papers = sorted({dataset.paper for dataset in CATALOGUE.values()})
    if paper is not None and paper not in papers:
        raise ValueError(f"paper must be one of {', '.join(papers)}. Got {paper!r} instead.")
    return sorted(
        name for name, dataset in CATALOGUE.items() if paper is None or dataset.paper == paper
    )


def find_dataset(name: Any) -> Dataset:
    """Return the catalogue entry of a name; for an unknown one raise an error with similar ones."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string; got {type(name).__name__}.")
    if name in CATALOGUE:
        return CATALOGUE[name]
    close = get_close_matches(name.lower(), CATALOGUE)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(f"unknown dataset {name!r}.{hint} Known: {', '.join(list_datasets())}.")


def is_on_disk(dataset: Dataset) -> bool:
    """Return whether `load` would find a dataset without the network."""
    return dataset.bundled or any(file.is_file() for file in local_files(dataset))


def local_files(dataset: Dataset, data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the files that may hold a dataset, in the order they are tried; the cache is last."""
    named = os.environ.get("DUBITO_DATA")
    folders = [Path(named).expanduser()] if named else []
    return [folder / dataset.file_name for folder in [*folders, _cache_folder(data_home)]]


def _cache_folder(data_home: str | os.PathLike[str] | None) -> Path:
    chosen = data_home if data_home is not None else os.environ.get("DUBITO_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "dubito"


def _read_catalogue() -> dict[str, Dataset]:
    """Return the records of ``catalogue.toml`` by name."""
    text = files("dubito.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: _to_dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _to_dataset(name: str, entry: dict[str, Any]) -> Dataset:
    """Return one entry of the TOML file as a record, with integer labels and tuples for lists."""
    labels = entry["classes"]
    if all(label.isdigit() for label in labels):  # TOML keys are always strings
        entry["classes"] = {int(label): rows for label, rows in labels.items()}
    entry["train_classes"] = tuple(entry.get("train_classes", ()))
    if "openml" in entry:
        openml = entry["openml"]
        entry["openml"] = OpenML(**openml | {"columns": tuple(openml.get("columns", ()))})
    return Dataset(name=name, **entry)


#: The records of all datasets, by name.
CATALOGUE = _read_catalogue()
