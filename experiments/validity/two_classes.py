"""Two classes whose log-odds are linear in one score, or in three: the logistic map is right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity.cells import LEVEL, QUICK_SIZES, SIZES, Cell, Kind, Tallies, grid
from experiments.validity.laplace import sigmoid_interval
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2

from dubito.calibration import EvidentialJointCalibrator, EvidentialLogisticCalibrator

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Ints, Settings

#: Standard deviation of the true log-odds.
SIGNALS = {"weak": 0.5, "medium": 1.5, "strong": 4.0, "very_strong": 8.0}
PRIORS = {"half": 0.5, "rare": 0.15}
#: Weights of the three scores in the log-odds, and the correlation between scores.
WEIGHTS, CORRELATION = np.array([1.0, 0.7, 0.4]), 0.5
#: Cells in which other levels, belief and plausibility are measured too.
MORE_LEVELS, MORE_LEVELS_CASE = (0.5, 0.95), "medium_half"
#: An extreme row is as far from the centre as one row in ONE_IN.
ONE_IN = 1000
#: Rows predicted in a replicate, and where those of each kind are.
TYPICAL_ROWS, EXTREME_ROWS = 3, 2
QUERIES = {"typical": slice(TYPICAL_ROWS), "extreme": slice(TYPICAL_ROWS, None)}


@dataclass(frozen=True)
class Truth:
    """Scores are Gaussian, and the log-odds of class 1 are linear in them."""

    intercept: float
    slope: Floats
    root: Floats

    def scores(self, n: int, rng: np.random.Generator) -> Floats:
        """Return random scores (n, J)."""
        return rng.normal(size=(n, len(self.slope))) @ self.root.T

    def extremes(self, n: int, rng: np.random.Generator) -> Floats:
        """Return random scores (n, J) at the distance that one row in `ONE_IN` exceeds."""
        direction = rng.normal(size=(n, len(self.slope)))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.sqrt(chi2.ppf(1 - 1 / ONE_IN, len(self.slope))) * direction @ self.root.T

    def proba(self, scores: Floats) -> Floats:
        """Return the true probabilities (n, 2)."""
        p = expit(self.intercept + scores @ self.slope)
        return np.column_stack([1 - p, p])

    def rows(self, n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return random scores with their labels."""
        scores = self.scores(n, rng)
        return scores, (rng.random(n) < self.proba(scores)[:, 1]).astype(int)


@cache
def truth_of(case: str) -> Truth:
    """Return the truth named ``one_weak_half``, ``three_strong_rare`` and so on."""
    count, rest = case.split("_", 1)
    signal, prior = rest.rsplit("_", 1)
    weights = WEIGHTS if count == "three" else WEIGHTS[:1]
    size = len(weights)
    root = np.linalg.cholesky(np.full((size, size), CORRELATION) + 0.5 * np.eye(size))
    slope = weights * SIGNALS[signal] / np.linalg.norm(root.T @ weights)
    return Truth(_intercept(SIGNALS[signal], PRIORS[prior]), slope, root)


def _intercept(deviation: float, prior: float) -> float:
    """Return the mean of Gaussian log-odds at which class 1 has the prior probability."""
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def excess(intercept: float) -> float:
        return float(weights @ expit(intercept + deviation * points)) - prior

    return float(brentq(excess, -40, 40))


CASES = tuple(
    f"{count}_{signal}_{prior}"
    for count in ("one", "three")
    for signal in SIGNALS
    for prior in PRIORS
)


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    if quick:
        return grid(("one_medium_half", "three_medium_half"), QUICK_SIZES)
    return grid(CASES, SIZES)


def make_calibrator(case: str) -> Any:
    """Return the calibrator of a case; with three scores the one that EvidentialFusion makes.

    Its ridge shrinks the estimate; bounds at a level do not depend on it.
    """
    if case.startswith("one"):
        return EvidentialLogisticCalibrator(classes=[0, 1])
    return EvidentialJointCalibrator(targets="light", ridge="auto", classes=[0, 1], n_jobs=1)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds of a new row contain its true probability."""
    rng, truth, tallies = settings.generator(cell), truth_of(cell.case), Tallies()
    levels = (LEVEL, *MORE_LEVELS) if cell.case.endswith(MORE_LEVELS_CASE) else (LEVEL,)
    for _ in tallies.replicates(settings.replicates):
        scores, y = truth.rows(cell.n, rng)
        calibrator = make_calibrator(cell.case).fit(scores, y)
        rows = np.vstack([truth.scores(TYPICAL_ROWS, rng), truth.extremes(EXTREME_ROWS, rng)])
        proba = truth.proba(rows)[:, 1]
        for level in levels:
            pair = _of_class_1(calibrator.predict_bounds(rows, level=level))
            laplace = _of_class_1(sigmoid_interval(scores, y, rows, level))
            tallies.add_queries(Kind("level", "", level), QUERIES, pair, proba, laplace)
        if len(levels) > 1:
            pair = _of_class_1(calibrator.predict_bounds(rows))
            tallies.add_queries(Kind("belief", "", None), QUERIES, pair, proba)
    return tallies.result(cell)


def _of_class_1(bounds: Any) -> tuple[Floats, Floats]:
    """Return the bounds of class 1; those of class 0 are the same, mirrored."""
    lower, upper = bounds
    return lower[:, 1], upper[:, 1]
