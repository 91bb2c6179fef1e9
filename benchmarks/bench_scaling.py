"""Temperature and vector scaling with many classes against scikit-learn and scipy; bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from scipy.optimize import minimize
from sklearn.calibration import _TemperatureScaling

from dubito.calibration import (
    AutoCalibrator,
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def distorted_logits(rows: int, n_classes: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return random labels and over-confident logits: each class has its own factor and bias."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=rows)
    logits = 2 * rng.normal(size=(rows, n_classes))
    logits[np.arange(rows), y] += 7
    logits -= rng.normal(scale=0.3, size=n_classes)
    logits *= 1.5 * np.exp(rng.normal(scale=0.2, size=n_classes))
    return logits, y


#: Norm of the mean gradient at which both fits of vector scaling end: our default.
GRADIENT = 1e-8


def lbfgs_vector(logits: FloatArray, y: NDArray[np.intp], ours: VectorCalibrator) -> FloatArray:
    """Minimise the objective of `ours`, fitted before, by scipy's L-BFGS-B and vectorised numpy.

    Penalties, initial temperature map and units of the parameters (log-odds) are given. Both end at
    the same norm of the gradient.
    """
    n, n_classes = logits.shape
    top = logits.max(axis=1, keepdims=True)
    u = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    scale = float(np.sqrt((u**2).mean()))
    light = 0.25 / (n + 0.25)
    own = np.bincount(y, u[np.arange(n), y], n_classes)
    own = (1 - light) * own + light / n_classes * u.sum(axis=0)
    counts = (1 - light) * np.bincount(y, minlength=n_classes) + light * n / n_classes
    penalty = np.repeat(ours.ridge_, n_classes)
    norm = np.inf

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal norm
        slope, bias = ours.base_slope_ + x[:n_classes] / scale, x[n_classes:]
        z = slope * u
        z += bias
        top = z.max(axis=1, keepdims=True)
        z -= top
        np.exp(z, out=z)
        total = z.sum(axis=1, keepdims=True)
        value = float((np.log(total) + top).sum()) - slope @ own - bias @ counts
        z /= total
        by_bias = z.sum(axis=0) - counts
        by_slope = (np.einsum("ij,ij->j", z, u) - own) / scale
        value += 0.5 * float(penalty @ x**2)
        gradient = (np.concatenate([by_slope, by_bias]) + penalty * x) / n
        norm = float(np.linalg.norm(gradient))
        return value / n, gradient

    def stop(_: FloatArray) -> None:
        if norm <= GRADIENT:
            raise StopIteration

    options = {"gtol": 0.0, "ftol": 0.0, "maxiter": 2000}
    start = np.zeros(2 * n_classes)
    return minimize(objective, start, jac=True, method="L-BFGS-B", callback=stop, options=options).x


def comparisons() -> list[Comparison]:
    """Return the claims of scaling."""
    logits, y = distorted_logits(50_000, 1_000)
    few, few_y = distorted_logits(2_000, 10)
    many, _ = distorted_logits(100_000, 10)
    matrix = MatrixCalibrator(input="logits").fit(few, few_y)
    temperature = TemperatureCalibrator(input="logits")
    vector = VectorCalibrator(input="logits")
    return [
        Comparison(
            task="temperature scaling, 50,000 x 1,000",
            rival="scikit-learn's temperature scaling",
            ours=lambda: temperature.fit(logits, y),
            theirs=lambda: _TemperatureScaling().fit(logits, y),
            target=3,
            repeats=2,
        ),
        Comparison(
            task="vector scaling with its ridge, 50,000 x 1,000",
            rival="scipy's L-BFGS-B at a ridge already known",
            ours=lambda: vector.fit(logits, y),
            theirs=lambda: lbfgs_vector(logits, y, vector),
            target=2,
            repeats=1,
        ),
        Comparison(
            task="the default calibrator, 2,000 x 10",
            rival="matrix scaling alone: at most 3 times as long",
            ours=lambda: AutoCalibrator(input="logits").fit(few, few_y),
            theirs=lambda: MatrixCalibrator(input="logits").fit(few, few_y),
            target=1 / 3,
            repeats=5,
        ),
        Comparison(
            task="belief and plausibility of matrix scaling, 100,000 x 10",
            rival="its own probabilities: at most 20 times as long",
            ours=lambda: matrix.predict_bounds(many),
            theirs=lambda: matrix.predict_proba(many),
            target=0.05,
            repeats=3,
        ),
        Comparison(
            task="bounds of matrix scaling at a level, 100,000 x 10",
            rival="its own probabilities: at most 20 times as long",
            ours=lambda: matrix.predict_bounds(many, level=0.9),
            theirs=lambda: matrix.predict_proba(many),
            target=0.05,
            repeats=3,
        ),
    ]
