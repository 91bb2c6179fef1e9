r"""The slope of temperature scaling, by Halley's method on all rows.

Targets are :math:`t=(1-\epsilon)\,e_y+\epsilon/K` with :math:`\epsilon=c/(n+c)`: c
pseudo-observations of unknown label, distributed over the rows. With c > 0 every estimate is
finite; as n grows their effect vanishes.

`slope_likelihood.fit_likelihood` finds the same maximum and also interpolates the likelihood around
it, for any targets and without compiled code, in many more passes. This fit of the slope alone
takes three or four compiled passes, also over millions of scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.row_subsets import CHUNK_ENTRIES, row_chunks, subsample_rows
from dubito._numerics.targets import pseudo_fraction

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Largest and smallest number of rows of the sample on which the slope is fitted first, smaller for
#: many classes: the fit to all rows, which starts there, then takes few passes.
_SAMPLE_ROWS = 4096
_FEWEST_SAMPLE_ROWS = 256


class SlopeFit(NamedTuple):
    """A fitted slope θ, and the gradient there as a check of convergence."""

    slope: float
    gradient_norm: float  # of the mean negative log-likelihood in log θ (in θ when it is 0)
    n_iter: int  # passes over all rows


def fit_slope(u: FloatArray, y: IntArray, weight: FloatArray, pseudo_rows: float) -> SlopeFit:
    r"""Return the slope θ ≥ 0 of :math:`\mathrm{softmax}(\theta u)` that is most likely.

    The negative log-likelihood is convex in θ: Halley's method inside a bracket. θ is 0 where
    scores are negatively related to the labels, and 1 where all scores are constant.
    """
    fraction = pseudo_fraction(weight.sum(), pseudo_rows)
    start = _first_guess(u, weight)
    if start == 0.0:
        return SlopeFit(1.0, 0.0, 0)
    sample_size = _sample_size(u)
    if len(u) > 4 * sample_size:
        rows = subsample_rows(len(u), sample_size)
        start = _halley(u[rows], y[rows], weight[rows], fraction, start).slope or start
    return _halley(u, y, weight, fraction, start)


def slope_loss(
    u: FloatArray, y: IntArray, weight: FloatArray, pseudo_rows: float, slope: float
) -> float:
    """Return the negative log-likelihood that `fit_slope` minimises, at a given slope."""
    from dubito.calibration._kernels.temperature_scaling_compiled import temperature_sums  # noqa: PLC0415

    return float(
        temperature_sums(u, y, weight, pseudo_fraction(weight.sum(), pseudo_rows), slope)[0]
    )


def _sample_size(u: FloatArray) -> int:
    return min(_SAMPLE_ROWS, max(CHUNK_ENTRIES // u.shape[1], _FEWEST_SAMPLE_ROWS))


def _first_guess(u: FloatArray, weight: FloatArray) -> float:
    """Return the slope at which the largest score exceeds the mean by log K on average."""
    rows = subsample_rows(len(u), _sample_size(u))
    part = u[rows]
    # The mean of equal scores may differ from them by rounding; their range does not.
    advantages = np.where(np.ptp(part, axis=1) > 0, part.max(axis=1) - part.mean(axis=1), 0.0)
    advantage = float(np.average(advantages, weights=weight[rows]))
    if advantage == 0.0 and len(rows) < len(u):
        advantage = max(float(np.ptp(u[rows], axis=1).max()) for rows in row_chunks(*u.shape))
    return np.log(u.shape[1]) / advantage if advantage > 0 else 0.0


def _halley(
    u: FloatArray, y: IntArray, weight: FloatArray, fraction: float, slope: float
) -> SlopeFit:
    from dubito.calibration._kernels.temperature_scaling_compiled import temperature_sums  # noqa: PLC0415

    n = float(weight.sum())
    low, high, last = 0.0, np.inf, np.inf
    gradient = 0.0
    for n_iter in range(1, 101):
        _, first, second, third = temperature_sums(u, y, weight, fraction, slope)
        gradient = abs(first) * slope / n
        if (
            first > 0
            and low == 0.0
            and high == np.inf
            and _decreases_at_zero(u, y, weight, fraction)
        ):
            return SlopeFit(0.0, 0.0, n_iter)
        low, high = (slope, high) if first < 0 else (low, slope)
        step = _halley_step(first, second, third)
        size = abs(step) / slope
        # Converged, or steps no longer decrease because they are rounding errors.
        if size <= 1e-12 or (size <= 1e-8 and 2 * size >= last):
            return SlopeFit(slope, gradient, n_iter)
        last = size
        slope = _limited_to_bracket(slope - step, slope, low, high)
    return SlopeFit(slope, gradient, 100)


def _halley_step(first: float, second: float, third: float) -> float:
    if second <= 0.0:  # every probability is 0 or 1 up to rounding
        return np.copysign(np.inf, first) if first else 0.0
    newton = first / second
    # The third-order correction may at most double the step: beyond that it is inaccurate.
    return newton / max(1 - 0.5 * newton * third / second, 0.5)


def _limited_to_bracket(proposal: float, slope: float, low: float, high: float) -> float:
    """Return the proposal limited to the bracket, and to a factor of 8 from the slope."""
    if proposal > slope:
        limit = min(8 * slope, high)
        return proposal if proposal < limit else min(8 * slope, 0.5 * (slope + high))
    limit = max(slope / 8, low)
    return proposal if proposal > limit else max(slope / 8, 0.5 * (slope + low))


def _decreases_at_zero(u: FloatArray, y: IntArray, weight: FloatArray, fraction: float) -> bool:
    """Return whether the likelihood decreases at slope 0: mean scores exceed those of labels."""
    own = u[np.arange(len(u)), y]
    gap = np.concatenate([u[rows].mean(axis=1) for rows in row_chunks(*u.shape)]) - own
    return bool((1 - fraction) * (weight @ gap) >= 0)
