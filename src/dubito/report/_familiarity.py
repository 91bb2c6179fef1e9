"""Rows unlike those a model was trained on: how many, which, and how often it is right there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._promises import is_novelty_aware
from dubito.report._doubt import shown_rows
from dubito.report._words import cases, percent

if TYPE_CHECKING:
    from dubito._checks import BoolArray
    from dubito.report._answers import Answers, Rows


def collect_familiarity(
    model: Answers, rows: Rows, labels: list[str], most: int
) -> dict[str, Any] | None:
    """Return unfamiliar rows and the least familiar ones; None for models that cannot tell."""
    if not is_novelty_aware(model.model):
        return None
    rate = float(model.model.rate)
    familiarity = np.asarray(model.model.familiarity(model.X), dtype=float)
    unfamiliar = familiarity < rate
    right = model.predicted == rows.column
    least = np.argsort(familiarity, kind="stable")[:most]
    least = least[unfamiliar[least]]
    told = [
        {
            "name": name,
            "familiarity": float(familiarity[i]),
            "predicted": labels[model.predicted[i]],
            "truth": labels[rows.column[i]],
            "right": bool(right[i]),
            "probability": float(model.proba[i, model.predicted[i]]),
            "lower": float(model.bounds.lower[i, model.predicted[i]]),
            "upper": float(model.bounds.upper[i, model.predicted[i]]),
        }
        for name, i in zip(shown_rows(rows, least), least.tolist(), strict=True)
    ]
    n = int(unfamiliar.sum())
    return {
        "rate": rate,
        "unfamiliar": n,
        "share": n / len(rows),
        "right_unfamiliar": _share_right(right, unfamiliar),
        "right_familiar": _share_right(right, ~unfamiliar),
        "rows": told,
        "line": (
            f"{percent(n / len(rows))} of the cases ({cases(n)}) are unlike those it was trained "
            f"on; of cases of the same kind, at most about {percent(rate)} would be."
        ),
    }


def _share_right(right: BoolArray, chosen: BoolArray) -> float | None:
    return float(right[chosen].mean()) if chosen.any() else None
