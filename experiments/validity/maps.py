"""True maps of the form of each calibrator, away from temperature scaling: coverage of bounds.

The truth is drawn anew in each replicate, so coverage is an average over truths, rows and classes.
To add a calibrator, add a line to `CASES`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity.cells import LEVEL, Cell, Kind, Tallies, grid
from experiments.validity.laplace import oracle_interval
from experiments.validity.more_classes import draw_labels
from scipy.special import expit, softmax

from dubito.calibration import (
    AutoCalibrator,
    BetaCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.calibration.errors import MisfitWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.validity.cells import Floats, Ints, Settings

SIZES, QUICK_SIZES = (30, 100, 1000), (30, 100)
#: Standard deviations of true slopes around 1, of offsets, and of entries off the diagonal.
SLOPES, OFFSETS, OTHERS = 0.5, 0.5, 0.3
#: Standard deviation of scores.
SIZE = 2.0
#: New rows predicted in a replicate.
ROWS = 20


@dataclass(frozen=True)
class Truth:
    """A true map from scores to probabilities.

    `features` are those in which logits are linear, `precision` is that of the prior distribution
    of the parameters; both are for the oracle, and None without one.
    """

    n_classes: int
    proba: Callable[[Floats], Floats]
    features: Callable[[Floats], Floats] | None = None
    precision: Floats | None = None

    def rows(self, n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return random scores, one column for two classes, and labels."""
        scores = draw_scores(n, self.n_classes, rng)
        return scores, draw_labels(self.proba(scores), rng)


def draw_scores(n: int, n_classes: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian scores, (n, K), or (n, 1) margins of two classes."""
    if n_classes == 2:
        return np.sqrt(2) * SIZE * rng.normal(size=(n, 1))
    return SIZE * rng.normal(size=(n, n_classes))


def centred(scores: Floats) -> Floats:
    """Return a score for each class; those of two classes are half the margin, with its sign."""
    return scores if scores.shape[1] > 1 else np.hstack([-0.5 * scores, 0.5 * scores])


def diagonal_features(scores: Floats) -> Floats:
    """Return features (n, K, 2K): the logit of a class is linear in its slope and offset."""
    u = centred(scores)
    eye = np.eye(u.shape[1])
    return np.concatenate([u[:, :, None] * eye, np.broadcast_to(eye, (len(u), *eye.shape))], axis=2)


def matrix_features(scores: Floats) -> Floats:
    """Return features (n, K, K(K+1)): each class has a slope for each score, and an offset."""
    u = centred(scores)
    n, n_classes = u.shape
    row = np.column_stack([u, np.ones(n)])
    table = np.einsum("kl,nj->nklj", np.eye(n_classes), row)
    return table.reshape(n, n_classes, -1)


def draw_softmax(n_classes: int, rng: np.random.Generator, *, full: bool) -> Truth:
    """Return a softmax with random slopes, offsets and, if full, off-diagonal entries."""
    eye = np.eye(n_classes)
    matrix = np.diag(1 + SLOPES * rng.normal(size=n_classes))
    offset = OFFSETS * rng.normal(size=n_classes)
    if full:
        matrix += OTHERS * rng.normal(size=matrix.shape) * (1 - eye)
        spread = np.column_stack([SLOPES * eye + OTHERS * (1 - eye), np.full(n_classes, OFFSETS)])
        features, deviation = matrix_features, spread.ravel()
    else:
        features, deviation = diagonal_features, np.repeat([SLOPES, OFFSETS], n_classes)
    return Truth(
        n_classes,
        lambda scores: softmax(centred(scores) @ matrix.T + offset, axis=1),
        features,
        deviation**-2.0,
    )


def draw_slope(n_classes: int, rng: np.random.Generator) -> Truth:
    """Return a softmax with one random slope for all classes."""
    slope = np.exp(0.5 * rng.normal())
    return Truth(n_classes, lambda scores: softmax(slope * centred(scores), axis=1))


def draw_sigmoid(_: int, rng: np.random.Generator) -> Truth:
    """Return a sigmoid with random slope and offset."""
    slope, offset = np.exp(0.5 * rng.normal()), OFFSETS * rng.normal()
    return _of_log_odds(lambda s: slope * s + offset)


def draw_beta(_: int, rng: np.random.Generator) -> Truth:
    """Return a random beta map of the scores as logits: the slopes below and above 0 differ."""
    (a, b), c = np.exp(0.5 * rng.normal(size=2)), OFFSETS * rng.normal()
    return _of_log_odds(lambda s: -a * np.logaddexp(0, -s) + b * np.logaddexp(0, s) + c)


def draw_monotone(_: int, rng: np.random.Generator) -> Truth:
    """Return a curve that rises in two steps at random places."""
    places = SIZE * rng.normal(size=2)

    def proba(scores: Floats) -> Floats:
        p = 0.05 + 0.45 * (expit(3 * (scores - places[0])) + expit(3 * (scores - places[1])))
        return np.hstack([1 - p, p])

    return Truth(2, proba)


def _of_log_odds(log_odds: Callable[[Floats], Floats]) -> Truth:
    return Truth(2, lambda s: np.hstack([expit(-log_odds(s)), expit(log_odds(s))]))


#: Name of a cell: calibrator, function that draws its truth, number of classes.
CASES: dict[str, tuple[Any, Callable[[int, np.random.Generator], Truth], int]] = {
    **{
        f"vector_{k}": (VectorCalibrator(), lambda k, rng: draw_softmax(k, rng, full=False), k)
        for k in (2, 4, 10)
    },
    **{
        f"matrix_{k}": (MatrixCalibrator(), lambda k, rng: draw_softmax(k, rng, full=True), k)
        for k in (2, 4, 10)
    },
    **{
        f"auto_{k}": (AutoCalibrator(), lambda k, rng: draw_softmax(k, rng, full=True), k)
        for k in (2, 4, 10)
    },
    "temperature_4": (TemperatureCalibrator(), draw_slope, 4),
    "platt_2": (PlattCalibrator(), draw_sigmoid, 2),
    "beta_2": (BetaCalibrator(input="logits"), draw_beta, 2),
    "isotonic_2": (IsotonicCalibrator(), draw_monotone, 2),
}


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    if quick:
        return grid(("vector_4", "matrix_4", "beta_2"), QUICK_SIZES)
    return grid(tuple(CASES), SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds of a class of a new row contain its true probability."""
    rng, tallies = settings.generator(cell), Tallies()
    calibrator, draw, n_classes = CASES[cell.case]
    calibrator = calibrator.set_params(classes=list(range(n_classes)))
    for _ in tallies.replicates(settings.replicates):
        truth = draw(n_classes, rng)
        scores, y = truth.rows(cell.n, rng)
        model = calibrator.fit(scores, y)
        rows = draw_scores(ROWS, n_classes, rng)
        proba = truth.proba(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MisfitWarning)
            bounds = model.predict_bounds(rows, level=LEVEL)
        queries = {"typical": slice(None)}
        tallies.add_queries(
            Kind("level", "", LEVEL), queries, bounds, proba, _oracle(truth, scores, rows)
        )
        tallies.add_queries(Kind("belief", "", None), queries, model.predict_bounds(rows), proba)
    return tallies.result(cell)


def _oracle(truth: Truth, scores: Floats, rows: Floats) -> tuple[Floats, Floats] | None:
    """Return the interval given the prior distribution of the truth; None without one."""
    if truth.features is None or truth.precision is None:
        return None
    seen = truth.features(scores), truth.proba(scores)
    queried = truth.features(rows), truth.proba(rows)
    return oracle_interval(seen, queried, truth.precision, LEVEL)
