"""Log loss on the ten digits, five splits: no worse than the best published package."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from dubito.calibration import MatrixCalibrator, TemperatureCalibrator, VectorCalibrator


@cache
def splits(kind):
    """Scores and labels to calibrate on and to test on, for seeds 0 to 4."""
    X, y = load_digits(return_X_y=True)
    parts = []
    for seed in range(5):
        rest, test, y_rest, y_test = train_test_split(
            X / 16, y, test_size=0.4, stratify=y, random_state=seed
        )
        train, calibration, y_train, y_calibration = train_test_split(
            rest, y_rest, test_size=0.4, stratify=y_rest, random_state=seed
        )
        if kind == "proba":
            score = GaussianNB().fit(train, y_train).predict_proba
        else:
            score = LinearSVC().fit(train, y_train).decision_function
        parts.append((score(calibration), y_calibration, score(test), y_test))
    return parts


@pytest.mark.parametrize(
    ("calibrator", "kind", "target"),
    [
        (TemperatureCalibrator, "proba", 0.599),
        (TemperatureCalibrator, "margin", 0.144),
        (VectorCalibrator, "proba", 0.52),
        (VectorCalibrator, "margin", 0.141),
        (MatrixCalibrator, "proba", 0.485),
        (MatrixCalibrator, "margin", 0.138),
    ],
)
def test_log_loss_is_within_target(calibrator, kind, target):
    losses = [
        log_loss(y_test, calibrator(input=kind).fit(scores, y).predict_proba(test))
        for scores, y, test, y_test in splits(kind)
    ]
    assert np.mean(losses) <= target
