"""CPU time of a prediction, as the authors measured it: held-out rows, one value of c.

This module does not print, read options or write files.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Any

from experiments.p3.data import rows_of
from experiments.p3.protocol import DIVISOR, MODELS, PUBLISHED, RULE, TABLE, Cell
from sklearn.model_selection import train_test_split

from dubito.discriminant import ImpreciseGaussianDiscriminant

if TYPE_CHECKING:
    from collections.abc import Callable

#: Fraction held out, as in the authors' public scripts.
TEST_SIZE = 0.4
#: Minimum duration of a measurement, in seconds.
LEAST = 0.1

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """Everything that the timed models depend on, besides the cell."""

    name: str = "times"
    models: tuple[str, ...] = TABLE
    inner_folds: int = 5
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "models": {model: MODELS[model] for model in self.models},
            "inner_folds": self.inner_folds,
            "divisor": DIVISOR,
            "test_size": TEST_SIZE,
        }

    def quick(self) -> Settings:
        """Return the same with c tuned on three folds."""
        return replace(self, inner_folds=3)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the CPU times of sets of held-out rows, with c tuned by u80 on the others."""
    X, y = rows_of(cell.dataset)
    seed = 1000 * settings.seed + cell.round
    fit, held, y_fit, _ = train_test_split(X, y, test_size=TEST_SIZE, random_state=seed, stratify=y)
    found = {}
    for model in settings.models:
        classifier = ImpreciseGaussianDiscriminant(
            **{**PUBLISHED, **MODELS[model]},
            c="auto",
            scoring="u80",
            cv=settings.inner_folds,
            divisor=DIVISOR,
            n_jobs=1,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            classifier.fit(fit, y_fit)
            found[model] = timed(classifier, held)
    return {**cell._asdict(), "features": X.shape[1], "models": found}


def timed(classifier: ImpreciseGaussianDiscriminant, X: Any) -> dict[str, float]:
    """Return the CPU time of a row's set, in seconds, of many rows at once and of one by itself."""
    return {
        "c": float(classifier.c_),
        "row": seconds(lambda: classifier.predict_set(X, RULE)) / len(X),
        "alone": seconds(lambda: classifier.predict_set(X[:1], RULE)),
    }


def seconds(call: Callable[[], object]) -> float:
    """Return the mean CPU time of a call, over enough calls to take LEAST seconds."""
    call()  # compiles the kernels on the first call
    count, start = 0, process_time()
    while count == 0 or process_time() - start < LEAST:
        call()
        count += 1
    return (process_time() - start) / count
