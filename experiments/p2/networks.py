"""One training of the network of Tables 3 and 4 of Denoeux 2019, in torch.

Two hidden layers of 20 and 10 rectified linear units, dropout of one half after the first, a
penalty on the weights of the output layer, minibatches of 100. This module does not print, read
options or write files. Only the functions that train import torch; see `available`.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p2 import trio
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

from dubito.belief import Frame, MassBatch
from dubito.evidence import EvidentialClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor, nn

UNITS = (20, 10)
DROPOUT = 0.5
BATCH = 100
LEARNING_RATE = 1e-3
#: The paper does not give the number of epochs: all are evaluated, MAIN_EPOCHS is in the tables.
EPOCHS = (100, 200, 400, 800)
MAIN_EPOCHS = 400


class Variant(NamedTuple):
    """Penalty of the loss, and optimiser."""

    penalty: float  # times the sum of squared output weights, added to the mean cross-entropy
    optimiser: str


#: λ = 0.5 beside the mean loss, as in Keras, with its default optimiser and with Adam; the same λ
#: beside the sum of a minibatch's losses; and no penalty.
VARIANTS = {
    "keras": Variant(0.5, "rmsprop"),
    "adam": Variant(0.5, "adam"),
    "summed": Variant(0.5 / BATCH, "rmsprop"),
    "none": Variant(0.0, "rmsprop"),
}
MAIN = "keras"

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a training depend on, besides variant and round."""

    seed: int = 0
    epochs: tuple[int, ...] = EPOCHS
    name: str = "networks"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "rows": [trio.N_TRAIN, trio.N_TEST],
            "units": list(UNITS),
            "dropout": DROPOUT,
            "batch": BATCH,
            "learning_rate": LEARNING_RATE,
            "epochs": list(self.epochs),
            "variants": {name: list(variant) for name, variant in VARIANTS.items()},
        }


class Cell(trio.Training):
    """One training."""

    kind = "network"


def cells(rounds: int, *, quick: bool) -> list[Cell]:
    """List the work: the main variant in all rounds, the others in the first half of them."""
    others = 0 if quick else rounds // 2  # not compared with the paper
    return [
        Cell(variant, r) for r in range(rounds) for variant in (VARIANTS if r < others else (MAIN,))
    ]


def available() -> bool:
    """Return whether torch is installed."""
    return find_spec("torch") is not None


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the counts of decisions of a network after each number of epochs."""
    start = perf_counter()
    train, test = trio.draw(cell.round, settings.seed)
    variant, seed = VARIANTS[cell.variant], 1000 * settings.seed + cell.round
    after = {
        str(epochs): evaluate(model, train, test)
        for epochs, model in trained(train, variant, settings.epochs, seed=seed)
    }
    return {**asdict(cell), "after": after, "seconds": perf_counter() - start}


def trained(
    rows: trio.Rows, variant: Variant, epochs: tuple[int, ...], *, seed: int
) -> Iterator[tuple[int, nn.Sequential]]:
    """Train one network; yield it after each of the numbers of epochs."""
    import torch  # noqa: PLC0415 - optional dependency

    torch.set_num_threads(1)  # the layers are small: more threads are slower
    X = torch.tensor(rows[0], dtype=torch.float32)
    y = torch.tensor(rows[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _untrained()
        step = _optimiser(variant.optimiser, model)
        for epoch in range(1, max(epochs) + 1):
            model.train()
            for batch in torch.randperm(len(X)).split(BATCH):
                loss = torch.nn.functional.cross_entropy(model(X[batch]), y[batch])
                loss = loss + variant.penalty * model[-1].weight.square().sum()
                step.zero_grad()
                loss.backward()
                step.step()
            if epoch in epochs:
                yield epoch, model.eval()


def _untrained() -> nn.Sequential:
    """Return the network initialised as in Keras: Glorot's uniform weights, zero biases."""
    from torch import nn  # noqa: PLC0415

    first, second = UNITS
    model = nn.Sequential(
        *(nn.Linear(2, first), nn.ReLU(), nn.Dropout(DROPOUT)),
        *(nn.Linear(first, second), nn.ReLU()),
        nn.Linear(second, 3),
    )
    for layer in _linear(model):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model


def _optimiser(name: str, model: nn.Sequential) -> Any:
    """Return an optimiser with the defaults of Keras."""
    from torch import optim  # noqa: PLC0415

    if name == "adam":
        return optim.Adam(model.parameters(), lr=LEARNING_RATE, eps=1e-7)
    return optim.RMSprop(model.parameters(), lr=LEARNING_RATE, alpha=0.9, eps=1e-7)


def evaluate(model: nn.Sequential, train: trio.Rows, test: trio.Rows) -> dict[str, Any]:
    """Return the counts of decisions from the evidence of a network's last layer."""
    from dubito.evidence.torch import EvidentialHead  # noqa: PLC0415

    head = EvidentialHead.from_linear(model[-1], features=_features(model, train[0])).double()
    phi = _features(model, test[0]).double()
    frame = Frame(range(3))
    mass = MassBatch(frame, frame.subsets(), head.mass(phi).numpy())
    found = trio.evaluate(head.bounds(phi).numpy(), mass, test)
    return {**found, "layers": layers_of(model)}


def _features(model: nn.Sequential, X: trio.Floats) -> Tensor:
    """Return the inputs of the last layer."""
    import torch  # noqa: PLC0415

    with torch.no_grad():
        features: Tensor = model[:-1](torch.tensor(X, dtype=torch.float32))
    return features


def layers_of(model: nn.Sequential) -> list[dict[str, Any]]:
    """Return the weights and biases of each layer as plain lists."""
    return [
        {"weight": layer.weight.tolist(), "bias": layer.bias.tolist()} for layer in _linear(model)
    ]


def _linear(model: nn.Sequential) -> list[Any]:
    return [layer for layer in model if hasattr(layer, "weight")]


def as_classifier(layers: list[Mapping[str, Any]], rows: trio.Rows) -> EvidentialClassifier:
    """Return a trained network as a classifier, without torch.

    Dropout is active in training only, so scikit-learn's perceptron with the same layers computes
    the same function. It is fitted for one pass, to be a fitted estimator, and its layers replaced.
    """
    shell = MLPClassifier(UNITS, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shell.fit(*rows)
    shell.coefs_ = [np.array(layer["weight"]).T for layer in layers]
    shell.intercepts_ = [np.array(layer["bias"]) for layer in layers]
    return EvidentialClassifier(FrozenEstimator(shell)).fit(*rows)
