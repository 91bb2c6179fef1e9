"""What the catalogue says of one dataset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class OpenML:
    """Where OpenML keeps a copy, and how its form differs from the catalogue's.

    Parameters
    ----------
    data_id : int
        OpenML's number of the dataset, which also fixes its version.
    columns : tuple of str, default=()
        The feature columns to keep, in order; all of them when empty.
    labels : mapping of str to str, default={}
        OpenML's label to the source's label; those not named stay as they are.
    """

    data_id: int
    columns: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset: what any copy must look like, and where it comes from.

    Parameters
    ----------
    name : str
        Name for `load`; the file is ``<name>.csv.gz``.
    title : str
        What the data are, in a line.
    paper : str
        The paper that uses it, "P0" to "P4".
    features : int
        Number of feature columns.
    classes : mapping of label to int
        Rows of each class, labels sorted.
    mean : float
        Mean of all known feature values: counts alone would not notice a rescaled copy.
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
    words : mapping of str to float, default={}
        Feature cells that are not numbers, and the number each stands for.
    openml : OpenML or None, default=None
        Where to fetch it, or None when no OpenML copy is known to be the same data.
    bundled : bool, default=False
        Whether scikit-learn ships it.
    groups_file : str or None, default=None
        File beside the data with a row per sample and a column ``speaker``.
    notes : str, default=""
        What a user must know before using it.
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
    words: Mapping[str, float] = field(default_factory=dict)
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
