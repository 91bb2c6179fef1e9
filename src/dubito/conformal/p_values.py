"""Conformal p-values: the formula, and those from calibration rows in folds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._labels import label_columns
from dubito._meta_estimators import user_stacklevel
from dubito._validation import DEFAULT_COVERAGE, TIE, check_fraction
from dubito._wording import name_some
from dubito.conformal.errors import SmallCalibrationWarning
from dubito.conformal.training import true_label_scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray
    from dubito.conformal.scores import NonconformityScore
    from dubito.conformal.training import TrainingRows


class SortedScores(NamedTuple):
    """Calibration scores in increasing order, and the sums of the sample weights of their tails.

    ``tails[j]`` is the sum of the sample weights of ``scores[j:]``; the last one is 0.
    """

    scores: FloatArray
    tails: FloatArray


def sort_scores(scores: FloatArray, weight: FloatArray | None = None) -> SortedScores:
    """Return calibration scores in increasing order; by default each row has sample weight 1."""
    order = np.argsort(scores, kind="stable")
    counts = np.ones(len(scores)) if weight is None else weight[order]
    return SortedScores(scores[order], np.append(np.cumsum(counts[::-1])[::-1], 0.0))


def weight_at_or_above(calibration: SortedScores, scores: FloatArray) -> FloatArray:
    """Return the sample weight of the calibration rows that score at least each of `scores`."""
    return calibration.tails[np.searchsorted(calibration.scores, scores, side="left")]


def p_values(
    at_or_above: FloatArray, total: FloatArray | float, new: FloatArray | float
) -> FloatArray:
    r"""Return :math:`(w+\sum_{i:a_i\ge a}w_i)/(w+\sum_iw_i)` for new rows of sample weight w.

    Without weights this is :math:`(1+\#\{i:a_i\ge a\})/(n+1)`.
    """
    return (at_or_above + new) / (total + new)


class CalibrationTotals(NamedTuple):
    """Sample weight and number of the calibration rows of each class, and weight of a new row.

    Arrays (K,). Unless class-conditional, all entries are equal: those of all rows together.
    """

    weight: FloatArray  # sum over the calibration rows
    new_row_weight: FloatArray  # the largest of the calibration rows, or 1
    n_rows: IntArray
    class_conditional: bool

    def smallest_p_values(self) -> FloatArray:
        """Return the smallest possible p-value of each class."""
        return self.new_row_weight / (self.weight + self.new_row_weight)


class ScoredFold(NamedTuple):
    """A fitted model, and the sorted scores of rows it was not fitted on: all, or by class."""

    model: Any
    sorted_scores: list[SortedScores]


def scored_fold(
    nonconformity: NonconformityScore,
    model: Any,
    rows: TrainingRows,
    classes: npt.NDArray[Any],
    uniform: FloatArray | None,
    *,
    class_conditional: bool,
) -> ScoredFold:
    """Return a fold with the sorted scores of calibration rows, by a model fitted without them."""
    scores, columns = true_label_scores(nonconformity, model, rows, classes, uniform)
    weight = rows.weight
    if not class_conditional:
        return ScoredFold(model, [sort_scores(scores, weight)])
    by_class = [np.flatnonzero(columns == k) for k in range(len(classes))]
    return ScoredFold(
        model, [sort_scores(scores[i], None if weight is None else weight[i]) for i in by_class]
    )


def calibration_totals(
    held_out: Iterable[TrainingRows], classes: npt.NDArray[Any], *, class_conditional: bool
) -> CalibrationTotals:
    """Return the sample weights and numbers of the calibration rows, over all folds."""
    total, largest, count = np.zeros((3, len(classes)))
    for rows in held_out:
        columns = label_columns(rows.y, len(classes), classes)
        weight = np.ones(len(columns)) if rows.weight is None else rows.weight
        np.add.at(total, columns, weight)
        np.maximum.at(largest, columns, weight)
        np.add.at(count, columns, 1.0)
    if not class_conditional:
        total[:], largest[:], count[:] = total.sum(), largest.max(), count.sum()
    new_row = np.where(largest > 0, largest, 1.0)
    return CalibrationTotals(total, new_row, count.astype(np.intp), class_conditional)


def fold_p_values(
    folds: list[ScoredFold],
    totals: CalibrationTotals,
    nonconformity: NonconformityScore,
    X: Any,
    *,
    classes: npt.NDArray[Any],
    uniform: FloatArray | None,
) -> FloatArray:
    """Return p-values (n, K) of new rows, compared with each fold by the model of that fold."""
    at_or_above = np.zeros(1)
    for model, sorted_scores in folds:
        scores = nonconformity.scores(model, X, classes, uniform)
        if len(sorted_scores) == 1:
            of_fold = weight_at_or_above(sorted_scores[0], scores)
        else:
            of_class = zip(sorted_scores, scores.T, strict=True)
            of_fold = np.column_stack([weight_at_or_above(s, a) for s, a in of_class])
        at_or_above = at_or_above + of_fold
    return p_values(at_or_above, totals.weight, totals.new_row_weight)


def check_coverage(coverage: Any) -> float:
    """Return the coverage, in (0, 1), by default `DEFAULT_COVERAGE`."""
    return DEFAULT_COVERAGE if coverage is None else check_fraction(coverage, "coverage")


def warn_of_few_calibration_rows(
    totals: CalibrationTotals, classes: npt.NDArray[Any], coverage: float
) -> None:
    """Warn of classes that are in every set because they have too few calibration rows."""
    short = np.flatnonzero(totals.smallest_p_values() > 1 - coverage + TIE)
    if len(short) == 0:
        return
    if totals.class_conditional:
        names = name_some(short.tolist(), show=lambda k: f"{classes[k]} ({totals.n_rows[k]})")
        available = f"these classes have too few, and are in every set: {names}"
    else:
        available = f"there are {totals.n_rows[0]}, so every set contains all classes"
    needed = int(np.ceil(1 / (1 - coverage) - 1 - 1e-9))
    rows = f"rows{' of each class' * totals.class_conditional} of equal weight"
    warnings.warn(
        f"coverage={coverage:.15g} needs {needed} or more {rows} to calibrate on; {available}. Use "
        "more rows or less coverage.",
        SmallCalibrationWarning,
        stacklevel=user_stacklevel(),
    )
