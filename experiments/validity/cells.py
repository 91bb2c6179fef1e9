"""Common to all simulations: cells, settings, and how often a promised level is reached.

This module does not print, read options or write files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

#: Rows to calibrate on.
SIZES = (10, 15, 30, 100, 300, 1000)
QUICK_SIZES = (15, 100)
#: The level of most cells.
LEVEL = 0.9
#: Coverage may be below the promised level by this much.
ALLOWED = 0.03
#: Factor of replicates of a cell whose coverage looks too low.
SECOND_LOOK = 4


class Cell(NamedTuple):
    """A true distribution, and the number of rows to calibrate or train on."""

    case: str
    n: int

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.case}-n{self.n}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.case}, n={self.n}"


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a part depend on, besides the cell."""

    name: str
    replicates: int
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return asdict(self)

    def generator(self, cell: Cell) -> np.random.Generator:
        """Return a generator that depends on seed and cell only, not on cells that ran before."""
        return np.random.default_rng([self.seed, crc32(cell.name.encode())])


def grid(cases: Sequence[str], sizes: Sequence[int]) -> list[Cell]:
    """List the cells of all cases at all sizes."""
    return [Cell(case, n) for case in cases for n in sizes]


class Kind(NamedTuple):
    """A method, the kind of rows it predicts, and the promised level or coverage."""

    method: str
    query: str
    #: None where nothing is promised.
    promise: float | None


@dataclass
class Tally:
    """One number for each replicate: the fraction of hits, and widths with those of a reference."""

    hits: list[float] = field(default_factory=list)
    widths: list[Floats] = field(default_factory=list)
    references: list[Floats] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Return the mean of hits with its standard error, the median width, and its ratio.

        Replicates are independent, the rows of one replicate are not: the standard error is that
        of the mean over replicates.
        """
        hits = np.array(self.hits)
        error = hits.std(ddof=1) / np.sqrt(len(hits)) if len(hits) > 1 else np.nan
        widths = np.concatenate(self.widths) if self.widths else np.array([np.nan])
        return {
            "coverage": float(hits.mean()),
            "error": float(error),
            "replicates": len(hits),
            "width": float(np.median(widths)),
            "ratio": self._ratio(widths),
        }

    def is_short(self, promise: float | None) -> bool:
        """Return whether coverage is below the promise by more than `ALLOWED`."""
        return promise is not None and float(np.mean(self.hits)) < promise - ALLOWED

    def _ratio(self, widths: Floats) -> float | None:
        """Divide the median width by the reference's, over rows where the reference exists."""
        if not self.references:
            return None
        reference = np.concatenate(self.references)
        exists = np.isfinite(reference)
        # Replicates in which it exists are not typical of the cell if they are few.
        if exists.mean() < 0.9:
            return None
        return float(np.median(widths[exists]) / np.median(reference[exists]))


class Tallies:
    """The tallies of a cell, by method, kind of rows and promise."""

    def __init__(self) -> None:
        self._tallies: defaultdict[Kind, Tally] = defaultdict(Tally)

    def replicates(self, count: int) -> Iterator[int]:
        """Yield the numbers of the replicates; more of them if coverage looks too low.

        With a few hundred replicates, coverage may be too low by chance.
        """
        yield from range(count)
        if any(tally.is_short(kind.promise) for kind, tally in self._tallies.items()):
            yield from range(count, SECOND_LOOK * count)

    def add(
        self, kind: Kind, hits: npt.ArrayLike, width: Any = None, reference: Any = None
    ) -> None:
        """Add one replicate: whether each row was a hit, with widths of the same shape."""
        tally = self._tallies[kind]
        tally.hits.append(float(np.mean(hits)))
        if width is not None:
            tally.widths.append(np.ravel(width))
        if reference is not None:
            tally.references.append(np.ravel(reference))

    def add_bounds(
        self, kind: Kind, bounds: Any, truth: Floats, reference: tuple[Floats, Floats] | None = None
    ) -> None:
        """Add one replicate of bounds; a hit is a true probability within its bounds."""
        lower, upper = bounds
        width = None if reference is None else reference[1] - reference[0]
        self.add(kind, holds(lower, upper, truth), upper - lower, width)

    def add_queries(
        self,
        kind: Kind,
        queries: dict[str, slice],
        bounds: Any,
        truth: Floats,
        reference: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Add the bounds of several kinds of rows that were predicted at once."""
        lower, upper = bounds
        for name, part in queries.items():
            cut = None if reference is None else (reference[0][part], reference[1][part])
            self.add_bounds(kind._replace(query=name), (lower[part], upper[part]), truth[part], cut)

    def result(self, cell: Cell) -> dict[str, Any]:
        """Return the records of a cell."""
        records = [kind._asdict() | tally.record() for kind, tally in self._tallies.items()]
        return {"case": cell.case, "n": cell.n, "records": records}


def holds(lower: Floats, upper: Floats, truth: Floats) -> Bools:
    """Return where the truth lies between the bounds, up to rounding errors."""
    slack = 1e-9 * np.minimum(truth, 1 - truth) + 1e-15
    return (lower <= truth + slack) & (truth <= upper + slack)
