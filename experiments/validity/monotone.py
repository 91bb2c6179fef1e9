"""Maps without a parametric form: isotonic calibration on smooth truths, and the mean of a bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity.cells import LEVEL, QUICK_SIZES, SIZES, Cell, Kind, Tallies, grid
from experiments.validity.laplace import proportion_interval
from scipy.special import expit

from dubito.calibration import EvidentialBinningCalibrator, EvidentialIsotonicCalibrator

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.validity.cells import Floats, Settings

#: P(1 | s) for scores uniform on (0, 1).
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "sigmoid": lambda s: expit(6 * (s - 0.5)),
    "steep": lambda s: expit(25 * (s - 0.5)),
    "linear": lambda s: 0.1 + 0.8 * s,
    "rare": lambda s: 0.02 + 0.3 * s**3,
    "flat": lambda s: np.full_like(s, 0.3),
}
ISOTONIC_LEVELS = (LEVEL, 0.5, 0.95)
#: Bins of the binning cells.
N_BINS = 5
#: Rows to predict, away from the ends and at them, where a monotone map has one side only.
TYPICAL_ROWS, EXTREME = 3, (0.01, 0.99)
QUERIES = {"typical": slice(TYPICAL_ROWS), "extreme": slice(TYPICAL_ROWS, None)}


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    return grid(("sigmoid", "flat"), QUICK_SIZES) if quick else grid(tuple(TRUTHS), SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds contain the true probability, or the mean of a bin."""
    rng, truth, tallies = settings.generator(cell), TRUTHS[cell.case], Tallies()
    for _ in tallies.replicates(settings.replicates):
        scores = rng.random(cell.n)
        y = (rng.random(cell.n) < truth(scores)).astype(int)
        rows = np.append(rng.uniform(0.1, 0.9, TYPICAL_ROWS), EXTREME)
        for exact in (False, True):
            calibrator = EvidentialIsotonicCalibrator(exact=exact, classes=[0, 1]).fit(scores, y)
            method = "exact" if exact else "level"
            levels = ISOTONIC_LEVELS if cell.case == "sigmoid" and not exact else (LEVEL,)
            for level in levels:
                bounds = calibrator.predict_bounds(rows, level=level)
                pair = bounds.lower[:, 1], bounds.upper[:, 1]
                tallies.add_queries(Kind(method, "", level), QUERIES, pair, truth(rows))
        _add_bins(tallies, scores, y, rows[:TYPICAL_ROWS], truth)
    return tallies.result(cell)


def _add_bins(
    tallies: Tallies,
    scores: Floats,
    y: Any,
    rows: Floats,
    truth: Callable[[Floats], Floats],
) -> None:
    """Compare the bounds of a bin with the mean of the truth over it, and with the truth."""
    calibrator = EvidentialBinningCalibrator(n_bins=N_BINS, strategy="uniform", classes=[0, 1]).fit(
        scores, y
    )
    bounds = calibrator.predict_bounds(rows, level=LEVEL)
    pair = bounds.lower[:, 1], bounds.upper[:, 1]
    bins = calibrator.maps_[0].bins
    place = bins.find(rows)
    successes = bins.successes[place]
    laplace = proportion_interval(successes, successes + bins.failures[place], LEVEL)
    means = _bin_means(calibrator, truth)[place]
    tallies.add_bounds(Kind("bin mean", "typical", LEVEL), pair, means, laplace)
    tallies.add_bounds(Kind("bin, at the score", "typical", None), pair, truth(rows))


def _bin_means(calibrator: Any, truth: Callable[[Floats], Floats]) -> Floats:
    """Return the mean of the truth over each bin, by a fine grid of scores."""
    fine = (np.arange(20_000) + 0.5) / 20_000
    place = calibrator.maps_[0].bins.find(fine)
    counts = np.bincount(place, minlength=N_BINS)
    sums = np.bincount(place, weights=truth(fine), minlength=N_BINS)
    return sums / np.maximum(counts, 1)
