"""Temperature and vector scaling with many classes against scikit-learn and scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from scipy.optimize import minimize
from sklearn.calibration import _TemperatureScaling

from dubito.calibration import TemperatureCalibrator, VectorCalibrator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def distorted_logits(rows: int, n_classes: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Draw logits that are too bold, each class by a factor and a bias of its own."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=rows)
    logits = 2 * rng.normal(size=(rows, n_classes))
    logits[np.arange(rows), y] += 7
    logits -= rng.normal(scale=0.3, size=n_classes)
    logits *= 1.5 * np.exp(rng.normal(scale=0.2, size=n_classes))
    return logits, y


def lbfgs_vector(
    logits: FloatArray, y: NDArray[np.intp], weights: FloatArray, gradient: float
) -> FloatArray:
    """Fit vector scaling by scipy's L-BFGS-B, its objective in vectorised numpy.

    The penalty is `weights` on squared departures from slope 1 and bias 0; the search ends at the
    given norm of the mean gradient.
    """
    n, n_classes = logits.shape
    top = logits.max(axis=1, keepdims=True)
    u = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    rows = np.arange(n)
    start = np.repeat([1.0, 0.0], n_classes)
    own = np.bincount(y, u[rows, y], n_classes)
    counts = np.bincount(y, minlength=n_classes)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        slope, bias = x[:n_classes], x[n_classes:]
        z = slope * u
        z += bias
        top = z.max(axis=1, keepdims=True)
        z -= top
        np.exp(z, out=z)
        total = z.sum(axis=1, keepdims=True)
        value = float((np.log(total) + top).sum()) - slope @ own - bias @ counts
        z /= total
        by_bias = z.sum(axis=0) - counts
        by_slope = np.einsum("ij,ij->j", z, u) - own
        away = x - start
        value += 0.5 * float(weights @ away**2)
        return value / n, (np.concatenate([by_slope, by_bias]) + weights * away) / n

    # scipy stops by the largest entry; a norm of 2K entries is reached somewhat below it.
    options = {"gtol": gradient / np.sqrt(n_classes), "ftol": 0.0, "maxiter": 2000}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def comparisons() -> list[Comparison]:
    """Return the claims of scaling."""
    logits, y = distorted_logits(50_000, 1_000)
    temperature = TemperatureCalibrator(input="logits")
    vector = VectorCalibrator(input="logits")
    # The rival needs minutes at the larger size; it also stops at a gradient 10,000 times ours.
    fewer, y_fewer = distorted_logits(10_000, 500)
    weights = np.repeat(vector.fit(fewer, y_fewer).ridge_, 500)
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
            task="vector scaling with its strengths, 10,000 x 500",
            rival="scipy's L-BFGS-B at strengths already known",
            ours=lambda: vector.fit(fewer, y_fewer),
            theirs=lambda: lbfgs_vector(fewer, y_fewer, weights, 1e-4),
            target=2,
            repeats=1,
        ),
    ]
