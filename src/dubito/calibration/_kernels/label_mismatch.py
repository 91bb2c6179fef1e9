r"""Whether the scores of calibration rows contradict their labels: reversed scores, moved columns.

Two classes: with U the number of pairs of a row of each class whose margins are in the
order of their labels (ties count half), and if labels have nothing to do with margins,

.. math:: z=\frac{U-n_0n_1/2}{\sqrt{n_0n_1(n+1)/12}}

is nearly normal (Mann and Whitney, 1947). Scores are reversed where z < -4: one set in 30,000 of
uninformative scores.

More classes: each row's scores become ranks :math:`r_{ik}`, of mean 0 and variance 1, less the mean
of their column. The true class of a row should rank high; :math:`\sigma` is the order of the
columns that ranks the true classes highest. Ranks have the tails of a normal variable or lighter,
so with m classes moved by :math:`\sigma`, :math:`n_\sigma` rows in them, a sum of
:math:`r_{i\sigma(y_i)}-r_{iy_i}` beyond

.. math:: \sqrt{2\tfrac K{K-1}n_\sigma\cdot2\Bigl(8+\log\frac{K!}{(K-m)!}\Bigr)}

is found in less than one set in 1,000 of uninformative scores, whichever of the K!/(K-m)! orders is
taken. Scores are reversed where :math:`\sum_ir_{iy_i}<-4\sqrt n` and negating them ranks the
true class higher than any order of the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import rankdata

from dubito._numerics.row_subsets import subsample_rows

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Number of standard errors by which scores must contradict the labels to count as reversed.
_REVERSED_DEVIATION = 4.0

#: Minus the natural logarithm of the accepted rate of false warnings about the order of columns:
#: e^-8 = 3e-4, less than the one in 1,000 that the warning promises.
_LOG_RATE = 8.0

#: Least ratio of the true classes' sum of ranks in other columns to that in their own: a classifier
#: may confuse classes without any mistake in the order of columns.
_LEAST_RATIO = 4.0

#: Number of scores that are ranked, and limits on their rows: ranking all would cost more than a
#: fit.
_CHECKED_SCORES = 2**17
_MIN_ROWS, _MAX_ROWS = 200, 10_000
#: Largest number of classes for which another order of the columns is searched.
_COMPARED_CLASSES = 1000


class Mismatch(NamedTuple):
    """The columns in the order that fits the classes best; None where scores are reversed.

    `given` and `corrected` are the mean ranks of the true classes, from 0 for the lowest score of
    a row to 1 for the highest, with the scores as passed and with their order or sign corrected.
    """

    order: IntArray | None
    given: float
    corrected: float


def find_mismatch(
    table: FloatArray, y: IntArray, weight: FloatArray, n_classes: int
) -> Mismatch | None:
    """Return how the sign or the columns of scores contradict the labels; None if they do not.

    Parameters
    ----------
    table : array (n, 1) or (n, K)
        Finite scores of any kind.
    y : int array (n,)
        Column numbers.
    weight : array (n,)
        Positive.
    n_classes : int
    """
    enough = np.clip(_CHECKED_SCORES // table.shape[1], _MIN_ROWS, _MAX_ROWS)
    rows = subsample_rows(len(table), int(enough))
    table, y, weight = table[rows], y[rows], weight[rows]
    # The effective sample size does not depend on the scale of the weights.
    weight = weight * (weight.sum() / (weight @ weight))
    if n_classes == 2:
        margin = table[:, 0] if table.shape[1] == 1 else table[:, 1] - table[:, 0]
        return _find_reversed_margin(margin, y == 1, weight)
    return _find_moved_columns(table, y, weight)


def _find_reversed_margin(
    margin: FloatArray, event: BoolArray, weight: FloatArray
) -> Mismatch | None:
    """Return the mismatch of two classes whose margins are reversed, else None."""
    total, positive = weight.sum(), weight[event].sum()
    negative = total - positive
    if min(positive, negative) <= 0:
        return None
    order = np.argsort(margin, kind="stable")
    _, first = np.unique(margin[order], return_index=True)
    tied = np.add.reduceat(weight[order], first)
    middle = np.cumsum(tied) - 0.5 * tied  # the weight below, and half of the ties
    rank = np.repeat(middle, np.diff([*first, len(margin)]))
    event_weight = weight[order] * event[order]
    # Of the pairs of two rows of the event itself, half are below and half above.
    ordered = event_weight @ rank - 0.5 * positive**2
    spread = np.sqrt(positive * negative * (total + 1) / 12)
    if ordered - 0.5 * positive * negative > -_REVERSED_DEVIATION * spread:
        return None
    area = float(ordered / (positive * negative))
    return Mismatch(None, area, 1 - area)


def _find_moved_columns(table: FloatArray, y: IntArray, weight: FloatArray) -> Mismatch | None:
    """Return the mismatch of K > 2 classes with reversed scores or moved columns, else None."""
    n_classes, total = table.shape[1], weight.sum()
    ranks = rankdata(table, axis=1) - 0.5 * (n_classes + 1)
    ranks *= np.sqrt(12 / (n_classes**2 - 1))
    ranks -= weight @ ranks / total
    rank_sum = float(weight @ ranks[np.arange(len(y)), y])
    best = None
    if n_classes <= _COMPARED_CLASSES:
        counts = np.asarray(np.bincount(y, weight, n_classes), dtype=np.float64)
        best = _better_order(_sums_by_class(ranks, y, weight), counts)
    if best is not None and best[1] > -rank_sum:
        order, corrected = best
    elif rank_sum < -_REVERSED_DEVIATION * np.sqrt(total):
        order, corrected = None, -rank_sum
    else:
        return None
    largest = np.sqrt(3 * (n_classes - 1) / (n_classes + 1)) * total  # sum of the highest ranks
    return Mismatch(order, 0.5 + 0.5 * rank_sum / largest, 0.5 + 0.5 * corrected / largest)


def _sums_by_class(ranks: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
    """Return the sum of each column over the rows of each class, (K, K)."""
    n_classes = ranks.shape[1]
    order = np.argsort(y, kind="stable")
    present, first = np.unique(y[order], return_index=True)
    sums = np.zeros((n_classes, n_classes))
    sums[present] = np.add.reduceat(weight[order, None] * ranks[order], first, axis=0)
    return sums


def _better_order(sums: FloatArray, counts: FloatArray) -> tuple[IntArray, float] | None:
    """Return an order of columns that ranks the true classes far higher, and their sum of ranks."""
    n_classes = len(sums)
    order = np.arange(n_classes)
    own = np.diag(sums)
    # Classes that rank highest in their own column keep it.
    free = np.flatnonzero(own < sums.max(axis=1))
    if len(free) < 2:
        return None
    classes, columns = linear_sum_assignment(sums[np.ix_(free, free)], maximize=True)
    order[free[classes]] = free[columns]
    moved = np.flatnonzero((order != np.arange(n_classes)) & (counts > 0))
    if len(moved) == 0:
        return None
    new, old = float(sums[moved, order[moved]].sum()), float(own[moved].sum())
    orders = gammaln(n_classes + 1) - gammaln(n_classes - len(moved) + 1)
    spread = 2 * n_classes / (n_classes - 1) * counts[moved].sum()
    if new - old < np.sqrt(2 * spread * (_LOG_RATE + orders)) or new < _LEAST_RATIO * old:
        return None
    return order, float(own.sum() - old + new)
