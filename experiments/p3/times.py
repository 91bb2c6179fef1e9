"""CPU time of a prediction, as the authors measured theirs: rows that did not train, one c.

Nothing here prints, reads options or writes files.
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

#: The authors' public scripts hold out so much.
TEST_SIZE = 0.4
#: A measurement takes at least so long, in seconds.
LEAST = 0.1

#: Raise when a change makes older results wrong: their folder is then left alone.
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What is timed."""

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
    """Tune c by u80 on one part of the rows and time the sets of the others."""
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
    """Return the CPU time of a call, a mean of as many as are needed to tell."""
    call()  # compiles, where it must
    count, start = 0, process_time()
    while count == 0 or process_time() - start < LEAST:
        call()
        count += 1
    return (process_time() - start) / count
