"""The error-reject curve, and the area under the risk-coverage curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._labels import as_labels
from dubito._validation import as_float_array, drop_zero_weights
from dubito.metrics.binning import sum_ties

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._labels import Labels
    from dubito._typing import FloatArray


class ErrorRejectCurve(NamedTuple):
    """Fraction declined, error and accuracy of the decided rows, at each confidence threshold."""

    rejection: FloatArray
    error: FloatArray  # errors per decided row; `RejectCostCurve.error` is per row, decided or not
    accuracy: FloatArray
    threshold: FloatArray


def error_reject_curve(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    confidence: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> ErrorRejectCurve:
    r"""Return the error of the decided rows as the least confident rows are declined.

    At the threshold t, rows with confidence of at least t are decided, the others are declined
    (*reject*, in names, means to decline):

    .. math:: \mathrm{rejection}(t) = \frac{w(c < t)}{w}, \qquad
              \mathrm{error}(t) = \frac{w(c \ge t,\ \hat y \ne y)}{w(c \ge t)}.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : array-like of shape (n,)
        Larger means more certain; any finite numbers, of which only the order counts.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row.

    Returns
    -------
    ErrorRejectCurve
        Named tuple of arrays `rejection`, `error`, `accuracy` (1 - error) and `threshold`, one
        entry per distinct confidence, thresholds rising. At the first point every row is decided
        (rejection exactly 0, error the overall error); at the last only the most confident row and
        its ties are. Where every row is declined the error is undefined, hence no point.

    Notes
    -----
    Rows of equal confidence are decided or declined together, so the order of rows has no effect.

    References
    ----------
    Chow (1970), On optimum recognition error and reject tradeoff.
    El-Yaniv and Wiener (2010), On the foundations of noise-free selective classification.

    Examples
    --------
    >>> from dubito.metrics import error_reject_curve
    >>> curve = error_reject_curve([0, 1, 1, 0], [0, 1, 0, 1], [0.9, 0.8, 0.6, 0.6])
    >>> curve.threshold.tolist()
    [0.6, 0.8, 0.9]
    >>> curve.rejection.tolist(), curve.error.tolist()
    ([0.0, 0.5, 0.75], [0.5, 0.0, 0.0])
    """
    threshold, weight, wrong = ranked_rows(y_true, y_pred, confidence, sample_weight)
    rejected = np.cumsum(weight) - weight
    error = _selective_risk(weight, wrong)
    return ErrorRejectCurve(rejected / weight.sum(), error, 1 - error, threshold)


def aurc(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    confidence: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the area under the risk-coverage curve: small for few errors, of low confidence.

    .. math:: \mathrm{AURC} = \sum_t \frac{w(c = t)}{w}\, \mathrm{error}(t)

    over the distinct confidences t, with error(t) among the rows of confidence at least t. Without
    ties and weights it is the mean over i of the error among the i most confident rows.

    Parameters
    ----------
    y_true, y_pred, confidence, sample_weight
        As in `error_reject_curve`.

    Returns
    -------
    float
        In [0, 1]; 0 is best. Equal confidence everywhere gives the overall error.

    Notes
    -----
    A small value needs both few errors and a good ranking; at error rate r the best ranking has,
    for many rows, :math:`r + (1 - r)\ln(1 - r)`.

    References
    ----------
    Geifman and El-Yaniv (2017), Selective classification for deep neural networks.
    Geifman, Uziel and El-Yaniv (2019), Bias-reduced uncertainty estimation.

    Examples
    --------
    The one error comes last, or first:

    >>> from dubito.metrics import aurc
    >>> aurc([0, 1, 1, 0], [0, 1, 1, 1], [0.9, 0.8, 0.7, 0.6])
    0.0625
    >>> round(aurc([0, 1, 1, 0], [0, 1, 1, 1], [0.6, 0.7, 0.8, 0.9]), 4)
    0.5208
    """
    _, weight, wrong = ranked_rows(y_true, y_pred, confidence, sample_weight)
    return risk_coverage_area(weight, wrong)


def risk_coverage_area(weight: FloatArray, wrong: FloatArray) -> float:
    """Return the area under the risk-coverage curve of rows in increasing confidence."""
    return float(np.average(_selective_risk(weight, wrong), weights=weight))


def ranked_rows(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    confidence: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
) -> tuple[FloatArray, ...]:
    """Return the distinct confidences in rising order, and the weights of their rows and errors."""
    truth, predicted = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    scores = as_float_array(confidence, "confidence", ndim=1)
    weight, truth, predicted, scores = drop_zero_weights(
        sample_weight, y_true=truth, y_pred=predicted, confidence=scores
    )
    _check_comparable(truth, predicted)
    return sum_ties(scores, weight, weight * (truth != predicted))


def _selective_risk(weight: FloatArray, wrong: FloatArray) -> FloatArray:
    """Return the error among the rows at or above each confidence."""
    return np.cumsum(wrong[::-1])[::-1] / np.cumsum(weight[::-1])[::-1]


def _check_comparable(truth: Labels, predicted: Labels) -> None:
    # A number never equals a string, so every prediction would count as an error.
    if _are_strings(truth).isdisjoint(_are_strings(predicted)):
        raise TypeError(
            "one of y_true and y_pred contains words and the other does not (y_true[0] is "
            f"{truth[:1].tolist()[0]!r}, y_pred[0] is {predicted[:1].tolist()[0]!r}), so no "
            "prediction could be right. Pass the same kind of labels in both."
        )


def _are_strings(labels: Labels) -> set[bool]:
    """Return {True} for strings, {False} for other labels, and both for mixed ones."""
    if labels.dtype == object:
        return {isinstance(label, str) for label in labels.tolist()}
    return {labels.dtype.kind in "UT"}
