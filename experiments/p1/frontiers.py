"""Minary et al. 2017, Figure 1: where in the plane each method starts to reject."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from experiments.p1 import rates
from experiments.p1.claims import COST
from experiments.p1.data import KERNELS, SIMULATED, Cell, blocks, joint_scores

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SIZES = (200, 15)
#: Raw targets have no maximum likelihood estimate in this draw.
VARIANTS = ("smoothed", "ridge")
#: The lines of the grid, each way: a square around both classes.
LINES = np.linspace(-4, 4, 61)


def training_rows() -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the rows that trained the classifiers of the figure: round 0, RBF kernel."""
    X, y = rates.rows_of(_cell(), rates.Settings())
    n = sum(rates.N_TRAIN)
    return X[:n], y[:n]


@cache
def margins(size: int, variant: str) -> dict[str, Floats]:
    """Return how far each method's best support is above 1 - R_rej, (lines, lines).

    A method decides where this is positive, rejects where it is negative, and its frontiers are
    where it is zero.
    """
    cell, settings = _cell(), rates.Settings()
    points = np.stack(np.meshgrid(LINES, LINES), axis=-1).reshape(-1, 2)
    X, y = rates.rows_of(cell, settings)
    both = np.vstack([X, points])
    scores = joint_scores(both, y, blocks(rates.N_TRAIN), KERNELS[cell.kernel])[len(X) :]
    scored = rates.scores_of(cell, settings)
    fresh = rates.joint_calibrator(rates.VARIANTS[variant])
    calibrator = fresh.fit(scored.calibration[:size], scored.labels[:size])
    return {
        method: (support.max(axis=1) - (1 - COST)).reshape(len(LINES), len(LINES))
        for method, (_, _, support) in rates.beliefs_of(calibrator, scores).items()
    }


def rejected_percent(size: int, variant: str) -> dict[str, float]:
    """Return the fraction of the square that each method rejects, in per cent."""
    return {method: 100 * float(np.mean(m < 0)) for method, m in margins(size, variant).items()}


def _cell() -> Cell:
    return Cell(SIMULATED, "rbf", 0)
