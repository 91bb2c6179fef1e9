"""Common to the parts on Gaussian data: rows, the Bayes decision, and counts of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from experiments.p2.counts import RULES, confusion, decided
from scipy.stats import multivariate_normal

from dubito.datasets import make_gaussian_trio
from dubito.decision import e_admissibility, interval_dominance, maximality

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.belief import Bounds, MassBatch

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]
    Rows = tuple[Floats, Ints]

N_TRAIN, N_TEST = 900, 15_000
#: Denoeux 2019, section 5.2.
MEANS = ((0.0, 0.0), (0.0, 0.0), (1.0, -1.0))
COVARIANCES = (
    ((0.1, 0.0), (0.0, 0.1)),
    ((0.5, 0.0), (0.0, 0.5)),
    ((0.3, -0.15), (-0.15, 0.3)),
)


#: Loss of deciding for each class (rows) when each is true (columns): a missed third class costs
#: three times as much as other errors, so maximality differs from interval dominance.
LOSS = ((0.0, 1.0, 3.0), (1.0, 0.0, 3.0), (1.0, 1.0, 0.0))


@dataclass(frozen=True)
class Training:
    """One training of a network, of some kind and variant."""

    kind: ClassVar[str]

    variant: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.variant}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.kind}, {self.variant}, round {self.round + 1}"


def draw(round_: int, seed: int) -> tuple[Rows, Rows]:
    """Return the training and the test rows, both drawn anew in each round."""
    rng = np.random.default_rng([seed, round_])
    train, test = (make_gaussian_trio(n, random_state=rng) for n in (N_TRAIN, N_TEST))
    return train, test


def densities(X: Floats) -> Floats:
    """Return the density of each class, (n, 3)."""
    return np.column_stack(
        [
            multivariate_normal(mean, covariance).pdf(X)
            for mean, covariance in zip(MEANS, COVARIANCES, strict=True)
        ]
    )


def evaluate_with_costs(mass: MassBatch, y: Ints) -> dict[str, list[list[int]]]:
    """Return the counts of decisions of each rule with the unequal losses."""
    rules = (interval_dominance, maximality, e_admissibility)
    return {rule.__name__: confusion(rule(mass, LOSS), y).tolist() for rule in rules}


def evaluate(bounds: Bounds, mass: MassBatch, rows: Rows) -> dict[str, Any]:
    """Return the counts of decisions of each rule, and of agreement with the Bayes decision."""
    X, y = rows
    sets = decided(bounds, mass)
    best = densities(X).argmax(axis=1)
    mp = sets["mp"].argmax(axis=1)
    cautious = sets["interval_dominance"]
    differs = mp != best
    size = cautious.sum(axis=1)
    kept = cautious[np.arange(len(y)), best]
    return {
        "counts": {rule: confusion(sets[rule], y).tolist() for rule in RULES},
        "n": len(y),
        "bayes_wrong": int(np.sum(best != y)),
        "bayes_in_set": int(kept.sum()),
        "mp_not_bayes": int(differs.sum()),
        "mp_not_bayes_but_in_set": int(np.sum(differs & kept)),
        # Rows with sets of 2 and of 3 classes, and how many are right by the MP rule.
        "undecided": [int(np.sum(size == s)) for s in (2, 3)],
        "undecided_mp_right": [int(np.sum((size == s) & (mp == y))) for s in (2, 3)],
    }
