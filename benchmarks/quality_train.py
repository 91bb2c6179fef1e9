"""Measure the effect of calibration in the default of `dubito train`, on test rows.

    python benchmarks/quality_train.py

Before: evidential-logistic, uncalibrated. After: calibrated-logistic. Three splits of each data set
(half of the rows, at most 1,000, to train on), and two simulations of 200 classes with ten rows
each. It prints the table in docs/results/measured.md; nothing was chosen on these data.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from dubito.cli.recipes import RECIPES, ColumnPlan
from dubito.datasets import load
from dubito.metrics import expected_calibration_error

NAMES = (
    *("australian", "heart", "ionosphere", "diabetes", "vehicle", "vowel", "segment", "satimage"),
    *("optdigits", "pendigits", "usps", "waveform", "seeds", "saheart", "winequality_red"),
)
MODELS = ("evidential-logistic", "calibrated-logistic")
MOST_ROWS = 1000


def split(name, seed):
    """Return training rows and labels, then test rows and labels."""
    data = load(name)
    y = np.asarray(data.y)
    n = min(len(y) // 2, MOST_ROWS)
    parts = train_test_split(as_table(data.X), y, train_size=n, random_state=seed, stratify=y)
    return parts[0], parts[2], parts[1], parts[3]


def many_classes(spread, n_classes=200):
    """Return ten training and twenty test rows of each of many Gaussian classes."""
    rng = np.random.default_rng(0)
    centre = spread * rng.normal(size=(n_classes, 20))
    drawn = []
    for rows in (10, 20):
        y = np.repeat(np.arange(n_classes), rows)
        drawn += [as_table(centre[y] + rng.normal(size=(len(y), 20))), y]
    return drawn


def as_table(X):
    """Return rows as the command line reads them, with named columns."""
    values = np.asarray(X, dtype=float)
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(values.shape[1])])


def measured(model, X, y, X_test, y_test):
    """Return calibration error, log loss and seconds of a model."""
    folds = min(5, int(np.unique(y, return_counts=True)[1].max()))
    plan = ColumnPlan(dict.fromkeys(X.columns, "number"), impute=False, folds=folds, seed=0)
    start = time.perf_counter()
    fitted = RECIPES[model].build(plan).fit(X, y)
    seconds = time.perf_counter() - start
    proba = fitted.predict_proba(X_test)
    error = expected_calibration_error(y_test, proba, classes=fitted.classes_)
    return error, log_loss(y_test, proba, labels=fitted.classes_), seconds


def main():
    """Print a row for each problem."""
    warnings.simplefilter("ignore")
    problems = {name: [split(name, seed) for seed in range(3)] for name in NAMES}
    problems |= {f"200 classes, spread {s}": [many_classes(s)] for s in (1.0, 1.5)}
    print("| data | ECE before | after | log loss before | after | seconds before | after |")
    print("|---|---|---|---|---|---|---|")
    for name, parts in problems.items():
        before, after = (
            np.mean([measured(model, *part) for part in parts], axis=0) for model in MODELS
        )
        cells = " | ".join(f"{b:.3f} | {a:.3f}" for b, a in zip(before, after, strict=True))
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
