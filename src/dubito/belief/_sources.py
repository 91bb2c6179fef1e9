"""Arguments and results of the combination rules: mass functions or batches of them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from dubito.belief.batch import MassBatch
from dubito.belief.errors import TotalConflictError
from dubito.belief.mass import MassFunction

# For type checkers all sources have one type; at run time single ones and batches may be mixed.
AnyMass = TypeVar("AnyMass", MassFunction, MassBatch)


def as_batches(*sources: MassFunction | MassBatch) -> list[MassBatch]:
    """Return the sources as batches, checked to have one frame and matching numbers of rows."""
    for source in sources:
        if not isinstance(source, MassFunction | MassBatch):
            raise TypeError(
                "sources must be MassFunction or MassBatch, each its own argument; "
                f"got {type(source).__name__}."
            )
    if not sources:
        raise TypeError("at least one mass function is needed; got none.")
    batches = [s.to_batch() if isinstance(s, MassFunction) else s for s in sources]
    for batch in batches[1:]:
        if batch.frame != batches[0].frame:
            raise ValueError(
                "sources must share one frame, in one order; got "
                f"{batches[0].frame!r} and {batch.frame!r}. Build them with the same frame=."
            )
    rows = {len(batch) for batch in batches} - {1}
    if len(rows) > 1:
        raise ValueError(f"batches must have the same number of rows, or one; got {sorted(rows)}.")
    return batches


def as_given(combined: MassBatch, *sources: MassFunction | MassBatch) -> Any:
    """Return the result as a `MassFunction` if all sources are single, else as a batch."""
    return MassFunction.from_batch(combined) if all_single(sources) else combined


def all_single(sources: tuple[object, ...]) -> bool:
    """Return whether every source is a single mass function."""
    return all(isinstance(source, MassFunction) for source in sources)


def normalised(batch: MassBatch, *, single: bool = False) -> MassBatch:
    """Return the batch without the empty set, divided by the remaining mass.

    `single` selects the error message: that of single mass functions names no rows.
    """
    rest = batch.without_empty_set()
    total = rest.mass.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        rows = np.flatnonzero(~(total[:, 0] > 0))
        raise TotalConflictError.of_single() if single else TotalConflictError(rows)
    return MassBatch._trusted(rest.frame, rest.focal, rest.mass / total)
