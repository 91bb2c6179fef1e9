"""Tables 3 and 4 of Denoeux 2019 without torch, by scikit-learn's perceptron.

The same layers and minibatches, without dropout, and the penalty on the weights of all layers.
This module does not print, read options or write files.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from experiments.p2 import trio
from experiments.p2.networks import BATCH, UNITS
from sklearn.neural_network import MLPClassifier

from dubito.evidence import EvidentialClassifier

#: scikit-learn's default, and the paper's λ. Both count alpha / 2 times the sum of all squared
#: weights beside the sum of a minibatch's losses.
ALPHAS = {"default": 1e-4, "lambda": 0.5}
MAIN = "lambda"
MAX_EPOCHS = 1000

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a training depend on, besides variant and round."""

    seed: int = 0
    name: str = "perceptron"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "rows": [trio.N_TRAIN, trio.N_TEST],
            "units": list(UNITS),
            "batch": BATCH,
            "alphas": ALPHAS,
            "max_epochs": MAX_EPOCHS,
            "loss": [list(row) for row in trio.LOSS],
        }


class Cell(trio.Training):
    """One training."""

    kind = "perceptron"


def cells(rounds: int, *, quick: bool) -> list[Cell]:
    """List the work."""
    variants = (MAIN,) if quick else tuple(ALPHAS)
    return [Cell(variant, r) for r in range(rounds) for variant in variants]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the counts of decisions of a perceptron, trained until its loss stops falling."""
    start = perf_counter()
    train, test = trio.draw(cell.round, settings.seed)
    classifier = fitted(train, ALPHAS[cell.variant], seed=1000 * settings.seed + cell.round)
    mass = classifier.predict_mass(test[0])
    return {
        **asdict(cell),
        **trio.evaluate(classifier.predict_bounds(test[0]), mass, test),
        "costs": trio.evaluate_with_costs(mass, test[1]),
        "epochs": int(classifier.estimator_.n_iter_),
        "seconds": perf_counter() - start,
    }


def fitted(rows: trio.Rows, alpha: float, *, seed: int) -> EvidentialClassifier:
    """Return an evidential classifier around a perceptron."""
    perceptron = MLPClassifier(
        UNITS, alpha=alpha, batch_size=BATCH, max_iter=MAX_EPOCHS, random_state=seed
    )
    return EvidentialClassifier(perceptron).fit(*rows)
