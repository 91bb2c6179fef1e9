"""Joint calibration against independent calibration and Dempster's rule, one round at a time.

Two classifiers are trained on 30 rows, the third on a growing number. This module does not print,
read options or write files.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.p1.data import KERNELS, Cell, blocks, draw, joint_scores

from dubito.belief import dempster
from dubito.calibration import EvidentialJointCalibrator, EvidentialLogisticCalibrator

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

N_OTHERS = 30
N_THIRD = (10, 30, 50, 100)
#: Rows that calibrate each classifier: 15 each, or as many as train it.
SCHEMES = ("fixed", "growing")
N_CALIBRATION = 15
#: Number of test rows, as in the paper's simulated data; sizes that leave fewer than LEAST_TEST
#: are skipped.
N_TEST = 100
LEAST_TEST = 50

#: "independent" is that of Xu et al. 2016: each classifier is calibrated on its own rows.
#: "independent_all" calibrates each on the rows of all three, as joint calibration does. The others
#: are the same with probabilities, multiplied, in place of masses.
METHODS = (
    "joint",
    "independent",
    "independent_all",
    "joint_probabilistic",
    "independent_probabilistic",
    "independent_all_probabilistic",
)

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides dataset, kernel and round."""

    seed: int = 0
    name: str = "comparison"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "n_others": N_OTHERS,
            "n_third": list(N_THIRD),
            "n_calibration": N_CALIBRATION,
            "least_test": LEAST_TEST,
            "n_test": N_TEST,
            "kernels": {name: list(kernel) for name, kernel in KERNELS.items()},
        }


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the error, in per cent of the test rows, by scheme, third training size and method."""
    start = perf_counter()
    errors = {
        scheme: {
            str(third): found
            for third in N_THIRD
            if (found := errors_of(cell, settings, scheme, third))
        }
        for scheme in SCHEMES
    }
    return {**cell._asdict(), "error": errors, "seconds": perf_counter() - start}


def errors_of(cell: Cell, settings: Settings, scheme: str, third: int) -> dict[str, float]:
    """Return the errors of all methods; empty where too few rows are left to test."""
    sizes = training, calibration = sizes_of(scheme, third)
    n_used = sum(map(sum, sizes))
    seed = (settings.seed, cell.round)
    X, y = draw(cell.dataset, seed, n_simulated=n_used + N_TEST)
    test = np.arange(n_used, len(y))[:N_TEST]
    if len(test) < LEAST_TEST:
        return {}
    rows = blocks((*training, *calibration))
    scores = joint_scores(X, y, rows[:3], KERNELS[cell.kernel])
    supports = supports_of(scores, y, rows[3:], test)
    return {
        method: 100 * float(np.mean(support.argmax(axis=1) != y[test]))
        for method, support in supports.items()
    }


def sizes_of(scheme: str, third: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the rows that train and that calibrate each of the three classifiers."""
    training = (N_OTHERS, N_OTHERS, third)
    return training, (N_CALIBRATION,) * 3 if scheme == "fixed" else training


def supports_of(
    scores: Floats, y: Ints, calibration: Sequence[Ints], test: Ints
) -> dict[str, Floats]:
    """Return the support of both classes by each method at the test rows, (n, 2).

    With masses a class is chosen by its plausibility; with two classes the largest belief, and the
    largest pignistic probability, choose the same.
    """
    together = np.concatenate(calibration)
    options: dict[str, Any] = {"targets": "smoothed", "classes": [0, 1]}  # Platt's, as published
    joint = EvidentialJointCalibrator(n_jobs=1, **options).fit(scores[together], y[together])
    found = {
        "joint": joint.predict_bounds(scores[test]).upper,
        "joint_probabilistic": joint.predict_proba(scores[test]),
    }
    every = {"independent": calibration, "independent_all": [together] * len(calibration)}
    for name, rows in every.items():
        alone = [
            EvidentialLogisticCalibrator(**options).fit(scores[r, j], y[r])
            for j, r in enumerate(rows)
        ]
        masses = [one.predict_mass(scores[test, j]) for j, one in enumerate(alone)]
        found[name] = dempster(*masses).contour()
        probas = [one.predict_proba(scores[test, j]) for j, one in enumerate(alone)]
        found[f"{name}_probabilistic"] = np.prod(probas, axis=0)
    return found
