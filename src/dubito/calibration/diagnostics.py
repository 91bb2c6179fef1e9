r"""Checks of calibration rows: whether scores fit their labels, and whether a map's form is right.

**Labels.** Two classes: with U the number of pairs of a row of each class whose margins are in the
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

**Form.** Bounds at a level are valid only if the map's form is right. The check assumes no form:
sort the calibration rows by the fitted log-odds :math:`\eta`; an event whose fitted probability is
right rises with them, so the isotonic likelihood gives an interval of its probability at each row.
Where it and the interval of the fitted probability,

.. math:: \sigma\bigl(\eta\pm z\,(x^\mathsf TH^{-1}x)^{1/2}\bigr),\qquad x=(1,\eta),\quad
          H=\sum_iw_i\,p_i(1-p_i)\,x_ix_i^\mathsf T,

are disjoint, one of the two is wrong. The fraction of such rows among at most 32, spread evenly
over the weight, is the misfit. With more than two classes it is the larger of two: that of the
event that the most probable class is the true one, and the mean over the events of the most
frequent classes.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, gammaln, logit
from scipy.stats import rankdata

from dubito._meta_estimators import user_stacklevel
from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.isotonic import cut_bounds, pool_ties
from dubito._numerics.logistic_curvature import logistic_curvature
from dubito._numerics.row_subsets import subsample_rows
from dubito.calibration.errors import LabelMismatchWarning, MisfitWarning

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Standard errors by which scores must contradict the labels to count as reversed.
_REVERSED_DEVIATION = 4.0

#: Minus the natural logarithm of the accepted rate of false warnings about the order of columns:
#: e^-8 = 3e-4, less than the one in 1,000 that the warning promises.
_LOG_RATE = 8.0

#: Least ratio of the true classes' sum of ranks in other columns to that in their own: a classifier
#: may confuse classes without any mistake in the order of columns.
_LEAST_RATIO = 4.0

#: Scores that are ranked, and the fewest and most rows: ranking all would cost more than a fit.
_CHECKED_SCORES = 2**17
_MIN_ROWS, _MAX_ROWS = 200, 10_000
#: Most classes for which another order of the columns is searched.
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
    own = weight[order] * event[order]
    ordered = own @ rank - 0.5 * positive**2  # pairs within the class are half below, half above
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
    own = float(weight @ ranks[np.arange(len(y)), y])
    best = None
    if n_classes <= _COMPARED_CLASSES:
        counts = np.asarray(np.bincount(y, weight, n_classes), dtype=np.float64)
        best = _better_order(_sums_by_class(ranks, y, weight), counts)
    if best is not None and best[1] > -own:
        order, corrected = best
    elif own < -_REVERSED_DEVIATION * np.sqrt(total):
        order, corrected = None, -own
    else:
        return None
    largest = np.sqrt(3 * (n_classes - 1) / (n_classes + 1)) * total  # sum of the highest ranks
    return Mismatch(order, 0.5 + 0.5 * own / largest, 0.5 + 0.5 * corrected / largest)


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


def warn_of_mismatch(
    calibrator: Any, mismatch: Mismatch | None, classes: npt.NDArray[Any], name: str = "scores"
) -> None:
    """Warn of a mismatch, with advice; `name` says in the message which scores are meant."""
    if mismatch is None:
        return
    if len(classes) == 2:
        finding = (
            f"a row of {classes[1]!s} has a higher margin than one of {classes[0]!s} in "
            f"{mismatch.given:.0%} of pairs. Higher must mean {classes[1]!s}: negate the scores, "
            f"or swap the classes (classes={[*reversed(classes.tolist())]})"
        )
    elif mismatch.order is None:
        finding = (
            "rows score their own class lower than the others (mean rank "
            f"{mismatch.given:.2f}; 0 lowest, 1 highest). Higher must mean more likely: negate "
            "the scores"
        )
    else:
        finding = _describe_moved_columns(mismatch, classes)
    warnings.warn(
        f"{type(calibrator).__name__}: the {name} do not fit the labels: {finding}. If the scores "
        "are right, their classifier is worse than none.",
        LabelMismatchWarning,
        stacklevel=user_stacklevel(),
    )


def _describe_moved_columns(mismatch: Mismatch, classes: npt.NDArray[Any]) -> str:
    """Return which columns fit which labels, and advice."""
    order = np.asarray(mismatch.order)
    moved = np.flatnonzero(order != np.arange(len(order)))
    named = [f"column {order[k]} fits {classes[k]!s}, not {classes[order[k]]!s}" for k in moved[:3]]
    more = f" ({len(moved)} columns in all)" if len(moved) > 3 else ""
    return (
        f"{', '.join(named)}{more} (mean rank of the own class {mismatch.given:.2f}, and "
        f"{mismatch.corrected:.2f} so; 0 lowest, 1 highest). Name the classes in the order of the "
        "columns (classes=), or put the columns in the order of the classes"
    )


#: Most rows at which intervals are compared.
_CHECKED_ROWS = 32

#: Classes whose events are checked: the most frequent ones.
_CHECKED_CLASSES = 10

#: Level of both intervals, and the fraction of disjoint ones that is reported. In simulations with
#: the right form (2 to 10 classes, 10 to 2,000 rows) fewer than one fit in 100 exceeded it.
_LEVEL = 0.9
_REPORTED_FRACTION = 1 / 6

#: Larger fitted log-odds are clipped: their probabilities round to 0 and 1.
_LARGEST_LOG_ODDS = 30.0


def misfit_fraction(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the fraction of rows at which fitted and isotonic intervals are disjoint.

    Parameters
    ----------
    proba : array (n,)
        Fitted probability of the event in each calibration row.
    event : boolean array (n,)
    weight : array (n,)
        Positive sample weights.
    """
    with np.errstate(divide="ignore"):
        eta = np.clip(logit(proba), -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    distinct, successes, failures = pool_ties(eta, event, weight)
    index = _spread_rows(successes + failures)
    lower, upper = cut_bounds(index + 1, index, successes, failures, _LEVEL)
    half_width = root_chi2_quantile(_LEVEL) * _standard_error(distinct, successes + failures)[index]
    fitted = distinct[index]
    disjoint = (expit(fitted + half_width) < lower) | (expit(fitted - half_width) > upper)
    return float(disjoint.mean())


def events_of(proba: FloatArray, y: IntArray, classes: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return fitted probabilities of the checked events, and whether they occurred, by row.

    Two classes have one event, the second class. More have one column for the most probable class
    and one for each of `classes`.
    """
    if proba.shape[1] == 2:
        return proba[:, 1:], (y == 1)[:, None]
    top = proba.argmax(axis=1)
    fitted = np.column_stack([proba[np.arange(len(top)), top], proba[:, classes]])
    return fitted, np.column_stack([y == top, y[:, None] == classes])


def frequent_classes(y: IntArray, weight: FloatArray, n_classes: int) -> IntArray:
    """Return the classes with the largest weight, whose events are checked."""
    return np.argsort(-np.bincount(y, weight, n_classes), kind="stable")[:_CHECKED_CLASSES]


def misfit_of(proba: FloatArray, event: BoolArray, weight: FloatArray) -> float:
    """Return the misfit of the first event, or the mean of the others' if that is larger."""
    first, *others = (misfit_fraction(p, e, weight) for p, e in zip(proba.T, event.T, strict=True))
    return max(first, float(np.mean(others)) if others else 0.0)


def warn_of_misfit(calibrator: Any, misfit: float) -> None:
    """Warn if the fraction of disjoint intervals is large."""
    if misfit <= _REPORTED_FRACTION:
        return
    advice = "Use IsotonicCalibrator, which assumes no form"
    if hasattr(calibrator, "map_"):  # AutoCalibrator has offsets already
        advice += "."
    else:
        advice += (
            ", or a map with more parameters: PlattCalibrator and VectorCalibrator have offsets "
            "beside the slope."
        )
    if getattr(calibrator, "targets", None) == "smoothed":
        advice = f'Try targets="light" first: smoothed ones move probabilities. {advice}'
    warnings.warn(
        f"{type(calibrator).__name__}: in {misfit:.0%} of the calibration rows compared, the "
        "interval of the fitted probability and that of an isotonic fit have no value in common. "
        "The form of the map is wrong there, and bounds at a level may contain the true "
        f"probability less often. {advice}",
        MisfitWarning,
        stacklevel=user_stacklevel(),
    )


def _spread_rows(weight: FloatArray) -> IntArray:
    """Return indices of at most 32 distinct scores, spread evenly over the sample weight."""
    cumulated = np.cumsum(weight)
    middle = (np.arange(_CHECKED_ROWS) + 0.5) / _CHECKED_ROWS * cumulated[-1]
    return np.unique(np.minimum(np.searchsorted(cumulated, middle), len(cumulated) - 1))


def _standard_error(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the standard error of log-odds fitted by a logistic regression on themselves."""
    curvature = logistic_curvature(eta, weight)
    total = curvature.sum()
    centre = curvature @ eta / total
    squares = curvature @ (eta - centre) ** 2
    of_slope = np.divide((eta - centre) ** 2, squares, out=np.zeros_like(eta), where=squares > 0)
    return np.sqrt(1 / total + of_slope)
