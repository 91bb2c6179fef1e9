"""Joint calibration against one optimiser call for each row and probability, as published."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from scipy.optimize import minimize
from scipy.special import expit, logit

from dubito.calibration import EvidentialJointCalibrator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]


def draw(n: int, n_classifiers: int, n_classes: int = 2) -> tuple[Floats, Ints]:
    """Return random scores, (n, J), or (n, J, K) of more than two classes, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    if n_classes == 2:
        return rng.normal(size=(n, n_classifiers)) + y[:, None], y
    right = 1.5 * np.eye(n_classes)[y][:, None, :]
    return rng.normal(size=(n, n_classifiers, n_classes)) + right, y


def contour_by_optimiser(scores: Floats, y: Ints, query: Floats, theta: Floats) -> Floats:
    """Return contours by one optimisation for every row and probability.

    Minary et al. 2017, eq. 10, started from the estimate.
    """
    positive, negative = int(y.sum()), int(len(y) - y.sum())
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(offset: Floats | float, slopes: Floats, rows: Floats) -> tuple[float, Floats]:
        eta = offset + rows @ slopes
        return float(np.sum(np.logaddexp(0, eta) - target * eta)), rows.T @ (expit(eta) - target)

    ones = np.column_stack([np.ones(len(y)), scores])
    best = minimize(lambda c: loss(0.0, c, ones), np.zeros(ones.shape[1]), jac=True, tol=1e-10)
    values = [
        minimize(
            lambda a, s=s, eta=eta: loss(eta, a, scores - s), best.x[1:], jac=True, tol=1e-8
        ).fun
        for s in query
        for eta in logit(theta)
    ]
    return np.exp(best.fun - np.array(values)).reshape(len(query), len(theta))


def contour_task(n: int, n_classifiers: int, rows: int, target: float) -> Comparison:
    """Return contours of the same rows at 100 probabilities, by both methods."""
    scores, y = draw(n, n_classifiers)
    query = draw(rows, n_classifiers)[0]
    theta = np.linspace(0.005, 0.995, 100)
    fitted = EvidentialJointCalibrator(targets="smoothed").fit(scores, y)
    return Comparison(
        task=f"Joint contour at 100 probabilities, {n_classifiers} scores, {n:,} calibration rows",
        rival="one optimiser call (scipy's BFGS with gradient) for each",
        ours=lambda: fitted.contour(query, theta),
        theirs=lambda: contour_by_optimiser(scores, y, query, theta),
        target=target,
        repeats=3,
    )


def bounds_task(n: int, n_classifiers: int, rows: int, target: float) -> Comparison:
    """Return exact bounds against the mean of a contour at 100 probabilities."""
    scores, y = draw(n, n_classifiers)
    query = draw(rows, n_classifiers)[0]
    theta = np.linspace(0.005, 0.995, 100)
    fitted = EvidentialJointCalibrator(targets="smoothed").fit(scores, y)
    return Comparison(
        task=f"Joint bounds (ours exact), {n_classifiers} scores, {n:,} calibration rows",
        rival="one optimiser call (scipy's BFGS with gradient) at each of 100 probabilities",
        ours=lambda: fitted.predict_bounds(query),
        theirs=lambda: contour_by_optimiser(scores, y, query, theta).mean(axis=1),
        target=target,
        repeats=2,
    )


def level_task() -> Comparison:
    """Return bounds at a level against belief and plausibility of the same rows."""
    scores, y = draw(1_000, 3)
    query = draw(200, 3)[0]
    fitted = EvidentialJointCalibrator().fit(scores, y)
    return Comparison(
        task="Joint bounds at level 0.9, 3 scores, 1,000 calibration rows",
        rival="ours with level=None: belief and plausibility",
        ours=lambda: fitted.predict_bounds(query, level=0.9),
        theirs=lambda: fitted.predict_bounds(query),
        target=0.5,
        repeats=3,
    )


def millisecond_task() -> Comparison:
    """Return bounds at a level against a millisecond of CPU time for each row."""
    scores, y = draw(1_000, 3)
    query = draw(200, 3)[0]
    fitted = EvidentialJointCalibrator(n_jobs=1).fit(scores, y)
    return Comparison(
        task="Joint bounds at level 0.9, 3 scores, 1,000 calibration rows, one core",
        rival="a millisecond for each row",
        ours=lambda: fitted.predict_bounds(query, level=0.9),
        theirs=lambda: _work_for(1e-3 * len(query)),
        target=1,
        repeats=3,
    )


def _work_for(seconds: float) -> None:
    """Use CPU time for the given number of seconds."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def multiclass_task() -> Comparison:
    """Return bounds of the quadratic likelihood against those of the exact one, five classes."""
    scores, y = draw(300, 3, 5)
    query = draw(20, 3, 5)[0]
    exact = EvidentialJointCalibrator(likelihood="exact").fit(scores, y)
    quadratic = EvidentialJointCalibrator(likelihood="quadratic").fit(scores, y)
    return Comparison(
        task="Joint bounds, 3 classifiers of 5 classes, 300 calibration rows, quadratic likelihood",
        rival="ours with the exact likelihood",
        ours=lambda: quadratic.predict_bounds(query),
        theirs=lambda: exact.predict_bounds(query),
        target=5,
        repeats=3,
    )


def multiclass_level_task() -> Comparison:
    """Return bounds at a confidence level against belief and plausibility, five classes."""
    scores, y = draw(300, 3, 5)
    query = draw(20, 3, 5)[0]
    fitted = EvidentialJointCalibrator(likelihood="exact").fit(scores, y)
    return Comparison(
        task="Joint bounds at level 0.9, 3 classifiers of 5 classes, 300 calibration rows",
        rival="belief and plausibility of the same rows",
        ours=lambda: fitted.predict_bounds(query, level=0.9),
        theirs=lambda: fitted.predict_bounds(query),
        target=0.5,
        repeats=3,
    )


def comparisons() -> list[Comparison]:
    """Return the claims of joint calibration."""
    return [
        contour_task(45, 3, 20, target=500),
        bounds_task(45, 3, 20, target=500),
        bounds_task(1_000, 10, 4, target=200),
        level_task(),
        millisecond_task(),
        multiclass_task(),
        multiclass_level_task(),
    ]
