"""Rows that a model was not fitted on, ranked: what new rows are compared to."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._labels import label_columns
from dubito._rows import frames_to_the_user
from dubito.conformal._contours import Ranks, p_values, rank, rank_classes, weight_beyond
from dubito.conformal._fitting import own_scores
from dubito.conformal.errors import SmallCalibrationWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray
    from dubito.conformal._fitting import TrainingRows
    from dubito.conformal._scores import ScoreReader


class ClassWeights(NamedTuple):
    """How much each class is compared to: arrays (K,), all alike unless class-conditional."""

    total: FloatArray  # of the rows that calibrate
    own: FloatArray  # of a new row: the largest among them, or 1
    rows: IntArray  # how many calibrate

    def smallest(self) -> FloatArray:
        """Return the least p-value that each class can have."""
        return self.own / (self.total + self.own)


class Fold(NamedTuple):
    """A fitted model, and the scores of rows it was not fitted on: of all, or class by class."""

    model: Any
    ranks: list[Ranks]


def rank_fold(
    reader: ScoreReader,
    model: Any,
    rows: TrainingRows,
    classes: npt.NDArray[Any],
    fraction: FloatArray | None,
    *,
    class_conditional: bool,
) -> Fold:
    """Rank rows by a model that was fitted without them."""
    scores, columns = own_scores(reader, model, rows, classes, fraction)
    if class_conditional:
        return Fold(model, rank_classes(scores, columns, len(classes), rows.weight))
    return Fold(model, [rank(scores, rows.weight)])


def class_weights(
    held_out: Iterable[TrainingRows], classes: npt.NDArray[Any], *, class_conditional: bool
) -> ClassWeights:
    """Add up the rows that calibrate."""
    total, own, count = np.zeros((3, len(classes)))
    for rows in held_out:
        columns = label_columns(rows.y, len(classes), classes)
        weight = np.ones(len(columns)) if rows.weight is None else rows.weight
        np.add.at(total, columns, weight)
        np.maximum.at(own, columns, weight)
        np.add.at(count, columns, 1.0)
    if not class_conditional:
        total[:], own[:], count[:] = total.sum(), own.max(), count.sum()
    return ClassWeights(total, np.where(own > 0, own, 1.0), count.astype(np.intp))


def compare(
    folds: list[Fold],
    weights: ClassWeights,
    reader: ScoreReader,
    X: Any,
    *,
    classes: npt.NDArray[Any],
    fraction: FloatArray | None,
) -> FloatArray:
    """Return p-values (n, K): rows are compared to each fold by the model of that fold."""
    beyond = np.zeros(1)
    for model, ranks in folds:
        scores = reader.scores(model, X, classes, fraction)
        if len(ranks) == 1:
            beyond = beyond + weight_beyond(ranks[0], scores)
        else:
            pairs = zip(ranks, scores.T, strict=True)
            beyond = beyond + np.column_stack([weight_beyond(r, a) for r, a in pairs])
    return p_values(beyond, weights.total, weights.own)


def check_coverage(coverage: Any) -> float:
    """Return a coverage in (0, 1); 0.9 where none is named."""
    if coverage is None:
        return 0.9
    number = float(coverage) if isinstance(coverage, Real) else np.nan
    if not 0.0 < number < 1.0:
        hint = f" For {number:g} % pass {number / 100:g}." if 1.0 < number < 100.0 else ""
        raise ValueError(
            "coverage must be a number between 0 and 1, as in coverage=0.9. Got "
            f"{coverage!r} instead.{hint}"
        )
    return number


def warn_small(
    weights: ClassWeights,
    classes: npt.NDArray[Any],
    coverage: float,
    *,
    class_conditional: bool,
) -> None:
    """Say which classes can never be left out, for want of rows."""
    short = np.flatnonzero(weights.smallest() > 1 - coverage + 1e-12)
    if len(short) == 0:
        return
    if class_conditional:
        names = [f"{classes[k]} ({weights.rows[k]})" for k in short[:5]]
        more = f" and {len(short) - 5} more" if len(short) > 5 else ""
        found = f"these classes have too few, and are in every set: {', '.join(names)}{more}"
    else:
        found = f"there are {weights.rows[0]}, so every set holds all classes"
    needed = int(np.ceil(1 / (1 - coverage) - 1 - 1e-9))
    rows = f"rows{' of each class' * class_conditional} of equal weight"
    warnings.warn(
        f"coverage={coverage:.15g} needs {needed} or more {rows} to calibrate on; {found}. Use "
        "more rows or less coverage.",
        SmallCalibrationWarning,
        stacklevel=frames_to_the_user(),
    )
