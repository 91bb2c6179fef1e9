"""One round of Minary et al. 2017, Figures 1 to 3: joint calibration with a reject option.

This module does not print, read options or write files.
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
#: Calibration rows; 200 are those of Figures 1 and 2, for the simulated data only. The sets are
#: nested, and the rows after the largest set test: all sizes have the same test rows.
SIZES = {dataset: (200, 45, 15) if dataset == SIMULATED else (45, 15) for dataset in DATASETS}
N_TEST_SIMULATED = 100

METHODS = ("probabilistic", "optimistic", "pessimistic")
#: The reject costs of Figure 3.
COSTS = np.linspace(0, 1, 101).round(2)

#: Likelihoods: with raw targets, as in the paper (eq. 5), there is often no maximum at 15 rows; the
#: small ridge stands for an optimiser that stops before the coefficients diverge.
VARIANTS: dict[str, dict[str, Any]] = {
    "smoothed": {"targets": "smoothed"},
    "raw": {"targets": "raw"},
    "ridge": {"targets": "raw", "ridge": 0.01},
}

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides dataset, kernel and round."""

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
    """Return how many test rows each method accepts, and of these gets wrong, at every cost."""
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
    """Return the scores of three classifiers, trained on the first rows, of the other rows."""
    X, y = rows_of(cell, settings)
    scores = joint_scores(X, y, blocks(N_TRAIN), KERNELS[cell.kernel])
    first, last = sum(N_TRAIN), sum(N_TRAIN) + max(SIZES[cell.dataset])
    return Scored(scores[first:last], y[first:last], scores[last:], y[last:])


def rows_of(cell: Cell, settings: Settings) -> tuple[Floats, Ints]:
    """Return the rows of a round: for training, then for calibration, then for the test."""
    n = sum(N_TRAIN) + max(SIZES[cell.dataset]) + N_TEST_SIMULATED
    return draw(cell.dataset, (settings.seed, cell.round), n_simulated=n)


def calibrated_counts(
    scored: Scored, size: int, options: Mapping[str, Any]
) -> dict[str, dict[str, list[int]]] | None:
    """Return the counts after calibration on the first rows; None without an estimate."""
    try:
        calibrator = joint_calibrator(options).fit(scored.calibration[:size], scored.labels[:size])
    except CalibrationInputError:
        return None
    beliefs = beliefs_of(calibrator, scored.test)
    return {method: counts_at_costs(*beliefs[method], scored.truth) for method in METHODS}


def joint_calibrator(options: Mapping[str, Any]) -> EvidentialJointCalibrator:
    """Return an unfitted calibrator; 15 rows may lack a class, so the classes are given."""
    return EvidentialJointCalibrator(classes=[0, 1], n_jobs=1, **options)


def beliefs_of(calibrator: EvidentialJointCalibrator, scores: Floats) -> dict[str, Any]:
    """Return, for each method, the input of `reject`, its strategy, and the support of classes."""
    proba, bounds = calibrator.predict_proba(scores), calibrator.predict_bounds(scores)
    return {
        "probabilistic": (proba, "pignistic", proba),
        "optimistic": (bounds, "optimistic", bounds.upper),
        "pessimistic": (bounds, "pessimistic", bounds.lower),
    }


def counts_at_costs(
    belief: Any, strategy: str, support: Floats, truth: Ints
) -> dict[str, list[int]]:
    """Return the numbers of accepted rows, and of wrong ones among them, at each cost."""
    accepted = np.array([~reject(belief, cost, strategy) for cost in COSTS])
    wrong = support.argmax(axis=1) != truth
    return {
        "accepted": accepted.sum(axis=1).tolist(),
        "wrong": (accepted & wrong).sum(axis=1).tolist(),
    }
