"""Metrics with confidence limits: exact ones for fractions, by the bootstrap for the others.

A resample is stored as the weights of the rows, not as copies of them.

A statistic is a function of the weights of n rows in b resamples, (n, b), that returns b values or
b columns. Sums over groups of rows are products with a sparse matrix, so that no array of size
n x K x b is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from dubito._typing import FloatArray, IntArray
from dubito.metrics._smooth import lipschitz_supremum
from dubito.metrics.binning import equal_width, sum_by
from dubito.metrics.intervals import effective_size, fraction_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito._typing import BoolArray
    from dubito.metrics.forecasts import Event, Forecasts

Statistic = Callable[[FloatArray], FloatArray]

#: Largest number of resampled weights computed at a time: 16 MiB.
_CHUNK_ENTRIES = 2**21

#: Limit on the distinct forecasts of `smooth_residuals`; more are put on a grid of as many cells.
_CELLS = 64

#: Bisection steps of `residual_factors`, which leave a thousandth of the interval searched.
_BISECTIONS = 10


class MeanResiduals(NamedTuple):
    """Functions for the mean residuals of groups of rows, and for the error computed from them.

    `mean` returns the sums of (outcome - forecast) over each group, divided by n, for the weights
    of b resamples, (groups, b); `error` the calibration errors of such an array, (b,): a norm of
    each column.
    """

    mean: Statistic
    error: Statistic


def resample(
    statistics: dict[str, Statistic], weight: FloatArray, n_boot: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Return each statistic of `n_boot` resamples of the rows, drawn with replacement."""
    drawn: dict[str, list[FloatArray]] = {name: [] for name in statistics}
    for weights in _resampled_weights(weight, n_boot, rng):
        for name, statistic in statistics.items():
            drawn[name].append(statistic(weights))
    return {name: np.concatenate(values, axis=-1) for name, values in drawn.items()}


def _resampled_weights(
    weight: FloatArray, n_boot: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    n = len(weight)
    width = max(1, _CHUNK_ENTRIES // n)
    for start in range(0, n_boot, width):
        counts = np.empty((n, min(width, n_boot - start)))
        for b in range(counts.shape[1]):
            counts[:, b] = np.bincount(rng.integers(n, size=n), minlength=n)
        yield counts * weight[:, None]


def row_means(values: FloatArray) -> Statistic:
    """Return the statistic that averages one value per row."""
    return lambda weights: values @ weights / weights.sum(axis=0)


def risk_coverage_areas(confidence: FloatArray, wrong: FloatArray) -> Statistic:
    """Return the statistic that is the area under the risk-coverage curve."""
    order = np.argsort(-confidence, kind="stable")
    last_of_ties = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True))
    mistaken = wrong[order, None]

    def statistic(weights: FloatArray) -> FloatArray:
        ranked = weights[order]
        decided = np.cumsum(ranked, axis=0)[last_of_ties]
        errors = np.cumsum(ranked * mistaken, axis=0)[last_of_ties]
        # Before the first row that a resample contains, weight and risk are both 0.
        risk = np.divide(errors, decided, out=np.zeros_like(errors), where=decided > 0)
        entering = np.diff(decided, axis=0, prepend=0.0)
        return np.asarray((entering * risk).sum(axis=0) / decided[-1])

    return statistic


def binned_residuals(event: Event, n_bins: int) -> MeanResiduals:
    """Return the expected calibration error of an event, in bins of equal width.

    `binned_error` defines it by the frequency and the mean forecast of each bin; their difference,
    times the fraction of rows in the bin, is the bin's sum of residuals divided by n.
    """
    sums = _sums_by(equal_width(event.probability, event.weight, n_bins), event.residual, n_bins)
    return MeanResiduals(
        mean=lambda weights: sums(weights) / weights.sum(axis=0),
        error=lambda means: np.abs(means).sum(axis=0),
    )


def classwise_residuals(forecasts: Forecasts, n_bins: int) -> MeanResiduals:
    """Return the classwise calibration error of three or more classes, in bins of equal width.

    A row has at most `n_bins` probabilities outside the first bin, however many classes there are.
    Only those are stored, in a sparse matrix; the sum of the first bin of a class is the sum of the
    class minus those of its other bins.
    """
    true_column, proba = forecasts.true_column, forecasts.proba
    n, n_classes = proba.shape
    row, k = np.nonzero(proba >= 1 / n_bins)
    forecast = proba[row, k]
    number = k * n_bins + equal_width(forecast, forecast, n_bins)
    occupied, cell = np.unique(number, return_inverse=True)
    shape = (len(occupied), n)
    upper = csc_array(((true_column[row] == k) - forecast, (cell, row)), shape=shape)
    to_class = _sums_by(occupied // n_bins, np.ones(len(occupied)), n_classes)
    class_totals = _sums_by(true_column, np.ones(n), n_classes)

    def mean(weights: FloatArray) -> FloatArray:
        above = np.asarray(upper @ weights)
        first = class_totals(weights) - proba.T @ weights - to_class(above)
        return np.asarray(np.concatenate((first, above)) / weights.sum(axis=0))

    return MeanResiduals(mean, lambda means: np.abs(means).sum(axis=0) / n_classes)


def smooth_residuals(event: Event) -> MeanResiduals:
    """Return the smooth calibration error of an event, on a grid where there are many forecasts.

    A 1-Lipschitz function changes by at most the width of a cell within it, which bounds the error
    of the grid.
    """
    _, cell = np.unique(event.probability, return_inverse=True)
    if cell.max() >= _CELLS:
        of_grid = equal_width(event.probability, event.weight, _CELLS)
        _, cell = np.unique(of_grid, return_inverse=True)
    position = sum_by(cell, event.probability) / np.bincount(cell)
    sums = _sums_by(cell, event.residual, len(position))
    return MeanResiduals(
        mean=lambda weights: sums(weights) / weights.sum(axis=0),
        error=lambda means: np.array([lipschitz_supremum(position, e) for e in means.T]),
    )


def _sums_by(group: IntArray, values: FloatArray, n_groups: int) -> Statistic:
    """Return the statistic that sums one value per row over each group, (n_groups, b)."""
    rows = np.arange(len(group) + 1)
    matrix = csc_array((values, group, rows), shape=(n_groups, len(group)))
    return lambda weights: np.asarray(matrix @ weights)


def quantile(drawn: FloatArray, probability: float) -> float:
    """Return a quantile of b resamples: the k-th smallest is the quantile at k / (b + 1)."""
    return float(np.quantile(drawn, probability, method="weibull"))


def residual_factors(
    observed: FloatArray, drawn: FloatArray, error: Statistic, confidence_level: float
) -> tuple[float, float]:
    r"""Return the smallest and largest factor of the mean residuals that a test does not reject.

    A calibration error is a norm of mean residuals, so sampling noise biases it upwards: it is
    larger in a resample than in the sample, and larger in the sample than in the population. The
    limits invert a test instead: if the true mean residuals were :math:`s` times the observed
    :math:`d`, samples would have the errors :math:`|sd+u|`, with the deviations :math:`u` of the
    resamples. The limits are the factors s at which the observed error is the quantile of these at
    either tail.
    """
    observed_error, tail = error(observed)[0], (1 - confidence_level) / 2
    deviations = drawn - observed
    by_chance = error(deviations)
    largest = 1 + by_chance.max() / observed_error if observed_error > 0 else 0.0

    def factor(probability: float) -> float:
        low, high = 0.0, largest
        if quantile(by_chance, probability) >= observed_error:
            return 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            errors = error(middle * observed + deviations)
            if quantile(errors, probability) < observed_error:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    return factor(1 - tail), factor(tail)


class Estimate(NamedTuple):
    """The value of a metric on a sample, and confidence limits for its value in the population."""

    value: float
    low: float
    high: float


class FractionMetric(NamedTuple):
    """The fraction of rows for which an event is true, with exact limits."""

    happened: BoolArray
    weight: FloatArray
    statistic: None = None

    def estimate(self, _drawn: FloatArray | None, confidence_level: float) -> Estimate:
        """Return the fraction with Clopper and Pearson's limits; nan where there are no rows."""
        if len(self.weight) == 0:
            return Estimate(np.nan, np.nan, np.nan)
        value = np.average(self.happened, weights=self.weight)
        low, high = fraction_interval(value, effective_size(self.weight), confidence_level)
        return Estimate(float(value), float(low), float(high))


class ResampledMetric(NamedTuple):
    """A metric without bias from sampling noise: percentile limits."""

    value: float
    statistic: Statistic

    def estimate(self, drawn: FloatArray | None, confidence_level: float) -> Estimate:
        """Return the value with percentiles of the resamples as its limits."""
        if drawn is None:
            return Estimate(self.value, np.nan, np.nan)
        tail = (1 - confidence_level) / 2
        return _around(self.value, quantile(drawn, tail), quantile(drawn, 1 - tail))


class CalibrationErrorMetric(NamedTuple):
    """A calibration error, which sampling noise biases upwards: limits by `residual_factors`."""

    value: float
    residuals: MeanResiduals
    weight: FloatArray

    @property
    def statistic(self) -> Statistic:
        """The statistic computed for each resample: its mean residuals."""
        return self.residuals.mean

    def estimate(self, drawn: FloatArray | None, confidence_level: float) -> Estimate:
        """Return the value with limits that allow for the bias of the error."""
        if drawn is None:
            return Estimate(self.value, np.nan, np.nan)
        observed = self.residuals.mean(self.weight[:, None])
        low, high = residual_factors(observed, drawn, self.residuals.error, confidence_level)
        return _around(self.value, low * self.value, min(high * self.value, 1.0))


def _around(value: float, low: float, high: float) -> Estimate:
    """Return limits widened to contain the value, which rounding or bias may put outside them."""
    return Estimate(value, float(min(low, value)), float(max(high, value)))
