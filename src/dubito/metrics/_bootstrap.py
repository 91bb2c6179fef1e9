"""Metrics of many resamples at once: the rows stay where they are, only their weights change.

A statistic takes the weights of n rows in b resamples, (n, b), to b values or b columns. Sums over
groups of rows are products with a sparse matrix, so that nothing of size n x K x b is ever built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from dubito._checks import FloatArray, IntArray
from dubito.metrics._binning import equal_width, sum_by
from dubito.metrics._smooth import lipschitz_supremum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito.metrics._forecasts import Event, Forecasts

Statistic = Callable[[FloatArray], FloatArray]

#: Entries of a block of resamples: 16 MB.
_BLOCK = 2**21

#: `smooth_excess` takes forecasts of one of so many cells of equal width together.
_CELLS = 64

#: `excess_factors` finds factors to a thousandth of the stretch in which they may lie.
_HALVINGS = 10


class Excess(NamedTuple):
    """A calibration error as the size of what happened less what was forecast, cell by cell.

    `mean` gives the excess of resamples, (cells, b), and `size` the error that b columns make.
    """

    mean: Statistic
    size: Statistic


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
    width = max(1, _BLOCK // n)
    for start in range(0, n_boot, width):
        counts = np.empty((n, min(width, n_boot - start)))
        for b in range(counts.shape[1]):
            counts[:, b] = np.bincount(rng.integers(n, size=n), minlength=n)
        yield counts * weight[:, None]


def row_means(values: FloatArray) -> Statistic:
    """Return the mean of a value per row."""
    return lambda weights: values @ weights / weights.sum(axis=0)


def areas(confidence: FloatArray, wrong: FloatArray) -> Statistic:
    """Return the area under the risk-coverage curve."""
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True))
    mistaken = wrong[order, None]

    def statistic(weights: FloatArray) -> FloatArray:
        ranked = weights[order]
        accepted = np.cumsum(ranked, axis=0)[ends]
        errors = np.cumsum(ranked * mistaken, axis=0)[ends]
        # Before the first row that a resample drew there is neither risk nor weight.
        risk = np.divide(errors, accepted, out=np.zeros_like(errors), where=accepted > 0)
        entering = np.diff(accepted, axis=0, prepend=0.0)
        return np.asarray((entering * risk).sum(axis=0) / accepted[-1])

    return statistic


def binned_excess(event: Event, n_bins: int) -> Excess:
    """Return the expected calibration error of an event, in bins of equal width."""
    sums = _sums_by(equal_width(event.probability, event.weight, n_bins), event.surplus, n_bins)
    return Excess(
        mean=lambda weights: sums(weights) / weights.sum(axis=0),
        size=lambda excess: np.abs(excess).sum(axis=0),
    )


def classwise_excess(forecasts: Forecasts, n_bins: int) -> Excess:
    """Return the classwise calibration error of three or more classes, in bins of equal width.

    A row has at most `n_bins` probabilities outside the first bin, however many classes there are.
    Only those are kept in a (sparse) matrix; the sums of the first bins are the sums of the classes
    less those of the others.
    """
    column, proba = forecasts.column, forecasts.proba
    n, n_classes = proba.shape
    row, k = np.nonzero(proba >= 1 / n_bins)
    forecast = proba[row, k]
    number = k * n_bins + equal_width(forecast, forecast, n_bins)
    occupied, cell = np.unique(number, return_inverse=True)
    shape = (len(occupied), n)
    upper = csc_array(((column[row] == k) - forecast, (cell, row)), shape=shape)
    to_class = _sums_by(occupied // n_bins, np.ones(len(occupied)), n_classes)
    happened = _sums_by(column, np.ones(n), n_classes)

    def mean(weights: FloatArray) -> FloatArray:
        above = np.asarray(upper @ weights)
        first = happened(weights) - proba.T @ weights - to_class(above)
        return np.asarray(np.concatenate((first, above)) / weights.sum(axis=0))

    return Excess(mean, lambda excess: np.abs(excess).sum(axis=0) / n_classes)


def smooth_excess(event: Event) -> Excess:
    """Return the smooth calibration error of an event, of many forecasts on a grid.

    The functions that the error tries change by no more than the width of a cell within it.
    """
    _, cell = np.unique(event.probability, return_inverse=True)
    if cell.max() >= _CELLS:
        of_grid = equal_width(event.probability, event.weight, _CELLS)
        _, cell = np.unique(of_grid, return_inverse=True)
    position = sum_by(cell, event.probability) / np.bincount(cell)
    sums = _sums_by(cell, event.surplus, len(position))
    return Excess(
        mean=lambda weights: sums(weights) / weights.sum(axis=0),
        size=lambda excess: np.array([lipschitz_supremum(position, e) for e in excess.T]),
    )


def _sums_by(group: IntArray, values: FloatArray, n_groups: int) -> Statistic:
    """Return the sums of a value per row over the rows of each group, (n_groups, b)."""
    rows = np.arange(len(group) + 1)
    matrix = csc_array((values, group, rows), shape=(n_groups, len(group)))
    return lambda weights: np.asarray(matrix @ weights)


def quantile(drawn: FloatArray, level: float) -> float:
    """Return a quantile of resamples, such that of b resamples the k-th has level k / (b + 1)."""
    return float(np.quantile(drawn, level, method="weibull"))


def excess_factors(
    observed: FloatArray, drawn: FloatArray, size: Statistic, confidence: float
) -> tuple[float, float]:
    r"""Return the smallest and the largest multiple of the excess seen that the data allow.

    A calibration error is the size of an excess, and chance makes it larger: in a resample it is
    larger than in the sample, and in the sample larger than in truth. So ask, as one does with
    a test: if the true excess were :math:`s` times the observed :math:`d`, resamples' deviations
    :math:`u` would give errors :math:`|sd+u|`. The limits are the factors at which the observed
    error is the largest, or the smallest, that is still to be expected.
    """
    seen, tail = size(observed)[0], (1 - confidence) / 2
    deviations = drawn - observed
    by_chance = size(deviations)
    enough = 1 + by_chance.max() / seen if seen > 0 else 0.0

    def factor(level: float) -> float:
        low, high = 0.0, enough
        if quantile(by_chance, level) >= seen:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if quantile(size(middle * observed + deviations), level) < seen:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    return factor(1 - tail), factor(tail)
