"""The rows that a tree is fitted to: checked, partly held out, and in the order of the leaves."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dubito._labels import as_labels
from dubito._validation import check_sample_weight
from dubito._wording import name_some

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies.tree import DichotomyTree

#: Below this number of rows a tenth is too few to calibrate on: folds hold out every row once.
_FEW_ROWS = 1000
_N_FOLDS = 5
#: From this number of rows on the final model is not fitted again to the held-out rows.
_MANY_ROWS = 20_000
#: The most rows that are held out: one slope gains nothing by more.
_MOST_HELD_OUT = 1000
#: With fewer held-out rows nothing is calibrated: the slope would be mostly noise.
_FEWEST_HELD_OUT = 20


@dataclass(frozen=True)
class ClassRows:
    """Rows and their class numbers, 0..K-1; a row of weight 0 is not used in the fit.

    ``weighted``: whether sample weights differ, so that classifiers must be given them.
    """

    X: Any
    codes: IntArray
    weight: FloatArray
    classes: npt.NDArray[Any]
    weighted: bool

    def without(self, held_out: BoolArray) -> ClassRows:
        """Return the rows with weight 0 for those held out."""
        return replace(self, weight=np.where(held_out, 0.0, self.weight))

    @property
    def features(self) -> tuple[np.dtype[Any], bool]:
        """Type of the features, and whether they are sparse."""
        return self.X.dtype, sp.issparse(self.X)


def read_class_rows(
    owner: Any, X: Any, y: Any, sample_weight: Any, *, dtype: Any, ensure_all_finite: Any
) -> ClassRows:
    """Return the checked rows of a fit, and set the feature attributes of the estimator `owner`."""
    X, y = validate_data(
        owner,
        X,
        y,
        accept_sparse="csr",
        dtype=_dtypes(dtype),
        ensure_all_finite=ensure_all_finite,
    )
    with warnings.catch_warnings():
        # Nested dichotomies are meant for many classes with few rows each.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        check_classification_targets(y)
    classes, codes = np.unique(as_labels(y, "y"), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}; a tree needs at least two classes."
        )
    weight = check_sample_weight(sample_weight, len(codes))
    empty = classes[np.bincount(codes, weight) == 0]
    if len(empty):
        raise ValueError(
            f"all rows of class {name_some(empty.tolist(), rest='')} have weight 0; each "
            "class needs a row that counts. Drop the rows of the class, or give one a weight."
        )
    counted = weight[weight > 0]
    return ClassRows(X, codes, weight, classes, bool((counted != counted[0]).any()))


def _dtypes(dtype: Any) -> list[Any]:
    """Return the types that rows may have; others are converted to the first."""
    if dtype is None:
        return [np.float64, np.float32]
    allowed = (np.float64, np.float32)
    with suppress(TypeError):
        if np.dtype(dtype) in allowed:
            return [np.dtype(dtype).type]
    raise ValueError(f"dtype must be float32, float64 or None; got {dtype!r}.")


class Holdout(NamedTuple):
    """Masks of the rows that an external calibrator is fitted to, each held out of another fit.

    With ``refit`` the final model is fitted to all rows, and one more model without each part is
    fitted for the calibrator only. Otherwise there is at most one part, which the final model is
    fitted without.
    """

    parts: list[BoolArray]
    refit: bool = False

    def final_rows(self, rows: ClassRows) -> ClassRows:
        """Return the rows that the final model is fitted to."""
        return rows if self.refit or not self.parts else rows.without(self.parts[0])


def hold_out(rows: ClassRows, size: str | float, rng: Generator) -> Holdout:
    """Return the rows held out for calibration: about a fraction `size`, or "auto".

    "auto": below 1,000 rows all of them in five folds, except the only rows of their class;
    otherwise a tenth of the rows, at most 1,000. If these are fewer than 20, none. Up to 20,000
    rows the final model is fitted to all of them.
    """
    if not isinstance(size, str):
        mask = _holdout_mask(rows, float(size), rng)
        return Holdout([mask] if mask.any() else [])
    n = int(np.count_nonzero(rows.weight))
    if n < _FEW_ROWS:
        parts = [part for part in fold_masks(rows, _N_FOLDS, rng) if part.any()]
    else:
        parts = [_holdout_mask(rows, min(0.1, _MOST_HELD_OUT / n), rng)]
    if sum(int(part.sum()) for part in parts) < _FEWEST_HELD_OUT:
        return Holdout([])
    return Holdout(parts, refit=n < _MANY_ROWS)


def fold_masks(rows: ClassRows, n_folds: int, rng: Generator) -> list[BoolArray]:
    """Return the folds of rows with positive weight; the only row of a class is in none.

    Rows are assigned to folds class by class, in random order: the sizes of folds differ by one
    row at most, within each class and overall.
    """
    counted = rng.permutation(np.flatnonzero(rows.weight))
    sizes = np.bincount(rows.codes[counted], minlength=len(rows.classes))
    several = counted[sizes[rows.codes[counted]] > 1]
    ordered = several[np.argsort(rows.codes[several], kind="stable")]
    fold = np.full(len(rows.codes), -1)
    fold[ordered] = np.arange(len(ordered)) % n_folds
    return [fold == number for number in range(n_folds)]


def _holdout_mask(rows: ClassRows, fraction: float, rng: Generator) -> BoolArray:
    """Return which of the rows with positive weight are held out; there may be none."""
    counted = np.flatnonzero(rows.weight)
    mask = np.zeros(len(rows.codes), dtype=bool)
    mask[counted] = _stratified_mask(rows.codes[counted], fraction, rng)
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


class Spans(NamedTuple):
    """Start of the rows of each node in leaf order, start of its right side, and end."""

    first: IntArray
    middle: IntArray
    last: IntArray

    @property
    def n_left(self) -> IntArray:
        """Number of rows on the left of each node."""
        return self.middle - self.first

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each node."""
        return self.last - self.first

    def packed(self) -> IntArray:
        """Return the start of each node, and the end, if the rows of all nodes are concatenated."""
        return np.concatenate([[0], np.cumsum(self.sizes)])


@dataclass(frozen=True)
class LeafRows:
    """Rows in the order of a tree's leaves, so that the rows of every node are consecutive.

    Those of leaf j are the rows ``index[offset[j]:offset[j + 1]]`` of `source`, which is not
    copied.
    """

    source: Any
    index: IntArray
    weight: FloatArray
    offset: IntArray

    def gather(self) -> Any:
        """Return the features in leaf order, a copy."""
        return self.source[self.index]

    def spans(self, tree: DichotomyTree) -> Spans:
        """Return the positions of the rows of each node."""
        return Spans(self.offset[tree.start], self.offset[tree.split], self.offset[tree.stop])


def in_leaf_order(
    source: Any, leaf: IntArray, weight: FloatArray, n_leaves: int, rng: Generator
) -> LeafRows:
    """Return the rows of positive weight ordered by their leaf, and at random within a leaf.

    Folds take every k-th row of this order. If rows were not shuffled, folds would differ
    systematically for a source that is sorted.
    """
    shuffled = rng.permutation(np.flatnonzero(weight))
    index = shuffled[np.argsort(leaf[shuffled], kind="stable")]
    offset = np.concatenate([[0], np.cumsum(np.bincount(leaf[index], minlength=n_leaves))])
    return LeafRows(source, index, weight[index], offset)
