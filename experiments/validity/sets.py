"""Label sets: how often they contain the true label, and how many classes they have.

Three Gaussian classes that overlap, so that the best classifier is right in about 78 % of cases;
and Venn-Abers on two classes, whose pair is no confidence interval.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.validity import discriminant, two_classes
from experiments.validity.cells import LEVEL, QUICK_SIZES, SIZES, Cell, Kind, Tallies, grid
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedShuffleSplit

from dubito.calibration import (
    CalibratedClassifier,
    EvidentialMultinomialCalibrator,
    VennAbersCalibrator,
)
from dubito.conformal import ConformalClassifier
from dubito.conformal.errors import SmallCalibrationWarning

if TYPE_CHECKING:
    from experiments.validity.cells import Bools, Floats, Ints, Settings

COVERAGE = 0.9
#: New rows of a replicate.
ROWS = 20
#: Full conformal sets refit with each new row and class: number of new rows, most training rows.
FULL_ROWS, FULL_MOST = 2, 100
#: The case whose classes have unequal frequencies, for sets that are valid within each class.
PRIORS = {"equal": (1 / 3, 1 / 3, 1 / 3), "unequal": (0.6, 0.3, 0.1)}
VENN_ABERS = "venn_abers"


def cells(*, quick: bool) -> list[Cell]:
    """List the cells; folds need more than ten rows."""
    cases = ("equal", VENN_ABERS) if quick else (*PRIORS, VENN_ABERS)
    return grid(cases, QUICK_SIZES if quick else SIZES[1:])


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often sets contain the label, or Venn-Abers pairs the probability."""
    return (_run_venn_abers if cell.case == VENN_ABERS else _run_sets)(cell, settings)


def _run_sets(cell: Cell, settings: Settings) -> dict[str, Any]:
    rng, tallies = settings.generator(cell), Tallies()
    for _ in tallies.replicates(settings.replicates):
        X, y = _rows_of_all_classes(cell, rng)
        new, labels = _rows(cell.case, ROWS, rng)
        best = discriminant.posterior(new) * PRIORS[cell.case]
        tallies.add(Kind("best single class", "new", None), best.argmax(axis=1) == labels, 1.0)
        _add_dominance(tallies, (X, y), (new, labels))
        _add_conformal(tallies, (X, y), (new, labels))
    return tallies.result(cell)


def _rows(case: str, n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    y = rng.choice(3, size=n, p=PRIORS[case])
    return discriminant.draw(y, rng), y


def _rows_of_all_classes(cell: Cell, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return rows with at least two of each class: one for a fold, one for its model."""
    while True:
        X, y = _rows(cell.case, cell.n, rng)
        if np.bincount(y, minlength=3).min() >= 2:
            return X, y


def _add_dominance(tallies: Tallies, train: tuple[Floats, Ints], test: tuple[Floats, Ints]) -> None:
    """Add sets by interval dominance, from belief and plausibility and from bounds at a level."""
    model = CalibratedClassifier(
        LinearDiscriminantAnalysis(), EvidentialMultinomialCalibrator(), cv=2
    ).fit(*train)
    for level in (None, LEVEL):
        sets = model.predict_set(test[0], rule="interval_dominance", level=level)
        name = "belief" if level is None else f"level {level:g}"
        _add_sets(tallies, Kind(f"dominance, {name}", "new", None), sets, test[1])


def _add_conformal(tallies: Tallies, train: tuple[Floats, Ints], test: tuple[Floats, Ints]) -> None:
    """Add conformal sets: split, cross, full, and valid within each class."""
    new, labels = test
    halves = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)  # all classes in each
    ways: dict[str, dict[str, Any]] = {
        "conformal, split": {"cv": halves},
        "conformal, cross": {"cv": 5},
        "conformal, cumulative": {"cv": halves, "score": "cumulative"},
        "conformal, by class": {"cv": halves, "class_conditional": True},
    }
    if len(train[0]) <= FULL_MOST:
        ways["conformal, full"] = {"cv": "full"}
    for name, options in ways.items():
        rows = slice(FULL_ROWS if options["cv"] == "full" else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallCalibrationWarning)
            warnings.filterwarnings("ignore", message="The least populated class")
            model = ConformalClassifier(LinearDiscriminantAnalysis(), **options).fit(*train)
            sets = model.predict_set(new[rows], coverage=COVERAGE)
        _add_sets(tallies, Kind(name, "new", COVERAGE), sets, labels[rows])
        if "class" in name or name == "conformal, split":
            rarest = labels == 2
            if rarest.any():
                kind = Kind(name, "rarest class", COVERAGE if "class" in name else None)
                _add_sets(tallies, kind, sets[rarest], labels[rarest])


def _add_sets(tallies: Tallies, kind: Kind, sets: Bools, labels: Ints) -> None:
    tallies.add(kind, sets[np.arange(len(labels)), labels], sets.sum(axis=1).mean())


def _run_venn_abers(cell: Cell, settings: Settings) -> dict[str, Any]:
    rng, truth, tallies = (
        settings.generator(cell),
        two_classes.truth_of("one_medium_half"),
        Tallies(),
    )
    for _ in tallies.replicates(settings.replicates):
        scores, y = truth.rows(cell.n, rng)
        rows = truth.scores(ROWS, rng)
        calibrator = VennAbersCalibrator(classes=[0, 1]).fit(scores[:, 0], y)
        for level in (None, LEVEL):
            bounds = calibrator.predict_bounds(rows[:, 0], level=level)
            name = "Venn-Abers, p0 to p1" if level is None else "Venn-Abers, level"
            pair = bounds.lower[:, 1], bounds.upper[:, 1]
            tallies.add_bounds(Kind(name, "probability", level), pair, truth.proba(rows)[:, 1])
    return tallies.result(cell)
