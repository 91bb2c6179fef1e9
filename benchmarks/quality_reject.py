"""Measure the cost of each strategy of `reject`, inside and outside the domain of the model.

Writes the table to REJECT.md (`make bench`). The tables, the cut along the first principal
component and the models are those of `quality_novelty.py`; here models are trained on few rows, so
that their bounds have some width.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from quality_novelty import COSTS, PARTS, TABLES, models, splits

from dubito.calibration import CalibratedClassifier
from dubito.decision import reject

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

HEAD = """# Strategies of rejection, measured

Mean cost on test rows, lower is better; written by `make bench` (`benchmarks/quality_reject.py`).
A wrong answer costs 1, declining costs as much as the column says. Tables are cut at the median of
their first principal component. `CalibratedClassifier(model)` is fitted on {rows} rows of one half
(fewer where there are fewer); the rest of that half is the familiar test part, rows as in
calibration, the other half the unfamiliar one. Means over {tables} tables on which nothing was
chosen, logistic regression and random forest (100 trees), either half as the familiar one, and
three splits. In brackets the fraction of rows that are declined.

"""

STRATEGIES = ("pignistic", "pessimistic", "optimistic", "probabilistic")
FIT_ROWS = 200


def measure(name: str) -> dict[str, Array]:
    """Return for each part an array: strategies; costs; mean cost or fraction declined."""
    found: dict[str, list[Array]] = {}
    for split in splits(name):
        X_fit, y_fit = split.X[:FIT_ROWS], split.y[:FIT_ROWS]
        if np.bincount(y_fit, minlength=split.y.max() + 1)[np.unique(split.y)].min() < 2:
            continue  # too few rows of a class for folds
        for model in models().values():
            clf = CalibratedClassifier(model).fit(X_fit, y_fit)
            for part, (X, y) in split.tests.items():
                if len(y):
                    found.setdefault(part, []).append(costs_of(clf, X, y))
    return {part: np.mean(arrays, axis=0) for part, arrays in found.items()}


def costs_of(clf: CalibratedClassifier, X: Array, y: npt.NDArray[np.intp]) -> Array:
    """Return (mean cost, fraction declined) for each strategy and cost of declining."""
    bounds, proba = clf.predict_bounds(X), clf.predict_proba(X)
    wrong = clf.predict(X) != y
    out = np.empty((len(STRATEGIES), len(COSTS), 2))
    for s, strategy in enumerate(STRATEGIES):
        for j, cost in enumerate(COSTS):
            declined = reject(proba if strategy == "probabilistic" else bounds, cost, strategy)
            out[s, j] = np.where(declined, cost, wrong).mean(), declined.mean()
    return out


def main(names: list[str]) -> None:
    """Measure the tables that are named, or all and write the page."""
    measured = []
    for name in names or TABLES:
        found = measure(name)
        if found:
            measured.append(found)
            print(
                name, {part: found[part][:, :, 0].round(4).tolist() for part in found}, flush=True
            )
    mean = {part: np.mean([found[part] for found in measured], axis=0) for part in PARTS}
    order = ("familiar", "unfamiliar")
    lines = [
        "| strategy | "
        + " | ".join(f"{part}, {cost:g}" for part in order for cost in COSTS)
        + " |",
        "|---" * (1 + 2 * len(COSTS)) + "|",
    ]
    for s, strategy in enumerate(STRATEGIES):
        cells = [f"{c:.4f} ({d:.2f})" for part in order for c, d in mean[part][s]]
        lines.append(f"| {strategy} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if not names:
        page = Path(__file__).parent / "REJECT.md"
        draft = page.with_suffix(".tmp")
        head = HEAD.format(rows=FIT_ROWS, tables=len(measured))
        draft.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
        draft.replace(page)


if __name__ == "__main__":
    main(sys.argv[1:])
