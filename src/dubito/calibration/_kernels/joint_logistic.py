r"""Belief and plausibility of a logistic model of several scores, from its profile likelihood.

At scores s the log-odds :math:`\eta=z^\top\sigma`, :math:`z=(1,s)`, have the contour
:math:`pl(\eta)=\max\{L(\sigma):z^\top\sigma=\eta\}/L(\hat\sigma)`. Its integrals are taken outward
from the estimate by an adaptive rule, each profile started from the last ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dubito._numerics.logistic_fit import LogisticFit, fit_logistic
from dubito._numerics.threads import over_blocks

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Difference of the two rules on a panel; the finer rule, which is used, is far closer.
_TOLERANCE = 1e-7

#: Directions whose share of the rows is below this, relative to the largest, are not seen by them:
#: scores may come in single precision.
_UNSEEN = 1e-7

#: Part of a query outside the rows' span, relative to its length, that is not put down to rounding.
_OUTSIDE = 1e-5

#: The fit of rows that are all zero, without a bias.
_NOTHING_SEEN = LogisticFit(np.zeros(0), np.zeros(0, dtype=bool), 0.0, 0, 0.0)


class JointEvidence(NamedTuple):
    """What the likelihood of a logistic model knows, in axes where its curvature is the identity.

    A query z has the whitened coordinates ``z @ whiten`` and the estimated log-odds ``z @ coef``.
    """

    fit: LogisticFit
    coef: FloatArray  # (p,)
    span: FloatArray  # (p, rank): orthonormal directions the rows see
    whiten: FloatArray  # (p, rank)
    rows: FloatArray  # (rank, n), whitened
    at: FloatArray  # (4, n): weight, log-odds, softplus and probability at the estimate
    penalty: FloatArray  # (rank, rank), whitened

    @property
    def likelihood(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the compiled kernels take."""
        return self.rows, self.at, self.penalty


def joint_evidence(
    design: FloatArray, target: FloatArray, weight: FloatArray, penalty: FloatArray
) -> JointEvidence:
    """Fit a logistic model and gather its likelihood around the estimate.

    `penalty` holds the ridge of each coefficient. Without one, directions that the rows do not see
    are left out of the fit; with one the penalty decides on them.
    """
    span = scaled = np.eye(design.shape[1])
    if not penalty.any():
        span, scaled = seen_directions(design, weight)
    seen = design @ scaled
    ridge = penalty if penalty.any() else np.zeros(span.shape[1])
    fit = _NOTHING_SEEN
    if seen.shape[1]:
        fit = fit_logistic(seen, target, weight, ridge, np.zeros(len(ridge)))
    eta = seen @ fit.coef
    p = expit(eta)
    curvature = (seen * (weight * p * expit(-eta))[:, None]).T @ seen + np.diag(ridge)
    values, axes = np.linalg.eigh(curvature)
    white = axes / np.sqrt(np.maximum(values, 1e-14 * values.max(initial=0.0)))
    return JointEvidence(
        fit=fit,
        coef=scaled @ fit.coef,
        span=span,
        whiten=scaled @ white,
        rows=np.ascontiguousarray((seen @ white).T),
        at=np.stack([weight, eta, np.logaddexp(0.0, eta), p]),
        penalty=np.ascontiguousarray((white.T * ridge) @ white),
    )


def quadratic_evidence(evidence: JointEvidence) -> JointEvidence:
    """Replace the likelihood by its quadratic at the estimate: whitened, that is the identity."""
    return evidence._replace(
        rows=evidence.rows[:, :0].copy(),
        at=evidence.at[:, :0].copy(),
        penalty=np.eye(len(evidence.penalty)),
    )


def seen_directions(design: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis (p, rank) of the directions rows have, and that basis scaled.

    On the scaled one rows have mean square 1: directions hardly seen count like others.
    """
    _, size, axes = np.linalg.svd(design * np.sqrt(weight)[:, None], full_matrices=False)
    seen = size > _UNSEEN * size[0]
    span = axes[seen].T
    return span, span * (np.sqrt(weight.sum()) / size[seen])


def outside_span(evidence: JointEvidence, design: FloatArray) -> BoolArray:
    """Mark queries of which the rows say nothing, being outside their span."""
    inside = (design @ evidence.span) @ evidence.span.T
    off, whole = np.linalg.norm(design - inside, axis=1), np.linalg.norm(design, axis=1)
    return np.asarray(off > _OUTSIDE * whole)


def _moves(queries: FloatArray) -> BoolArray:
    """Mark queries whose log-odds depend on the coefficients: not those of zeros without a bias."""
    return np.asarray(np.abs(queries).max(axis=1, initial=0.0) > 0.0)


def belief_and_plausibility(
    evidence: JointEvidence, design: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    r"""Return the estimate less the contour's integral below it, and plus that above it.

    .. math:: \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}pl(u)\,du,\qquad
        \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1pl(u)\,du
    """
    from dubito.calibration._kernels.joint_logistic_compiled import integrals  # noqa: PLC0415 - loads numba

    queries, log_odds = design @ evidence.whiten, design @ evidence.coef
    theta = expit(log_odds)
    areas = np.zeros((len(design), 2))
    moves = _moves(queries)
    areas[moves] = over_blocks(
        lambda z, eta: integrals(evidence.likelihood, z, eta, _TOLERANCE),
        (queries[moves], log_odds[moves]),
        threads=threads,
    )
    unknown = outside_span(evidence, design)
    lower = np.where(unknown, 0.0, np.clip(theta - areas[:, 0], 0.0, theta))
    upper = np.where(unknown, 1.0, np.clip(theta + areas[:, 1], theta, 1.0))
    return lower, upper


def contour_of(
    evidence: JointEvidence, design: FloatArray, theta: FloatArray, *, threads: int = 1
) -> FloatArray:
    """Return the plausibility of each probability `theta` at each query, (m, t)."""
    from dubito.calibration._kernels.joint_logistic_compiled import contours  # noqa: PLC0415 - loads numba

    values, place = np.unique(theta, return_inverse=True)
    queries, log_odds = design @ evidence.whiten, design @ evidence.coef
    out = np.zeros((len(design), len(values)))  # certainty, 0 or 1, has likelihood 0
    inner = (values > 0) & (values < 1)
    moves = _moves(queries)
    out[np.ix_(moves, inner)] = over_blocks(
        lambda z, eta: contours(evidence.likelihood, z, eta, logit(values[inner])),
        (queries[moves], log_odds[moves]),
        threads=threads,
    )
    out[~moves] = values == expit(log_odds[~moves, None])
    out[np.ix_(outside_span(evidence, design), inner)] = 1.0
    return out[:, place]
