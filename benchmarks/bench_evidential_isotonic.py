"""Evidential isotonic calibration against refits, and against plain isotonic regression."""

from __future__ import annotations

import numpy as np
from comparison import Comparison
from sklearn.isotonic import IsotonicRegression

from dubito.calibration import EvidentialIsotonicCalibrator


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random scores, and events whose log-odds are linear in them."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    return score, (rng.random(n) < 1 / (1 + np.exp(-2 * score))).astype(np.float64)


def log_likelihood(value: np.ndarray, event: np.ndarray) -> float:
    """Return the log-likelihood of probabilities of events."""
    with np.errstate(divide="ignore"):
        return float(np.log(np.where(event > 0, value, 1 - value)).sum())


def refit_contour(
    score: np.ndarray, event: np.ndarray, new: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Return contours by fitting both sides again, bounded by θ, for each row and θ."""
    best = log_likelihood(IsotonicRegression().fit_transform(score, event), event)
    rows = []
    for s in new:
        left, right = score < s, score > s
        row = []
        for t in theta:
            low = IsotonicRegression(y_max=t).fit_transform(score[left], event[left])
            high = IsotonicRegression(y_min=t).fit_transform(score[right], event[right])
            total = log_likelihood(low, event[left]) + log_likelihood(high, event[right])
            row.append(np.exp(total - best))
        rows.append(row)
    return np.array(rows)


def bounds_from_contour(contour: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return belief and plausibility by the trapezoidal rule."""
    step = theta[1] - theta[0]
    rising = np.maximum.accumulate(contour, axis=1)
    falling = np.maximum.accumulate(contour[:, ::-1], axis=1)
    area = [step * (y[:, 1:] + y[:, :-1]).sum(axis=1) / 2 for y in (rising, falling)]
    return 1 - area[0], area[1]


def comparisons() -> list[Comparison]:
    """Return the claims of evidential isotonic calibration."""
    score, event = draw(1_000, 0)
    new = np.linspace(-2, 2, 10) + 1e-9
    theta = np.linspace(0.005, 0.995, 100)
    ours = EvidentialIsotonicCalibrator().fit(score, event)
    np.testing.assert_allclose(
        ours.contour(new[:2], theta), refit_contour(score, event, new[:2], theta), atol=1e-9
    )
    many, many_event = draw(100_000, 1)
    many_new, _ = draw(100_000, 2)
    return [
        Comparison(
            task="Isotonic contours, 1,000 rows to fit, 10 new rows at 100 probabilities",
            rival="scikit-learn's IsotonicRegression refitted for each",
            ours=lambda: EvidentialIsotonicCalibrator().fit(score, event).contour(new, theta),
            theirs=lambda: refit_contour(score, event, new, theta),
            target=100,
            repeats=3,
        ),
        Comparison(
            task="Isotonic bounds (ours exact), 1,000 rows to fit, 10 new rows",
            rival="scikit-learn's IsotonicRegression refitted at 100 probabilities for each",
            ours=lambda: EvidentialIsotonicCalibrator().fit(score, event).predict_bounds(new),
            theirs=lambda: bounds_from_contour(refit_contour(score, event, new, theta), theta),
            target=100,
            repeats=3,
        ),
        Comparison(
            task="Isotonic bounds, 100,000 rows to fit, 100,000 new rows",
            rival="scikit-learn's IsotonicRegression, fitted once, without bounds",
            ours=lambda: (
                EvidentialIsotonicCalibrator().fit(many, many_event).predict_bounds(many_new)
            ),
            theirs=lambda: (
                IsotonicRegression(out_of_bounds="clip").fit(many, many_event).predict(many_new)
            ),
            target=0.01,
            repeats=3,
        ),
        Comparison(
            task="Isotonic bounds at level 0.9, 10,000 rows to fit, 10,000 new rows",
            rival="belief and plausibility, the same call without a level",
            ours=lambda: (
                EvidentialIsotonicCalibrator()
                .fit(many[:10_000], many_event[:10_000])
                .predict_bounds(many_new[:10_000], level=0.9)
            ),
            theirs=lambda: (
                EvidentialIsotonicCalibrator()
                .fit(many[:10_000], many_event[:10_000])
                .predict_bounds(many_new[:10_000])
            ),
            target=0.5,
            repeats=3,
        ),
    ]
