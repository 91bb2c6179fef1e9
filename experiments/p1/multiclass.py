"""Beyond the paper: joint calibration of ten multiclass classifiers, on the data of P0.

The classifiers are those of `experiments/p0`, and so are the columns to compare with. P0 calibrates
each classifier on the held-out half of its own part; here all ten score the held-out halves of
all parts, rows that trained none of them. This module does not print, read options or write files,
except for missing rounds of P0, which it adds to the results of P0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.store import Store
from experiments.p0 import protocol as p0

from dubito.calibration import EvidentialJointCalibrator, EvidentialMultinomialCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

P0_RESULTS = Path(p0.__file__).parent / "results"
#: Columns of P0 to compare with: probabilities multiplied, and contours multiplied.
FROM_P0 = ("probabilistic", "inverse_cdf")
TARGETS = ("smoothed", "light")
#: "all_rows" calibrates each classifier by itself on the same rows as the joint calibration, and
#: multiplies probabilities; "joint" is the most probable class of the joint calibration.
METHODS = (*FROM_P0, "all_rows", *(f"joint_{targets}" for targets in TARGETS))
#: The most plausible class is computed for the first test rows of the first rounds only, with
#: smoothed targets: ten plausibilities of ten classifiers take about 10 ms for each row.
N_UPPER = 200
UPPER_ROUNDS = 5

QUICK_DATASET = "segment"

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides its cell."""

    seed: int = 0
    name: str = "multiclass"
    p0_results: Path = field(default=P0_RESULTS, compare=False)

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "p0": {svm: p0.Settings(svm, self.seed).described() for svm in p0.SVMS},
            "targets": list(TARGETS),
            "n_upper": N_UPPER,
            "upper_rounds": UPPER_ROUNDS,
        }


class Cell(NamedTuple):
    """One unit of work."""

    dataset: str
    scenario: int
    svm: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.scenario}-{self.svm}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.dataset}, scenario {self.scenario}, {self.svm}, round {self.round + 1}"


class Scores(NamedTuple):
    """Scores (n, 10, K) and classes of the rows that calibrate and of those that test."""

    calibration: Floats
    labels: Ints
    test: Floats
    truth: Ints
    kernels: list[list[float | None]]


def cells(rounds: int, *, quick: bool) -> list[Cell]:
    """List the work by rounds: a run that is stopped early has covered every dataset."""
    datasets = (QUICK_DATASET,) if quick else p0.DATASETS
    svms = ("libsvm",) if quick else tuple(p0.SVMS)
    return [
        Cell(d, s, svm, r)
        for r in range(rounds)
        for svm in svms
        for d in datasets
        for s in p0.SCENARIOS
    ]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the accuracies, in per cent, of every method in one round, with the joint slopes."""
    start = perf_counter()
    theirs = p0_round(cell, settings)
    scores = scores_of(cell, settings)
    # The columns are comparable only if classifiers and rows are those of P0.
    same = scores.kernels == theirs["kernels"] and len(scores.truth) == theirs["n_test"]
    if not same:
        raise RuntimeError(
            f"the classifiers of P0's round in {settings.p0_results} are not those trained here: "
            f"{cell.words}. Remove that folder and run this again."
        )
    accuracy = {method: theirs["accuracy"][method] for method in FROM_P0}
    accuracy["all_rows"] = percent_right(each_alone(scores), scores.truth)
    joint = {targets: joint_calibrator(scores, targets) for targets in TARGETS}
    for targets, calibrator in joint.items():
        proba = calibrator.predict_proba(scores.test)
        accuracy[f"joint_{targets}"] = percent_right(proba, scores.truth)
    has_upper = cell.round < UPPER_ROUNDS
    return {
        **cell._asdict(),
        "n_test": len(scores.truth),
        "accuracy": accuracy,
        "alone": alone(scores),
        "alone_p0": theirs["alone"],
        "slopes": {targets: one.slope_.tolist() for targets, one in joint.items()},
        "upper": most_plausible(joint["smoothed"], scores) if has_upper else None,
        "seconds": perf_counter() - start,
    }


def p0_round(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the result of P0 of the same round; a missing one is computed and stored there."""
    theirs = p0.Settings(cell.svm, settings.seed)
    store = Store(settings.p0_results, theirs)
    same = p0.Cell(cell.dataset, cell.scenario, cell.round)
    if not store.has(same):
        store.write(same, p0.run_cell(same, theirs))
    return store.read(same)


def scores_of(cell: Cell, settings: Settings) -> Scores:
    """Train the ten classifiers of P0 and return their scores of all held-out and test rows."""
    same = p0.Cell(cell.dataset, cell.scenario, cell.round)
    data = p0.draw(same, p0.Settings(cell.svm, settings.seed))
    halves = list(p0.parts(data, p0.SCENARIOS[cell.scenario]))
    machines = [p0.best_kernel(data, *pair, p0.SVMS[cell.svm]) for pair in halves]
    held_out = np.concatenate([rows for _, rows in halves])

    def score(rows: Ints) -> Floats:
        return np.stack([machine.decide(data.X[rows]) for machine in machines], axis=1)

    kernels = [list(machine.kernel[:2]) for machine in machines]
    test = data.test
    return Scores(score(held_out), data.y[held_out], score(test), data.y[test], kernels)


def joint_calibrator(scores: Scores, targets: str) -> EvidentialJointCalibrator:
    """Return a joint calibrator fitted to all held-out rows."""
    fresh = EvidentialJointCalibrator(
        targets=targets, likelihood="quadratic", classes=classes_of(scores), n_jobs=1
    )
    return fresh.fit(scores.calibration, scores.labels)


def each_alone(scores: Scores) -> Floats:
    """Return summed log probabilities of classifiers, each calibrated on all held-out rows."""
    total = np.zeros(scores.test.shape[::2])
    for j in range(scores.test.shape[1]):
        fresh = EvidentialMultinomialCalibrator(targets="smoothed", classes=classes_of(scores))
        one = fresh.fit(scores.calibration[:, j], scores.labels)
        # Log softmax without its normaliser, which is the same for all classes of a row.
        total += one.slope_ * scores.test[:, j]
    return total


def most_plausible(joint: EvidentialJointCalibrator, scores: Scores) -> dict[str, int]:
    """Return how often the most plausible class differs from the most probable, and is right."""
    test, truth = scores.test[:N_UPPER], scores.truth[:N_UPPER]
    probable = joint.predict_proba(test).argmax(axis=1)
    plausible = joint.predict_bounds(test).upper.argmax(axis=1)
    return {
        "rows": len(truth),
        "differ": int(np.sum(plausible != probable)),
        "right_probable": int(np.sum(probable == truth)),
        "right_plausible": int(np.sum(plausible == truth)),
    }


def classes_of(scores: Scores) -> Ints:
    """Return the classes in the order of the columns; the held-out rows may lack some."""
    return np.arange(scores.test.shape[2])


def percent_right(support: Floats, truth: Ints) -> float:
    """Return the percentage of rows whose best supported class is the true one."""
    return 100 * float(np.mean(support.argmax(axis=1) == truth))


def alone(scores: Scores) -> float:
    """Return the mean accuracy of the classifiers by themselves, in per cent."""
    right = scores.test.argmax(axis=2) == scores.truth[:, None]
    return 100 * float(np.mean([np.mean(one) for one in right.T]))
