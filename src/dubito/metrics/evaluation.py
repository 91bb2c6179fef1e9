"""All metrics of a model or of its predictions at once, each with its confidence interval."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._labels import as_labels
from dubito._models import has_bounds, inner_model_and_rows
from dubito._numerics.set_utility import ALPHA
from dubito._validation import check_fraction, check_rows_match, drop_zero_weights
from dubito.belief import Bounds
from dubito.metrics._calibration_error import binned_error, classwise_error
from dubito.metrics._selective import risk_coverage_area
from dubito.metrics._sets import ComparedSets, check_sets, compare_columns, utility
from dubito.metrics._smooth import smooth_error
from dubito.metrics.binning import sum_ties
from dubito.metrics.bootstrap import (
    CalibrationErrorMetric,
    Estimate,
    FractionMetric,
    MeanResiduals,
    ResampledMetric,
    binned_residuals,
    classwise_residuals,
    resample,
    risk_coverage_areas,
    row_means,
    smooth_residuals,
)
from dubito.metrics.forecasts import Forecasts, class_event, read_forecasts, top_event

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray

    Seed = int | np.random.Generator | np.random.RandomState | None
    Metric = FractionMetric | ResampledMetric | CalibrationErrorMetric

#: Probabilities are clipped to [this, 1 - this], as in scikit-learn, so that log losses are finite.
_FLOOR = float(np.finfo(np.float64).eps)

#: Largest number of probabilities (rows x classes) of one model that the report and the command
#: line hold in memory; with the bounds they take 1.2 GB.
MOST_CELLS = 50_000_000

#: Number and kind of the bins of calibration errors: the defaults of the functions.
_N_BINS, _STRATEGY = 15, "uniform"


def evaluate(  # noqa: PLR0913 - predictions of three kinds, and how they are resampled
    y_true: Any,
    y_proba: Any = None,
    y: npt.ArrayLike | None = None,
    *,
    bounds: Bounds | None = None,
    sets: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    n_boot: int = 200,
    confidence_level: float = 0.95,
    random_state: Seed = 0,
    sample_weight: npt.ArrayLike | None = None,
) -> dict[str, Estimate]:
    r"""Return all metrics of a model or of its predictions, each with a confidence interval.

    Two forms: ``evaluate(model, X, y)`` for a fitted classifier, or ``evaluate(y_true, y_proba)``
    for arrays of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n,), or a fitted classifier
        True labels; or a model with ``predict_proba``.
    y_proba : array-like of shape (n, K) or (n,), or rows X
        Probabilities of all classes, rows summing to 1, or of the second of two classes; for a
        model the rows to predict.
    y : array-like of shape (n,), default=None
        True labels of the rows of a model; not with arrays of predictions.
    bounds : Bounds of n rows and K classes, default=None
        What ``predict_bounds`` returns. By default those of the model, where it has them.
    sets : array-like of bool, shape (n, K), default=None
        What ``predict_set`` returns. By default those of the model, where it has them.
    classes : array-like of shape (K,), default=None
        The label of each column, as in ``estimator.classes_``. Without it, integers in 0..K-1 are
        column numbers, and otherwise exactly K distinct labels are taken in sorted order. Classes
        may lack rows; a label that is no class is an error. Of a model, its ``classes_``.
    n_boot : int, default=200
        Number of resamples. With 0, limits that need resamples are nan.
    confidence_level : float, default=0.95
        Probability with which an interval covers the value in the population.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator of the resamples.
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
        accuracy, error       fraction of rows whose most probable class is true,    exact
                              or is not
        log_loss              mean of :math:`-\ln p_y`, with p at least 2.2e-16      resamples
                              as in scikit-learn, hence finite
        brier                 as `brier_decomposition` and scikit-learn              resamples
        ece                   `expected_calibration_error`                           errors
        classwise_ece         `classwise_calibration_error`                          errors
        smooth_ece            `smooth_calibration_error`                             errors
        aurc                  `aurc` of the most probable class and its probability  resamples
        coverage              `coverage`, of `sets`                                  exact
        determinacy           fraction of sets of one class                          exact
        single_class_accuracy fraction of these that are right; nan without any      exact
        mean_set_size         `mean_set_size`                                        resamples
        discounted_accuracy   `discounted_accuracy`                                  resamples
        u65, u80              `u65`, `u80`                                           resamples
        mean_width            mean of upper - lower, of `bounds`                     resamples
        ===================== ====================================================== ==========

        Metrics of sets and bounds are there only if these are given. The values are those of the
        functions named, with their defaults.

    Notes
    -----
    The value is always between the limits. How these are found depends on the metric:

    - *exact*: Clopper and Pearson's interval of a fraction, as in `reliability_curve`. The
      bootstrap would give the interval [1, 1] where all rows are right.
    - *resamples*: percentiles of the metric over bootstrap resamples of the rows. Where all rows
      give the same value, low and high are that value too.
    - *errors*: sampling noise makes a calibration error larger, once in the sample and once more in
      a resample, so percentiles of resamples are too high: for calibrated forecasts they never
      covered the true value in 100 simulated samples, and the "basic" bootstrap interval did in 0
      to 60. Instead a test is inverted: the true differences between frequency and forecast are
      taken to be the observed ones times a factor, plus the deviations of resamples; `low` and
      `high` belong to the factors at which the observed error is just too large or too small. In
      simulations they covered the true value in 83 to 100 of 100 samples, mostly in 92 to 97.

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

    A model with bounds and sets has further metrics:

    >>> from sklearn.datasets import load_iris
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseGaussianDiscriminant().fit(X[::2], y[::2])
    >>> list(evaluate(model, X[1::2], y[1::2]))[8:]  # doctest: +NORMALIZE_WHITESPACE
    ['coverage', 'determinacy', 'single_class_accuracy', 'mean_set_size', 'discounted_accuracy',
     'u65', 'u80', 'mean_width']
    """
    _check_form(y_true, y_proba, y)
    if hasattr(y_true, "predict"):
        model, X = inner_model_and_rows(y_true, y_proba)
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"evaluate needs probabilities, and {type(model).__name__} has no predict_proba. "
                "Calibrate it first: dubito.CalibratedClassifier(model)."
            )
        y_true, y_proba = y, model.predict_proba(X)
        classes = model.classes_ if classes is None else classes
        if bounds is None and has_bounds(model):
            bounds = model.predict_bounds(X)
        if sets is None and hasattr(model, "predict_set"):
            sets = model.predict_set(X)
    level = check_fraction(confidence_level, "confidence_level")
    n_resamples = _check_n_boot(n_boot)
    forecasts = read_forecasts(y_true, y_proba, classes, sample_weight)
    n = len(as_labels(y_true, "y_true"))
    metrics = forecast_metrics(forecasts)
    if sets is not None:
        metrics |= set_metrics(_read_sets(sets, n, sample_weight, forecasts))
    if bounds is not None:
        width = _read_widths(bounds, n, sample_weight, forecasts)
        metrics["mean_width"] = _mean(width, forecasts.weight)
    statistics = {name: m.statistic for name, m in metrics.items() if m.statistic is not None}
    drawn: dict[str, FloatArray] = {}
    if n_resamples:
        drawn = resample(statistics, forecasts.weight, n_resamples, _as_rng(random_state))
    return {name: m.estimate(drawn.get(name), level) for name, m in metrics.items()}


def _check_form(first: Any, second: Any, third: Any) -> None:
    """Raise an error for arguments that are neither (model, X, y) nor (y_true, y_proba)."""
    if isinstance(first, type):
        raise TypeError(
            f"evaluate(model, X, y) needs a fitted classifier; got the class {first.__name__} "
            f"itself. Fit an instance first, as in {first.__name__}().fit(X, y)."
        )
    if hasattr(first, "predict"):
        missing = [name for name, given in (("X", second), ("y", third)) if given is None]
        if missing:
            raise TypeError(
                f"evaluate(model, X, y) needs rows X and their true labels y; got no "
                f"{' and no '.join(missing)}."
            )
    elif second is None:
        raise TypeError(
            "evaluate(y_true, y_proba) needs true labels and probabilities, evaluate(model, X, y) "
            f"a fitted classifier, rows and labels; got a single {type(first).__name__}."
        )
    elif third is not None:
        raise TypeError(
            "evaluate(model, X, y) needs a fitted classifier first; evaluate(y_true, y_proba) "
            f"takes no third array. Got {type(first).__name__} first."
        )


def forecast_metrics(forecasts: Forecasts) -> dict[str, Metric]:
    """Return the metrics of probabilities, by name."""
    true_column, proba, weight, _ = forecasts
    rows = np.arange(len(weight))
    proba = np.column_stack((1 - proba, proba)) if proba.ndim == 1 else proba
    top, of_truth = proba.argmax(axis=1), proba[rows, true_column]
    confidence, right = proba[rows, top], top == true_column
    event = top_event(forecasts)
    loss = -np.log(np.clip(of_truth, _FLOOR, 1 - _FLOOR))
    # The squares are summed over the classes; of two, whose squares are equal, one is counted.
    brier = np.einsum("ij,ij->i", proba, proba) + 1 - 2 * of_truth
    brier = brier / 2 if forecasts.n_classes == 2 else brier
    return {
        "accuracy": FractionMetric(right, weight),
        "error": FractionMetric(~right, weight),
        "log_loss": _mean(loss, weight),
        "brier": _mean(brier, weight),
        "ece": CalibrationErrorMetric(
            binned_error(event, _N_BINS, _STRATEGY), binned_residuals(event, _N_BINS), weight
        ),
        "classwise_ece": CalibrationErrorMetric(
            classwise_error(forecasts, _N_BINS, _STRATEGY), _classwise(forecasts), weight
        ),
        "smooth_ece": CalibrationErrorMetric(smooth_error(event), smooth_residuals(event), weight),
        "aurc": ResampledMetric(
            risk_coverage_area(*sum_ties(confidence, weight, weight * ~right)[1:]),
            risk_coverage_areas(confidence, (~right).astype(float)),
        ),
    }


def _classwise(forecasts: Forecasts) -> MeanResiduals:
    if forecasts.n_classes > 2:
        return classwise_residuals(forecasts, _N_BINS)
    return binned_residuals(class_event(forecasts, 1), _N_BINS)


def set_metrics(compared: ComparedSets) -> dict[str, Metric]:
    """Return the metrics of label sets, by name."""
    _, hit, size, weight = compared
    single = size == 1
    return {
        "coverage": FractionMetric(hit, weight),
        "determinacy": FractionMetric(single, weight),
        "single_class_accuracy": FractionMetric(hit[single], weight[single]),
        "mean_set_size": _mean(size.astype(np.float64), weight),
        "discounted_accuracy": _mean(utility(compared, 1.0), weight),
        "u65": _mean(utility(compared, ALPHA["u65"]), weight),
        "u80": _mean(utility(compared, ALPHA["u80"]), weight),
    }


def _mean(values: FloatArray, weight: FloatArray) -> ResampledMetric:
    return ResampledMetric(float(np.average(values, weights=weight)), row_means(values))


def _read_sets(
    sets: npt.ArrayLike, n: int, sample_weight: npt.ArrayLike | None, forecasts: Forecasts
) -> ComparedSets:
    checked = check_sets(sets)
    _check_shape("sets", checked.shape, n, forecasts.n_classes)
    weight, checked = drop_zero_weights(sample_weight, sets=checked)
    return compare_columns(checked, forecasts.true_column, weight)


def _read_widths(
    bounds: Bounds, n: int, sample_weight: npt.ArrayLike | None, forecasts: Forecasts
) -> FloatArray:
    if not isinstance(bounds, Bounds):
        raise TypeError(
            f"bounds must be dubito.belief.Bounds, as predict_bounds gives them; got "
            f"{type(bounds).__name__}."
        )
    _check_shape("bounds", bounds.lower.shape, n, forecasts.n_classes)
    return drop_zero_weights(sample_weight, bounds=bounds.width.mean(axis=1))[1]


def _check_shape(name: str, shape: tuple[int, ...], n: int, n_classes: int) -> None:
    check_rows_match("y_true", n, name, shape[0])
    if shape[1] != n_classes:
        raise ValueError(
            f"{name} has {shape[1]} columns but y_proba has {n_classes} classes; they must name "
            "the same classes in the same order."
        )


def _check_n_boot(n_boot: Any) -> int:
    if isinstance(n_boot, bool) or not isinstance(n_boot, Integral) or n_boot < 0:
        raise ValueError(f"n_boot must be an integer of at least 0. Got {n_boot!r} instead.")
    return int(n_boot)


def _as_rng(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
