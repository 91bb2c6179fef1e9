"""Bins of forecasts, and sums over ties."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._checks import FloatArray, IntArray, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito.metrics._forecasts import Event


class Bins(NamedTuple):
    """The occupied bins: each row's bin, and per bin the weight share and the two means."""

    of_row: IntArray
    share: FloatArray
    forecast: FloatArray
    frequency: FloatArray


def sum_ties(values: FloatArray, *columns: FloatArray) -> tuple[FloatArray, ...]:
    """Return the distinct values in rising order, and each column summed over equal values.

    >>> distinct, sums = sum_ties(np.array([0.5, 0.1, 0.5]), np.array([1.0, 2.0, 3.0]))
    >>> distinct.tolist(), sums.tolist()
    ([0.1, 0.5], [2.0, 4.0])
    """
    distinct, group = np.unique(values, return_inverse=True)
    return (distinct, *(_sum_by(group, column) for column in columns))


def bin_event(event: Event, n_bins: int, strategy: str) -> Bins:
    """Sort the rows of an event into bins of its forecast probability."""
    place = _PLACEMENTS[check_choice(strategy, "strategy", _PLACEMENTS)]
    placed = place(event.probability, event.weight, _check_n_bins(n_bins))
    occupied = np.bincount(placed) > 0
    of_row = (np.cumsum(occupied) - 1)[placed]
    weight = _sum_by(of_row, event.weight)
    return Bins(
        of_row=of_row,
        share=weight / weight.sum(),
        forecast=_sum_by(of_row, event.weight * event.probability) / weight,
        frequency=_sum_by(of_row, event.weight * event.happened) / weight,
    )


def _sum_by(group: IntArray, column: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(group, weights=column), dtype=np.float64)


def _check_n_bins(n_bins: Any) -> int:
    if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer of at least 1. Got {n_bins!r} instead.")
    return int(n_bins)


def _equal_width(probability: FloatArray, _weight: FloatArray, n_bins: int) -> IntArray:
    # Comparing with the edges themselves: 0.29 * 100 rounds below 29, and 0.29 would slip a bin.
    inner_edges = np.arange(1, n_bins) / n_bins
    placed: IntArray = np.searchsorted(inner_edges, probability, side="right")
    return placed


def _equal_weight(probability: FloatArray, weight: FloatArray, n_bins: int) -> IntArray:
    # Equal forecasts go together, to the bin that holds the middle of their joint weight.
    _, group = np.unique(probability, return_inverse=True)
    mass = _sum_by(group, weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    # A middle that falls on an edge belongs to the upper bin, whichever way rounding pushed it.
    of_group = np.floor(n_bins * middle + 1e-9).astype(np.intp)
    placed: IntArray = np.minimum(of_group, n_bins - 1)[group]
    return placed


_PLACEMENTS: dict[str, Callable[[FloatArray, FloatArray, int], IntArray]] = {
    "uniform": _equal_width,
    "quantile": _equal_weight,
}
