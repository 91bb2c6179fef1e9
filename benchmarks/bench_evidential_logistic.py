"""Evidential logistic calibration against a refit for every probability, and against sigmoids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dubito.calibration import EvidentialLogisticCalibrator, PlattCalibrator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def draw(n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return random scores and labels."""
    rng = np.random.default_rng(0)
    s = 2 * rng.normal(size=n)
    return s, rng.random(n) < expit(s)


def refit_bounds(
    fitted: EvidentialLogisticCalibrator, s: Floats, t: Floats, query: Floats, n_points: int = 32
) -> Floats:
    """Return bounds by quadrature, with one optimiser call for each row and point."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    intercept, slope = fitted.intercept_[0], fitted.slope_[0]

    def nll(offset: float, steepness: float) -> float:
        eta = offset + steepness * s
        return float(np.sum(np.logaddexp(0, eta) - t * eta))

    least = nll(intercept, slope)

    def area(x: float, a: float, b: float) -> float:
        theta = 0.5 * (a + b) + 0.5 * (b - a) * points
        values = [
            minimize_scalar(
                lambda steepness, eta=eta: nll(eta - steepness * x, steepness),
                bracket=(slope, 1.1 * slope),
            ).fun
            for eta in logit(theta)
        ]
        return float(0.5 * (b - a) * weights @ np.exp(least - np.array(values)))

    best = expit(intercept + slope * query)
    return np.array(
        [[p - area(x, 0, p), p + area(x, p, 1)] for x, p in zip(query, best, strict=True)]
    )


def refit_task(n: int, rows: int, target: float) -> Comparison:
    """Return bounds of the same rows from the same fit, by both methods."""
    s, y = draw(n)
    positive, negative = y.sum(), (~y).sum()
    t = np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))
    fitted = EvidentialLogisticCalibrator(targets="smoothed").fit(s, y)
    query = np.linspace(-3, 3, rows)
    return Comparison(
        task=f"Evidential logistic bounds of {rows} rows from {n:,} calibration rows",
        rival="one optimiser call for each row and point (scipy, 32 points a side)",
        ours=lambda: fitted.predict_bounds(query),
        theirs=lambda: refit_bounds(fitted, s, t, query),
        target=target,
        repeats=3,
    )


def level_task(n: int, rows: int, target: float) -> Comparison:
    """Return bounds at a level against belief and plausibility of the same rows."""
    s, y = draw(n)
    fitted = EvidentialLogisticCalibrator().fit(s, y)
    query = np.random.default_rng(1).normal(scale=3, size=rows)
    return Comparison(
        task=f"Evidential logistic bounds at level 0.9 of {rows:,} rows, {n:,} calibration rows",
        rival="ours with level=None: belief and plausibility",
        ours=lambda: fitted.predict_bounds(query, level=0.9),
        theirs=lambda: fitted.predict_bounds(query),
        target=target,
        repeats=3,
    )


def comparisons() -> list[Comparison]:
    """Return the claims of this calibrator."""
    s, y = draw(100_000)
    query = 1.5 * s[::-1].copy()
    classifier = LogisticRegression().fit(s[:, None], y)

    def sigmoid() -> Floats:
        rival = CalibratedClassifierCV(FrozenEstimator(classifier), method="sigmoid")
        return np.asarray(rival.fit(s[:, None], y).predict_proba(query[:, None]))

    return [
        refit_task(200, 10, target=5),
        refit_task(5_000, 4, target=50),
        level_task(200, 20, target=0.5),
        level_task(1_000, 100_000, target=0.5),
        Comparison(
            task="Evidential logistic, fit on 100,000 rows and bounds of 100,000",
            rival="scikit-learn's sigmoid, which gives no bounds",
            ours=lambda: EvidentialLogisticCalibrator().fit(s, y).predict_bounds(query),
            theirs=sigmoid,
            target=0.1,
            repeats=3,
        ),
        Comparison(
            task="Platt, fit on 100,000 rows and probabilities of 100,000",
            rival="scikit-learn's sigmoid",
            ours=lambda: PlattCalibrator(ridge=0).fit(s, y).predict_proba(query),
            theirs=sigmoid,
            target=1,
            repeats=3,
        ),
    ]
