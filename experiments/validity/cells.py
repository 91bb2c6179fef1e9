"""What every simulation shares: its cells, its settings, and how often a promise was kept.

Nothing here prints, reads options or writes files.
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
#: Coverage may be so much below what is promised.
ALLOWED = 0.03
#: How many times as many replicates a cell that looks short has.
SECOND_LOOK = 4


class Cell(NamedTuple):
    """A truth to draw from, and how many rows are drawn to calibrate or train on."""

    case: str
    n: int

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.case}-n{self.n}"

    @property
    def words(self) -> str:
        """What to call it on a progress bar."""
        return f"{self.case}, n={self.n}"


@dataclass(frozen=True)
class Settings:
    """What the numbers of a part depend on, besides the cell."""

    name: str
    replicates: int
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return asdict(self)

    def generator(self, cell: Cell) -> np.random.Generator:
        """Return the random numbers of a cell: the same whichever cells ran before it."""
        return np.random.default_rng([self.seed, crc32(cell.name.encode())])


def grid(cases: Sequence[str], sizes: Sequence[int]) -> list[Cell]:
    """List the cells of all cases at all sizes."""
    return [Cell(case, n) for case in cases for n in sizes]


class Kind(NamedTuple):
    """What was asked for: a method, the rows asked about, and the level or coverage promised."""

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
        """Say whether coverage is below what is promised by more than is allowed."""
        return promise is not None and float(np.mean(self.hits)) < promise - ALLOWED

    def _ratio(self, widths: Floats) -> float | None:
        """Divide the median width by the reference's, over rows where the reference exists."""
        if not self.references:
            return None
        reference = np.concatenate(self.references)
        exists = np.isfinite(reference)
        # Where it exists for a few replicates alone, these are not typical of the cell.
        if exists.mean() < 0.9:
            return None
        return float(np.median(widths[exists]) / np.median(reference[exists]))


class Tallies:
    """The tallies of a cell, by what was asked for."""

    def __init__(self) -> None:
        self._tallies: defaultdict[Kind, Tally] = defaultdict(Tally)

    def replicates(self, count: int) -> Iterator[int]:
        """Count the replicates: some, and more of them where a promise looks broken.

        With a few hundred a cell that keeps its promise falls short by chance now and then.
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
        """Add one replicate of bounds, which hit where they hold the true probability."""
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
        """Add the bounds of several kinds of rows that were asked about at once."""
        lower, upper = bounds
        for name, part in queries.items():
            cut = None if reference is None else (reference[0][part], reference[1][part])
            self.add_bounds(kind._replace(query=name), (lower[part], upper[part]), truth[part], cut)

    def result(self, cell: Cell) -> dict[str, Any]:
        """Return what a cell found."""
        records = [kind._asdict() | tally.record() for kind, tally in self._tallies.items()]
        return {"case": cell.case, "n": cell.n, "records": records}


def holds(lower: Floats, upper: Floats, truth: Floats) -> Bools:
    """Say where the truth lies between the bounds; rounding of the last digits is no miss."""
    slack = 1e-9 * np.minimum(truth, 1 - truth) + 1e-15
    return (lower <= truth + slack) & (truth <= upper + slack)
