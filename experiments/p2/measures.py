"""From counts to named numbers, each an array with one entry for each round."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.tables import Estimate, estimate
from experiments.p2 import counts as c
from experiments.p2 import heart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Floats = c.Floats
    Results = Sequence[Mapping[str, Any]]
    Numbers = dict[str, Floats]

#: The rules of the paper's tables, by their short names in `expected.csv`.
SHORT = {"mp": "mp", "id": "interval_dominance"}


class Expected(NamedTuple):
    """A published number; without a tolerance, two standard deviations of ours are allowed."""

    printed: str
    tolerance: float | None
    words: str
    source: str

    @property
    def value(self) -> float:
        """The number as printed."""
        return float(self.printed)


class Claim(NamedTuple):
    """A sentence of the paper: confirmed when its number lies above `least`, interval and all."""

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


def allowed(expected: Expected, values: Floats) -> float:
    """Return how far our mean may lie from the published number."""
    return 2 * spread(values) if expected.tolerance is None else expected.tolerance


def spread(values: Floats) -> float:
    """Return the standard deviation of rounds; infinite for a single one."""
    return float(values.std(ddof=1)) if len(values) > 1 else np.inf


def comes_out(expected: Expected, values: Floats) -> bool:
    """Say whether a published number comes out."""
    return bool(abs(values.mean() - expected.value) <= allowed(expected, values) + 1e-9)


def verdict(found: Estimate, least: float) -> str:
    """Say whether a claim holds: the interval above the least, below it, or on both sides."""
    if found.mean - found.half_width > least:
        return "confirmed"
    return "the opposite" if found.mean + found.half_width < least else "open"


def claimed(claim: Claim, numbers: Numbers) -> tuple[Estimate, str]:
    """Return a claim's number and what becomes of it."""
    found = estimate(numbers[claim.quantity])
    return found, verdict(found, claim.least)


def shares(results: Results, rule: str) -> Floats:
    """Return the tables of a rule in per cent, (rounds, sets, classes)."""
    return np.array([c.percent(one["counts"][rule]) for one in results])


def measured(results: Results, rule: str, measure: Callable[[Floats], float]) -> Floats:
    """Return what a table of each round amounts to."""
    return np.array([measure(share) for share in shares(results, rule)])


def cells(results: Results) -> Numbers:
    """Return every cell of the tables, as "id.12.1": decided for {θ1, θ2}, truly θ1."""
    numbers = {}
    for short, rule in SHORT.items():
        table = shares(results, rule)
        for row in range(table.shape[1]):
            members = [k for k in range(table.shape[2]) if (row + 1) >> k & 1]
            named = "".join(str(k + 1) for k in members)
            for k in range(table.shape[2]):
                numbers[f"{short}.{named}.{k + 1}"] = table[:, row, k]
    return numbers


def of_heart(results: Results) -> Numbers:
    """Return the numbers of Tables 1 and 2 and of the claims about them."""
    mp, rule = "mp", "interval_dominance"
    age, ldl = heart.fitted(*heart.patients()).model_.cutoffs.ravel()
    error, guessed = measured(results, mp, c.error), measured(results, rule, c.guessed)
    same = [one["counts"]["mp"] == one["counts"]["most_belief"] for one in results]
    return {
        **cells(results),
        "cutoff.age": np.array([age]),
        "cutoff.ldl": np.array([ldl]),
        "mp.error": error,
        "id.error": measured(results, rule, c.error),
        "id.rejected": measured(results, rule, lambda share: c.of_size(share, 2)),
        "id.guessed": guessed,
        "same_decisions": 100.0 * np.array(same),
        "guessing_costs": error - guessed,
        "rejected_error": measured(results, "mp_where_rejected", c.error),
    }


def of_trio(results: Results) -> Numbers:
    """Return the numbers of Tables 3 and 4 and of the claims about them."""
    rule = "interval_dominance"

    def ratio(part: str, whole: str) -> Floats:
        return np.array([100 * np.sum(one[part]) / max(np.sum(one[whole]), 1) for one in results])

    mp, error = measured(results, "mp", c.error), measured(results, rule, c.error)
    guessed = measured(results, rule, c.guessed)
    chance = [100 * np.dot(one["undecided"], [1 / 2, 1 / 3]) for one in results]
    n_undecided = [max(sum(one["undecided"]), 1) for one in results]
    bayes = ratio("bayes_wrong", "n")
    return {
        **cells(results),
        "bayes.error": bayes,
        "mp.error": mp,
        "id.error": error,
        "id.outside": measured(results, rule, c.outside),
        "id.pairs": measured(results, rule, lambda share: c.of_size(share, 2)),
        "id.triples": measured(results, rule, lambda share: c.of_size(share, 3)),
        "id.guessed": guessed,
        "id.guessed_as_printed": measured(results, rule, c.guessed_as_printed),
        "below_bayes": bayes - error,
        "guessing_costs": mp - guessed,
        "no_better_than_chance": np.divide(chance, n_undecided)
        - ratio("undecided_mp_right", "undecided"),
        "bayes_kept": ratio("mp_not_bayes_but_in_set", "mp_not_bayes"),
        "no_13": np.array([100.0 * (not np.any(table[4])) for table in shares(results, rule)]),
    }
