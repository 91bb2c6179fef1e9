"""Three Gaussian classes: how often the imprecise discriminant's bounds contain the posterior.

The boxes hold means, with a half-width of c/n (Carranza Alarcón and Destercke 2019) or of c
standard errors. Neither is a confidence level, so nothing is promised here.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity.cells import Cell, Kind, Tallies, grid
from scipy.special import softmax

from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.discriminant.errors import WideBoxWarning

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Settings

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])
COVARIANCE = np.array([[1.0, 0.4], [0.4, 1.0]])
#: Rows of each class.
SIZES, QUICK_SIZES = (10, 30, 100, 300), (10, 100)
MODELS: dict[str, dict[str, Any]] = {
    "c/n, c=1": {"box": "raw", "c": 1.0},
    "c/n, c=2": {"box": "raw", "c": 2.0},
    "standard error, c=1": {"box": "standard_error", "c": 1.0},
    "standard error, c=2": {"box": "standard_error", "c": 2.0},
}
ROWS = 4
#: Factor of the deviations of extreme rows.
EXTREME_SCALE = 3.0


def cells(*, quick: bool) -> list[Cell]:
    """List the cells: n rows of each class."""
    return grid(("tied",), QUICK_SIZES) if quick else grid(("tied", "full"), SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds of a class contain its true posterior probability."""
    rng, tallies = settings.generator(cell), Tallies()
    for _ in tallies.replicates(settings.replicates):
        y = np.repeat(np.arange(len(MEANS)), cell.n)
        X = draw(y, rng)
        queries = {
            "typical": draw(rng.integers(len(MEANS), size=ROWS), rng),
            "extreme": draw(rng.integers(len(MEANS), size=ROWS), rng, EXTREME_SCALE),
        }
        for name, options in MODELS.items():
            model = ImpreciseGaussianDiscriminant(
                covariance_type=cell.case, shrinkage=None, n_jobs=1, **options
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WideBoxWarning)
                model.fit(X, y)
            for query, rows in queries.items():
                tallies.add_bounds(
                    Kind(name, query, None), model.predict_bounds(rows), posterior(rows)
                )
    return tallies.result(cell)


def draw(y: Any, rng: np.random.Generator, scale: float = 1.0) -> Floats:
    """Return a random row of each class in `y`."""
    noise = rng.normal(size=(len(y), 2)) @ np.linalg.cholesky(COVARIANCE).T
    return MEANS[y] + scale * noise


def posterior(X: Floats) -> Floats:
    """Return the true probabilities of the classes, which have equal priors."""
    centred = X[:, None] - MEANS
    distance = np.einsum("nki,ij,nkj->nk", centred, np.linalg.inv(COVARIANCE), centred)
    return softmax(-0.5 * distance, axis=1)
