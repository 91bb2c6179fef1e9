"""All metrics of all methods, with intervals, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito.metrics import evaluate
from dubito.report._words import plain

if TYPE_CHECKING:
    from dubito.report._answers import Answers, Rows

#: Resamples behind the intervals; of so many rows that fewer do.
RESAMPLES, FEW_RESAMPLES, MANY_ROWS = 200, 50, 200_000


class Meaning(NamedTuple):
    """A metric in words: its name, what it says, which end is better, and how it is shown."""

    label: str
    says: str
    better: str | None = None
    shown: str = "number"


MEANINGS = {
    "accuracy": Meaning("Right", "share of cases where the first choice is right", "high", "share"),
    "error": Meaning("Wrong", "share of cases where the first choice is wrong", "low", "share"),
    "log_loss": Meaning("Log loss", "punishes being sure and wrong; 0 is perfect", "low"),
    "brier": Meaning("Brier score", "squared distance from the truth; 0 is perfect", "low"),
    "ece": Meaning("Calibration error", "how far probabilities are from what happens", "low"),
    "classwise_ece": Meaning("… class by class", "the same for every class, averaged", "low"),
    "smooth_ece": Meaning("… without bins", "the same without sorting into bins", "low"),
    "aurc": Meaning(
        "Error while declining",
        "mean error among the decided as more and more doubtful cases are declined",
        "low",
    ),
    "coverage": Meaning(
        "Truth in the set", "share of sets that hold the true class", shown="share"
    ),
    "mean_set_size": Meaning("Classes in a set", "how many classes are left open on average"),
    "determinacy": Meaning(
        "Single classes", "share of cases where one class is named", shown="share"
    ),
    "single_class_accuracy": Meaning(
        "Right when single", "share right among cases where one class is named", shown="share"
    ),
    "discounted_accuracy": Meaning(
        "Discounted accuracy", "a set of n classes that holds the truth earns 1/n", "high"
    ),
    "u65": Meaning("u65", "a pair that holds the truth earns 0.65: a mild reward", "high"),
    "u80": Meaning("u80", "a pair that holds the truth earns 0.80: caution is welcome", "high"),
    "mean_width": Meaning("Width of bounds", "upper minus lower bound, on average"),
}


def collect_numbers(answers: list[Answers], rows: Rows, random_state: int) -> list[dict[str, Any]]:
    """Return a row for each metric, with the value and interval of each method."""
    n_boot = RESAMPLES if len(rows) <= MANY_ROWS else FEW_RESAMPLES
    found = [
        evaluate(
            rows.column,
            model.proba,
            bounds=model.bounds if model.has_bounds else None,
            sets=model.sets,
            classes=np.arange(len(rows.classes)),
            n_boot=n_boot,
            random_state=random_state,
        )
        for model in answers
    ]
    keys = dict.fromkeys(key for estimates in found for key in estimates)
    return [_row(key, [estimates.get(key) for estimates in found]) for key in keys]


def _row(key: str, estimates: list[Any]) -> dict[str, Any]:
    meaning = MEANINGS.get(key, Meaning(key.replace("_", " "), ""))
    cells = [
        None
        if estimate is None or plain(estimate.value) is None
        else {
            "value": plain(estimate.value),
            "low": plain(estimate.low),
            "high": plain(estimate.high),
        }
        for estimate in estimates
    ]
    return {"key": key, **meaning._asdict(), "cells": cells, "best": _best(cells, meaning.better)}


def _best(cells: list[dict[str, Any] | None], better: str | None) -> list[int]:
    """Return the places of the best values, none where all are equal or none is better."""
    values = [cell["value"] for cell in cells if cell]
    if better is None or len(set(values)) < 2:
        return []
    best = max(values) if better == "high" else min(values)
    return [i for i, cell in enumerate(cells) if cell and cell["value"] == best]
