r"""Bounds of a logistic curve that hold the true probability at a confidence level.

They are the hull of the cuts :math:`\{\eta:-2\log pl(\eta)\le t^2\}`, :math:`t^2` the quantile of
:math:`\chi^2_1` at the level, of two contours. With few rows the cut of the plain likelihood leaves
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
    landmarks,
    logistic_likelihood,
)
from dubito._numerics.targets import shrunk_table

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Pseudo-observations for each row with which the plain likelihood of separated classes has an
#: estimate: too few to change a contour at probabilities that differ from 0 and 1.
_LIMIT = 1e-12


class LogisticLevelLikelihoods(NamedTuple):
    """The two likelihoods whose cuts bound a probability."""

    shrunk: LogisticLikelihood
    raw: LogisticLikelihood
    gradient_norm: float  # the certificate of both fits


def level_targets(
    event: BoolArray, weight: FloatArray, n_coefficients: int
) -> tuple[FloatArray, FloatArray]:
    """Return targets with half a pseudo-observation for each coefficient, and plain ones.

    Plain targets are taken as a limit, so that separated classes have an estimate, far out.
    """
    total = float(weight.sum())
    column = event.astype(np.intp)
    shrunk = shrunk_table(total, 2, 0.5 * n_coefficients)[column, 1]
    return shrunk, shrunk_table(total, 2, _LIMIT * total)[column, 1]


def logistic_level_likelihoods(
    x: FloatArray, event: BoolArray, weight: FloatArray, start: FloatArray
) -> LogisticLevelLikelihoods:
    """Fit both likelihoods of standardised scores, from coefficients that are nearly right."""
    design = np.column_stack([np.ones(len(x)), x])
    no_penalty = np.zeros(2)
    both, gradients = [], []
    for target in level_targets(event, weight, 1 + int(np.ptp(x) > 0)):
        fit = fit_logistic(design, target, weight, no_penalty, no_penalty, start=start)
        both.append(logistic_likelihood(x, target, weight, fit.coef))
        gradients.append(fit.gradient_norm)
        start = fit.coef
    return LogisticLevelLikelihoods(both[0], both[1], max(gradients))


def level_bounds(
    levels: LogisticLevelLikelihoods, x: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probability at standardised scores, each (n,)."""
    from dubito._numerics.logistic_level_compiled import level_ends  # noqa: PLC0415 - loads numba

    t = root_chi2_quantile(level)
    both = levels.shrunk, levels.raw
    shrunk, raw = ((e.likelihood, e.model) for e in both)

    def exact(queries: FloatArray) -> FloatArray:
        return expit(level_ends(shrunk, raw, queries, t))

    distinct, where = np.unique(x, return_inverse=True)
    cuts = np.concatenate([landmarks(e.optimum) for e in both])
    ends = interpolated(exact, distinct, np.sort(cuts))[where]
    lower, upper = ends[:, [0, 2]].min(axis=1), ends[:, [1, 3]].max(axis=1)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
