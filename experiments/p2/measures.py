"""From counts to named numbers, each an array with one entry for each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.p2 import counts as c
from experiments.p2 import heart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Floats = c.Floats
    Results = Sequence[Mapping[str, Any]]
    Numbers = dict[str, Floats]

#: The rules of the paper's tables, by their short names in `expected.csv`.
SHORT = {"mp": "mp", "id": "interval_dominance"}


def percentages(results: Results, rule: str) -> Floats:
    """Return the tables of a rule in per cent, (rounds, sets, classes)."""
    return np.array([c.percent(one["counts"][rule]) for one in results])


def measured(results: Results, rule: str, measure: Callable[[Floats], float]) -> Floats:
    """Return a measure of the rule's table in each round, (rounds,)."""
    return np.array([measure(table) for table in percentages(results, rule)])


def cells(results: Results) -> Numbers:
    """Return every cell of the tables, as "id.12.1": decided for {θ1, θ2}, truly θ1."""
    numbers = {}
    for short, rule in SHORT.items():
        table = percentages(results, rule)
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
        "id.rejected": measured(results, rule, lambda table: c.of_size(table, 2)),
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
        "id.pairs": measured(results, rule, lambda table: c.of_size(table, 2)),
        "id.triples": measured(results, rule, lambda table: c.of_size(table, 3)),
        "id.guessed": guessed,
        "id.guessed_as_printed": measured(results, rule, c.guessed_as_printed),
        "below_bayes": bayes - error,
        "guessing_costs": mp - guessed,
        "no_better_than_chance": np.divide(chance, n_undecided)
        - ratio("undecided_mp_right", "undecided"),
        "bayes_kept": ratio("mp_not_bayes_but_in_set", "mp_not_bayes"),
        "no_13": np.array([100.0 * (not np.any(table[4])) for table in percentages(results, rule)]),
    }
