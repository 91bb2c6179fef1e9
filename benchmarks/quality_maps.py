"""Measure each calibrator where constants were chosen, and write MAPS.md (`make bench`).

Mean log loss on test rows; lower is better. The protocols are those of the tests
`tests/calibration/test_quality_*.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito import calibration
from dubito.calibration import CalibratedClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    Task = tuple[Any, Any, Any, Any, Any]

HEAD = """# Each calibrator, on data that chose constants

Mean log loss on test rows, lower is better; written by `make bench`.

- digits: scikit-learn's, five splits; 647 rows train, 431 calibrate, 719 test.
- breast cancer: thirty splits; 200 rows train a scaled SVC, **20** calibrate, 349 test.

| calibrator | digits, GaussianNB | digits, LinearSVC | breast cancer, 20 rows |
|---|---|---|---|
"""

OURS = {
    f"{name}()": getattr(calibration, name)()
    for name in calibration.__all__
    if name.endswith("Calibrator")
} | {
    'EvidentialMultinomialCalibrator(targets="light")': (
        calibration.EvidentialMultinomialCalibrator(targets="light")
    ),
    'PlattCalibrator(ridge="auto")': calibration.PlattCalibrator(ridge="auto"),
}
THEIRS = ["sigmoid", "isotonic", "temperature"]


def digits(estimator: Any) -> Iterator[Task]:
    """Yield a fitted model, rows to calibrate on and rows to test on."""
    X, y = load_digits(return_X_y=True)
    for seed in range(5):
        rest, X_test, y_rest, y_test = train_test_split(
            X / 16, y, test_size=0.4, stratify=y, random_state=seed
        )
        X_train, X_few, y_train, y_few = train_test_split(
            rest, y_rest, test_size=0.4, stratify=y_rest, random_state=seed
        )
        yield clone(estimator).fit(X_train, y_train), X_few, y_few, X_test, y_test


def breast_cancer() -> Iterator[Task]:
    """Yield the same for two classes, with hardly any rows to calibrate on."""
    X, y = load_breast_cancer(return_X_y=True)
    for seed in range(30):
        X_train, rest, y_train, y_rest = train_test_split(
            X, y, train_size=200, stratify=y, random_state=seed
        )
        X_few, X_test, y_few, y_test = train_test_split(
            rest, y_rest, train_size=20, stratify=y_rest, random_state=seed
        )
        model = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
        yield model, X_few, y_few, X_test, y_test


def ours(name: str, task: Task) -> float:
    """Return the loss of one of our calibrators."""
    model, X_few, y_few, X_test, y_test = task
    fitted = CalibratedClassifier(FrozenEstimator(model), OURS[name]).fit(X_few, y_few)
    return log_loss(y_test, fitted.predict_proba(X_test))


def theirs(method: str, task: Task) -> float:
    """Return the loss of scikit-learn's calibration."""
    model, X_few, y_few, X_test, y_test = task
    fitted = CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X_few, y_few)
    return log_loss(y_test, fitted.predict_proba(X_test))


def main() -> None:
    """Measure all and write the table."""
    tasks = [list(digits(GaussianNB())), list(digits(LinearSVC())), list(breast_cancer())]
    rows = [(f"`{name}`", ours, name) for name in sorted(OURS)]
    rows += [(f"scikit-learn {method}", theirs, method) for method in THEIRS]
    lines = []
    for label, loss, name in rows:
        means = [np.mean([loss(name, task) for task in group]) for group in tasks]
        lines.append(f"| {label} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
        print(lines[-1], flush=True)
    results = Path(__file__).parent / "MAPS.md"
    draft = results.with_suffix(".tmp")
    draft.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(results)


if __name__ == "__main__":
    main()
