"""Truths outside the model: no level is promised, and a warning is expected."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity import more_classes, two_classes
from experiments.validity.cells import LEVEL, Cell, Kind, Tallies, grid
from scipy.special import expit, softmax

from dubito.calibration import EvidentialLogisticCalibrator, EvidentialMultinomialCalibrator
from dubito.calibration.errors import MisfitWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.validity.cells import Floats, Settings

#: Offsets of the utilities of the three classes, which a single slope cannot represent.
SHIFT = np.array([1.5, 0.0, -1.5])
SIZES, QUICK_SIZES = (30, 100, 300, 1000), (300,)
ROWS = 5


def wrong_link(scores: Floats) -> Floats:
    """Return P(1 | s) that saturates far from 0 and 1: labels are wrong in a fifth of cases."""
    p = 0.2 + 0.6 * expit(5 * scores[:, 0])
    return np.column_stack([1 - p, p])


def shifted(scores: Floats) -> Floats:
    """Return the softmax of scores with an offset for each class."""
    return softmax(2 * scores + SHIFT, axis=1)


def right_link(scores: Floats) -> Floats:
    """Return P(1 | s) of the logistic form."""
    return two_classes.truth_of("one_medium_half").proba(scores)


def unshifted(scores: Floats) -> Floats:
    """Return the softmax of scores times one slope."""
    return softmax(2 * scores, axis=1)


#: Truth, and number of columns of scores. The first two are wrong, the others right.
CASES: dict[str, tuple[Callable[[Floats], Floats], int]] = {
    "wrong_link": (wrong_link, 1),
    "shifted_scores": (shifted, 3),
    "right_link": (right_link, 1),
    "right_form": (unshifted, 3),
}


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    return grid(tuple(CASES), QUICK_SIZES if quick else SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often bounds contain the truth, and how often the warning is raised."""
    rng, tallies = settings.generator(cell), Tallies()
    truth, columns = CASES[cell.case]
    promise = LEVEL if cell.case.startswith("right") else None
    for _ in tallies.replicates(settings.replicates):
        scores = rng.normal(size=(cell.n, columns))
        proba = truth(scores)
        y = more_classes.draw_labels(proba, rng)
        calibrator = _make_calibrator(columns)
        rows = rng.normal(size=(ROWS, columns))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MisfitWarning)
            calibrator.fit(scores, y)
            bounds = calibrator.predict_bounds(rows, level=LEVEL)
        tallies.add_bounds(Kind("level 0.9", "typical", promise), bounds, truth(rows))
        warned = any(issubclass(one.category, MisfitWarning) for one in caught)
        tallies.add(Kind("warning", "fit", None), warned)
    return tallies.result(cell)


def _make_calibrator(columns: int) -> Any:
    if columns == 1:
        return EvidentialLogisticCalibrator(classes=[0, 1])
    return EvidentialMultinomialCalibrator(classes=np.arange(columns))
