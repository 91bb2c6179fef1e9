"""Options that every experiment has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def add_common(parser: argparse.ArgumentParser, here: Path, *, quick: str) -> None:
    """Add the options of `dubito reproduce`, and the one that writes the README."""
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--jobs", type=positive, default=1, help="processes (default 1)")
    parser.add_argument(
        "--out", type=Path, default=here / "results", help="where finished rounds are kept"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument(
        "--write-readme",
        action="store_true",
        help="put the tables into README.md; needs a full run",
    )


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def names_of(known: Collection[str], paper: str) -> Callable[[str], tuple[str, ...]]:
    """Return what reads a list of names out of those known, each once."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; {paper} has {', '.join(known)}"
            )
        return given

    return names
