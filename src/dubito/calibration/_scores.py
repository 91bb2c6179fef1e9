r"""Reading scores: what was given becomes log scores per class, or log-odds per class.

=========  =======================================  ==========================================
input      log scores, for softmax maps             log-odds, for binary maps lifted to K classes
=========  =======================================  ==========================================
margin     the columns as they are                  the columns as they are
logits     log softmax                              :math:`s_k-\log\sum_{j\ne k}e^{s_j}`
proba      :math:`\log\max(p_k,\text{floor})`       the same less :math:`\log\max(1-p_k,\cdot)`
=========  =======================================  ==========================================

Two classes have one margin d, given as one column or as the difference of two; their log scores
are (-d/2, d/2), so neither class is favoured by being first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from dubito._checks import FloatArray, as_float_array, check_proba
from dubito._kernels.softmax import log_softmax
from dubito.calibration.errors import CalibrationInputError

INPUTS = ("logits", "proba", "margin")


def read_scores(scores: Any, kind: str) -> FloatArray:
    """Return finite scores as an (n, columns) array with at least one row."""
    table = finite_scores(scores, ndim=(1, 2))
    if table.ndim == 1:
        table = table[:, None]
    if kind == "proba":
        check_probabilities(table)
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
    first, second = table[:, 0], table[:, 1]
    return _log_odds_of(second, first, floor) if kind == "proba" else second - first


def class_log_odds(table: FloatArray, kind: str, floor: float) -> FloatArray:
    """Return one-against-rest log-odds, or margins, of each of K > 2 classes, (n, K)."""
    if kind == "proba":
        return _log_odds_of(table, 1 - table, floor)
    if kind == "margin":
        return table
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
    if kind == "logits" and normalised:
        return log_softmax(table)
    return table


def _log_odds_of(share: FloatArray, rest: FloatArray, floor: float) -> FloatArray:
    return np.asarray(np.log(np.maximum(share, floor)) - np.log(np.maximum(rest, floor)))
