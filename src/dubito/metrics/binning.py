"""Bins of forecasts, and sums over ties."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._validation import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray, IntArray
    from dubito.metrics.forecasts import Event


class ForecastBins(NamedTuple):
    """The M bins that have rows, numbered from 0 in rising order of the forecast."""

    of_row: IntArray  # (n,) bin of each row
    fraction: FloatArray  # (M,) fraction of the total weight
    forecast: FloatArray  # (M,) mean forecast
    frequency: FloatArray  # (M,) frequency of the event


def sum_ties(values: FloatArray, *columns: FloatArray) -> tuple[FloatArray, ...]:
    """Return the distinct values in rising order, and each column summed over equal values.

    >>> distinct, sums = sum_ties(np.array([0.5, 0.1, 0.5]), np.array([1.0, 2.0, 3.0]))
    >>> distinct.tolist(), sums.tolist()
    ([0.1, 0.5], [2.0, 4.0])
    """
    distinct, group = np.unique(values, return_inverse=True)
    return (distinct, *(sum_by(group, column) for column in columns))


def bin_event(event: Event, n_bins: int, strategy: str) -> ForecastBins:
    """Return the rows of an event in bins of its forecast probability."""
    assign = _STRATEGIES[check_choice(strategy, "strategy", _STRATEGIES)]
    number = assign(event.probability, event.weight, _check_n_bins(n_bins))
    occupied = np.bincount(number) > 0
    of_row = (np.cumsum(occupied) - 1)[number]
    weight = sum_by(of_row, event.weight)
    return ForecastBins(
        of_row=of_row,
        fraction=weight / weight.sum(),
        forecast=sum_by(of_row, event.weight * event.probability) / weight,
        frequency=sum_by(of_row, event.weight * event.happened) / weight,
    )


def bin_edges(event: Event, bins: ForecastBins, n_bins: int, strategy: str) -> FloatArray:
    """Return where each occupied bin begins and ends, (M, 2).

    For bins of equal width these are their edges; for bins of equal weight their smallest and
    largest forecast.
    """
    low = np.full(len(bins.fraction), np.inf)
    high = np.full(len(bins.fraction), -np.inf)
    np.minimum.at(low, bins.of_row, event.probability)
    np.maximum.at(high, bins.of_row, event.probability)
    if strategy == "uniform":
        number = equal_width(low, event.weight, n_bins)
        low, high = number / n_bins, (number + 1) / n_bins
    return np.column_stack((low, high))


def sum_by(group: IntArray, column: FloatArray) -> FloatArray:
    """Return the sums of a column over rows of the same group."""
    return np.asarray(np.bincount(group, weights=column), dtype=np.float64)


def _check_n_bins(n_bins: Any) -> int:
    if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer of at least 1. Got {n_bins!r} instead.")
    return int(n_bins)


def equal_width(probability: FloatArray, _weight: FloatArray, n_bins: int) -> IntArray:
    """Return the bin of each forecast, of `n_bins` of equal width."""
    # Compared with the edges because products are rounded: 0.29 * 100 is below 29, the wrong bin.
    inner_edges = np.arange(1, n_bins) / n_bins
    number: IntArray = np.searchsorted(inner_edges, probability, side="right")
    return number


def _equal_weight(probability: FloatArray, weight: FloatArray, n_bins: int) -> IntArray:
    """Return the bin of each forecast, of `n_bins` of nearly equal weight.

    Equal forecasts share one bin, that of the midpoint of their total weight.
    """
    _, group = np.unique(probability, return_inverse=True)
    total = sum_by(group, weight)
    middle = (np.cumsum(total) - total / 2) / total.sum()
    # A midpoint on an edge belongs to the upper bin, also where rounding puts it just below.
    of_group = np.floor(n_bins * middle + 1e-9).astype(np.intp)
    number: IntArray = np.minimum(of_group, n_bins - 1)[group]
    return number


#: The function of each strategy, which returns the bin of each forecast.
_STRATEGIES: dict[str, Callable[[FloatArray, FloatArray, int], IntArray]] = {
    "uniform": equal_width,
    "quantile": _equal_weight,
}
