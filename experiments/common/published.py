"""Published numbers and claims, read from CSV files, and whether they are reproduced."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from experiments.common.tables import Estimate, estimate, markdown, with_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Numbers = Mapping[str, Floats]


class Expected(NamedTuple):
    """A published number; the tolerance None stands for two standard deviations of our rounds."""

    printed: str
    tolerance: float | None
    words: str
    source: str

    @property
    def value(self) -> float:
        """The number as printed."""
        return float(self.printed)


class Claim(NamedTuple):
    """A sentence of the paper: confirmed when the interval of its number lies above `least`."""

    name: str
    statement: str
    quantity: str
    measured: str
    least: float


def read_expected(path: Path, part: str) -> dict[str, Expected]:
    """Read the published numbers of a part."""
    return {
        row["quantity"]: Expected(
            row["value"],
            None if row["tolerance"] == "2 sd" else float(row["tolerance"]),
            row["words"],
            row["source"],
        )
        for row in _rows(path, part)
    }


def read_claims(path: Path, part: str) -> list[Claim]:
    """Read the claims of a part."""
    return [
        Claim(r["claim"], r["statement"], r["quantity"], r["measured"], float(r["least"]))
        for r in _rows(path, part)
    ]


def _rows(path: Path, part: str) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["part"] == part]


def read_column(path: Path, column: str) -> dict[str, str]:
    """Return the entries of a column of the published numbers that are not empty."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["quantity"]: row[column] for row in csv.DictReader(lines) if row[column]}


def allowed(expected: Expected, values: Floats) -> float:
    """Return how far our mean may lie from the published number."""
    return 2 * spread(values) if expected.tolerance is None else expected.tolerance


def spread(values: Floats) -> float:
    """Return the standard deviation of rounds; infinite for a single one."""
    return float(values.std(ddof=1)) if len(values) > 1 else np.inf


def is_reproduced(expected: Expected, values: Floats) -> bool:
    """Return whether our mean is within the tolerance of the published number."""
    return bool(abs(values.mean() - expected.value) <= allowed(expected, values) + 1e-9)


def misses_table(
    expected: Mapping[str, Expected],
    numbers: Numbers,
    reasons: Mapping[str, str],
    show: Callable[[Floats], str],
    digits: int,
) -> list[str]:
    """Return the numbers that are not reproduced, with likely reasons."""
    lines = [
        [
            one.words,
            one.printed,
            show(numbers[q]),
            f"{numbers[q].mean() - one.value:+.{digits}f}",
            reasons.get(q, "not known"),
        ]
        for q, one in expected.items()
        if not is_reproduced(one, numbers[q])
    ]
    if not lines:
        return ["**Not reproduced.** None."]
    head = ["", "paper", "ours", "difference", "likely reason"]
    return ["**Not reproduced.**", "", *markdown(head, lines)]


def verdict(found: Estimate, least: float) -> str:
    """Return "confirmed", "the opposite" or "open": interval above, below or around `least`."""
    if found.mean - found.half_width > least:
        return "confirmed"
    return "the opposite" if found.mean + found.half_width < least else "open"


def claimed(claim: Claim, numbers: Numbers) -> tuple[Estimate, str]:
    """Return a claim's number and its verdict."""
    found = estimate(numbers[claim.quantity])
    return found, verdict(found, claim.least)


def claims_table(claims: Iterable[Claim], numbers: Numbers) -> list[str]:
    """Return the verdicts on claims, counted and one by one."""
    lines, tally = [], Counter[str]()
    for claim in claims:
        number, answer = claimed(claim, numbers)
        tally[answer] += 1
        value = with_width(number.mean, number.half_width)
        required = f"above {claim.least:g}"
        lines.append(
            [claim.name, claim.statement, claim.measured, value, required, f"**{answer}**"]
        )
    counted = ", ".join(f"{answer}: {n}" for answer, n in tally.most_common())
    head = ["", "claim", "measured", "mean ± 95%", "required", "verdict"]
    return [f"**Claims.** {counted}.", "", *markdown(head, lines)]
