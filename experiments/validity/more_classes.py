"""More than two classes whose log-probabilities are linear in the scores: one slope, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.validity.cells import LEVEL, QUICK_SIZES, SIZES, Cell, Kind, Tallies, grid
from experiments.validity.laplace import softmax_interval
from scipy.special import softmax

from dubito.calibration import EvidentialJointCalibrator, EvidentialMultinomialCalibrator

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Ints, Settings


class Truth(NamedTuple):
    """Utility of class k is the sum of each classifier's Gaussian score for k times its slope."""

    n_classes: int
    slopes: tuple[float, ...]

    def scores(self, n: int, rng: np.random.Generator) -> Floats:
        """Return scores (n, J, K) of J classifiers; those of a class are correlated by 0.5."""
        shape = (n, len(self.slopes), self.n_classes)
        common = rng.normal(size=(n, 1, self.n_classes))
        return np.sqrt(0.5) * (common + rng.normal(size=shape))

    def proba(self, scores: Floats) -> Floats:
        """Return the true probabilities (n, K)."""
        return softmax(np.einsum("njk,j->nk", scores, self.slopes), axis=1)

    def labels(self, scores: Floats, rng: np.random.Generator) -> Ints:
        """Return random labels."""
        return draw_labels(self.proba(scores), rng)


def draw_labels(proba: Floats, rng: np.random.Generator) -> Ints:
    """Return a random label for each row of probabilities."""
    drawn = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)).sum(axis=1)
    return np.minimum(drawn, proba.shape[1] - 1)


TRUTHS = {
    "slope_weak_3": Truth(3, (0.5,)),
    "slope_3": Truth(3, (2.0,)),
    "slope_5": Truth(5, (2.0,)),
    "slope_10": Truth(10, (2.0,)),
    "slope_strong_3": Truth(3, (8.0,)),
    "slope_strong_10": Truth(10, (8.0,)),
    "joint_3": Truth(3, (1.5, 1.0)),
    "joint_strong_3": Truth(3, (5.0, 2.0)),
}
#: Cells in which belief and plausibility are measured too.
BELIEF = ("slope_3", "slope_5", "slope_10", "joint_3")
#: Factor of the scores of extreme rows.
EXTREME_SCALE = 3.0
TYPICAL_ROWS, EXTREME_ROWS = 3, 2
QUERIES = {"typical": slice(TYPICAL_ROWS), "extreme": slice(TYPICAL_ROWS, None)}


def cells(*, quick: bool) -> list[Cell]:
    """List the cells; joint calibration of 1000 rows is left out, as too slow."""
    if quick:
        return [*grid(("slope_3",), QUICK_SIZES), Cell("joint_3", 15)]
    return [c for c in grid(tuple(TRUTHS), SIZES) if not (c.case.startswith("joint") and c.n > 300)]


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds of a class of a new row contain its true probability."""
    rng, truth, tallies = settings.generator(cell), TRUTHS[cell.case], Tallies()
    for _ in tallies.replicates(settings.replicates):
        scores = truth.scores(cell.n, rng)
        y = truth.labels(scores, rng)
        calibrator = _make_calibrator(truth).fit(_given(scores), y)
        typical, extreme = truth.scores(TYPICAL_ROWS, rng), truth.scores(EXTREME_ROWS, rng)
        rows = np.concatenate([typical, EXTREME_SCALE * extreme])
        proba = truth.proba(rows)
        bounds = calibrator.predict_bounds(_given(rows), level=LEVEL)
        # Features of class k are its J scores.
        laplace = softmax_interval(scores.transpose(0, 2, 1), y, rows.transpose(0, 2, 1), LEVEL)
        tallies.add_queries(Kind("level", "", LEVEL), QUERIES, bounds, proba, laplace)
        if cell.case in BELIEF:
            bounds = calibrator.predict_bounds(_given(rows))
            tallies.add_queries(Kind("belief", "", None), QUERIES, bounds, proba)
    return tallies.result(cell)


def _make_calibrator(truth: Truth) -> Any:
    classes = np.arange(truth.n_classes)
    if len(truth.slopes) == 1:
        return EvidentialMultinomialCalibrator(classes=classes)
    return EvidentialJointCalibrator(targets="light", ridge=1, classes=classes, n_jobs=1)


def _given(scores: Floats) -> Floats:
    """Return scores in the shape that the calibrators take: (n, K) of one, (n, J, K) of several."""
    return scores[:, 0] if scores.shape[1] == 1 else scores
