"""Values of metrics with their limits: of shares, of resampled metrics, of calibration errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.metrics._bootstrap import excess_factors, quantile
from dubito.metrics._intervals import effective_size, share_interval

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray
    from dubito.metrics._bootstrap import Excess, Statistic


class Estimate(NamedTuple):
    """The value of a metric on the rows at hand, and the limits for rows like them."""

    value: float
    low: float
    high: float


class Share(NamedTuple):
    """The share of rows of which something is true: limits need no resamples."""

    happened: BoolArray
    weight: FloatArray
    statistic: None = None

    def estimate(self, _drawn: FloatArray | None, confidence: float) -> Estimate:
        """Return the share with Clopper and Pearson's limits; without rows there is none."""
        if len(self.weight) == 0:
            return Estimate(np.nan, np.nan, np.nan)
        value = np.average(self.happened, weights=self.weight)
        low, high = share_interval(value, effective_size(self.weight), confidence)
        return Estimate(float(value), float(low), float(high))


class Resampled(NamedTuple):
    """A metric that chance moves as much up as down."""

    value: float
    statistic: Statistic

    def estimate(self, drawn: FloatArray | None, confidence: float) -> Estimate:
        """Return the value with percentiles of the resamples as its limits."""
        if drawn is None:
            return Estimate(self.value, np.nan, np.nan)
        tail = (1 - confidence) / 2
        return _around(self.value, quantile(drawn, tail), quantile(drawn, 1 - tail))


class CalibrationError(NamedTuple):
    """An error that chance makes larger."""

    value: float
    excess: Excess
    weight: FloatArray

    @property
    def statistic(self) -> Statistic:
        """What is asked of resamples: their excess."""
        return self.excess.mean

    def estimate(self, drawn: FloatArray | None, confidence: float) -> Estimate:
        """Return the value with limits that allow for what chance adds."""
        if drawn is None:
            return Estimate(self.value, np.nan, np.nan)
        observed = self.excess.mean(self.weight[:, None])
        low, high = excess_factors(observed, drawn, self.excess.size, confidence)
        return _around(self.value, low * self.value, min(high * self.value, 1.0))


def _around(value: float, low: float, high: float) -> Estimate:
    """Return limits that hold the value: rounding, or what chance added to it, may leave it out."""
    return Estimate(value, float(min(low, value)), float(max(high, value)))
