"""Leathart et al. 2019, Figure 3: reliability of a random tree cut off at growing depths.

This module does not print, read options or write files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p4 import data
from experiments.p4.data import PROBLEMS, QUICK_PROBLEMS
from experiments.p4.protocol import N_BINS, VERSION
from experiments.p4.schemes import dichotomies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.p4.data import Rows
    from experiments.p4.protocol import Floats, Ints

    from dubito.dichotomies import NestedDichotomyClassifier

#: Before and after external calibration.
SCHEMES = ("baseline", "external")
#: Depths at which trees are cut off.
DEPTHS = tuple(range(1, 13))


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a round depend on, besides the round."""

    name: str = "depths"
    small: bool = False
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        problems = QUICK_PROBLEMS if self.small else PROBLEMS
        return {
            "version": VERSION,
            "seed": self.seed,
            "bins": N_BINS,
            "depths": DEPTHS,
            "sizes": {name: size._asdict() for name, size in problems.items()},
        }

    def quick(self) -> Settings:
        """Return the same with a small problem."""
        return replace(self, small=True)

    def work(self, rounds: int, problems: Sequence[str]) -> list[Cell]:
        """List the rounds."""
        return [Cell(problem, r) for r in range(rounds) for problem in problems]


class Cell(NamedTuple):
    """One random tree."""

    dataset: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"depths on {self.dataset}, tree {self.round + 1}"


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the binned confidence of a random tree of logistic regressions at every depth."""
    start = process_time()
    size = (QUICK_PROBLEMS if settings.small else PROBLEMS)[cell.dataset]
    fit, held = data.simulate(size, settings.seed)
    seed = 1000 * settings.seed + cell.round
    found = {}
    for scheme in SCHEMES:
        model = dichotomies("logistic", scheme, seed)
        model.fit(fit.X, fit.y)
        found[scheme] = [at_depth(model, held, depth) for depth in DEPTHS]
    return {
        **cell._asdict(),
        "rows": len(held.y),
        "classes": int(model.tree_.n_classes),
        "depth": int(model.tree_.depth),
        "schemes": found,
        "seconds": process_time() - start,
    }


def at_depth(model: NestedDichotomyClassifier, rows: Rows, depth: int) -> dict[str, list[float]]:
    """Return rows, confidence and hits in each bin of the best group's probability."""
    proba = model.predict_proba_at_depth(rows.X, depth)
    hit = proba.argmax(axis=1) == group_of_class(model, depth)[rows.y]
    return binned(proba.max(axis=1), hit)


def group_of_class(model: NestedDichotomyClassifier, depth: int) -> Ints:
    """Return the group that each class is in when the tree is cut off."""
    tree = model.tree_
    group = np.empty(tree.n_classes, dtype=np.intp)
    group[np.searchsorted(model.classes_, tree.leaves)] = tree.cut(depth)
    return group


def binned(confidence: Floats, hit: Any) -> dict[str, list[float]]:
    """Return rows, sums of confidence, and hits, of each of equally wide bins."""
    place = np.minimum((confidence * N_BINS).astype(np.intp), N_BINS - 1)
    weights = {"rows": np.ones(len(hit)), "confidence": confidence, "hits": hit.astype(float)}
    return {
        name: np.bincount(place, weights=weight, minlength=N_BINS).tolist()
        for name, weight in weights.items()
    }
