"""Figures 1 to 3, one round at a time: three classifiers, calibrated jointly, with a reject option.

Nothing here prints, reads options or writes files.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p1.data import DATASETS, KERNELS, SIMULATED, Cell, blocks, draw, joint_scores

from dubito.calibration import EvidentialJointCalibrator
from dubito.calibration.errors import CalibrationInputError
from dubito.decision import reject

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

N_TRAIN = (30, 30, 30)
#: Rows that calibrate: of the simulated data for Figures 1 and 2 as well. They are nested, and the
#: rows after the largest set test, so that sizes are compared on the same test rows.
SIZES = {dataset: (200, 45, 15) if dataset == SIMULATED else (45, 15) for dataset in DATASETS}
N_TEST_SIMULATED = 100

METHODS = ("probabilistic", "optimistic", "pessimistic")
#: The reject costs of Figure 3.
COSTS = np.linspace(0, 1, 101).round(2)

#: What the likelihood is: with raw targets, as in the paper (eq. 5), it often has no maximum at 15
#: rows; the little ridge stands for a maximiser that stops somewhere on its way to infinity.
VARIANTS: dict[str, dict[str, Any]] = {
    "smoothed": {"targets": "smoothed"},
    "raw": {"targets": "raw"},
    "ridge": {"targets": "raw", "ridge": 0.01},
}

#: Raise when a change makes older results wrong: their folder is then left alone.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What the numbers of one round depend on, besides dataset, kernel and round."""

    seed: int = 0
    name: str = "rates"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "n_train": list(N_TRAIN),
            "sizes": {dataset: list(sizes) for dataset, sizes in SIZES.items()},
            "n_test_simulated": N_TEST_SIMULATED,
            "kernels": {name: list(kernel) for name, kernel in KERNELS.items()},
            "variants": VARIANTS,
            "costs": COSTS.tolist(),
        }


class Scored(NamedTuple):
    """Scores (n, 3) and classes of the rows that calibrate and of those that test."""

    calibration: Floats
    labels: Ints
    test: Floats
    truth: Ints


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how many test rows each method accepts, and gets wrong, at every cost of rejecting."""
    start = perf_counter()
    scored = scores_of(cell, settings)
    counts = {
        str(size): {
            variant: calibrated_counts(scored, size, options)
            for variant, options in VARIANTS.items()
        }
        for size in SIZES[cell.dataset]
    }
    return {
        **cell._asdict(),
        "n_test": len(scored.truth),
        "counts": counts,
        "seconds": perf_counter() - start,
    }


def scores_of(cell: Cell, settings: Settings) -> Scored:
    """Draw rows, train the three classifiers and return their scores of the rows left."""
    X, y = rows_of(cell, settings)
    scores = joint_scores(X, y, blocks(N_TRAIN), KERNELS[cell.kernel])
    first, last = sum(N_TRAIN), sum(N_TRAIN) + max(SIZES[cell.dataset])
    return Scored(scores[first:last], y[first:last], scores[last:], y[last:])


def rows_of(cell: Cell, settings: Settings) -> tuple[Floats, Ints]:
    """Return the rows of a round: those that train, then those that calibrate, then the test."""
    n = sum(N_TRAIN) + max(SIZES[cell.dataset]) + N_TEST_SIMULATED
    return draw(cell.dataset, (settings.seed, cell.round), n_simulated=n)


def calibrated_counts(
    scored: Scored, size: int, options: Mapping[str, Any]
) -> dict[str, dict[str, list[int]]] | None:
    """Calibrate on the first rows and count; None where the likelihood has no maximum."""
    try:
        calibrator = joint_calibrator(options).fit(scored.calibration[:size], scored.labels[:size])
    except CalibrationInputError:
        return None
    beliefs = beliefs_of(calibrator, scored.test)
    return {method: counts_at_costs(*beliefs[method], scored.truth) for method in METHODS}


def joint_calibrator(options: Mapping[str, Any]) -> EvidentialJointCalibrator:
    """Return a fresh calibrator; 15 rows may lack a class, so the classes are named."""
    return EvidentialJointCalibrator(classes=[0, 1], n_jobs=1, **options)


def beliefs_of(calibrator: EvidentialJointCalibrator, scores: Floats) -> dict[str, Any]:
    """Return for each method what it believes, how it decides, and the support of each class."""
    proba, bounds = calibrator.predict_proba(scores), calibrator.predict_bounds(scores)
    return {
        "probabilistic": (proba, "pignistic", proba),
        "optimistic": (bounds, "optimistic", bounds.upper),
        "pessimistic": (bounds, "pessimistic", bounds.lower),
    }


def counts_at_costs(
    belief: Any, strategy: str, support: Floats, truth: Ints
) -> dict[str, list[int]]:
    """Count the accepted and the wrong rows at each cost of rejecting."""
    accepted = np.array([~reject(belief, cost, strategy) for cost in COSTS])
    wrong = support.argmax(axis=1) != truth
    return {
        "accepted": accepted.sum(axis=1).tolist(),
        "wrong": (accepted & wrong).sum(axis=1).tolist(),
    }
