"""What bounds and sets promise, and how far the rows of a test kept it, for `evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._promises import bounds_meaning
from dubito.cli._test_rows import DEFAULT_COVERAGE, gives_bounds
from dubito.metrics import class_coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito.cli._test_rows import Answers
    from dubito.metrics import Estimate
    from dubito.saving import Saved


def kinds_of_bounds(models: dict[str, Saved], level: float | None) -> list[str]:
    """Say what the bounds of models are; nothing for models without."""
    kinds = {
        name: bounds_meaning(saved.model, level).both
        for name, saved in models.items()
        if gives_bounds(saved.model)
    }
    if level is not None and kinds:
        return [f"Bounds are at level {level:.15g}."]
    if len(set(kinds.values())) == 1:
        return [f"Bounds are {next(iter(kinds.values()))}."]
    return [f"Bounds of {name} are {words}." for name, words in kinds.items()]


def coverage_facts(
    answers: Answers, classes: Sequence[Any], promised: float | None, observed: Estimate
) -> dict[str, Any]:
    """Return the coverage promised and observed, overall and of the least covered class."""
    shares = class_coverage(answers.y, np.asarray(answers.sets), classes=classes)
    worst = int(np.nanargmin(shares))
    return {
        "promised": promised or DEFAULT_COVERAGE,
        "observed": observed.value,
        "low": observed.low,
        "high": observed.high,
        "worst_class": classes[worst],
        "worst_observed": float(shares[worst]),
        "worst_rows": int((answers.y == classes[worst]).sum()),
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
