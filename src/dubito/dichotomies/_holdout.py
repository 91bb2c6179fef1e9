"""Rows set aside, in proportion to the classes and never the last of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, IntArray
    from dubito.dichotomies._class_rows import ClassRows

#: With fewer rows a tenth of them is too little to calibrate on: every row is held out in turn.
_FEW_ROWS = 1000
_FOLDS = 5
#: With more rows the final model can do without those held out, and is not fitted again.
_MANY_ROWS = 20_000
#: One slope is known well from so many rows, and gains nothing by more.
_MOST_ROWS = 1000
#: With fewer rows that can be held out, nothing is calibrated: a slope of so few is mostly chance.
_LEAST_ROWS = 20


class Aside(NamedTuple):
    """Rows that a calibrator is fitted on, in parts, each of them left out of a fit.

    With ``refit`` the final model is fitted to all rows, and others without each part are fitted
    for the calibrator alone; else there is one part at most, which the final model does without.
    """

    parts: list[BoolArray]
    refit: bool = False

    def inside(self, rows: ClassRows) -> ClassRows:
        """Return the rows of the final fit."""
        return rows if self.refit or not self.parts else rows.without(self.parts[0])


def plan_aside(rows: ClassRows, rng: Generator) -> Aside:
    """Return which rows calibrate the whole, where no part of them is asked for.

    Below 1,000 rows all of them in five folds, but for those that are alone in their class; from
    there on a tenth of the rows, and 1,000 at most. Fewer than 20 rows are none. The final model
    has all rows, unless they are 20,000 or more.
    """
    n = int(np.count_nonzero(rows.weight))
    if n < _FEW_ROWS:
        parts = [part for part in in_folds(rows, _FOLDS, rng) if part.any()]
    else:
        parts = [rows_aside(rows, min(0.1, _MOST_ROWS / n), rng)]
    if sum(int(part.sum()) for part in parts) < _LEAST_ROWS:
        return Aside([])
    return Aside(parts, refit=n < _MANY_ROWS)


def in_folds(rows: ClassRows, n_folds: int, rng: Generator) -> list[BoolArray]:
    """Return folds of the rows that count; rows that are alone in their class are in none.

    Rows are dealt out class by class, in random order: the folds of a class differ by one row at
    most, and so do those of all rows.
    """
    counted = rng.permutation(np.flatnonzero(rows.weight))
    sizes = np.bincount(rows.codes[counted], minlength=len(rows.classes))
    shared = counted[sizes[rows.codes[counted]] > 1]
    dealt = shared[np.argsort(rows.codes[shared], kind="stable")]
    fold = np.full(len(rows.codes), -1)
    fold[dealt] = np.arange(len(dealt)) % n_folds
    return [fold == number for number in range(n_folds)]


def rows_aside(rows: ClassRows, share: float, rng: Generator) -> BoolArray:
    """Return which rows are set aside, of those with weight; there may be none."""
    counted = np.flatnonzero(rows.weight)
    aside = np.zeros(len(rows.codes), dtype=bool)
    aside[counted] = set_aside(rows.codes[counted], share, rng)
    return aside


def set_aside(codes: IntArray, share: float, rng: Generator) -> BoolArray:
    """Return which rows are set aside: about a share of all, and of every class.

    Rows are walked through class by class, in random order, and one is taken whenever another
    unit of the share is full, so that a class gives its part rounded up or down by chance. Every
    class keeps a row: where one would lose its last, it stays.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The class of each row, 0..K-1.
    share : float
        Part to set aside, between 0 and 1.
    rng : Generator
        Decides which rows.
    """
    n_classes = int(codes.max()) + 1
    shuffled = rng.permutation(len(codes))
    # Classes in random order as well: what is left of one unit goes over to the next class.
    rank = rng.permutation(n_classes)
    walk = shuffled[np.argsort(rank[codes[shuffled]], kind="stable")]
    units = np.floor(share * np.arange(len(walk) + 1) + rng.random())
    taken = np.diff(units) > 0
    aside = np.zeros(len(codes), dtype=bool)
    aside[walk[taken]] = True
    emptied = np.bincount(codes[~aside], minlength=n_classes) == 0
    if emptied.any():
        first_of_class = np.unique(codes[walk], return_index=True)[1]
        aside[walk[first_of_class[emptied]]] = False
    return aside
