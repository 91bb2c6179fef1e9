r"""Reading scores: what was given becomes log scores per class, or log-odds per class.

=========  =======================================  ==========================================
input      log scores, for softmax maps             log-odds, for binary maps lifted to K classes
=========  =======================================  ==========================================
margin     the columns as they are                  the columns as they are
logits     log softmax                              :math:`s_k-\log\sum_{j\ne k}e^{s_j}`
proba      :math:`\log\max(p_k,\text{floor})`       the same less :math:`\log\max(1-p_k,\cdot)`
log_proba  the same                                 as of logits, after raising to the floor
=========  =======================================  ==========================================

Two classes have one margin d, given as one column or as the difference of two; their log scores
are (-d/2, d/2), so neither class is favoured by being first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from dubito._checks import FloatArray, IntArray, as_float_array, check_proba
from dubito._kernels.softmax import fit_slope, log_softmax, slope_loss, spread_rows
from dubito.calibration.errors import CalibrationInputError

INPUTS = ("logits", "proba", "log_proba", "margin")

#: Exact log-probabilities that sum to 1 but for rounding.
_ROUNDING = 1e-3

#: Floors of exact log-probabilities: the first is that of probabilities, and none is below the
#: last, where numbers end. Each is the square of the one before, and must gain so much likelihood:
#: chosen on digits, breast cancer and wine (naive Bayes), where without it log loss was up to 0.02
#: higher at 20 and 100 rows.
_FIRST_FLOOR, _LAST_FLOOR = np.log(1e-16), np.log(1e-300)
_GAIN = 0.5

#: Pseudo-observations of that slope, as of `TemperatureCalibrator`.
_PSEUDO = 0.25

#: Rows that floors are compared on.
_FLOOR_ROWS = 10_000


def read_scores(scores: Any, kind: str) -> FloatArray:
    """Return finite scores as an (n, columns) array with at least one row."""
    table = finite_scores(scores, ndim=(1, 2))
    if table.ndim == 1:
        table = table[:, None]
    if kind == "proba":
        check_probabilities(table)
    elif kind == "log_proba":
        check_log_probabilities(table)
    return table


def finite_scores(scores: Any, ndim: tuple[int, ...]) -> FloatArray:
    """Return finite scores of at least one row and column, with one of some numbers of axes."""
    try:
        table = as_float_array(scores, "scores", ndim=ndim)
    except ValueError as error:
        raise CalibrationInputError(_not_finite(scores) or str(error)) from error
    if table.size == 0:
        raise CalibrationInputError(
            f"scores is empty, of shape {np.shape(scores)}; at least one row and one column are "
            "needed."
        )
    return table


def _not_finite(scores: Any) -> str:
    """Say which rows are not finite, or nothing when the fault is another."""
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


def check_probabilities(table: FloatArray) -> None:
    # One column is the second class's; the first has the rest.
    shares = table if table.shape[1] > 1 else np.hstack([1 - table, table])
    try:
        check_proba(shares, "scores")
    except ValueError as error:
        raise CalibrationInputError(
            f'{error} With input="proba" scores are probabilities: divide rounded ones by their '
            'sum; for other scores say input="margin" or input="logits".'
        ) from error


def check_log_probabilities(table: FloatArray) -> None:
    """Refuse scores that are no logarithms of probabilities, one column for each class."""
    if table.shape[1] == 1:
        raise CalibrationInputError(
            'scores has one column; with input="log_proba" one is needed for each class, two for '
            "two classes."
        )
    total = logsumexp(table, axis=1)
    row = int(np.argmax(np.abs(total)))
    if abs(total[row]) > _ROUNDING:
        raise CalibrationInputError(
            f"the probabilities in row {row} of scores sum to {np.exp(total[row]):.4g}, not to 1. "
            'With input="log_proba" scores are logarithms of probabilities; for other scores say '
            'input="margin" or input="logits".'
        )


def likely_floor(table: FloatArray, y: IntArray, weight: FloatArray) -> float:
    r"""Return the floor of exact log-probabilities at which one slope fits the rows best.

    Models that multiply what is not independent, as naive Bayes, give a few rows log-probabilities
    of -1,000 and less, which would flatten the maps of all others. Floors of 1e-16 (what is left
    where probabilities are given), 1e-32, 1e-64, ... and the lowest seen are compared by the
    likelihood of :math:`\mathrm{softmax}(\theta\log\max(p,\text{floor}))`.
    """
    seen = max(float(table.min()), float(_LAST_FLOOR))
    floors = [float(_FIRST_FLOOR)]
    while 2 * floors[-1] > seen:
        floors.append(2 * floors[-1])
    if seen < floors[0]:
        floors.append(seen)
    if len(floors) == 1:
        return float(np.exp(floors[0]))
    rows = spread_rows(len(table), min(len(table), _FLOOR_ROWS))
    table, y, weight = table[rows], y[rows], weight[rows]
    losses = [_one_slope_loss(np.maximum(table, floor), y, weight) for floor in floors]
    return float(np.exp(floors[int(np.argmin(losses + _GAIN * np.arange(len(floors))))]))


def _one_slope_loss(u: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Return the least negative log-likelihood by one slope."""
    theta = fit_slope(u, y, weight, _PSEUDO).theta
    return slope_loss(u, y, weight, _PSEUDO, theta)


def floor_of(table: FloatArray, kind: str, y: IntArray, weight: FloatArray) -> float:
    """Return the least probability that is believed, by the calibration rows."""
    return likely_floor(table, y, weight) if kind == "log_proba" else smallest_share(table, kind)


def smallest_share(table: FloatArray, kind: str) -> float:
    """Return half the smallest positive probability, within 1e-16 and 0.01."""
    if kind != "proba":
        return 1e-16
    shares = table if table.shape[1] > 1 else np.hstack([table, 1 - table])
    smallest = np.min(shares, where=shares > 0, initial=1.0)
    return float(np.clip(0.5 * smallest, 1e-16, 0.01))


def binary_log_odds(table: FloatArray, kind: str, floor: float) -> FloatArray:
    """Return the log-odds, or margin, of the second class, (n,)."""
    if table.shape[1] == 1:
        column = table[:, 0]
        return _log_odds_of(column, 1 - column, floor) if kind == "proba" else column
    if kind == "log_proba":
        table = np.maximum(table, np.log(floor))
    first, second = table[:, 0], table[:, 1]
    return _log_odds_of(second, first, floor) if kind == "proba" else second - first


def class_log_odds(table: FloatArray, kind: str, floor: float) -> FloatArray:
    """Return one-against-rest log-odds, or margins, of each of K > 2 classes, (n, K)."""
    if kind == "proba":
        return _log_odds_of(table, 1 - table, floor)
    if kind == "margin":
        return table
    if kind == "log_proba":
        table = np.maximum(table, np.log(floor))
    # The largest class is left out of its own rest by a second sum: subtracting would cancel.
    rows, best = np.arange(len(table)), np.argmax(table, axis=1)
    others = table.copy()
    others[rows, best] = -np.inf
    rest_of_best = logsumexp(others, axis=1)
    total = np.logaddexp(rest_of_best, table[rows, best])[:, None]
    share = np.minimum(np.exp(table - total), 0.75)  # only the best can exceed a half
    rest = total + np.log1p(-share)
    rest[rows, best] = rest_of_best
    return np.asarray(table - rest)


def log_scores(table: FloatArray, kind: str, floor: float, *, normalised: bool) -> FloatArray:
    """Return log scores (n, K): a softmax of them, scaled and shifted, is what softmax maps fit.

    `normalised` asks for the log softmax of logits; maps with one slope do not see the difference.
    """
    if table.shape[1] <= 2:
        half = 0.5 * binary_log_odds(table, kind, floor)
        return np.column_stack([-half, half])
    if kind == "proba":
        return np.log(np.maximum(table, floor))
    if kind == "log_proba":
        return np.maximum(table, np.log(floor))
    if kind == "logits" and normalised:
        return log_softmax(table)
    return table


def _log_odds_of(share: FloatArray, rest: FloatArray, floor: float) -> FloatArray:
    return np.asarray(np.log(np.maximum(share, floor)) - np.log(np.maximum(rest, floor)))
