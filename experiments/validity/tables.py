"""Tables of coverage beside the promised level, and of the cells whose coverage is too low."""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mode
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.tables import markdown
from experiments.validity.cells import ALLOWED, SECOND_LOOK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Results = Sequence[Mapping[str, Any]]

REASONS = Path(__file__).resolve().parent / "reasons.csv"
#: Largest median width over that of the Laplace interval, checked from FROM_ROWS rows on.
WIDEST, FROM_ROWS = 1.3, 100


class Row(NamedTuple):
    """Coverage and width of one method in one cell."""

    part: str
    case: str
    n: int
    method: str
    query: str
    promise: float | None
    coverage: float
    error: float
    replicates: int
    width: float
    ratio: float | None

    @property
    def is_short(self) -> bool:
        """Whether coverage is below the promised level by more than is allowed."""
        return self.promise is not None and self.coverage < self.promise - ALLOWED

    @property
    def is_wide(self) -> bool:
        """Whether the interval is much wider than the reference."""
        return self.ratio is not None and self.n >= FROM_ROWS and self.ratio > WIDEST


def rows_of(results: Mapping[str, Results]) -> list[Row]:
    """List the numbers of all parts."""
    return [
        Row(part=part, case=cell["case"], n=cell["n"], **record)
        for part, cells in results.items()
        for cell in cells
        for record in cell["records"]
    ]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write all numbers to a file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows(["" if value is None else value for value in row] for row in rows)


def render_part(rows: Sequence[Row]) -> str:
    """Return the table of one part: coverage for each n, and widths where they can be compared."""
    sizes = sorted({row.n for row in rows})
    lines = []
    for (case, method, query, promise), some in _grouped(rows):
        found = {row.n: row for row in some}
        cells = [_cell(found[n]) if n in found else "" for n in sizes]
        wanted = "" if promise is None else f"{promise:g}"
        lines.append([case.replace("_", " "), method, query, wanted, *cells])
    head = ["truth", "method", "rows", "promised", *(f"n = {n}" for n in sizes)]
    error = max(row.error for row in rows if np.isfinite(row.error))
    count = mode(row.replicates for row in rows)
    words = (
        f"Coverage over {count} replicates, or {SECOND_LOOK * count} where it looked too low; "
        f"standard errors are at most {error:.3f}."
    )
    if any(row.ratio is not None for row in rows):
        words += " In brackets the median width over that of the Laplace interval."
    return "\n".join([words, "", *markdown(head, lines)])


def _grouped(rows: Sequence[Row]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.case, row.method, row.query, row.promise), []).append(row)
    yield from groups.items()


def _cell(row: Row) -> str:
    text = f"{row.coverage:.3f}"
    if row.is_short:
        text = f"**{text}**"
    if row.ratio is None:
        return text
    ratio = f"{row.ratio:.2f}"
    return f"{text} ({f'**{ratio}**' if row.is_wide else ratio})"


def render_summary(rows: Sequence[Row]) -> str:
    """Return how many cells reach the promised level, and the others, each with a reason."""
    promised = [row for row in rows if row.promise is not None]
    compared = [row for row in rows if row.ratio is not None and row.n >= FROM_ROWS]
    short = [row for row in promised if row.is_short]
    wide = [row for row in compared if row.is_wide]
    lowest = min((row.coverage - row.promise for row in promised if row.promise), default=0.0)
    counts = (
        f"**{len(promised) - len(short)} of {len(promised)}** promised levels are reached to "
        f"within {ALLOWED}; the lowest coverage is {lowest:+.3f} from its level. "
        f"**{len(compared) - len(wide)} of {len(compared)}** intervals from n = {FROM_ROWS} on are "
        f"at most {WIDEST} times as wide as Laplace's."
    )
    words = [counts]
    for title, some in {"Below the promised level": short, "Wide": wide}.items():
        words += ["", f"**{title}.**" + ("" if some else " None.")]
        if some:
            words += ["", *_reasons_table(some)]
    return "\n".join(words)


def _reasons_table(rows: Sequence[Row]) -> list[str]:
    patterns = read_reasons()
    lines = [
        [
            *(row.part, row.case.replace("_", " "), row.method, row.query, str(row.n)),
            "" if row.promise is None else f"{row.promise:g}",
            f"{row.coverage:.3f} ± {row.error:.3f}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            reason_of(row, patterns),
        ]
        for row in rows
    ]
    head = ["part", "truth", "method", "rows", "n", "promised", "coverage", "ratio", "reason"]
    return markdown(head, lines)


def read_reasons() -> list[dict[str, str]]:
    """Return the known reasons: patterns of cells, and texts."""
    with REASONS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def reason_of(row: Row, patterns: Sequence[Mapping[str, str]]) -> str:
    """Return the reason of the first pattern that a cell matches."""
    kind = "short" if row.is_short else "wide"
    for pattern in patterns:
        names = ("part", "case", "method", "query")
        if pattern["kind"] in (kind, "*") and all(
            fnmatchcase(str(getattr(row, name)), pattern[name]) for name in names
        ):
            return pattern["reason"]
    if row.promise is not None and row.is_short and row.coverage + 2 * row.error >= row.promise:
        return "chance: within two standard errors of the promised level"
    return "not known"
