r"""Checked scores, and their conversion to log scores or log-odds of each class.

=========  =======================================  ==========================================
input      log scores, for softmax maps             log-odds, for one map per class
=========  =======================================  ==========================================
margin     the columns as they are                  the columns as they are
logits     log softmax                              :math:`s_k-\log\sum_{j\ne k}e^{s_j}`
proba      :math:`\log\max(p_k,\text{floor})`       the same less :math:`\log\max(1-p_k,\cdot)`
log_proba  the same                                 as of logits, after raising to the floor
=========  =======================================  ==========================================

Names in this package: `table` holds scores as they were passed, checked, with rows first; `u` holds
log scores (n, K), divided by the unit of the fit where there is one (`in_safe_units`); "shifted"
scores are log scores less the largest of their row, so at most 0. `scores` in `_kernels` are log
scores of any shift, unless the docstring says that they are shifted.

Two classes have one margin d, given as one column or as the difference of two; their log scores
are (-d/2, d/2), so neither class is favoured by being first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from dubito._numerics.log_odds import floored_log_odds, probability_floor, two_class_scores
from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.softmax import log_softmax
from dubito._numerics.sums_of_others import log_sums_of_others
from dubito._numerics.targets import PSEUDO_ROWS
from dubito._validation import as_float_array, check_proba
from dubito.calibration._kernels.temperature_scaling import fit_slope, slope_loss
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

INPUTS = ("logits", "proba", "log_proba", "margin")

#: Tolerance of the log-sum-exp of a row of log-probabilities, which is 0 where they sum to 1.
_SUM_TOLERANCE = 1e-3

#: Logarithms of the first and last candidate floors of exact log-probabilities: the precision of
#: probabilities, and about the smallest positive number.
_FIRST_FLOOR, _LAST_FLOOR = np.log(1e-16), np.log(1e-300)
#: Increase of the log-likelihood that each next candidate floor must bring. It was chosen on
#: digits, breast cancer and wine (naive Bayes): without it the log loss was up to 0.02 higher at 20
#: and 100 rows.
_GAIN_OF_A_FLOOR = 0.5

#: Largest number of rows on which floors are compared.
_FLOOR_ROWS = 10_000


def read_scores(scores: Any, kind: str) -> FloatArray:
    """Return finite scores as an (n, columns) array with at least one row."""
    table = finite_scores(scores, ndim=(1, 2))
    if table.ndim == 1:
        table = table[:, None]
    check_kind(table, kind)
    return table


def finite_scores(scores: Any, ndim: tuple[int, ...]) -> FloatArray:
    """Return finite scores of at least one row and column; `ndim` lists the allowed dimensions."""
    try:
        table = as_float_array(scores, "scores", ndim=ndim)
    except ValueError as error:
        raise CalibrationInputError(_describe_non_finite(scores) or str(error)) from error
    if table.size == 0:
        raise CalibrationInputError(
            f"scores is empty, of shape {np.shape(scores)}; at least one row and one column are "
            "needed."
        )
    return table


def _describe_non_finite(scores: Any) -> str:
    """Return a message naming the rows that are not finite; empty if all are."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        return ""
    if values.ndim not in (1, 2, 3) or np.isfinite(values).all():
        return ""
    kind = "nan" if np.isnan(values).any() else "infinite values"
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    count = f"{len(bad)} row{'' if len(bad) == 1 else 's'}"
    return (
        f"scores has {count} with {kind} (first: row {bad[0]}). Calibration needs finite scores; "
        "drop or impute them first."
    )


def check_kind(table: FloatArray, kind: str) -> None:
    """Raise unless scores (n, columns) are probabilities or their logarithms, if `kind` is that."""
    if kind == "proba":
        _check_probabilities(table)
    elif kind == "log_proba":
        _check_log_probabilities(table)


def _check_probabilities(table: FloatArray) -> None:
    try:
        check_proba(_both_classes(table), "scores")
    except ValueError as error:
        raise CalibrationInputError(
            f'{error} With input="proba" scores are probabilities: divide rounded ones by their '
            'sum; for other scores say input="margin" or input="logits".'
        ) from error


def _check_log_probabilities(table: FloatArray) -> None:
    if table.shape[1] == 1:
        raise CalibrationInputError(
            'scores has one column; with input="log_proba" one is needed for each class, two for '
            "two classes."
        )
    total = logsumexp(table, axis=1)
    row = int(np.argmax(np.abs(total)))
    if abs(total[row]) > _SUM_TOLERANCE:
        raise CalibrationInputError(
            f"the probabilities in row {row} of scores sum to {np.exp(total[row]):.4g}, not to 1. "
            'With input="log_proba" scores are logarithms of probabilities; for other scores say '
            'input="margin" or input="logits".'
        )


def likely_floor(table: FloatArray, y: IntArray, weight: FloatArray) -> float:
    r"""Return the floor of exact log-probabilities at which one slope fits the rows best.

    Naive Bayes and other models that multiply dependent factors give a few rows log-probabilities
    of -1,000 and less, and these rows would flatten the map of all others. Floors of 1e-16 (the
    precision of probabilities), 1e-32, 1e-64, ... and the lowest value given are compared by the
    likelihood of :math:`\mathrm{softmax}(\theta\log\max(p,\text{floor}))`.
    """
    lowest = max(float(table.min()), float(_LAST_FLOOR))
    floors = [float(_FIRST_FLOOR)]
    while 2 * floors[-1] > lowest:
        floors.append(2 * floors[-1])
    if lowest < floors[0]:
        floors.append(lowest)
    if len(floors) == 1:
        return float(np.exp(floors[0]))
    rows = subsample_rows(len(table), min(len(table), _FLOOR_ROWS))
    table, y, weight = table[rows], y[rows], weight[rows]
    losses = [_one_slope_loss(np.maximum(table, floor), y, weight) for floor in floors]
    return float(np.exp(floors[int(np.argmin(losses + _GAIN_OF_A_FLOOR * np.arange(len(floors))))]))


def _one_slope_loss(u: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Return the smallest negative log-likelihood that one slope reaches."""
    slope = fit_slope(u, y, weight, PSEUDO_ROWS).slope
    return slope_loss(u, y, weight, PSEUDO_ROWS, slope)


def choose_floor(table: FloatArray, kind: str, y: IntArray, weight: FloatArray) -> float:
    """Return the probability to which smaller ones are raised, chosen on the calibration rows."""
    if kind == "log_proba":
        return likely_floor(table, y, weight)
    return probability_floor(_both_classes(table)) if kind == "proba" else 1e-16


def binary_log_odds(table: FloatArray, kind: str, floor: float) -> FloatArray:
    """Return the log-odds, or margin, of the second class, (n,)."""
    if table.shape[1] == 1:
        column = table[:, 0]
        return floored_log_odds(column, 1 - column, floor) if kind == "proba" else column
    if kind == "log_proba":
        table = np.maximum(table, np.log(floor))
    first, second = table[:, 0], table[:, 1]
    return floored_log_odds(second, first, floor) if kind == "proba" else second - first


def class_log_odds(table: FloatArray, kind: str, floor: float) -> FloatArray:
    """Return one-against-rest log-odds, or margins, of each of K > 2 classes, (n, K)."""
    if kind == "proba":
        return floored_log_odds(table, 1 - table, floor)
    if kind == "margin":
        return table
    if kind == "log_proba":
        table = np.maximum(table, np.log(floor))
    return table - log_sums_of_others(table)


def log_scores(table: FloatArray, kind: str, floor: float, *, normalised: bool) -> FloatArray:
    """Return log scores (n, K), the input of softmax maps.

    With `normalised`, logits become their log softmax; maps with one slope do not depend on it.
    """
    if table.shape[1] <= 2:
        return two_class_scores(binary_log_odds(table, kind, floor)[:, None])
    if kind == "proba":
        return np.log(np.maximum(table, floor))
    if kind == "log_proba":
        return np.maximum(table, np.log(floor))
    if kind == "logits" and normalised:
        return log_softmax(table)
    return table


def in_safe_units(u: FloatArray) -> tuple[FloatArray, float]:
    """Return u divided by a power of 2 so that its cube is finite, and that unit, usually 1."""
    largest = max(float(u.max()), -float(u.min()))
    if 1e-60 < largest < 1e60 or largest == 0.0:
        return u, 1.0
    unit = 2.0 ** np.clip(np.floor(np.log2(largest)), -1020, 1020)
    return u / unit, unit


def _both_classes(table: FloatArray) -> FloatArray:
    """Return probabilities of all classes; one column is that of the second of two."""
    return table if table.shape[1] > 1 else np.hstack([1 - table, table])
