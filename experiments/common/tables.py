"""Means with intervals, and tables in markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt


class Estimate(NamedTuple):
    """A mean over rounds and the half-width of its 95% interval."""

    mean: float
    half_width: float

    @property
    def significant(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.mean) > self.half_width


def estimate(values: npt.NDArray[np.float64]) -> Estimate:
    """Return the mean and its 95% half-width by Student's t; infinite for a single round."""
    n = len(values)
    if n < 2:
        return Estimate(float(values.mean()), np.inf)
    spread = float(values.std(ddof=1)) / np.sqrt(n)
    return Estimate(float(values.mean()), float(student.ppf(0.975, n - 1)) * spread)


def with_width(value: float, half_width: float, sign: str = "", *, digits: int = 1) -> str:
    """Return a number as text with its half-width, if finite; zero has no sign."""
    width = f" ± {half_width:.{digits}f}" if np.isfinite(half_width) else ""
    rounded = round(value, digits)
    shown = f"{rounded:{sign}.{digits}f}" if rounded else f"{0:.{digits}f}"
    return f"{shown}{width}"


def contrast(found: Estimate) -> str:
    """Return a difference as text, in bold where its interval excludes zero."""
    mark = "**" if found.significant else ""
    return f"{mark}{with_width(found.mean, found.half_width, '+', digits=2)}{mark}"


def better_and_worse(columns: Sequence[Sequence[Estimate]]) -> list[str]:
    """Return the numbers of significant gains and losses of each column of differences."""
    return [
        f"{sum(e.significant and e.mean > 0 for e in column)} / "
        f"{sum(e.significant and e.mean < 0 for e in column)}"
        for column in columns
    ]


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return [f"| {' | '.join(row)} |" for row in rows]


def print_tables(texts: Mapping[str, str], readme: Path | None) -> None:
    """Print tables below their names, and put them into the README where one is given."""
    for name, text in texts.items():
        print(f"## {name}\n\n{text}\n")
        if readme is not None:
            insert(readme, name, text)


def insert(readme: Path, name: str, text: str) -> None:
    """Replace the text between the README's markers of that name."""
    start, end = f"<!-- results {name}: written by run.py -->", f"<!-- end {name} -->"
    content = readme.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", flags=re.DOTALL)
    if not pattern.search(content):
        raise ValueError(f"{readme} has no markers for {name!r}: {start} … {end}")
    readme.write_text(
        pattern.sub(lambda _: f"{start}\n\n{text}\n\n{end}", content), encoding="utf-8"
    )
