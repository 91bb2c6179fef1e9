"""Many classes: the schemes on a part of sector and on simulated problems; trees and ensembles.

This module does not print, read options or write files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.p4 import data
from experiments.p4.data import PROBLEMS, QUICK_PROBLEMS
from experiments.p4.protocol import VERSION, evaluate
from experiments.p4.schemes import SCHEMES, dichotomies

from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.p4.data import Problem, Rows

#: Base learner and structure of single trees.
MODELS = {
    "sector": (
        ("logistic", "random"),
        ("logistic", "clustered"),
        ("multinomial", "random"),
        ("multinomial", "clustered"),
    ),
    "dense": (("logistic", "random"), ("logistic", "clustered")),
    "sparse": (("logistic", "random"), ("logistic", "clustered")),
}
#: Ensembles are of clustered trees with logistic regression, pooled in either way.
ENSEMBLE = ("logistic", "ensemble")
POOLINGS = ("geometric", "arithmetic")
N_ESTIMATORS = 5


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides problem, model and round."""

    name: str
    problems: tuple[str, ...]
    small: bool = False
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        sizes = {name: self.size(name) for name in self.problems}
        return {
            "version": VERSION,
            "seed": self.seed,
            "n_estimators": N_ESTIMATORS,
            "sizes": {name: size and size._asdict() for name, size in sizes.items()},
        }

    def size(self, problem: str) -> Problem | None:
        """Return the size of a simulated problem, None for sector."""
        return (QUICK_PROBLEMS if self.small else PROBLEMS).get(problem)

    def quick(self) -> Settings:
        """Return the same with small problems; sector is small already."""
        return replace(self, small=True)

    def work(self, rounds: int, problems: Sequence[str]) -> list[Cell]:
        """List the rounds, those of all problems and models in turn."""
        return [
            Cell(problem, *model, r)
            for r in range(rounds)
            for problem in problems
            for model in (*MODELS[problem], ENSEMBLE)
        ]


class Cell(NamedTuple):
    """One random tree, or an ensemble, on one problem."""

    dataset: str
    base: str
    structure: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.base}-{self.structure}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.structure} {self.base} on {self.dataset}, round {self.round + 1}"


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the measures of all schemes, or of both poolings."""
    start = process_time()
    fit, held = parts_of(cell.dataset, settings)
    seed = 1000 * settings.seed + cell.round
    models = ensembles(seed) if cell.structure == "ensemble" else schemes(cell, seed)
    found = {name: evaluate(model, fit, held) for name, model in models.items()}
    return {
        **cell._asdict(),
        "rows": len(held.y),
        "schemes": found,
        "seconds": process_time() - start,
    }


def parts_of(problem: str, settings: Settings) -> tuple[Rows, Rows]:
    """Return training and test rows, the same in every round: only the trees differ."""
    size = settings.size(problem)
    return data.sector() if size is None else data.simulate(size, settings.seed)


def schemes(cell: Cell, seed: int) -> dict[str, NestedDichotomyClassifier]:
    """Return a tree with each scheme."""
    return {
        scheme: dichotomies(cell.base, scheme, seed, structure=cell.structure) for scheme in SCHEMES
    }


def ensembles(seed: int) -> dict[str, NestedDichotomyEnsemble]:
    """Return an ensemble with each pooling: clustered trees, a temperature for the geometric one.

    The tables of this experiment were computed with these options; the library's defaults differ.
    """
    tree = NestedDichotomyClassifier(structure="clustered", internal=None, external=None, n_jobs=1)
    return {
        pooling: NestedDichotomyEnsemble(
            tree,
            n_estimators=N_ESTIMATORS,
            pooling=pooling,
            external=None,
            n_jobs=1,
            random_state=seed,
        )
        for pooling in POOLINGS
    }
