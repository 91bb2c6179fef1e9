"""One fold of Tables 2 to 5 of Leathart et al. 2019: a random tree, six calibration schemes.

This module does not print, read options or write files.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p4.data import Rows, rows_of
from experiments.p4.fit_cache import cached_fits
from experiments.p4.schemes import SCHEMES, TABLES_2_3, ZERO, dichotomies, redone
from sklearn.model_selection import StratifiedKFold

from dubito.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

#: Lower bound of probabilities, as in scikit-learn's `log_loss` in 2019.
LEAST = 1e-15
#: Bins of the calibration error.
N_BINS = 15

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 2


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a fold depend on, besides dataset, base learner and fold."""

    name: str
    bases: tuple[str, ...]
    as_redone: bool = False
    folds: int = 10
    n_trees: int = 50
    per_class: int | None = None
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "as_redone": {"zero": ZERO} if self.as_redone else False,
            "folds": self.folds,
            "n_trees": self.n_trees,
            "per_class": self.per_class,
        }

    def quick(self) -> Settings:
        """Return the same with three folds, few rows and few boosted trees."""
        return replace(self, folds=3, n_trees=4, per_class=12)

    def work(self, rounds: int, datasets: Sequence[str]) -> list[Cell]:
        """List the folds, those of all datasets in turn."""
        return [
            Cell(dataset, base, r)
            for r in range(rounds)
            for dataset in datasets
            for base in self.bases
        ]


class Cell(NamedTuple):
    """One fold of one repetition on one dataset with one base learner."""

    dataset: str
    base: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.base}-{self.dataset}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.base} on {self.dataset}, fold {self.round + 1}"


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the measures of all schemes on one fold's test rows."""
    start = process_time()
    rows = rows_of(cell.dataset, per_class=settings.per_class)
    fit, held = fold_of(rows.y, cell.round, settings)
    seed = 1000 * settings.seed + cell.round
    with cached_fits():
        schemes = {
            scheme: evaluate(
                redone(cell.base, scheme, seed, np.unique(rows.y))
                if settings.as_redone
                else dichotomies(cell.base, scheme, seed, n_trees=settings.n_trees),
                Rows(rows.X[fit], rows.y[fit]),
                Rows(rows.X[held], rows.y[held]),
            )
            for scheme in (TABLES_2_3 if cell.base == "liblinear" else SCHEMES)
        }
    return {
        **cell._asdict(),
        "rows": len(held),
        "schemes": schemes,
        "seconds": process_time() - start,
    }


def fold_of(y: Ints, number: int, settings: Settings) -> tuple[Ints, Ints]:
    """Return the training and test rows; each repetition has its own folds."""
    repetition, fold = divmod(number, settings.folds)
    splitter = StratifiedKFold(
        settings.folds, shuffle=True, random_state=1000 * settings.seed + repetition
    )
    fit, held = list(splitter.split(y, y))[fold]
    return fit, held


def evaluate(model: Any, fit: Rows, held: Rows) -> dict[str, float]:
    """Fit the model; return log losses, accuracy, calibration error and CPU times."""
    start = process_time()
    with warnings.catch_warnings():
        # Solvers of base learners may stop at their limit of iterations, as in the paper.
        warnings.simplefilter("ignore")
        model.fit(fit.X, fit.y)
        fitted = process_time()
        logs = model.predict_log_proba(held.X)
    return {**measured(logs, held.y), "fit": fitted - start, "score": process_time() - fitted}


def measured(logs: Floats, y: Ints) -> dict[str, float]:
    """Return the log loss with and without the lower bound, accuracy, and calibration error."""
    of_class = logs[np.arange(len(y)), y]
    return {
        "nll": float(-np.maximum(of_class, np.log(LEAST)).mean()),
        "uncut": float(-of_class.mean()),
        "accuracy": float(np.mean(logs.argmax(axis=1) == y)),
        "ece": expected_calibration_error(y, _proba(logs), n_bins=N_BINS),
    }


def _proba(logs: Floats) -> Floats:
    proba = np.exp(logs - logs.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)
