"""What bounds and sets promise, and how far the rows of a test kept it, for `evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._promises import bounds_meaning
from dubito.cli._test_rows import DEFAULT_COVERAGE, gives_bounds
from dubito.metrics._intervals import share_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito.cli._test_rows import Answers
    from dubito.saving import Saved


def kinds_of_bounds(models: dict[str, Saved], level: float | None) -> list[str]:
    """Say what the bounds of models are; nothing for models without."""
    kinds = {
        name: bounds_meaning(saved.model, level).both
        for name, saved in models.items()
        if gives_bounds(saved.model)
    }
    if level is not None and kinds:
        return [f"Bounds are at level {level:g}."]
    if len(set(kinds.values())) == 1:
        return [f"Bounds are {next(iter(kinds.values()))}."]
    return [f"Bounds of {name} are {words}." for name, words in kinds.items()]


def coverage_facts(
    answers: Answers, classes: Sequence[Any], coverage: float | None
) -> dict[str, Any]:
    """Return the coverage promised and observed, overall and of the least covered class."""
    place = {label: k for k, label in enumerate(classes)}
    column = np.array([place[label] for label in answers.y.tolist()])
    held = np.asarray(answers.sets)[np.arange(len(column)), column]
    seen = np.bincount(column, minlength=len(classes))
    shares = np.divide(
        np.bincount(column[held], minlength=len(classes)),
        seen,
        out=np.full(len(classes), np.inf),
        where=seen > 0,
    )
    worst = int(np.argmin(shares))
    low, high = share_interval(float(held.mean()), len(held), 0.95)
    return {
        "promised": coverage or DEFAULT_COVERAGE,
        "observed": float(held.mean()),
        "low": float(low),
        "high": float(high),
        "worst_class": classes[worst],
        "worst_observed": float(shares[worst]),
        "worst_rows": int(seen[worst]),
    }


def tell_coverage(facts: dict[str, Any], name: str | None) -> str:
    """Say it in one line; the model's name where there are several."""
    before = "" if name is None else f"{name}: "
    few = " That is less than chance explains." if facts["high"] < facts["promised"] else ""
    return (
        f"{before}coverage promised {facts['promised']:.1%}, observed {facts['observed']:.1%} "
        f"({facts['low']:.1%} to {facts['high']:.1%}); least in class {facts['worst_class']}, "
        f"{facts['worst_observed']:.1%} of {facts['worst_rows']:,}.{few}"
    )
