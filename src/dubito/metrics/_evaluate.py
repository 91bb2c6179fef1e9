"""All metrics of one set of predictions at once, each with its interval."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._checks import FloatArray, check_rows_match
from dubito._kernels.utility import ALPHA
from dubito._labels import as_labels
from dubito.belief import Bounds
from dubito.metrics._binning import sum_ties
from dubito.metrics._bootstrap import (
    Excess,
    areas,
    binned_excess,
    classwise_excess,
    resample,
    row_means,
    smooth_excess,
)
from dubito.metrics._calibration_error import binned_error, classwise_error
from dubito.metrics._estimates import CalibrationError, Estimate, Resampled, Share
from dubito.metrics._forecasts import Forecasts, class_event, judged_event, read_forecasts
from dubito.metrics._intervals import check_confidence
from dubito.metrics._rows import counted_rows
from dubito.metrics._selective import area
from dubito.metrics._sets import JudgedSets, check_sets, judge_members, utility
from dubito.metrics._smooth import smooth_error

if TYPE_CHECKING:
    import numpy.typing as npt

    Seed = int | np.random.Generator | np.random.RandomState | None
    Metric = Share | Resampled | CalibrationError

#: As scikit-learn's log loss: nothing is taken to be less probable, so that the loss is finite.
_LEAST = float(np.finfo(np.float64).eps)
_N_BINS, _STRATEGY = 15, "uniform"


def evaluate(  # noqa: PLR0913 - predictions of three kinds, and how they are resampled
    y: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    bounds: Bounds | None = None,
    sets: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    n_boot: int = 200,
    confidence: float = 0.95,
    random_state: Seed = 0,
    sample_weight: npt.ArrayLike | None = None,
) -> dict[str, Estimate]:
    r"""Judge predictions by all metrics at once, each with an interval.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, K) or (n,)
        Probabilities of all classes, rows summing to 1, or of the second of two classes.
    bounds : Bounds of n rows and K classes, default=None
        What ``predict_bounds`` gave.
    sets : array-like of bool, shape (n, K), default=None
        What ``predict_set`` gave.
    classes : array-like of shape (K,), default=None
        The label of each column, as in ``estimator.classes_``. Without it, integers in 0..K-1 are
        column numbers, and otherwise exactly K distinct labels are taken in sorted order. Classes
        without a row are no matter; a label that is no class is refused.
    n_boot : int, default=200
        Number of resamples. 0 leaves all limits out that need them: they are nan.
    confidence : float, default=0.95
        How often intervals must hold what an endless supply of such rows would give.
    random_state : int, Generator, RandomState or None, default=0
        What the resamples are drawn from.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row, in the values. For the limits a row is
        one observation whatever its weight.

    Returns
    -------
    dict of str to Estimate
        A named tuple of `value`, `low` and `high` for

        ===================== ====================================================== ==========
        name                  what                                                   limits
        ===================== ====================================================== ==========
        accuracy, error       share of rows whose most probable class is the true    exact
                              one, or is not
        log_loss              mean of :math:`-\ln p_y`, with p cut off at 2.2e-16    resamples
                              as in scikit-learn, hence finite
        brier                 as `brier_decomposition` and scikit-learn              resamples
        ece                   `expected_calibration_error`                           errors
        classwise_ece         `classwise_calibration_error`                          errors
        smooth_ece            `smooth_calibration_error`                             errors
        aurc                  `aurc` of the most probable class and its probability  resamples
        coverage              `coverage`, of `sets`                                  exact
        determinacy           share of sets of one class                             exact
        single_class_accuracy share of these that are right; nan without any         exact
        mean_set_size         `mean_set_size`                                        resamples
        discounted_accuracy   `discounted_accuracy`                                  resamples
        u65, u80              `u65`, `u80`                                           resamples
        mean_width            mean of upper - lower, of `bounds`                     resamples
        ===================== ====================================================== ==========

        Those of sets and bounds only where they are given. The values are those of the functions
        named, with their defaults.

    Notes
    -----
    The value is always between the limits. How these are found depends on the metric:

    - *exact*: Clopper and Pearson's interval of a share, as in `reliability_curve`. Where all rows
      are right, resamples would be too, and claim to know that no error will ever come.
    - *resamples*: percentiles of the metric over bootstrap resamples of the rows. Where all rows
      give the same value, low and high are that value too.
    - *errors*: chance makes a calibration error larger, once in the rows at hand and once more in
      a resample. Percentiles of resamples then lie too high: for forecasts that are in fact
      calibrated they never held the truth in 100 simulated samples, and their mirror image (the
      "basic" interval) held it in 0 to 60. Instead the limits are what a test would allow:
      suppose that the bins' differences between frequency and forecast are in truth those seen
      times a factor, and that chance adds the deviations of resamples; `low` and `high` belong to
      the factors at which the error seen is just too large or too small. In simulations they held
      the truth in 83 to 100 of 100 samples, mostly in 92 to 97.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
    the binomial.
    Davison and Hinkley (1997), Bootstrap methods and their application, chapter 5.

    Examples
    --------
    >>> from dubito.metrics import evaluate
    >>> y = ["no", "yes", "yes", "no", "yes", "no"] * 20
    >>> proba = [0.2, 0.9, 0.7, 0.6, 0.8, 0.1] * 20
    >>> judged = evaluate(y, proba)
    >>> print("right {:.3f} ({:.3f} to {:.3f})".format(*judged["accuracy"]))
    right 0.833 (0.754 to 0.895)
    >>> list(judged)
    ['accuracy', 'error', 'log_loss', 'brier', 'ece', 'classwise_ece', 'smooth_ece', 'aurc']
    """
    level = check_confidence(confidence)
    times = _check_n_boot(n_boot)
    forecasts = read_forecasts(y, proba, classes, sample_weight)
    n = len(as_labels(y, "y"))
    judged = _judge_forecasts(forecasts)
    if sets is not None:
        judged |= _judge_sets(_read_sets(sets, n, sample_weight, forecasts))
    if bounds is not None:
        width = _read_widths(bounds, n, sample_weight, forecasts)
        judged["mean_width"] = _mean(width, forecasts.weight)
    statistics = {name: m.statistic for name, m in judged.items() if m.statistic is not None}
    drawn: dict[str, FloatArray] = {}
    if times:
        drawn = resample(statistics, forecasts.weight, times, _as_rng(random_state))
    return {name: m.estimate(drawn.get(name), level) for name, m in judged.items()}


def _judge_forecasts(forecasts: Forecasts) -> dict[str, Metric]:
    column, proba, weight, _ = forecasts
    everyone = np.arange(len(weight))
    both = np.column_stack((1 - proba, proba)) if proba.ndim == 1 else proba
    top, of_truth = both.argmax(axis=1), both[everyone, column]
    sure, right = both[everyone, top], top == column
    event = judged_event(forecasts)
    loss = -np.log(np.clip(of_truth, _LEAST, 1 - _LEAST))
    # The sum over all classes of squares; of two classes both are the same, and one is counted.
    brier = np.einsum("ij,ij->i", both, both) + 1 - 2 * of_truth
    brier = brier / 2 if forecasts.n_classes == 2 else brier
    return {
        "accuracy": Share(right, weight),
        "error": Share(~right, weight),
        "log_loss": _mean(loss, weight),
        "brier": _mean(brier, weight),
        "ece": CalibrationError(
            binned_error(event, _N_BINS, _STRATEGY), binned_excess(event, _N_BINS), weight
        ),
        "classwise_ece": CalibrationError(
            classwise_error(forecasts, _N_BINS, _STRATEGY), _classwise(forecasts), weight
        ),
        "smooth_ece": CalibrationError(smooth_error(event), smooth_excess(event), weight),
        "aurc": Resampled(
            area(*sum_ties(sure, weight, weight * ~right)[1:]), areas(sure, (~right).astype(float))
        ),
    }


def _classwise(forecasts: Forecasts) -> Excess:
    if forecasts.n_classes > 2:
        return classwise_excess(forecasts, _N_BINS)
    return binned_excess(class_event(forecasts, 1), _N_BINS)


def _judge_sets(judged: JudgedSets) -> dict[str, Metric]:
    hit, size, weight = judged
    single = size == 1
    return {
        "coverage": Share(hit, weight),
        "determinacy": Share(single, weight),
        "single_class_accuracy": Share(hit[single], weight[single]),
        "mean_set_size": _mean(size.astype(np.float64), weight),
        "discounted_accuracy": _mean(utility(judged, 1.0), weight),
        "u65": _mean(utility(judged, ALPHA["u65"]), weight),
        "u80": _mean(utility(judged, ALPHA["u80"]), weight),
    }


def _mean(values: FloatArray, weight: FloatArray) -> Resampled:
    return Resampled(float(np.average(values, weights=weight)), row_means(values))


def _read_sets(
    sets: npt.ArrayLike, n: int, sample_weight: npt.ArrayLike | None, forecasts: Forecasts
) -> JudgedSets:
    members = check_sets(sets)
    _check_shape("sets", members.shape, n, forecasts.n_classes)
    weight, members = counted_rows(sample_weight, sets=members)
    return judge_members(members, forecasts.column, weight)


def _read_widths(
    bounds: Bounds, n: int, sample_weight: npt.ArrayLike | None, forecasts: Forecasts
) -> FloatArray:
    if not isinstance(bounds, Bounds):
        raise TypeError(
            f"bounds must be dubito.belief.Bounds, as predict_bounds gives them; got "
            f"{type(bounds).__name__}."
        )
    _check_shape("bounds", bounds.lower.shape, n, forecasts.n_classes)
    return counted_rows(sample_weight, bounds=bounds.width.mean(axis=1))[1]


def _check_shape(name: str, shape: tuple[int, ...], n: int, n_classes: int) -> None:
    check_rows_match("y", n, name, shape[0])
    if shape[1] != n_classes:
        raise ValueError(
            f"{name} has {shape[1]} columns but proba has {n_classes} classes; they must name the "
            "same classes in the same order."
        )


def _check_n_boot(n_boot: Any) -> int:
    if isinstance(n_boot, bool) or not isinstance(n_boot, Integral) or n_boot < 0:
        raise ValueError(f"n_boot must be an integer of at least 0. Got {n_boot!r} instead.")
    return int(n_boot)


def _as_rng(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
