"""Combined masses of an ensemble beside averaged probabilities (outlook of Denoeux 2019).

Five perceptrons, trained on the same rows from different starts, or on a fifth of the rows each.
This module does not print, read options or write files.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p2 import perceptron, trio
from experiments.p2.counts import confusion, most_plausible
from sklearn.metrics import log_loss

from dubito.belief import MassBatch, cautious, dempster, plausibility_transform
from dubito.decision import interval_dominance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dubito.evidence import EvidentialClassifier

N_MEMBERS = 5
#: "same": each member is trained on all rows. "own": each on a fifth, without overlap.
SCHEMES = ("same", "own")
METHODS = ("alone", "probabilities", "masses_averaged", "dempster", "cautious")

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides scheme and round."""

    seed: int = 0
    name: str = "fusion"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            **perceptron.Settings(self.seed).described(),
            "fusion": VERSION,
            "alpha": perceptron.ALPHAS[perceptron.MAIN],
            "members": N_MEMBERS,
        }


class Cell(NamedTuple):
    """One ensemble."""

    scheme: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.scheme}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"ensemble, {self.scheme} rows, round {self.round + 1}"


def cells(rounds: int, *, quick: bool) -> list[Cell]:  # noqa: ARG001 - as in other parts
    """List the work."""
    return [Cell(scheme, r) for r in range(rounds) for scheme in SCHEMES]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the counts of decisions, log loss and ignorance of each way to combine an ensemble."""
    start = perf_counter()
    train, (X, y) = trio.draw(cell.round, settings.seed)
    classifiers = list(members(cell, settings, train))
    sources = [one.predict_mass(X) for one in classifiers]
    proba = np.mean([one.predict_proba(X) for one in classifiers], axis=0)
    beliefs = {
        "alone": sources[0],
        "probabilities": MassBatch.from_proba(range(3), proba),
        "masses_averaged": averaged(sources),
        "dempster": dempster(*sources),
        "cautious": cautious(*sources),
    }
    return {
        **cell._asdict(),
        "methods": {name: evaluate(mass, y) for name, mass in beliefs.items()},
        "seconds": perf_counter() - start,
    }


def members(cell: Cell, settings: Settings, train: trio.Rows) -> Iterator[EvidentialClassifier]:
    """Yield the trained members of an ensemble."""
    X, y = train
    alpha = perceptron.ALPHAS[perceptron.MAIN]
    for i in range(N_MEMBERS):
        rows = slice(i, None, N_MEMBERS) if cell.scheme == "own" else slice(None)
        seed = (1000 * settings.seed + cell.round) * N_MEMBERS + i
        yield perceptron.fitted((X[rows], y[rows]), alpha, seed=seed)


def averaged(sources: Sequence[MassBatch]) -> MassBatch:
    """Return the mean of masses on the same sets."""
    return MassBatch(
        sources[0].frame, sources[0].focal, np.mean([one.mass for one in sources], axis=0)
    )


def evaluate(mass: MassBatch, y: trio.Ints) -> dict[str, Any]:
    """Return the counts of decisions, the log loss and the mean mass of the frame."""
    bounds = mass.bounds()
    proba = plausibility_transform(mass)
    return {
        "counts": {
            "mp": confusion(most_plausible(bounds.upper), y).tolist(),
            "interval_dominance": confusion(interval_dominance(mass), y).tolist(),
        },
        "log_loss": float(log_loss(y, proba, labels=range(3))),
        "ignorance": float(mass.mass[:, mass.focal.all(axis=1)].sum(axis=1).mean()),
    }
