r"""Do scores point at the labels? Signs and orders of columns that are surely wrong are told.

Two classes: with U the number of pairs of a row of each class whose margins are in the order of
their labels (ties count half), and if labels have nothing to do with margins,

.. math:: z=\frac{U-n_0n_1/2}{\sqrt{n_0n_1(n+1)/12}}

is nearly normal (Mann and Whitney, 1947). Scores point the wrong way where z < -4: one set in
30,000 of uninformative scores.

More classes: each row's scores become ranks :math:`r_{ik}`, of mean 0 and variance 1, less the mean
of their column. A row's own class should rank high, and in the order of the columns that fits best,
:math:`\sigma`, its column is its own. Ranks have the tails of a normal variable or lighter, so with
m classes moved by :math:`\sigma`, :math:`n_\sigma` rows in them, a sum of
:math:`r_{i\sigma(y_i)}-r_{iy_i}` beyond

.. math:: \sqrt{2\tfrac K{K-1}n_\sigma\cdot2\Bigl(8+\log\frac{K!}{(K-m)!}\Bigr)}

is found in less than one set in 1,000 of uninformative scores, whichever of the K!/(K-m)! orders is
taken. Scores point the wrong way where :math:`\sum_ir_{iy_i}<-4\sqrt n` and reversing them puts
the own class higher than any order of the columns.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import rankdata

from dubito._kernels.softmax import spread_rows
from dubito._rows import frames_to_the_user
from dubito.calibration.errors import LabelMismatchWarning

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray

#: Standard errors that scores must point away by.
_SURE = 4.0

#: Minus the logarithm of the rate of false alarms about columns.
_LOG_RATE = 8.0

#: Classes that change columns must be this many times closer to the new ones: confusions of a
#: classifier are no mistake of its user.
_FAR_BETTER = 4.0

#: Scores that are looked at, and the fewest and most rows: ranks of all would cost more than a fit.
_SCORES = 2**17
_FEWEST_ROWS, _MOST_ROWS = 200, 10_000
#: Columns of more classes are not compared with all labels.
_CLASSES = 1000


class Mismatch(NamedTuple):
    """What is wrong: `order` are the columns that fit the classes best, None: scores are reversed.

    `now` and `then` say how high rows rank their own class, 0 for the lowest place and 1 for the
    highest, as scores are given and with the fault mended.
    """

    order: IntArray | None
    now: float
    then: float


def find_mismatch(
    table: FloatArray, y: IntArray, weight: FloatArray, n_classes: int
) -> Mismatch | None:
    """Return what is surely wrong with the sign or the columns of scores, None for nothing.

    Parameters
    ----------
    table : array (n, 1) or (n, K)
        Finite scores, of whatever kind.
    y : int array (n,)
        Column numbers.
    weight : array (n,)
        Positive.
    n_classes : int
    """
    enough = np.clip(_SCORES // table.shape[1], _FEWEST_ROWS, _MOST_ROWS)
    rows = spread_rows(len(table), int(enough))
    table, y, weight = table[rows], y[rows], weight[rows]
    # Weights count for what they say of each other: their scale may be anything.
    weight = weight * (weight.sum() / (weight @ weight))
    if n_classes == 2:
        margin = table[:, 0] if table.shape[1] == 1 else table[:, 1] - table[:, 0]
        return _reversed_margin(margin, y == 1, weight)
    return _odd_columns(table, y, weight)


def _reversed_margin(margin: FloatArray, event: Any, weight: FloatArray) -> Mismatch | None:
    """Return whether margins of two classes point the wrong way."""
    total, positive = weight.sum(), weight[event].sum()
    negative = total - positive
    if min(positive, negative) <= 0:
        return None
    order = np.argsort(margin, kind="stable")
    _, first = np.unique(margin[order], return_index=True)
    tied = np.add.reduceat(weight[order], first)
    middle = np.cumsum(tied) - 0.5 * tied  # the weight below, and half of the ties
    place = np.repeat(middle, np.diff([*first, len(margin)]))
    own = weight[order] * event[order]
    ordered = own @ place - 0.5 * positive**2  # pairs within the class are half below, half above
    spread = np.sqrt(positive * negative * (total + 1) / 12)
    if ordered - 0.5 * positive * negative > -_SURE * spread:
        return None
    area = float(ordered / (positive * negative))
    return Mismatch(None, area, 1 - area)


def _odd_columns(table: FloatArray, y: IntArray, weight: FloatArray) -> Mismatch | None:
    """Return whether scores of K > 2 classes are reversed, or their columns in another order."""
    n_classes, total = table.shape[1], weight.sum()
    ranks = rankdata(table, axis=1) - 0.5 * (n_classes + 1)
    ranks *= np.sqrt(12 / (n_classes**2 - 1))
    ranks -= weight @ ranks / total
    own = float(weight @ ranks[np.arange(len(y)), y])
    best = None
    if n_classes <= _CLASSES:
        counts = np.asarray(np.bincount(y, weight, n_classes), dtype=np.float64)
        best = _better_order(_sums_by_class(ranks, y, weight), counts)
    if best is not None and best[1] > -own:
        return Mismatch(best[0], *_places(own, best[1], total, n_classes))
    if own < -_SURE * np.sqrt(total):
        return Mismatch(None, *_places(own, -own, total, n_classes))
    return None


def _sums_by_class(ranks: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
    """Return the sum of each column over the rows of each class, (K, K)."""
    n_classes = ranks.shape[1]
    order = np.argsort(y, kind="stable")
    present, first = np.unique(y[order], return_index=True)
    sums = np.zeros((n_classes, n_classes))
    sums[present] = np.add.reduceat(weight[order, None] * ranks[order], first, axis=0)
    return sums


def _better_order(sums: FloatArray, counts: FloatArray) -> tuple[IntArray, float] | None:
    """Return the columns that fit the classes far better than their own, and the sum there."""
    n_classes = len(sums)
    order = np.arange(n_classes)
    own = np.diag(sums)
    # Classes whose own column is the best of all stay where they are.
    free = np.flatnonzero(own < sums.max(axis=1))
    if len(free) < 2:
        return None
    classes, columns = linear_sum_assignment(sums[np.ix_(free, free)], maximize=True)
    order[free[classes]] = free[columns]
    moved = np.flatnonzero((order != np.arange(n_classes)) & (counts > 0))
    if len(moved) == 0:
        return None
    then, now = float(sums[moved, order[moved]].sum()), float(own[moved].sum())
    orders = gammaln(n_classes + 1) - gammaln(n_classes - len(moved) + 1)
    spread = 2 * n_classes / (n_classes - 1) * counts[moved].sum()
    if then - now < np.sqrt(2 * spread * (_LOG_RATE + orders)) or then < _FAR_BETTER * now:
        return None
    return order, float(own.sum() - now + then)


def _places(now: float, then: float, total: float, n_classes: int) -> tuple[float, float]:
    """Return sums of ranks as mean places between 0, the lowest, and 1."""
    reach = np.sqrt(3 * (n_classes - 1) / (n_classes + 1)) * total
    return 0.5 + 0.5 * now / reach, 0.5 + 0.5 * then / reach


def warn_of_mismatch(
    calibrator: Any, found: Mismatch | None, classes: npt.NDArray[Any], whose: str = "scores"
) -> None:
    """Say what is wrong with scores, and what to do."""
    if found is None:
        return
    if len(classes) == 2:
        seen = (
            f"a row of {classes[1]!s} has a higher margin than one of {classes[0]!s} in "
            f"{found.now:.0%} of pairs. Higher must mean {classes[1]!s}: negate the scores, or "
            f"swap the classes (classes={[*reversed(classes.tolist())]})"
        )
    elif found.order is None:
        seen = (
            "rows score their own class lower than the others (mean place "
            f"{found.now:.2f} of 0 to 1). Higher must mean more likely: negate the scores"
        )
    else:
        seen = _moved_columns(found, classes)
    warnings.warn(
        f"{type(calibrator).__name__}: the {whose} do not fit the labels: {seen}. If the scores "
        "are right, their classifier is worse than none.",
        LabelMismatchWarning,
        stacklevel=frames_to_the_user(),
    )


def _moved_columns(found: Mismatch, classes: npt.NDArray[Any]) -> str:
    """Say which columns fit which labels."""
    order = np.asarray(found.order)
    moved = np.flatnonzero(order != np.arange(len(order)))
    named = [f"column {order[k]} fits {classes[k]!s}, not {classes[order[k]]!s}" for k in moved[:3]]
    more = f" ({len(moved)} columns in all)" if len(moved) > 3 else ""
    return (
        f"{', '.join(named)}{more} (mean place of the own class {found.now:.2f} of 0 to 1, and "
        f"{found.then:.2f} so). Name the classes in the order of the columns (classes=), or put "
        "the columns in the order of the classes"
    )
