"""Twenty calibration rows: the case in which calibration most easily does harm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dubito.calibration import BetaCalibrator, PlattCalibrator, TemperatureCalibrator


@pytest.fixture(scope="module", params=[True, False], ids=["stratified", "plain"])
def splits(request):
    X, y = load_breast_cancer(return_X_y=True)
    found = []
    for seed in range(30):
        train, rest, y_train, y_rest = train_test_split(
            X, y, train_size=200, stratify=y if request.param else None, random_state=seed
        )
        few, test, y_few, y_test = train_test_split(
            rest, y_rest, train_size=20, stratify=y_rest if request.param else None,
            random_state=seed,
        )  # fmt: skip
        margin = make_pipeline(StandardScaler(), SVC()).fit(train, y_train).decision_function
        found.append((margin(few), y_few, margin(test), y_test))
    return found


def mean_loss(calibrator, splits):
    return np.mean([log_loss(yt, calibrator.fit(s, y).predict_proba(t)) for s, y, t, yt in splits])


def test_best_default_is_below_its_target(splits):
    # probmetrics' ts-mix has 0.144, scikit-learn's sigmoid 0.179.
    calibrators = [BetaCalibrator(), PlattCalibrator(), TemperatureCalibrator()]
    assert min(mean_loss(c, splits) for c in calibrators) <= 0.150


def test_a_chosen_ridge_beats_smoothed_targets(splits):
    chosen, smoothed = PlattCalibrator(ridge="auto"), PlattCalibrator()
    assert mean_loss(chosen, splits) <= 0.150 < mean_loss(smoothed, splits)


def test_third_coefficient_does_not_hurt(splits):
    assert mean_loss(BetaCalibrator(), splits) <= 0.150
