"""Calibration errors from bins: of the predicted label, and class by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.metrics.binning import bin_event
from dubito.metrics.forecasts import Event, Forecasts, class_events, read_forecasts, top_event

if TYPE_CHECKING:
    import numpy.typing as npt


def expected_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the mean distance between confidence and frequency over bins (ECE).

    Rows are sorted into bins :math:`B_1, \ldots, B_M` of the forecast probability, and

    .. math:: \mathrm{ECE} = \sum_{b=1}^{M} \frac{w(B_b)}{w}
              \bigl|\mathrm{freq}(B_b) - \mathrm{conf}(B_b)\bigr|,

    with freq the weighted frequency of the forecast event in a bin and conf its mean probability.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_proba : array-like of shape (n, K) or (n,)
        With (n, K), rows summing to 1, the event is "the most probable class is the true one" (of
        equally probable classes, that of the lowest column). With (n,) it is "the label is the
        second of two classes", and the calibration of that probability itself is judged.
    n_bins : int, default=15
        Number of bins, empty ones included.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], closed on the left, the last one on both sides; or of equal
        weight, as nearly as ties allow: equal forecasts share the bin that contains the middle of
        their weight.
    classes : array-like of shape (K,), default=None
        The label of each column, as in ``estimator.classes_``. Without it, integers in 0..K-1 are
        column numbers, and otherwise exactly K distinct labels are taken in sorted order.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row.

    Returns
    -------
    float
        In [0, 1]; 0 is best.

    See Also
    --------
    smooth_calibration_error : A calibration error without bins.
    classwise_calibration_error : Every class's probability, not only the largest.

    Notes
    -----
    The value depends on the bins: merging bins can only lower it, and on few rows per bin it is
    positive even for perfect forecasts. Compare models with the same bins only.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks, eq. 3.

    Examples
    --------
    Four forecasts of 0.9, right three times:

    >>> from dubito.metrics import expected_calibration_error
    >>> round(expected_calibration_error([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]), 6)
    0.15
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]
    >>> round(expected_calibration_error(["cat", "cat", "dog", "cat"], proba), 6)
    0.15
    """
    event = top_event(read_forecasts(y_true, y_proba, classes, sample_weight))
    return binned_error(event, n_bins, strategy)


def classwise_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the classwise calibration error: the mean over classes of the ECE of each column.

    .. math:: \mathrm{cwECE} = \frac1K \sum_{k=1}^{K} \mathrm{ECE}\bigl(1[y = k],\, p_k\bigr).

    Parameters
    ----------
    y_proba : array-like of shape (n, K) or (n,)
        Probabilities of all classes, rows summing to 1, or of the second of two classes.
    y_true, n_bins, strategy, classes, sample_weight
        As in `expected_calibration_error`.

    Returns
    -------
    float
        In [0, 1]; 0 is best.

    Notes
    -----
    Of two classes only the second is binned, since the other probability is 1 minus it: `y_proba`
    as (n,) or (n, 2) gives the same value. With many classes most probabilities are near 0 and so
    is the error: compare at the same K only.

    References
    ----------
    Kull et al. (2019), Beyond temperature scaling (classwise-ECE).

    Examples
    --------
    >>> from dubito.metrics import classwise_calibration_error
    >>> proba = [[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.0, 0.2, 0.8]]
    >>> round(classwise_calibration_error([0, 0, 2], proba), 6)
    0.133333
    """
    return classwise_error(
        read_forecasts(y_true, y_proba, classes, sample_weight), n_bins, strategy
    )


def classwise_error(forecasts: Forecasts, n_bins: int, strategy: str) -> float:
    """Return the mean over classes of the binned error of each."""
    return float(np.mean([binned_error(e, n_bins, strategy) for e in class_events(forecasts)]))


def binned_error(event: Event, n_bins: int, strategy: str) -> float:
    """Return the mean, weighted by bin size, of abs(frequency - mean forecast) over the bins."""
    bins = bin_event(event, n_bins, strategy)
    return float(bins.fraction @ np.abs(bins.frequency - bins.forecast))
