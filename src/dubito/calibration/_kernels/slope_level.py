r"""Bounds of probabilities softmax(θs) at a confidence level, from two likelihoods of the slope.

The interval of slopes is the hull of the level sets
:math:`\{\theta\ge0:f(\theta)-\inf f\le t^2/2\}` of both negative log-likelihoods f, with
:math:`t^2` the quantile of :math:`\chi^2_1` at the confidence level; the bounds of a probability
are its least and greatest value over these slopes. With few rows the interval from the labels alone
(`raw`) tends to miss smaller true slopes, that from light targets (`light`) larger ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.targets import RAW, light_targets
from dubito.calibration._kernels.slope_likelihood import (
    LARGEST_EXCESS,
    SlopeLikelihood,
    fit_likelihood,
    fit_without_maximum,
    level_set,
    linear_term,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Number of pseudo-observations of `light`, in rows: one half for each parameter of the map, here
#: one.
LEVEL_PSEUDO_ROWS = 0.5

#: Error of the interpolated log-likelihoods, which moves the ends by that many standard errors.
_TOLERANCE = 1e-8


class SlopeLevelLikelihoods(NamedTuple):
    """The likelihoods of raw and of light targets, from which bounds at a level are computed."""

    raw: SlopeLikelihood
    light: SlopeLikelihood


def slope_level_likelihoods(
    scores: FloatArray, y: IntArray, weight: FloatArray
) -> SlopeLevelLikelihoods:
    """Return the two likelihoods of labelled scores."""
    targets = light_targets(float(weight.sum()), scores.shape[1], LEVEL_PSEUDO_ROWS)
    return level_likelihoods_from_linear_terms(
        scores,
        weight,
        linear_term(scores, y, weight, RAW),
        linear_term(scores, y, weight, targets),
    )


def level_likelihoods_from_linear_terms(
    scores: FloatArray, weight: FloatArray, raw: float, light: float
) -> SlopeLevelLikelihoods:
    """Return the two likelihoods from their linear terms (`slope_likelihood.linear_term`)."""
    fit = fit_without_maximum if raw == 0.0 else fit_likelihood
    return SlopeLevelLikelihoods(
        fit(scores, weight, raw, tolerance=_TOLERANCE),
        fit_likelihood(scores, weight, light, tolerance=_TOLERANCE),
    )


def slope_interval(likelihoods: SlopeLevelLikelihoods, level: float) -> tuple[float, float]:
    """Return the interval of slopes at a confidence level, whose upper end may be infinite."""
    t = root_chi2_quantile(level)
    excess = np.array([min(0.5 * t * t, LARGEST_EXCESS)])
    ends = [level_set(fit, excess) for fit in likelihoods]
    return min(float(low[0]) for low, _ in ends), max(float(high[0]) for _, high in ends)


def extreme_probabilities(
    scores: FloatArray, interval: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return least and greatest probabilities over an interval of slopes, for scores at most 0."""
    from dubito.calibration._kernels.slope_level_compiled import write_extremes  # noqa: PLC0415

    lower, upper = np.empty_like(scores), np.empty_like(scores)
    write_extremes(np.ascontiguousarray(scores), interval, lower, upper)
    return lower, upper
