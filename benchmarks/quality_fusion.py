"""Measure how good combined classifiers are, and write the tables to FUSION.md (`make bench`).

Five fitted models and a validation set, in random splits: log loss and accuracy on the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dubito.calibration import CalibratedClassifier, EvidentialFusion, EvidentialJointCalibrator
from dubito.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = """# Combination, measured

Log loss / accuracy on test rows, means of {splits} splits; written by `make bench`. Five models are
fitted on the training rows (logistic regression, SVC, naive Bayes, nearest neighbours, forest) and
combined on the validation rows, as many as the column says. The best member is calibrated alone on
them, and chosen by its mean log loss on the test rows: with hindsight. Nothing was chosen on any
table of the first two; breast cancer, wine and digits were looked at while this was made.

"""

#: Data, rows to train on, rows to validate on; table by table.
TASKS = (
    {
        "diabetes, 40": ("diabetes", 150, 40),
        "diabetes, 200": ("diabetes", 150, 200),
        "heart, 40": ("heart", 80, 40),
        "ionosphere, 60": ("ionosphere", 100, 60),
        "australian, 100": ("australian", 150, 100),
    },
    {
        "vehicle, 100": ("vehicle", 200, 100),
        "satimage, 100": ("satimage", 300, 100),
        "satimage, 400": ("satimage", 300, 400),
        "segment, 100": ("segment", 200, 100),
        "vowel, 200": ("vowel", 300, 200),
        "winequality_red, 200": ("winequality_red", 300, 200),
    },
    {
        "breast cancer, 30": (load_breast_cancer, 150, 30),
        "breast cancer, 100": (load_breast_cancer, 150, 100),
        "wine, 40": (load_wine, 60, 40),
        "digits, 100": (load_digits, 400, 100),
        "digits, 400": (load_digits, 400, 400),
    },
)
SPLITS, MOST_TEST = 6, 1000
MODELS = {
    "logistic": LogisticRegression(),
    "svc": SVC(),
    "bayes": GaussianNB(),
    "neighbours": KNeighborsClassifier(),
    "forest": RandomForestClassifier(random_state=0),
}


class Task(NamedTuple):
    """Fitted models, rows to combine them on, and rows to test on."""

    members: list[tuple[str, Any]]
    validation: tuple[Any, Any]
    test: tuple[Any, Any]


def tasks(source: Any, n_train: int, n_validation: int) -> Iterator[Task]:
    """Yield the splits."""
    X, y = (load(source).X, load(source).y) if isinstance(source, str) else source(return_X_y=True)
    often = np.isin(y, [label for label in np.unique(y) if np.sum(y == label) >= 30])
    X, y = X[often], y[often]
    for seed in range(SPLITS):
        X_train, rest, y_train, y_rest = train_test_split(
            X, y, train_size=n_train, stratify=y, random_state=seed
        )
        X_few, X_test, y_few, y_test = train_test_split(
            rest, y_rest, train_size=n_validation, stratify=y_rest, random_state=seed
        )
        scale = StandardScaler().fit(X_train)
        members = [
            (name, FrozenEstimator(clone(model).fit(scale.transform(X_train), y_train)))
            for name, model in MODELS.items()
        ]
        X_test, y_test = X_test[:MOST_TEST], y_test[:MOST_TEST]
        few, test = (scale.transform(X_few), y_few), (scale.transform(X_test), y_test)
        yield Task(members, few, test)


def scores(fitted: Any, task: Task) -> tuple[float, float]:
    """Return log loss and accuracy."""
    X, y = task.test
    return log_loss(y, fitted.predict_proba(X)), fitted.score(X, y)


def best_member(work: list[Task]) -> list[tuple[float, float]]:
    """Return the scores of the member with the least mean loss."""
    alone = [
        [
            scores(CalibratedClassifier(task.members[j][1]).fit(*task.validation), task)
            for task in work
        ]
        for j in range(len(MODELS))
    ]
    return min(alone, key=lambda splits: np.mean([loss for loss, _ in splits]))


METHODS: dict[str, Callable[[Task], Any]] = {
    "`EvidentialFusion(members)`": lambda t: EvidentialFusion(t.members),
    "the same with `ridge=1` (the default before)": lambda t: EvidentialFusion(
        t.members, calibrator=EvidentialJointCalibrator(ridge=1.0)
    ),
    "the same without a ridge": lambda t: EvidentialFusion(
        t.members, calibrator=EvidentialJointCalibrator()
    ),
    '`EvidentialFusion(members, method="independent")`': lambda t: EvidentialFusion(
        t.members, method="independent"
    ),
    'scikit-learn `StackingClassifier(cv="prefit")`': lambda t: StackingClassifier(
        t.members, LogisticRegression(max_iter=10_000), cv="prefit"
    ),
}


def measured(work: dict[str, list[Task]]) -> list[str]:
    """Return the lines of a table."""
    columns = {name: [np.mean(best_member(splits), axis=0)] for name, splits in work.items()}
    for make in METHODS.values():
        for name, splits in work.items():
            found = [scores(make(task).fit(*task.validation), task) for task in splits]
            columns[name].append(np.mean(found, axis=0))
    lines = [
        "| validation rows of | " + " | ".join(work) + " | mean log loss |",
        "|---" * (len(work) + 2) + "|",
    ]
    for place, label in enumerate(["best member, calibrated", *METHODS]):
        cells = [f"{columns[name][place][0]:.3f} / {columns[name][place][1]:.3f}" for name in work]
        mean = np.mean([columns[name][place][0] for name in work])
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {mean:.3f} |")
    return lines


def main() -> None:
    """Measure all and write the tables."""
    page = [HEAD.format(splits=SPLITS)]
    for group in TASKS:
        lines = measured({name: list(tasks(*task)) for name, task in group.items()})
        print("\n".join(lines), flush=True)
        page.append("\n".join(lines) + "\n\n")
    results = Path(__file__).parent / "FUSION.md"
    draft = results.with_suffix(".tmp")
    draft.write_text("".join(page).rstrip() + "\n", encoding="utf-8")
    draft.replace(results)


if __name__ == "__main__":
    main()
