"""One replication of Tables 1 and 2 of Denoeux 2019: ten folds of the heart disease data.

This module does not print, read options or write files. Classes are in the order of the paper: the
first column is presence of a myocardial infarction, the second its absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p2.counts import confusion, decided, most_plausible
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from dubito.datasets import load
from dubito.decision import interval_dominance
from dubito.evidence import EvidentialClassifier, bounds_from_weights

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.belief import Bounds

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

FEATURES = ("age", "ldl")
N_FOLDS = 10

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a replication depend on, besides its number."""

    seed: int = 0
    name: str = "heart"

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "features": list(FEATURES),
            "folds": N_FOLDS,
        }


class Cell(NamedTuple):
    """One replication."""

    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"replication-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"heart disease, replication {self.round + 1}"


def cells(rounds: int, *, quick: bool) -> list[Cell]:  # noqa: ARG001 - as in other parts
    """List the work."""
    return [Cell(r) for r in range(rounds)]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the counts of decisions of each rule in one cross-validation."""
    start = perf_counter()
    X, y = patients()
    folds = KFold(N_FOLDS, shuffle=True, random_state=1000 * settings.seed + cell.round)
    parts = [evaluate(fitted(X[fit], y[fit]), X[held], y[held]) for fit, held in folds.split(X)]
    counts = {name: sum(part[name] for part in parts).tolist() for name in parts[0]}
    return {**cell._asdict(), "counts": counts, "seconds": perf_counter() - start}


def patients() -> tuple[Floats, Ints]:
    """Return age and LDL cholesterol, and 1 for presence of an infarction."""
    bunch = load("saheart")
    columns = [list(bunch.feature_names).index(name) for name in FEATURES]
    return bunch.X[:, columns], np.asarray(bunch.y, dtype=np.intp)


def fitted(X: Floats, y: Ints) -> EvidentialClassifier:
    """Return an evidential classifier around logistic regression without penalty."""
    return EvidentialClassifier(LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)).fit(X, y)


def evaluate(classifier: EvidentialClassifier, X: Floats, y: Ints) -> dict[str, Ints]:
    """Return the counts of decisions of each rule for some patients."""
    bounds, mass = classifier.predict_bounds(X), classifier.predict_mass(X)
    feature_wise = cautiously_combined(classifier, X)
    sets = {
        **decided(bounds, mass),
        "most_belief": most_plausible(bounds.lower),
        "cautious_features": interval_dominance(feature_wise),
        "cautious_features_mp": most_plausible(feature_wise.upper),
    }
    rejected = sets["interval_dominance"].all(axis=1)
    tables = {name: _in_paper_order(chosen, y) for name, chosen in sets.items()}
    tables["mp_where_rejected"] = _in_paper_order(sets["mp"][rejected], y[rejected])
    return tables


def cautiously_combined(classifier: EvidentialClassifier, X: Floats) -> Bounds:
    """Return bounds with features combined by the cautious rule: largest weight for each class."""
    strongest = classifier.weights(X).max(axis=1)
    return bounds_from_weights(strongest, np.zeros_like(strongest))


def _in_paper_order(sets: Bools, y: Ints) -> Ints:
    return confusion(sets[:, ::-1], 1 - y)
