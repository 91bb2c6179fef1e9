"""How often sets with a promised coverage hold the true class: overall, and class by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._promises import is_conformal
from dubito.metrics._intervals import share_interval
from dubito.report._words import between, cases, percent

if TYPE_CHECKING:
    from dubito.report._answers import Answers, Rows

CONFIDENCE = 0.95
#: Classes that are listed, the least covered first.
MOST_CLASSES = 12


def collect_coverage(
    model: Answers, rows: Rows, labels: list[str], coverage: float
) -> dict[str, Any] | None:
    """Return coverage promised and observed; None for models that promise none."""
    if not is_conformal(model.model):
        return None
    held = model.sets[np.arange(len(rows)), rows.column]
    seen = np.bincount(rows.column, minlength=len(labels))
    caught = np.bincount(rows.column[held], minlength=len(labels))
    found = np.flatnonzero(seen)
    order = found[np.argsort(caught[found] / seen[found], kind="stable")]
    observed = _observed(int(held.sum()), len(rows))
    return {
        "promised": coverage,
        "by_class": bool(getattr(model.model, "class_conditional", False)),
        "observed": observed,
        "mean_set_size": float(model.sets.sum(axis=1).mean()),
        "classes": [
            {"label": labels[k], **_observed(int(caught[k]), int(seen[k]))}
            for k in order[:MOST_CLASSES]
        ],
        "line": _line(coverage, observed),
    }


def _observed(held: int, n: int) -> dict[str, Any]:
    low, high = share_interval(held / n, n, CONFIDENCE)
    return {"rows": n, "held": held, "share": held / n, "low": float(low), "high": float(high)}


def _line(promised: float, observed: dict[str, Any]) -> str:
    interval = between(observed["low"], observed["high"])
    seen = (
        f"Coverage promised {percent(promised)}, observed {percent(observed['share'])} of "
        f"{cases(observed['rows'])} (95% interval: {interval})"
    )
    if observed["high"] < promised:
        return f"{seen}, which is less than chance explains."
    return f"{seen}."
