"""Quadratic discriminant analysis as in scikit-learn in 2019: no direction is left out.

Where a class has a singular covariance, directions without variance are divided by rounding errors.
Later versions of scikit-learn reject such classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from experiments.p3.protocol import Floats, Ints, Rows


def predict(train: Rows, X: Floats) -> Ints:
    """Return the most probable class of each row."""
    rows, y = train
    scores = [np.log(np.mean(y == k)) + log_density(rows[y == k], X) for k in range(y.max() + 1)]
    return np.argmax(scores, axis=0)


def log_density(rows: Floats, X: Floats) -> Floats:
    """Return the log density up to a constant, by the singular values of a class."""
    mean = rows.mean(axis=0)
    _, singular, axes = np.linalg.svd(rows - mean, full_matrices=False)
    with np.errstate(all="ignore"):  # a variance of exactly zero gives nan, as in 2019
        variance = singular**2 / (len(rows) - 1)
        placed = (X - mean) @ (axes.T * variance**-0.5)
        result: Floats = -((placed**2).sum(axis=1) + np.log(variance).sum()) / 2
    return result
