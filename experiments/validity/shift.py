"""Rows of a shifted distribution: how many are unfamiliar, and coverage of the bounds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity.cells import LEVEL, Cell, Kind, Tallies, grid, holds
from experiments.validity.more_classes import draw_labels
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dubito.calibration import CalibratedClassifier, EvidentialLogisticCalibrator
from dubito.calibration.errors import MisfitWarning
from dubito.conformal import NoveltyAwareClassifier

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Settings

FEATURES = 4
RATE = 0.02
#: How far the mean of the new rows lies from that of the training rows, in standard deviations.
SHIFTS = {"none": 0.0, "two": 2.0, "four": 4.0}
SIZES, QUICK_SIZES = (100, 300, 1000), (300,)
ROWS = 50


def proba(X: Floats) -> Floats:
    """Return the true probabilities: linear log-odds where training rows are, others beyond."""
    z = X[:, 0] + 0.5 * X[:, 1]
    p = expit(2 * np.where(np.abs(X[:, 2]) < 3, z, -z))
    return np.column_stack([1 - p, p])


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    return grid(("gaussian",), QUICK_SIZES if quick else SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the fraction of familiar rows, and of bounds that contain the probability."""
    rng, tallies = settings.generator(cell), Tallies()
    for _ in tallies.replicates(settings.replicates):
        X = rng.normal(size=(cell.n, FEATURES))
        y = draw_labels(proba(X), rng)
        calibrated = CalibratedClassifier(
            LogisticRegression(), EvidentialLogisticCalibrator(), cv=3
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MisfitWarning)
            aware = NoveltyAwareClassifier(calibrated, rate=RATE).fit(X, y)
            for name, shift in SHIFTS.items():
                rows = rng.normal(size=(ROWS, FEATURES))
                rows[:, 2] += shift
                promise = 1 - RATE if shift == 0 else None
                familiar = aware.familiarity(rows) > RATE
                tallies.add(Kind("untouched", f"shift {name}", promise), familiar)
                truth = proba(rows)
                for words, model in {"plain": aware.estimator_, "aware": aware}.items():
                    lower, upper = model.predict_bounds(rows, level=LEVEL)
                    kind = Kind(f"level 0.9, {words}", f"shift {name}", None)
                    tallies.add(kind, holds(lower, upper, truth), upper - lower)
    return tallies.result(cell)
