"""From counts to named numbers, each an array with one entry for each repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.published import read_expected
from experiments.p3.protocol import ALPHAS, TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from experiments.p3.protocol import Floats

    Results = Sequence[Mapping[str, Any]]
    Numbers = dict[str, Floats]

#: The columns of Table 2, in its order.
COLUMNS = {
    "lda.accuracy": "LDA",
    "lda.u80": "ILDA, u80",
    "lda.u65": "ILDA, u65",
    "qda.accuracy": "QDA",
    "qda.u80": "IQDA, u80",
    "qda.u65": "IQDA, u65",
}


def printed_means(path: Path) -> dict[str, float]:
    """Return the mean of each column of Table 2 as printed."""
    printed = read_expected(path, "table")
    columns: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for quantity, one in printed.items():
        columns[quantity.split(".", 1)[1]].append(one.value)
    return {column: float(np.mean(values)) for column, values in columns.items()}


def by_dataset(results: Results) -> dict[str, list[Mapping[str, Any]]]:
    """Return the repetitions of each dataset."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in results:
        found.setdefault(one["dataset"], []).append(one)
    return found


def of_models(results: Results) -> Numbers:
    """Return the results of each model on each dataset, in per cent, as "iris.lda.u80"."""
    numbers = {}
    for dataset, rounds in by_dataset(results).items():
        for model in rounds[0]["models"]:
            for name, values in _of_model(rounds, model).items():
                numbers[f"{dataset}.{model}.{name}"] = values
    return numbers


def _of_model(rounds: Results, model: str) -> Numbers:
    """Return the numbers of one model on one dataset; sets are those with c tuned by u80."""

    def counted(name: str) -> Floats:
        return np.array([one["models"][model]["tuned"]["u80"][name] for one in rounds])

    rows = np.array([one["rows"] for one in rounds], dtype=float)
    right = np.array([one["models"][model]["right"] for one in rounds], dtype=float)
    tuned = {
        score: np.array([one["models"][model]["tuned"][score][score] for one in rounds])
        for score in ALPHAS
    }
    undecided, precise = counted("undecided"), counted("undecided_precise")
    covered = counted("undecided_covered")
    return {
        "accuracy": 100 * right / rows,
        **{score: 100 * worth / rows for score, worth in tuned.items()},
        "c": np.array([np.mean(one["models"][model]["c"]["u80"]) for one in rounds]),
        "size": counted("size") / rows,
        "undecided": 100 * undecided / rows,
        "correct": percent(covered, undecided),
        "precise": percent(precise, undecided),
        "avoided": percent(covered - precise, undecided - precise),
        "hard": percent(right - precise, rows - undecided) - percent(precise, undecided),
    }


def percent(part: Floats, whole: Floats) -> Floats:
    """Return ratios in per cent; nan where the denominator is 0."""
    return np.divide(100 * part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def pooled(results: Results, dataset: str, model: str) -> dict[str, float]:
    """Return, among the undecided rows, the percentages of right sets and right precise classes."""
    rounds = [one["models"][model]["tuned"]["u80"] for one in by_dataset(results)[dataset]]
    total = {name: sum(one[name] for one in rounds) for name in rounds[0]}
    some = np.array([total["undecided"]])
    return {
        name: float(percent(np.array([total[f"undecided_{name}"]]), some)[0])
        for name in ("covered", "precise")
    }


def curve(results: Results, dataset: str, model: str) -> dict[str, Floats]:
    """Return c, and each utility at each c in per cent, (repetitions, values of c)."""
    rounds = by_dataset(results)[dataset]
    paths = [one["models"][model] for one in rounds]
    rows = rounds[0]["rows"]
    found = {score: 100 * np.array([p["path"][score] for p in paths]) / rows for score in ALPHAS}
    return {"c": np.array(paths[0]["grid"]), **found}


def of_table(results: Results) -> Numbers:
    """Return the numbers of Table 2 and of the claims about it and about Figure 3."""
    numbers = of_models(results)
    datasets = list(by_dataset(results))

    def mean(model: str, name: str) -> Floats:
        """Average over the datasets that have the number, in each repetition."""
        values = np.array([numbers[f"{dataset}.{model}.{name}"] for dataset in datasets])
        known = np.isfinite(values)
        return percent(np.where(known, values, 0).sum(axis=0), known.sum(axis=0)) / 100

    claims = {}
    for model in TABLE:
        claims |= {f"{model}.{name}": mean(model, name) for name in ("avoided", "hard")}
        for score in ALPHAS:
            gain = mean(model, score) - mean(model, "accuracy")
            claims[f"{model}.gain.{score}"] = gain
    if "vowel" in datasets:
        claims |= _turns(results, numbers)
    means = {f"mean.{column}": mean(*column.split(".")) for column in COLUMNS}
    return {**numbers, **means, **claims}


def _turns(results: Results, numbers: Numbers) -> Numbers:
    """Return how far utilities on vowel rise from the smallest c and fall to the largest."""
    path = curve(results, "vowel", "lda")
    ends = {"rise": int(np.argmax(path["c"] > 0)), "fall": -1}
    return {
        f"vowel.{turn}.{score}": numbers[f"vowel.lda.{score}"] - path[score][:, end]
        for turn, end in ends.items()
        for score in ALPHAS
    }
