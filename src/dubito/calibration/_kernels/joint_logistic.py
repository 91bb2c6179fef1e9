r"""Belief and plausibility of a logistic model of several scores, from its profile likelihood.

At scores s the log-odds :math:`\eta=z^\top\sigma`, :math:`z=(1,s)`, have the contour
:math:`pl(\eta)=\max\{L(\sigma):z^\top\sigma=\eta\}/L(\hat\sigma)` (Minary et al. 2017, eq. 10). The
probability :math:`\theta=1/(1+e^{-\eta})` has the same contour, which is integrated on both sides
of the estimate (`joint_logistic_compiled`):

.. math:: \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}pl(u)\,du,\qquad
    \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1pl(u)\,du
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dubito._numerics.logistic_curvature import logistic_hessian
from dubito._numerics.logistic_fit import LogisticFit, fit_logistic
from dubito._numerics.threads import over_blocks

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Largest difference of the Gauss and Kronrod rules on a panel. The Kronrod value, which is used,
#: is far more accurate than this difference.
_TOLERANCE = 1e-7

#: Singular value of the design, relative to the largest, below which the rows do not determine the
#: coefficients in its direction; scores may come in single precision.
_MIN_SINGULAR_VALUE = 1e-7

#: Largest component of a query outside the rows' span, relative to its length, that may be
#: rounding.
_OUTSIDE = 1e-5

#: The fit of rows that are all zero, without a bias.
_EMPTY_FIT = LogisticFit(np.zeros(0), np.zeros(0, dtype=bool), 0.0, 0, 0.0)


class JointLikelihood(NamedTuple):
    """Likelihood of a logistic model around its estimate, in axes where the Hessian is identity.

    A query z has the whitened coordinates ``z @ whiten`` and the estimated log-odds ``z @ coef``.
    `rows`, `at_estimate` and `penalty` are the arrays of `joint_logistic_compiled`.
    """

    fit: LogisticFit
    coef: FloatArray  # (p,)
    span: FloatArray  # (p, rank): orthonormal basis of the rows' span
    whiten: FloatArray  # (p, rank)
    rows: FloatArray  # (rank, n), whitened
    at_estimate: FloatArray  # (4, n): sample weight, log-odds, softplus, probability
    penalty: FloatArray  # (rank, rank), whitened

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The argument `likelihood` of the compiled kernels."""
        return self.rows, self.at_estimate, self.penalty


def joint_likelihood(
    design: FloatArray, target: FloatArray, weight: FloatArray, penalty: FloatArray
) -> JointLikelihood:
    """Return the likelihood of a logistic model around its estimate.

    `penalty` (p,) is the ridge of each coefficient. Without one, directions outside the rows' span
    are left out of the fit.
    """
    span = scaled = np.eye(design.shape[1])
    if not penalty.any():
        span, scaled = bases_of_span(design, weight)
    coordinates = design @ scaled
    ridge = penalty if penalty.any() else np.zeros(span.shape[1])
    fit = _EMPTY_FIT
    if coordinates.shape[1]:
        fit = fit_logistic(coordinates, target, weight, ridge, np.zeros(len(ridge)))
    eta = coordinates @ fit.coef
    hessian = logistic_hessian(coordinates, eta, weight, ridge)
    values, axes = np.linalg.eigh(hessian)
    white = axes / np.sqrt(np.maximum(values, 1e-14 * values.max(initial=0.0)))
    return JointLikelihood(
        fit=fit,
        coef=scaled @ fit.coef,
        span=span,
        whiten=scaled @ white,
        rows=np.ascontiguousarray((coordinates @ white).T),
        at_estimate=np.stack([weight, eta, np.logaddexp(0.0, eta), expit(eta)]),
        penalty=np.ascontiguousarray((white.T * ridge) @ white),
    )


def quadratic_joint_likelihood(likelihood: JointLikelihood) -> JointLikelihood:
    """Return the second-order expansion of a likelihood: whitened, its Hessian is the identity."""
    return likelihood._replace(
        rows=likelihood.rows[:, :0].copy(),
        at_estimate=likelihood.at_estimate[:, :0].copy(),
        penalty=np.eye(len(likelihood.penalty)),
    )


def bases_of_span(design: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis (p, rank) of the rows' span, and that basis scaled.

    The coordinates of the rows in the scaled basis have mean square 1, so that the fit is well
    conditioned whatever their variances.
    """
    _, singular, axes = np.linalg.svd(design * np.sqrt(weight)[:, None], full_matrices=False)
    determined = singular > _MIN_SINGULAR_VALUE * singular[0]
    span = axes[determined].T
    return span, span * (np.sqrt(weight.sum()) / singular[determined])


def outside_span(likelihood: JointLikelihood, design: FloatArray) -> BoolArray:
    """Return which queries lie outside the rows' span: the rows do not determine their log-odds."""
    projected = (design @ likelihood.span) @ likelihood.span.T
    residual, whole = np.linalg.norm(design - projected, axis=1), np.linalg.norm(design, axis=1)
    return np.asarray(residual > _OUTSIDE * whole)


def _depends_on_coef(queries: FloatArray) -> BoolArray:
    """Return which queries have log-odds that depend on the coefficients: those not all zero."""
    return np.asarray(np.abs(queries).max(axis=1, initial=0.0) > 0.0)


def belief_and_plausibility(
    likelihood: JointLikelihood, design: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of the event at each row of a design, each (m,)."""
    from dubito.calibration._kernels.joint_logistic_compiled import integrals  # noqa: PLC0415 - loads numba

    queries, log_odds = design @ likelihood.whiten, design @ likelihood.coef
    theta = expit(log_odds)
    areas = np.zeros((len(design), 2))
    varies = _depends_on_coef(queries)
    areas[varies] = over_blocks(
        lambda z, eta: integrals(likelihood.arrays, z, eta, _TOLERANCE),
        (queries[varies], log_odds[varies]),
        threads=threads,
    )
    outside = outside_span(likelihood, design)
    lower = np.where(outside, 0.0, np.clip(theta - areas[:, 0], 0.0, theta))
    upper = np.where(outside, 1.0, np.clip(theta + areas[:, 1], theta, 1.0))
    return lower, upper


def contour_of(
    likelihood: JointLikelihood, design: FloatArray, theta: FloatArray, *, threads: int = 1
) -> FloatArray:
    """Return the contour, or relative profile likelihood, of `theta` at each query, (m, t)."""
    from dubito.calibration._kernels.joint_logistic_compiled import contours  # noqa: PLC0415 - loads numba

    values, inverse = np.unique(theta, return_inverse=True)
    queries, log_odds = design @ likelihood.whiten, design @ likelihood.coef
    out = np.zeros((len(design), len(values)))  # the probabilities 0 and 1 have likelihood 0
    inner = (values > 0) & (values < 1)
    varies = _depends_on_coef(queries)
    out[np.ix_(varies, inner)] = over_blocks(
        lambda z, eta: contours(likelihood.arrays, z, eta, logit(values[inner])),
        (queries[varies], log_odds[varies]),
        threads=threads,
    )
    out[~varies] = values == expit(log_odds[~varies, None])
    out[np.ix_(outside_span(likelihood, design), inner)] = 1.0
    return out[:, inverse]
