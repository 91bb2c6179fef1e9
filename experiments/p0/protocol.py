"""Section V of P0, one round at a time: ten small classifiers, calibrated, combined, scored.

Nothing here prints, reads options or writes files.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from sklearn import config_context
from sklearn.svm import SVC

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
#: Those evaluated a second time with the classes in another order. The envelope looks at each
#: class by itself, so there is nothing to see; gumbel is here because its formula sorts.
PERMUTED = ("inverse_cdf", "gumbel")
METHODS = ("probabilistic", *COUPLINGS, *(f"{coupling}_permuted" for coupling in PERMUTED))

#: Score of a class with no training row, and of the others when it is the only one. A support
#: vector machine that sees a single label has w = 0 and b = +1 or -1: these are its decisions.
MARGIN = 1.0

#: Raise when a change makes older results wrong: their folder is then left alone.
VERSION = 1


class Kernel(NamedTuple):
    """A kernel and its cost; `width` is gamma times `unit`, None for the linear kernel."""

    width: float | None
    cost: float
    unit: str = "variance"


#: Ties go to the first, so to the linear kernel and the small cost.
SVMS: dict[str, tuple[Kernel, ...]] = {
    "grid": (
        *(Kernel(None, cost) for cost in (0.01, 0.1, 1.0, 10.0)),
        *(Kernel(width, cost) for cost in (1.0, 10.0, 100.0) for width in (0.1, 0.3, 1.0, 3.0)),
    ),
    "libsvm": (Kernel(1.0, 1.0, "features"),),
}


@dataclass(frozen=True)
class Settings:
    """What the numbers of one round depend on, besides dataset, scenario and round."""

    svm: str = "grid"
    seed: int = 0
    n_nodes: int = 8

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "svm": self.svm,
            "kernels": [list(kernel) for kernel in SVMS[self.svm]],
            "seed": self.seed,
            "n_nodes": self.n_nodes,
            "n_train": N_TRAIN,
        }


class Cell(NamedTuple):
    """One unit of work."""

    dataset: str
    scenario: int
    round: int


class Data(NamedTuple):
    """Scaled features, classes as numbers, and the rows for training and testing."""

    X: Floats
    y: Ints
    train: Ints
    test: Ints


class Scored(NamedTuple):
    """One classifier's scores on its validation half and on the test rows."""

    validation: Floats
    labels: Ints
    test: Floats
    kernel: Kernel


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the accuracies, in per cent, of every method in one round, with what led to them."""
    start = perf_counter()
    bunch = load(cell.dataset)
    y = np.unique(bunch.y, return_inverse=True)[1]
    # The rows are the same in the three scenarios, so that these can be compared as well.
    rng = np.random.default_rng([settings.seed, crc32(cell.dataset.encode()), cell.round])
    rows = rng.permutation(len(y))
    order = rng.permutation(y.max() + 1)
    data = Data(scaled(bunch.X, rows[:N_TRAIN]), y, rows[:N_TRAIN], rows[N_TRAIN:])
    scored = list(classifiers(data, SCENARIOS[cell.scenario], SVMS[settings.svm]))
    combined, slopes = combine(scored, order, settings.n_nodes)
    truth = y[data.test]
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
        "order": order.tolist(),
        "seconds": perf_counter() - start,
    }


def scaled(X: Floats, train: Ints) -> Floats:
    """Scale each feature to [0, 1] over the training rows."""
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def classifiers(data: Data, sizes: Sequence[int], kernels: tuple[Kernel, ...]) -> Iterator[Scored]:
    """Train a classifier on each part's first half; choose its kernel on the second half."""
    start = 0
    for size in sizes:
        part = data.train[start : start + size]
        start += size
        yield best_kernel(data, part[: size // 2], part[size // 2 :], kernels)


def best_kernel(data: Data, fit: Ints, held_out: Ints, kernels: tuple[Kernel, ...]) -> Scored:
    """Return the scores of the kernel with most validation rows right, the first among equals."""
    X, y = data.X, data.y
    n_classes = int(y.max()) + 1

    def attempt(kernel: Kernel) -> tuple[Floats, Floats]:
        machine = one_vs_all(gram(X[fit], X[fit], kernel), y[fit], kernel.cost, n_classes)
        return machine, decide(gram(X[held_out], X[fit], kernel), machine)

    def right(tried: tuple[Floats, Floats]) -> int:
        return int(np.sum(tried[1].argmax(axis=1) == y[held_out]))

    attempts = [attempt(kernel) for kernel in kernels]
    best = int(np.argmax([right(tried) for tried in attempts]))
    machine, validation = attempts[best]
    scores = decide(gram(X[data.test], X[fit], kernels[best]), machine)
    return Scored(validation, y[held_out], scores, kernels[best])


def gram(A: Floats, fit: Floats, kernel: Kernel) -> Floats:
    """Return the kernel of each row of A with each training row."""
    product = A @ fit.T
    if kernel.width is None:
        return product
    d = fit.shape[1]
    unit = d * (fit.var() or 1.0) if kernel.unit == "variance" else float(d)
    distance = (A * A).sum(axis=1)[:, None] + (fit * fit).sum(axis=1) - 2 * product
    return np.exp(-kernel.width / unit * np.maximum(distance, 0.0))


def one_vs_all(kernel: Floats, y: Ints, cost: float, n_classes: int) -> Floats:
    """Train K binary machines; return their weights of the rows, intercepts in the last row."""
    machine = np.zeros((len(y) + 1, n_classes))
    for k in range(n_classes):
        here = y == k
        if here.all() or not here.any():
            machine[-1, k] = MARGIN if here.any() else -MARGIN
            continue
        # Checking the same matrix thousands of times would take longer than training on it.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svc = SVC(kernel="precomputed", C=cost).fit(kernel, here)
        machine[svc.support_, k] = svc.dual_coef_[0]
        machine[-1, k] = svc.intercept_[0]
    return machine


def decide(kernel: Floats, machine: Floats) -> Floats:
    """Return the decision values, one column for each class."""
    return kernel @ machine[:-1] + machine[-1]


def combine(
    scored: list[Scored], order: Ints, n_nodes: int
) -> tuple[dict[str, Floats], list[float]]:
    """Return each method's combined log score of every test row and class, and the slopes.

    Probabilities multiply, and so do contours (eq. 7). In the ``_permuted`` methods the classes
    are put in another order first and back afterwards.
    """
    total: dict[str, Floats] = {}
    slopes = []
    back = np.argsort(order)
    for one in scored:
        for coupling in COUPLINGS:
            plain = calibrator(one, coupling, n_nodes)
            _add(total, coupling, plain.predict_bounds(one.test).upper)
            if coupling not in PERMUTED:
                continue
            moved = one._replace(
                validation=one.validation[:, order],
                labels=back[one.labels],
                test=one.test[:, order],
            )
            contour = calibrator(moved, coupling, n_nodes).predict_bounds(moved.test).upper
            _add(total, f"{coupling}_permuted", contour[:, back])
        _add(total, "probabilistic", plain.predict_proba(one.test))
        slopes.append(float(plain.slope_))
    return total, slopes


def calibrator(one: Scored, coupling: str, n_nodes: int) -> EvidentialMultinomialCalibrator:
    """Fit a calibrator to a classifier's validation half."""
    classes = np.arange(one.validation.shape[1])
    fresh = EvidentialMultinomialCalibrator(coupling=coupling, n_nodes=n_nodes, classes=classes)
    return fresh.fit(one.validation, one.labels)


def _add(total: dict[str, Floats], method: str, values: Floats) -> None:
    # Floats end before certainty does: without the floor two sure classifiers would tie at -inf.
    log = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    total[method] = total[method] + log if method in total else log
