"""Which rows are held out of a fit, for external calibration: a fraction of them, or folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Below this number of rows a tenth is too few to calibrate on: folds hold out every row once.
_FEW_ROWS = 1000
_N_FOLDS = 5
#: From this number of rows on the final model is not fitted again to the held-out rows.
_MANY_ROWS = 20_000
#: Largest number of rows held out: one slope gains nothing by more.
_MAX_HELD_OUT = 1000
#: With fewer held-out rows nothing is calibrated: the slope would be mostly noise.
_FEWEST_HELD_OUT = 20


class Holdout(NamedTuple):
    """Masks of the rows that an external calibrator is fitted to, each held out of another fit.

    With ``refit`` the final model is fitted to all rows, and one more model without each part is
    fitted for the calibrator only. Otherwise there is at most one part, which the final model is
    fitted without.
    """

    parts: list[BoolArray]
    refit: bool = False

    def final_weight(self, weight: FloatArray) -> FloatArray:
        """Return the sample weights in the final fit, 0 for the rows it is made without."""
        return weight if self.refit or not self.parts else np.where(self.parts[0], 0.0, weight)


def hold_out(codes: IntArray, weight: FloatArray, size: str | float, rng: Generator) -> Holdout:
    """Return the rows held out for calibration: about a fraction `size`, or "auto".

    "auto": below 1,000 rows all of them in five folds, except the only rows of their class;
    otherwise a tenth of the rows, at most 1,000. If these are fewer than 20, none. Up to 20,000
    rows the final model is fitted to all of them. `codes` are the class numbers of the rows; rows
    of weight 0 do not count.
    """
    if not isinstance(size, str):
        mask = _holdout_mask(codes, weight, float(size), rng)
        return Holdout([mask] if mask.any() else [])
    n = int(np.count_nonzero(weight))
    if n < _FEW_ROWS:
        parts = [part for part in fold_masks(codes, weight, _N_FOLDS, rng) if part.any()]
    else:
        parts = [_holdout_mask(codes, weight, min(0.1, _MAX_HELD_OUT / n), rng)]
    if sum(int(part.sum()) for part in parts) < _FEWEST_HELD_OUT:
        return Holdout([])
    return Holdout(parts, refit=n < _MANY_ROWS)


def fold_masks(
    codes: IntArray, weight: FloatArray, n_folds: int, rng: Generator
) -> list[BoolArray]:
    """Return the folds of rows with positive weight; the only row of a class is in none.

    Rows are assigned to folds class by class, in random order: the sizes of folds differ by one
    row at most, within each class and overall.
    """
    counted = rng.permutation(np.flatnonzero(weight))
    sizes = np.bincount(codes[counted])
    several = counted[sizes[codes[counted]] > 1]
    ordered = several[np.argsort(codes[several], kind="stable")]
    fold = np.full(len(codes), -1)
    fold[ordered] = np.arange(len(ordered)) % n_folds
    return [fold == number for number in range(n_folds)]


def _holdout_mask(
    codes: IntArray, weight: FloatArray, fraction: float, rng: Generator
) -> BoolArray:
    """Return which of the rows with positive weight are held out; there may be none."""
    counted = np.flatnonzero(weight)
    mask = np.zeros(len(codes), dtype=bool)
    mask[counted] = _stratified_mask(codes[counted], fraction, rng)
    return mask


def _stratified_mask(codes: IntArray, fraction: float, rng: Generator) -> BoolArray:
    """Return a mask of about a fraction of all rows and of each class, but never a whole class.

    Rows are ordered by class and randomly within it, and every (1/fraction)-th is taken. The
    number taken from a class is thus rounded up or down at random. If all rows of a class would be
    taken, one is kept.
    """
    n_classes = int(codes.max()) + 1
    shuffled = rng.permutation(len(codes))
    # Classes in random order as well: the remainder of one class counts for the next.
    rank = rng.permutation(n_classes)
    order = shuffled[np.argsort(rank[codes[shuffled]], kind="stable")]
    steps = np.floor(fraction * np.arange(len(order) + 1) + rng.random())
    taken = np.diff(steps) > 0
    mask = np.zeros(len(codes), dtype=bool)
    mask[order[taken]] = True
    emptied = np.bincount(codes[~mask], minlength=n_classes) == 0
    if emptied.any():
        first_of_class = np.unique(codes[order], return_index=True)[1]
        mask[order[first_of_class[emptied]]] = False
    return mask
