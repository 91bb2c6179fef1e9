"""Measure utilities of sets of discriminants, and write the table to DISCRIMINANT.md.

Part of `make bench`. The rival is scikit-learn's linear discriminant with automatic shrinkage,
whose probabilities name the sets of largest expected utility. With names of tables the script
prints and writes nothing: `python benchmarks/quality_discriminant.py digits breast_cancer wine` for
choices.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split

from dubito.datasets import load
from dubito.decision import set_utility
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.metrics import u65, u80

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Sets = npt.NDArray[np.bool_]
    #: (training rows and labels, new rows, utility) to sets.
    Method = Callable[[Array, npt.NDArray[np.intp], Array, str], Sets]

HEAD = """# Sets of discriminants, measured

Mean utilities u65 / u80 of sets on test rows, higher is better; written by `make bench`
(`benchmarks/quality_discriminant.py`). Each table is split at random {seeds} times into training
rows (the column gives the mean number of each class, in the proportions of the classes, or half of
the rows, at most 1,000) and at most 500 test rows. c = 0.75 and the box of the default were chosen
on digits, breast cancer and wine, which are not among these {tables} tables. Methods marked *
choose sets for each utility; the others have one choice of sets for both.

"""

#: The tables of the catalogue but those on which choices were made (optdigits holds digits).
TABLES = (
    "australian", "dermatology", "diabetes", "dna", "forest", "heart", "ionosphere", "iris",
    "letter", "pendigits", "saheart", "satimage", "seeds", "segment", "vehicle", "vowel",
    "wallrobot", "waveform", "winequality_red",
)  # fmt: skip
TUNING = {"digits": load_digits, "breast_cancer": load_breast_cancer, "wine": load_wine}

#: Training rows for each class on average; 0: half of all rows.
SIZES = (6, 15, 40, 0)
SEEDS = range(5)
MOST_TRAIN, MOST_TEST = 1000, 500
UTILITIES = {"u65": u65, "u80": u80}


def by_rule(rule: str | None = None, **options: Any) -> Method:
    """Return a function that returns the sets of a discriminant by a rule."""

    def sets(X: Array, y: npt.NDArray[np.intp], new: Array, utility: str) -> Sets:
        model = ImpreciseGaussianDiscriminant(n_jobs=1, **options).fit(X, y)
        rule_options = {"utility": utility} if rule == "set_utility" else {}
        return model.predict_set(new, rule, **rule_options)

    return sets


def tuned(X: Array, y: npt.NDArray[np.intp], new: Array, utility: str) -> Sets:
    """Return the sets of a discriminant whose c is tuned to the utility."""
    model = ImpreciseGaussianDiscriminant(c="auto", scoring=utility, n_jobs=1)
    return model.fit(X, y).predict_set(new, "maximality")


def best_sets(X: Array, y: npt.NDArray[np.intp], new: Array, utility: str) -> Sets:
    """Return the rival's sets of largest expected utility."""
    rival = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
    return set_utility(rival.predict_proba(new), utility)


PUBLISHED = {"box": "raw", "shrinkage": None, "c": 1.0}
METHODS: dict[str, Method] = {
    "published box, c = 1, no shrinkage, maximality (the default before)": by_rule(
        "maximality", **PUBLISHED
    ),
    'box="scaled", c = 1, shrinkage="auto", maximality': by_rule("maximality", box="scaled", c=1.0),
    "`ImpreciseGaussianDiscriminant()`": by_rule(),
    'the same, `rule="maximality"`': by_rule("maximality"),
    'the same, `rule="set_utility"` *': by_rule("set_utility"),
    '`c="auto"`, `rule="maximality"` *': tuned,
    'scikit-learn LDA, `shrinkage="auto"`, best sets *': best_sets,
}


def table(name: str) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return features with missing values imputed, and labels 0, 1, ..."""
    X, y = TUNING[name](return_X_y=True) if name in TUNING else (load(name).X, load(name).y)
    return SimpleImputer().fit_transform(X), np.unique(y, return_inverse=True)[1]


def splits(X: Array, y: npt.NDArray[np.intp], size: int) -> Iterator[list[Any]]:
    """Yield training rows, test rows and their labels."""
    n, n_classes = len(y), y.max() + 1
    n_train = min(size * n_classes or n // 2, MOST_TRAIN)
    if n_train > 0.7 * n or np.bincount(y).min() < 2:
        return
    for seed in SEEDS:
        yield train_test_split(
            X, y, train_size=n_train, test_size=min(MOST_TEST, n - n_train), stratify=y,
            random_state=seed,
        )  # fmt: skip


def measure(name: str) -> Array:
    """Return mean utilities, (sizes, methods, 2); nan where the table has too few rows."""
    X, y = table(name)
    out = np.full((len(SIZES), len(METHODS), 2), np.nan)
    for s, size in enumerate(SIZES):
        found = []
        for train, test, y_train, y_test in splits(X, y, size):
            seen = np.unique(y_train)
            row = []
            for method in METHODS.values():
                worth = []
                for utility, score in UTILITIES.items():
                    sets = np.zeros((len(test), y.max() + 1), dtype=bool)
                    sets[:, seen] = method(train, y_train, test, utility)
                    worth.append(score(y_test, sets))
                row.append(worth)
            found.append(row)
        if found:
            out[s] = np.mean(found, axis=0)
    return out


def main(names: list[str]) -> None:
    """Measure the tables that are named, or all and write the page."""
    warnings.simplefilter("ignore", UserWarning)  # of wide boxes, singular covariances
    measured = []
    for name in names or TABLES:
        measured.append(measure(name))
        overall = np.nanmean(measured[-1], axis=0)
        print(name, " ".join(f"{a:.3f}/{b:.3f}" for a, b in overall), flush=True)
    with_size = np.nanmean(measured, axis=0)  # tables count alike
    everywhere = np.nanmean([np.nanmean(one, axis=0) for one in measured], axis=0)
    columns = [*(f"{size} a class" if size else "half of the rows" for size in SIZES), "mean"]
    lines = ["| sets by | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for m, label in enumerate(METHODS):
        cells = [f"{a:.3f} / {b:.3f}" for a, b in [*with_size[:, m], everywhere[m]]]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if not names:
        page = Path(__file__).parent / "DISCRIMINANT.md"
        draft = page.with_suffix(".tmp")
        head = HEAD.format(seeds=len(SEEDS), tables=len(TABLES))
        draft.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
        draft.replace(page)


if __name__ == "__main__":
    main(sys.argv[1:])
