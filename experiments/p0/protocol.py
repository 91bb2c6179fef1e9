"""One round of Xu et al. 2015, section V: ten small classifiers, calibrated and combined.

This module does not print, read options or write files.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from experiments.common.svm import LIBSVM_DEFAULT, Kernel, Machine, one_vs_all, scaled, train

from dubito.calibration import EvidentialMultinomialCalibrator
from dubito.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

#: In the paper's order, with the testing sizes of its Table I.
TESTING_SIZE = {
    "dna": 2186,
    "waveform": 4000,
    "satimage": 5435,
    "segment": 1310,
    "pendigits": 9992,
    "usps": 8292,
}
DATASETS = tuple(TESTING_SIZE)
N_TRAIN = 1000

#: Rows of the ten parts of the training set, by scenario.
SCENARIOS = {
    1: (100,) * 10,
    2: (150,) * 5 + (50,) * 5,
    3: (400, 200) + (50,) * 8,
}

COUPLINGS = ("inverse_cdf", "gumbel", "envelope")
#: Couplings evaluated a second time with the classes in another order. The envelope treats each
#: class separately, so order cannot matter; gumbel is included because its formula sorts.
PERMUTED = ("inverse_cdf", "gumbel")
METHODS = ("probabilistic", *COUPLINGS, *(f"{coupling}_permuted" for coupling in PERMUTED))

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1

#: Ties go to the first, so to the linear kernel and the small cost.
SVMS: dict[str, tuple[Kernel, ...]] = {
    "grid": (
        *(Kernel(None, cost) for cost in (0.01, 0.1, 1.0, 10.0)),
        *(Kernel(width, cost) for cost in (1.0, 10.0, 100.0) for width in (0.1, 0.3, 1.0, 3.0)),
    ),
    "libsvm": (LIBSVM_DEFAULT,),
}


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides dataset, scenario and round."""

    svm: str = "grid"
    seed: int = 0
    n_points: int = 8

    @property
    def name(self) -> str:
        """First part of the folder's name."""
        return self.svm

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "svm": self.svm,
            "kernels": [list(kernel) for kernel in SVMS[self.svm]],
            "seed": self.seed,
            "n_nodes": self.n_points,  # the key in stored results
            "n_train": N_TRAIN,
        }


class Cell(NamedTuple):
    """One unit of work."""

    dataset: str
    scenario: int
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.scenario}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.dataset}, scenario {self.scenario}, round {self.round + 1}"


class Data(NamedTuple):
    """Scaled features, classes as numbers, rows for training and testing, an order of classes."""

    X: Floats
    y: Ints
    train: Ints
    test: Ints
    order: Ints


class Scored(NamedTuple):
    """One classifier's scores on its validation half and on the test rows."""

    validation: Floats
    labels: Ints
    test: Floats
    kernel: Kernel


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the accuracies, in per cent, of every method in one round, with slopes and kernels."""
    start = perf_counter()
    data = draw(cell, settings)
    scored = list(classifiers(data, SCENARIOS[cell.scenario], SVMS[settings.svm]))
    combined, slopes = combine(scored, data.order, settings.n_points)
    truth = data.y[data.test]
    alone = [np.mean(one.test.argmax(axis=1) == truth) for one in scored]
    return {
        **cell._asdict(),
        "n_test": len(truth),
        "accuracy": {
            method: 100 * float(np.mean(log.argmax(axis=1) == truth))
            for method, log in combined.items()
        },
        "alone": 100 * float(np.mean(alone)),
        "slopes": slopes,
        "kernels": [list(one.kernel[:2]) for one in scored],
        "order": data.order.tolist(),
        "seconds": perf_counter() - start,
    }


def draw(cell: Cell, settings: Settings) -> Data:
    """Return the rows of a round: the same in the three scenarios, so that these are comparable."""
    bunch = load(cell.dataset)
    y = np.unique(bunch.y, return_inverse=True)[1]
    rng = np.random.default_rng([settings.seed, crc32(cell.dataset.encode()), cell.round])
    rows = rng.permutation(len(y))
    order = rng.permutation(y.max() + 1)
    training = rows[:N_TRAIN]
    return Data(scaled(bunch.X, training), y, training, rows[N_TRAIN:], order)


def classifiers(data: Data, sizes: Sequence[int], kernels: tuple[Kernel, ...]) -> Iterator[Scored]:
    """Yield the scores of a classifier for each part: trained on its first half."""
    X, y = data.X, data.y
    for fit, held_out in parts(data, sizes):
        machine = best_kernel(data, fit, held_out, kernels)
        scores = machine.decide(X[held_out]), y[held_out], machine.decide(X[data.test])
        yield Scored(*scores, machine.kernel)


def parts(data: Data, sizes: Sequence[int]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the two halves of each part of the training rows."""
    start = 0
    for size in sizes:
        part = data.train[start : start + size]
        start += size
        yield part[: size // 2], part[size // 2 :]


def best_kernel(data: Data, fit: Ints, held_out: Ints, kernels: tuple[Kernel, ...]) -> Machine:
    """Return the machine with most validation rows right; ties go to the first."""
    X, y = data.X, data.y
    events = one_vs_all(y[fit], int(y.max()) + 1)
    machines = [train(X[fit], events, kernel) for kernel in kernels]

    def right(machine: Machine) -> int:
        return int(np.sum(machine.decide(X[held_out]).argmax(axis=1) == y[held_out]))

    return machines[int(np.argmax([right(machine) for machine in machines]))]


def combine(
    scored: list[Scored], order: Ints, n_points: int
) -> tuple[dict[str, Floats], list[float]]:
    """Return each method's combined log score of every test row and class, and the slopes.

    Probabilities multiply, and so do contours (Xu et al. 2015, eq. 7). In the ``_permuted`` methods
    the classes are put in another order first and back afterwards.
    """
    total: dict[str, Floats] = {}
    slopes = []
    back = np.argsort(order)
    for one in scored:
        for coupling in COUPLINGS:
            plain = calibrator(one, coupling, n_points)
            _add(total, coupling, plain.predict_bounds(one.test).upper)
            if coupling not in PERMUTED:
                continue
            moved = one._replace(
                validation=one.validation[:, order],
                labels=back[one.labels],
                test=one.test[:, order],
            )
            contour = calibrator(moved, coupling, n_points).predict_bounds(moved.test).upper
            _add(total, f"{coupling}_permuted", contour[:, back])
        _add(total, "probabilistic", plain.predict_proba(one.test))
        slopes.append(float(plain.slope_))
    return total, slopes


def calibrator(one: Scored, coupling: str, n_points: int) -> EvidentialMultinomialCalibrator:
    """Fit a calibrator to a classifier's validation half."""
    classes = np.arange(one.validation.shape[1])
    fresh = EvidentialMultinomialCalibrator(
        coupling=coupling, targets="smoothed", n_points=n_points, classes=classes
    )
    return fresh.fit(one.validation, one.labels)


def _add(total: dict[str, Floats], method: str, values: Floats) -> None:
    # Floor at the smallest normal float: classes whose product underflows would tie at -inf.
    log = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    total[method] = total[method] + log if method in total else log
