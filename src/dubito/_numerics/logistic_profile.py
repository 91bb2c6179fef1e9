r"""Belief and plausibility of a logistic curve from its profile likelihood.

At a score x the log-odds :math:`\eta=\sigma_0+\sigma_1x` have the contour
:math:`pl(\eta)=\max\{L(\sigma):\sigma_0+\sigma_1x=\eta\}/L(\hat\sigma)`. Its integrals are taken
outward from the estimate by an adaptive rule until the rest is negligible, so the contour may
fall as slowly as it does for nearly separable data.

Two approximations, exact to 9 digits and more, save time. Rows: the likelihood is a linear term and
a sum of softplus terms; rows close to each other are replaced by few weighted points with the same
sums (`condensed_rows_compiled`). Queries, the scores x at which bounds are needed: belief and
plausibility are smooth in x, so those of many queries are interpolated between Chebyshev points in
panels, which are halved until each series has converged.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit, logit

from dubito._numerics.logistic_curvature import logistic_curvature

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray

#: Largest number of rows that are not replaced by points.
_FEW_ROWS = 48

#: Excess (the maximum of the log-likelihood minus its value) up to which the points have the
#: likelihood of the rows; the plausibility there is 1e-14.
_LARGEST_EXCESS = 32.0

#: Largest difference of the two quadrature rules on a panel; the error of the finer rule, which is
#: used, is much smaller.
_TOLERANCE = 1e-9

#: Degree of the polynomials that interpolate between queries; a polynomial is used if its last
#: coefficients and its errors are below the second number.
_DEGREE = 16
_CONVERGED = 1e-9


class LogisticLikelihood(NamedTuple):
    """Likelihood of a logistic curve: softplus terms, target totals, optimum and curvature."""

    points: FloatArray  # (2, terms): positions and weights
    totals: FloatArray  # (2,): targets, targets times positions
    optimum: FloatArray  # (2,): intercept, slope
    hessian: FloatArray  # (2, 2)
    least: float  # negative log-likelihood at the optimum

    @property
    def likelihood(self) -> tuple[FloatArray, FloatArray, float]:
        """The data, as the compiled kernels take them."""
        return self.points, self.totals, self.least

    @property
    def model(self) -> tuple[FloatArray, FloatArray, float]:
        """The fit, as the compiled kernels take it."""
        return self.optimum, self.hessian, _TOLERANCE


def logistic_likelihood(
    x: FloatArray, target: FloatArray, weight: FloatArray, optimum: FloatArray
) -> LogisticLikelihood:
    """Return the likelihood of standardised scores, given its optimum (intercept, slope)."""
    totals = np.array([weight @ target, weight @ (target * x)])
    order = np.argsort(x, kind="stable")
    whole = _with_curvature(np.stack([x[order], weight[order]]), totals, optimum)
    # Negative weights come from `condensed_rows.fewer_rows`: these points are few already.
    if len(x) <= _FEW_ROWS or not np.ptp(x) > 0 or weight.min() < 0:
        return whole

    from dubito._numerics.condensed_rows_compiled import condense  # noqa: PLC0415 - loads numba
    from dubito._numerics.logistic_profile_compiled import slope_reach  # noqa: PLC0415

    reach = slope_reach(whole.likelihood, whole.model, _LARGEST_EXCESS)
    fewer = condense(whole.points, reach)
    return _with_curvature(fewer, totals, optimum) if 2 * fewer.shape[1] < len(x) else whole


def _with_curvature(
    points: FloatArray, totals: FloatArray, optimum: FloatArray
) -> LogisticLikelihood:
    """Return the likelihood of weighted scores, with its value and Hessian at the optimum."""
    x, weight = points
    eta = optimum[0] + optimum[1] * x
    curvature = logistic_curvature(eta, weight)
    cross = curvature @ x
    hessian = np.array([[curvature.sum(), cross], [cross, curvature @ x**2]])
    least = float(weight @ np.logaddexp(0.0, eta) - totals @ optimum)
    return LogisticLikelihood(np.ascontiguousarray(points), totals, optimum, hessian, least)


def belief_and_plausibility(
    fitted: LogisticLikelihood, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return belief and plausibility of the event at standardised scores x, each (n,).

    .. math:: \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}pl(u)\,du,\qquad
        \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1pl(u)\,du
    """
    from dubito._numerics.logistic_profile_compiled import integrals  # noqa: PLC0415 - loads numba

    def exact(queries: FloatArray) -> FloatArray:
        return integrals(fitted.likelihood, queries, fitted.model)

    theta = expit(fitted.optimum[0] + fitted.optimum[1] * x)
    distinct, inverse = np.unique(x, return_inverse=True)
    below, above = interpolated(exact, distinct, panel_boundaries(fitted.optimum))[inverse].T
    return np.clip(theta - below, 0.0, theta), np.clip(theta + above, theta, 1.0)


def contour_of(fitted: LogisticLikelihood, x: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the plausibility of each probability `theta` at each standardised score x."""
    from dubito._numerics.logistic_profile_compiled import contours  # noqa: PLC0415 - loads numba

    out = np.zeros((len(x), len(theta)))  # probabilities 0 and 1 have likelihood 0
    inner = (theta > 0) & (theta < 1)
    out[:, inner] = contours(fitted.likelihood, x, logit(theta[inner]), fitted.model)
    return out


def panel_boundaries(optimum: FloatArray) -> FloatArray:
    """Return scores between which panels lie: of several log-odds, and near the mean score."""
    intercept, slope = optimum
    log_odds = np.array([-40.0, -16.0, -8.0, -4.0, 0.0, 4.0, 8.0, 16.0, 40.0])
    scores = (log_odds - intercept) / slope if abs(slope) > 1e-6 else np.zeros(0)
    return np.sort(np.concatenate([scores, [-2.0, 0.0, 2.0]]))


def interpolated(
    exact: Callable[[FloatArray], FloatArray], x: FloatArray, boundaries: FloatArray
) -> FloatArray:
    """Return `exact` at sorted distinct x, (n, columns), interpolated in panels with many x.

    `boundaries` are those of the first panels, ascending. Panels are intervals of asinh(x), in
    which the functions are as smooth for large x as among the data.
    """
    if len(x) <= 2 * _DEGREE:
        return exact(x)
    position = np.arcsinh(x)
    points_in_panel = np.cos(np.arange(_DEGREE + 1) * np.pi / _DEGREE)
    checks = np.array([-0.55, 0.05, 0.6])  # between the points
    to_series = np.linalg.inv(chebyshev.chebvander(points_in_panel, _DEGREE))
    splits = np.unique(np.concatenate([[0], np.searchsorted(x, boundaries), [len(x)]]))
    stack = list(pairwise(splits.tolist()))
    parts: dict[int, FloatArray] = {}
    while stack:
        start, stop = stack.pop()
        if stop - start <= 2 * _DEGREE:
            parts[start] = exact(x[start:stop])
            continue
        low, high = position[start], position[stop - 1]
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        values = exact(np.sinh(middle + half * np.concatenate([points_in_panel, checks])))
        series = to_series @ values[: _DEGREE + 1]
        check_error = chebyshev.chebval(checks, series).T - values[_DEGREE + 1 :]
        if max(np.abs(series[-3:]).max(), np.abs(check_error).max()) < _CONVERGED:
            parts[start] = chebyshev.chebval((position[start:stop] - middle) / half, series).T
        else:
            split = int(np.searchsorted(position[start:stop], middle)) + start
            stack += [(start, split), (split, stop)]
    return np.concatenate([parts[start] for start in sorted(parts)])
