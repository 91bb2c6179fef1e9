r"""Bounds of a logistic curve that contain the true probability at a confidence level.

They are the hull of the cuts :math:`\{\eta:-2\log pl(\eta)\le t^2\}`, :math:`t^2` the quantile of
:math:`\chi^2_1` at the level, of two contours. With few rows the cut of the raw likelihood leaves
out true values nearer to 1/2, and that of the likelihood with p/2 more pseudo-observations of
unknown label (p coefficients) leaves out true values farther from 1/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.logistic_fit import fit_logistic
from dubito._numerics.logistic_profile import (
    LogisticLikelihood,
    interpolated,
    logistic_likelihood,
    panel_boundaries,
)
from dubito._numerics.targets import light_table

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Pseudo-observations in raw targets, as a fraction of the rows' weight. With them the likelihood
#: of separated classes has a maximum; no contour changes at probabilities other than 0 and 1.
_RAW_PSEUDO_FRACTION = 1e-12


class LogisticLevelLikelihoods(NamedTuple):
    """The likelihoods of raw and of light targets, from which bounds at a level are computed."""

    raw: LogisticLikelihood
    light: LogisticLikelihood
    gradient_norm: float  # the larger one of the two fits


def level_targets(
    event: BoolArray, weight: FloatArray, n_coefficients: int
) -> tuple[FloatArray, FloatArray]:
    """Return raw targets, and targets with half a pseudo-observation for each coefficient.

    Raw targets have `_RAW_PSEUDO_FRACTION` of the weight in place of none.
    """
    total = float(weight.sum())
    column = event.astype(np.intp)
    raw = light_table(total, 2, _RAW_PSEUDO_FRACTION * total)[column, 1]
    return raw, light_table(total, 2, 0.5 * n_coefficients)[column, 1]


def logistic_level_likelihoods(
    x: FloatArray, event: BoolArray, weight: FloatArray, start: FloatArray
) -> LogisticLevelLikelihoods:
    """Return fitted likelihoods of both `level_targets` for standardised scores."""
    design = np.column_stack([np.ones(len(x)), x])
    no_penalty = np.zeros(2)
    likelihoods, gradients = [], []
    raw_target, light_target = level_targets(event, weight, 1 + int(np.ptp(x) > 0))
    for target in (light_target, raw_target):  # raw starts at the estimate of light
        fit = fit_logistic(design, target, weight, no_penalty, no_penalty, start=start)
        likelihoods.append(logistic_likelihood(x, target, weight, fit.coef))
        gradients.append(fit.gradient_norm)
        start = fit.coef
    light, raw = likelihoods
    return LogisticLevelLikelihoods(raw=raw, light=light, gradient_norm=max(gradients))


def level_bounds(
    likelihoods: LogisticLevelLikelihoods, x: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of the probability at standardised scores, each (n,)."""
    from dubito._numerics.logistic_level_compiled import level_ends  # noqa: PLC0415 - loads numba

    t = root_chi2_quantile(level)
    both = likelihoods.light, likelihoods.raw
    light, raw = ((one.likelihood, one.model) for one in both)

    def exact(queries: FloatArray) -> FloatArray:
        return expit(level_ends(light, raw, queries, t))

    distinct, inverse = np.unique(x, return_inverse=True)
    boundaries = np.concatenate([panel_boundaries(one.optimum) for one in both])
    ends = interpolated(exact, distinct, np.sort(boundaries))[inverse]
    lower, upper = ends[:, [0, 2]].min(axis=1), ends[:, [1, 3]].max(axis=1)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
