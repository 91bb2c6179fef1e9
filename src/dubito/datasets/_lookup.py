"""Names in, catalogue entries out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from dubito.datasets.catalogue import CATALOGUE

if TYPE_CHECKING:
    from dubito.datasets._records import Dataset


def list_datasets(*, paper: str | None = None) -> list[str]:
    """List the names that `load` knows, sorted.

    Parameters
    ----------
    paper : {"P0", "P1", "P2", "P3", "P4"} or None, default=None
        Keep the datasets of this paper's experiments alone.

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
    """Return the catalogue's entry for `name`, or say which names come close."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string; got {type(name).__name__}.")
    if name in CATALOGUE:
        return CATALOGUE[name]
    close = get_close_matches(name.lower(), CATALOGUE)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(f"unknown dataset {name!r}.{hint} Known: {', '.join(list_datasets())}.")
