"""Maps of one class against the rest: what more than two classes add to them."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from dubito.calibration import (
    BetaCalibrator,
    BinningCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    VennAbersCalibrator,
)
from dubito.calibration.one_vs_rest import normalise_bounds, normalise_proba
from dubito.testing.calibrators import draw_scores

PRECISE = [BetaCalibrator, BinningCalibrator, IsotonicCalibrator, PlattCalibrator]
EVIDENTIAL = [
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    VennAbersCalibrator,
]


def base_rate(y, n_classes):
    return (np.bincount(y, minlength=n_classes) + 1) / (len(y) + n_classes)


@pytest.mark.parametrize("kind", PRECISE + EVIDENTIAL)
def test_probabilities_are_mixed_with_the_base_rate(kind):
    scores, y = draw_scores(60, 4)
    calibrator = kind().fit(scores, y)
    events = [m.proba(scores[:, k]) for k, m in enumerate(calibrator.maps_)]
    plain = normalise_proba(np.stack(events, axis=1))
    np.testing.assert_allclose(
        calibrator.predict_proba(scores), (60 * plain + base_rate(y, 4)) / 61, atol=1e-12
    )
    two, labels = draw_scores(60, 2)
    calibrator = kind().fit(two, labels)
    np.testing.assert_allclose(
        calibrator.predict_proba(two)[:, 1], calibrator.maps_[0].proba(two), atol=1e-12
    )


@pytest.mark.parametrize("kind", EVIDENTIAL)
def test_belief_bounds_are_mixed_alike(kind):
    scores, y = draw_scores(60, 4)
    calibrator = kind().fit(scores, y)
    pairs = [m.bounds(scores[:, k]) for k, m in enumerate(calibrator.maps_)]
    lower, upper = normalise_bounds(*(np.stack(side, axis=1) for side in zip(*pairs, strict=True)))
    bounds = calibrator.predict_bounds(scores)
    np.testing.assert_allclose(bounds.lower, (60 * lower + base_rate(y, 4)) / 61, atol=1e-12)
    np.testing.assert_allclose(bounds.upper, (60 * upper + base_rate(y, 4)) / 61, atol=1e-12)
    proba = calibrator.predict_proba(scores)
    for level in (None, 0.5, 0.9):
        lower, upper = calibrator.predict_bounds(scores, level=level)
        assert (lower <= proba + 1e-12).all()
        assert (proba <= upper + 1e-12).all()


@pytest.mark.parametrize(
    "calibrator",
    [
        IsotonicCalibrator(smoothing=0),
        BinningCalibrator(smoothing=0),
        VennAbersCalibrator(multiclass="ovo"),
        *(kind() for kind in EVIDENTIAL),
    ],
    ids=repr,
)
def test_nothing_is_impossible(calibrator):
    """Perfectly separated rows, a class without any, and a row that contradicts them all."""
    y = np.repeat([0, 1, 2], 10)
    scores = 5 * np.eye(4)[y]
    calibrator.set_params(classes=np.arange(4)).fit(scores, y)
    proba = calibrator.predict_proba(scores)
    assert proba.min() >= 0.9 / (31 * 34)  # the base rate of the class without rows, of one row
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert log_loss([3], proba[:1], labels=np.arange(4)) < np.log(31 * 34) + 0.2


def test_weights_are_repeated_rows():
    scores, y = draw_scores(40, 3)
    times = np.resize([1, 2, 3], 40)
    weighted = IsotonicCalibrator().fit(scores, y, sample_weight=times)
    rows = np.repeat(np.arange(40), times)
    repeated = IsotonicCalibrator().fit(scores[rows], y[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(scores), repeated.predict_proba(scores), atol=1e-12
    )
    assert weighted.base_weight_ == pytest.approx(1 / (times.sum() + 1))
