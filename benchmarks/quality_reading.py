"""Measure the effect of the kind of scores; writes the table to READING.md (`make bench`).

The same fitted model, calibration rows and test rows, with scores read in two ways: as calibrators
read them before (`decision_function` as margins, else probabilities), and as `CalibratedClassifier`
reads them. The base rate that lifted maps mix in is part of both. Probabilities by isotonic maps
without it are those of `plain_isotonic`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dubito.calibration import (
    CalibratedClassifier,
    IsotonicCalibrator,
    MatrixCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)
from dubito.calibration.one_vs_rest import normalise_proba
from dubito.datasets import load
from dubito.metrics import aurc

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Task = tuple[Any, Any, Any, Any, Any]

HEAD = """# Scores read for what they are, measured

Mean log loss on test rows over three splits, lower is better, before → after; written by
`make bench`. A model is fitted to 30 % of the rows (at most 2,000), another 1,000 (digits, vowel:
300) calibrate, the others (at most 5,000) test. Before: `decision_function` as margins, else
probabilities; after: what `CalibratedClassifier` reads. How scores are read was chosen on digits,
breast cancer and wine; the other data sets chose nothing, but that satimage was looked at while
ways to limit log-probabilities of naive Bayes were compared.

"""

MODELS = {
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "GaussianNB": GaussianNB(),
    "SVC": make_pipeline(StandardScaler(), SVC()),
}
CALIBRATORS = {
    "temperature": TemperatureCalibrator(),
    "matrix": MatrixCalibrator(),
    "Platt": PlattCalibrator(),
    "isotonic": IsotonicCalibrator(),
}
DATA = ["digits", "satimage", "pendigits", "optdigits", "vowel", "segment", "waveform", "letter"]


def tasks(name: str, estimator: Any) -> Iterator[Task]:
    """Yield a fitted model, rows to calibrate on and rows to test on."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = load(name)
        X, y = data.X, np.unique(data.y, return_inverse=True)[1]
    few = 300 if name in {"digits", "vowel"} else 1000
    for seed in range(3):
        X_train, rest, y_train, y_rest = train_test_split(
            X, y, train_size=min(2000, int(0.3 * len(y))), stratify=y, random_state=seed
        )
        X_few, X_test, y_few, y_test = train_test_split(
            rest, y_rest, train_size=few, stratify=y_rest, random_state=seed
        )
        test = slice(0, 5000)
        yield clone(estimator).fit(X_train, y_train), X_few, y_few, X_test[test], y_test[test]


def before(task: Task, calibrator: Any) -> Floats:
    """Return probabilities of scores as they were read before."""
    model, X_few, y_few, X_test, _ = task
    margins = hasattr(model, "decision_function")
    method = model.decision_function if margins else model.predict_proba
    fresh = clone(calibrator).set_params(input="margin" if margins else "proba")

    def scores(X: Any) -> Floats:
        table = np.asarray(method(X))
        return table if margins else table / table.sum(axis=1, keepdims=True)

    return fresh.fit(scores(X_few), y_few).predict_proba(scores(X_test))


def after(task: Task, calibrator: Any) -> Floats:
    """Return probabilities of scores as they are read now."""
    model, X_few, y_few, X_test, _ = task
    clf = CalibratedClassifier(FrozenEstimator(model), calibrator).fit(X_few, y_few)
    return clf.predict_proba(X_test)


def plain_isotonic(task: Task) -> Floats:
    """Return probabilities of isotonic maps of the new scores, without smoothing or base rate."""
    model, X_few, y_few, X_test, _ = task
    clf = CalibratedClassifier(FrozenEstimator(model), IsotonicCalibrator(smoothing=0))
    calibrator = clf.fit(X_few, y_few).calibrated_classifiers_[0].calibrator
    odds = calibrator._log_odds(clf._scores_of_single_pair(X_test))
    return normalise_proba(
        np.stack([m.proba(odds[:, k]) for k, m in enumerate(calibrator.maps_)], 1)
    )


def risk(proba: Floats, y: Any) -> float:
    """Return the area under the risk-coverage curve."""
    return aurc(y, proba.argmax(axis=1), proba.max(axis=1))


def main() -> None:
    """Measure all and write the tables."""
    tables: dict[str, list[str]] = {}
    mixing = []
    for name in DATA:
        for kind, model in MODELS.items():
            group = list(tasks(name, model))
            cells = []
            for calibrator in CALIBRATORS.values():
                both = [
                    np.mean([log_loss(task[-1], read(task, calibrator)) for task in group])
                    for read in (before, after)
                ]
                cells.append(f"{both[0]:.3f} → {both[1]:.3f}")
            if kind == "SVC":
                both = [
                    np.mean([risk(read(task, CALIBRATORS["matrix"]), task[-1]) for task in group])
                    for read in (before, after)
                ]
                cells.append(f"{both[0]:.4f} → {both[1]:.4f}")
            tables.setdefault(kind, []).append(f"| {name} | " + " | ".join(cells) + " |")
            print(kind, tables[kind][-1], flush=True)
            if kind == "LogisticRegression":
                losses = [
                    np.mean([_clipped_loss(task[-1], plain_isotonic(task)) for task in group]),
                    np.mean(
                        [
                            log_loss(task[-1], after(task, IsotonicCalibrator(smoothing=0)))
                            for task in group
                        ]
                    ),
                ]
                zeros = np.mean(
                    [(p[np.arange(len(t[-1])), t[-1]] == 0).mean() for t in group
                     for p in [plain_isotonic(t)]]
                )  # fmt: skip
                mixing.append(f"| {name} | {zeros:.2%} | {losses[0]:.3f} → {losses[1]:.3f} |")
    text = HEAD
    for kind, lines in tables.items():
        columns = [*CALIBRATORS, *(["AURC, matrix"] if kind == "SVC" else [])]
        text += f"## {kind}\n\n| data | " + " | ".join(columns) + " |\n"
        text += "|---|" + "---|" * len(columns) + "\n" + "\n".join(lines) + "\n\n"
    text += (
        "## The base rate in lifted maps\n\nIsotonic maps of logistic regression without smoothing "
        "of their own: test rows whose class has\nprobability 0 without the base rate, and the log "
        "loss without it (zeros counted as 1e-15) and with it.\n\n| data | zeros | log loss |\n"
        "|---|---|---|\n" + "\n".join(mixing) + "\n"
    )
    results = Path(__file__).parent / "READING.md"
    draft = results.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(results)


def _clipped_loss(y: Any, proba: Floats) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], 1e-15)).mean())


if __name__ == "__main__":
    main()
