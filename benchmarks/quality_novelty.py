"""Measure the cost of decisions on unfamiliar rows, and write NOVELTY.md (`make bench`).

Each table is cut at the median of its first principal component. A model is fitted and calibrated
on most of one half, the familiar one, and tested on the rest of it and on all of the other half.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.calibration import CalibratedClassifier, MatrixCalibrator
from dubito.conformal import NoveltyAwareClassifier
from dubito.datasets import load
from dubito.decision import reject

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

HEAD = """# Unfamiliar rows, measured

Mean cost on test rows, lower is better; written by `make bench` (`benchmarks/quality_novelty.py`).
A wrong answer costs 1, declining costs as much as the column says, and a row is declined where
the largest lower bound is below 1 - cost. Tables are cut at the median of their first principal
component. `CalibratedClassifier(model, MatrixCalibrator())` is fitted on 70 % of one half; the
rest of that half is the familiar test part, the other half the unfamiliar one. Means over logistic
regression and random forest (100 trees), either half as the familiar one, and three splits. Classes
with fewer than 20 rows in the familiar half are left out, and tables are cut to 4,000 rows.
Each pair of numbers: the calibrated model alone → in `NoveltyAwareClassifier(model)`. To decline
every row would cost 0.05, 0.1 and 0.2.

"""

TAIL = """On the unfamiliar half, at cost 0.1, {alone:.0%} of the rows are declined by the model
alone and {aware:.0%} by the one that is aware of novelty. Novelty detection increases the cost on:
{worse}, where the model alone is right on most of that half too, which no detector can know."""

#: The tables of the catalogue with at least 300 rows and at most 100 features, except those on
#: which choices were made: digits, breast cancer and wine.
TABLES = (
    "australian", "dermatology", "diabetes", "forest", "ionosphere", "letter", "optdigits",
    "pendigits", "saheart", "satimage", "segment", "vehicle", "vowel", "wallrobot", "waveform",
    "winequality_red",
)  # fmt: skip
#: For choices: `python benchmarks/quality_novelty.py digits breast_cancer wine` only prints.
TUNING = {"digits": load_digits, "breast_cancer": load_breast_cancer}

COSTS = (0.05, 0.1, 0.2)
SEEDS = range(3)
MOST_ROWS = 4000
FEWEST_OF_A_CLASS = 20
PARTS = ("unfamiliar", "familiar")


class Split(NamedTuple):
    """Rows to fit on, and rows to test on, familiar and not."""

    X: Array
    y: npt.NDArray[np.intp]
    tests: dict[str, tuple[Array, npt.NDArray[np.intp]]]


def table(name: str) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return imputed features and labels 0, 1, ... of at most 4,000 rows."""
    if name in TUNING:
        X, y = TUNING[name](return_X_y=True)
    else:
        found = load(name)
        X, y = found.X, found.y
    X = SimpleImputer().fit_transform(X)
    y = np.unique(y, return_inverse=True)[1]
    if len(y) > MOST_ROWS:
        kept = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        X, y = X[kept], y[kept]
    return X, y


def splits(name: str) -> Iterator[Split]:
    """Yield a table cut along its first principal component, either way round."""
    X, y = table(name)
    component = PCA(1, random_state=0).fit_transform(StandardScaler().fit_transform(X))[:, 0]
    below = component <= np.median(component)
    for familiar in (below, ~below):
        many = np.bincount(y[familiar], minlength=y.max() + 1) >= FEWEST_OF_A_CLASS
        known = many[y]
        if many.sum() < 2:
            continue
        X_other, y_other = X[~familiar & known], y[~familiar & known]
        for seed in SEEDS:
            X_fit, X_rest, y_fit, y_rest = train_test_split(
                X[familiar & known], y[familiar & known],
                test_size=0.3, stratify=y[familiar & known], random_state=seed,
            )  # fmt: skip
            tests = {"unfamiliar": (X_other, y_other), "familiar": (X_rest, y_rest)}
            yield Split(X_fit, y_fit, tests)


def models() -> dict[str, object]:
    """Return the models by name."""
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "forest": RandomForestClassifier(100, random_state=0),
    }


def costs_of(model: object, X: Array, y: npt.NDArray[np.intp]) -> Array:
    """Return (mean cost, fraction declined) for each cost of declining; an error costs 1."""
    bounds, wrong = model.predict_bounds(X), model.predict(X) != y
    declined = [reject(bounds, cost, "pessimistic") for cost in COSTS]
    return np.array(
        [
            (np.where(rows, cost, wrong).mean(), rows.mean())
            for rows, cost in zip(declined, COSTS, strict=True)
        ]
    )


def measure(name: str) -> dict[str, Array]:
    """Return for each part an array: alone or aware; costs; mean cost or fraction declined."""
    found: dict[str, list[Array]] = {}
    for split in splits(name):
        for model in models().values():
            calibrated = CalibratedClassifier(model, MatrixCalibrator())
            aware = NoveltyAwareClassifier(calibrated).fit(split.X, split.y)
            for part, (X, y) in split.tests.items():
                if len(y):
                    both = [costs_of(m, X, y) for m in (aware.estimator_, aware)]
                    found.setdefault(part, []).append(np.array(both))
    return {part: np.mean(arrays, axis=0) for part, arrays in found.items()}


def cells(found: dict[str, Array]) -> str:
    """Return the pairs of a row of the table."""
    return " | ".join(
        f"{found[part][0, j, 0]:.4f} → {found[part][1, j, 0]:.4f}"
        for part in PARTS
        for j in range(len(COSTS))
    )


def summary(names: list[str], measured: list[dict[str, Array]]) -> list[str]:
    """Return the last lines: means, changes, fractions declined, and tables with higher cost."""
    mean = {part: np.mean([found[part] for found in measured], axis=0) for part in PARTS}
    change = [f"{x:+.1%}" for part in PARTS for x in mean[part][1, :, 0] / mean[part][0, :, 0] - 1]
    tenth = COSTS.index(0.1)
    declined = mean["unfamiliar"][:, tenth, 1]
    costly = [
        name
        for name, found in zip(names, measured, strict=True)
        if np.diff(found["unfamiliar"][:, tenth, 0]) > 0
    ]
    tail = TAIL.format(alone=declined[0], aware=declined[1], worse=", ".join(costly) or "no table")
    return [f"| **mean** | {cells(mean)} |", f"| **change** | {' | '.join(change)} |", "", tail]


def main(names: list[str]) -> None:
    """Measure the tables that are named, or all and write the page."""
    head = "| table | " + " | ".join(f"{part}, {cost:g}" for part in PARTS for cost in COSTS)
    lines = [head + " |", "|---" * (1 + len(PARTS) * len(COSTS)) + "|"]
    wanted, measured = names or list(TABLES), []
    for name in wanted:
        measured.append(measure(name))
        lines.append(f"| {name} | {cells(measured[-1])} |")
        print(lines[-1], flush=True)
    last = summary(wanted, measured)
    print("\n".join(last))
    if not names:
        page = Path(__file__).parent / "NOVELTY.md"
        draft = page.with_suffix(".tmp")
        draft.write_text(HEAD + "\n".join([*lines, *last]) + "\n", encoding="utf-8")
        draft.replace(page)


if __name__ == "__main__":
    main(sys.argv[1:])
