"""One repetition of cross-validation on a dataset, with c tuned inside each training part.

Carranza Alarcón and Destercke 2019, Table 2. This module does not print, read options or write
files.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p3 import uncut
from experiments.p3.data import rows_of
from sklearn.model_selection import KFold, StratifiedKFold

from dubito.discriminant import ImpreciseGaussianDiscriminant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from sklearn.model_selection import BaseCrossValidator

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]
    Rows = tuple[Floats, Ints]

#: The paper's two models, and others: other boxes and other covariances.
MODELS: dict[str, dict[str, Any]] = {
    "lda": {"covariance_type": "tied"},
    "qda": {"covariance_type": "full"},
    "lda_scaled": {"covariance_type": "tied", "box": "scaled"},
    "qda_scaled": {"covariance_type": "full", "box": "scaled"},
    "diag": {"covariance_type": "diag"},
    "spherical": {"covariance_type": "spherical"},
}
#: Options of the paper that differ from the defaults; the models above may override them.
PUBLISHED: dict[str, Any] = {"box": "raw", "shrinkage": None}
#: The rule of the paper's sets.
RULE = "maximality"
TABLE = ("lda", "qda")
BEYOND = tuple(model for model in MODELS if model not in TABLE)
#: Utilities that c is tuned by: a right set of s classes has alpha / s + (1 - alpha) / s².
ALPHAS = {"u80": 2.2, "u65": 1.6}
#: Divisors of covariances as in scikit-learn in 2019: n - 1, and N - K.
DIVISOR = "unbiased"
#: The values of c of the authors' public scripts, and 0.
CS = np.arange(551) / 100
#: Utilities of every STRIDE-th value of c are kept for the curves.
STRIDE = 5

#: Increase when a change makes stored results wrong: they are then neither read nor overwritten.
VERSION = 2


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a repetition depend on, besides dataset and round."""

    name: str
    models: tuple[str, ...] = TABLE
    folds: int = 10
    inner_folds: int = 10
    stratified: bool = True
    c_factor: int = 1
    seed: int = 0

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "models": {model: MODELS[model] for model in self.models},
            "folds": self.folds,
            "inner_folds": self.inner_folds,
            "stratified": self.stratified,
            "divisor": DIVISOR,
            "largest_c": self.c_factor * CS[-1],
        }

    def quick(self) -> Settings:
        """Return the same with three folds within three."""
        return replace(self, folds=3, inner_folds=3)

    def splitter(self, folds: int, seed: int) -> BaseCrossValidator:
        """Return folds in random order."""
        kind = StratifiedKFold if self.stratified else KFold
        return kind(folds, shuffle=True, random_state=seed)


class Cell(NamedTuple):
    """One repetition on one dataset."""

    dataset: str
    round: int

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""
        return f"{self.dataset}-{self.round:03d}"

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        return f"{self.dataset}, repetition {self.round + 1}"


def cells(rounds: int, datasets: Sequence[str]) -> list[Cell]:
    """List the work by rounds: a run that is stopped early has covered every dataset."""
    return [Cell(dataset, r) for r in range(rounds) for dataset in datasets]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return the counts of each model's sets in one cross-validation."""
    start = perf_counter()
    X, y = rows_of(cell.dataset)
    seed = 1000 * settings.seed + cell.round
    folds = settings.splitter(settings.folds, seed)
    parts: dict[str, list[dict[str, Any]]] = {model: [] for model in settings.models}
    for fit, held in folds.split(X, y):
        for model, found in parts.items():
            found.append(evaluate(model, (X[fit], y[fit]), (X[held], y[held]), settings, seed))
    return {
        **cell._asdict(),
        "rows": len(y),
        "features": X.shape[1],
        "right_uncut": sum(
            int(np.sum(uncut.predict((X[fit], y[fit]), X[held]) == y[held]))
            for fit, held in folds.split(X, y)
        ),
        "models": {model: together(found) for model, found in parts.items()},
        "seconds": perf_counter() - start,
    }


def evaluate(model: str, fit: Rows, held: Rows, settings: Settings, seed: int) -> dict[str, Any]:
    """Return the counts of held-out rows at every c, and at the best c by each utility."""
    X, y = held
    cs = settings.c_factor * CS
    with warnings.catch_warnings():
        # Small classes, their singular covariances and wide boxes are reported beside the tables,
        # and searches given up are counted below.
        warnings.simplefilter("ignore", UserWarning)
        chosen = {score: best(cs, u) for score, u in scored(model, fit, settings, seed).items()}
        classifier = discriminant(model).fit(*fit)
        critical = classifier.critical_c(X, max_c=cs[-1])
    precise = classifier.predict(X)
    counts = along(critical, y, precise, cs)
    return {
        "right": int(np.sum(precise == y)),
        "c": {score: float(cs[here].mean()) for score, here in chosen.items()},
        "tuned": {
            score: {name: float(value[here].mean()) for name, value in counts.items()}
            for score, here in chosen.items()
        },
        "path": {score: counts[score][::STRIDE].tolist() for score in ALPHAS},
        "grid": cs[::STRIDE].tolist(),
        "singular": int(np.min(classifier.rank_) < X.shape[1]),
        "unsettled": int(classifier.n_unsettled_),
    }


def discriminant(model: str) -> ImpreciseGaussianDiscriminant:
    """Return an unfitted model; its own c is not used here."""
    return ImpreciseGaussianDiscriminant(
        **{**PUBLISHED, **MODELS[model]}, divisor=DIVISOR, n_jobs=1
    )


def scored(model: str, rows: Rows, settings: Settings, seed: int) -> dict[str, Floats]:
    """Return the cross-validated utility of every c.

    As ``c="auto"`` does, but to the end of the grid: all best c are returned, not one.
    """
    X, y = rows
    total = dict.fromkeys(ALPHAS, 0.0)
    for fit, held in settings.splitter(settings.inner_folds, seed).split(X, y):
        path = (
            discriminant(model).fit(X[fit], y[fit]).c_path(X[held], y[held], settings.c_factor * CS)
        )
        total = {score: u + len(held) * getattr(path, score) for score, u in total.items()}
    return {score: u / len(y) for score, u in total.items()}


def best(c: Floats, utility: Floats) -> Bools:
    """Return which c above 0 are best; often several are, since utilities change in steps."""
    allowed = np.where(c > 0, utility, -np.inf)
    return allowed >= allowed.max() - 1e-9


def along(critical: Floats, truth: Ints, precise: Ints, c: Floats) -> dict[str, Floats]:
    """Return sums over rows at each c: utilities, sizes, and counts of right undecided rows."""
    sets = critical <= c[:, None, None]
    size, hit = sets.sum(axis=2), sets[:, np.arange(len(truth)), truth]
    several = size > 1
    worth = {score: hit * (a / size + (1 - a) / size**2) for score, a in ALPHAS.items()}
    found = {
        **worth,
        "size": size,
        "covered": hit,
        "undecided": several,
        "undecided_covered": several & hit,
        "undecided_precise": several & (precise == truth),
        "undecided_u80": several * worth["u80"],
    }
    return {name: value.sum(axis=1).astype(np.float64) for name, value in found.items()}


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts added over folds; the chosen c are kept for each fold."""
    names = parts[0]["tuned"]["u80"]
    return {
        **{key: sum(part[key] for part in parts) for key in ("right", "singular", "unsettled")},
        "c": {score: [part["c"][score] for part in parts] for score in ALPHAS},
        "tuned": {
            score: {name: sum(part["tuned"][score][name] for part in parts) for name in names}
            for score in ALPHAS
        },
        "path": {
            score: np.sum([part["path"][score] for part in parts], axis=0).tolist()
            for score in ALPHAS
        },
        "grid": parts[0]["grid"],
    }
