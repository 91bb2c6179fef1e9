"""The paper's outlook: masses of an ensemble combined, beside averaged probabilities.

Five perceptrons, trained on the same rows from different starts, or on a fifth of the rows each.
Nothing here prints, reads options or writes files.
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
#: "same": each member sees all rows. "own": each sees rows that no other sees.
SCHEMES = ("same", "own")
METHODS = ("alone", "probabilities", "masses_averaged", "dempster", "cautious")

#: Raise when a change makes older results wrong: their folder is then left alone.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What the numbers of one round depend on, besides scheme and round."""

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
        """Name of its file, without the ending."""
        return f"{self.scheme}-{self.round:03d}"

    @property
    def words(self) -> str:
        """What to call it on a progress bar."""
        return f"ensemble, {self.scheme} rows, round {self.round + 1}"


def cells(rounds: int, *, quick: bool) -> list[Cell]:  # noqa: ARG001 - as in other parts
    """List the work."""
    return [Cell(scheme, r) for r in range(rounds) for scheme in SCHEMES]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Train an ensemble, combine its masses and count the decisions of each method."""
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
        "methods": {name: judged(mass, y) for name, mass in beliefs.items()},
        "seconds": perf_counter() - start,
    }


def members(cell: Cell, settings: Settings, train: trio.Rows) -> Iterator[EvidentialClassifier]:
    """Train the members of an ensemble."""
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


def judged(mass: MassBatch, y: trio.Ints) -> dict[str, Any]:
    """Count the decisions by plausibility and by interval dominance; judge the probabilities."""
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
