"""Options that every experiment has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


class HasRounds(Protocol):
    """A part of a reproduction, with the number of rounds of a full and of a quick run."""

    rounds: int
    quick_rounds: int


def parse_parts(
    arguments: Sequence[str] | None,
    *,
    paper: str,
    here: Path,
    parts: Mapping[str, HasRounds],
    quick: str,
) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Return the parser, for further errors, and the options of a reproduction in parts."""
    parser = argparse.ArgumentParser(
        prog=f"experiments/{paper.lower()}/run.py",
        description=f"Reproduce {paper}. Finished rounds are kept: run it again to continue.",
    )
    add_common(parser, here, quick=quick)
    full = ", ".join(f"{part.rounds} of {name}" for name, part in parts.items())
    parser.add_argument("--rounds", type=positive, help=f"rounds of each part (default {full})")
    parser.add_argument(
        "--parts",
        type=names_of(parts, paper),
        default=tuple(parts),
        help=f"of {','.join(parts)} (default all)",
    )
    options = parser.parse_args(arguments)
    short = any((options.rounds or part.rounds) < part.rounds for part in parts.values())
    if options.write_readme and (options.quick or short):
        parser.error("--write-readme needs all rounds, so neither --quick nor fewer --rounds")
    return parser, options


def rounds_of(part: HasRounds, options: argparse.Namespace) -> int:
    """Return the rounds of a part: those asked for, else of a quick or a full run."""
    return options.rounds or (part.quick_rounds if options.quick else part.rounds)


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
    """Return the text as an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def names_of(known: Collection[str], paper: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated names; it rejects unknown names and drops repeats."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; {paper} has {', '.join(known)}"
            )
        return given

    return names
