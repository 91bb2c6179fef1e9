r"""Lower and upper probabilities of a softmax model of several classifiers, from its likelihood.

Utilities are linear in the coefficients, :math:`u_k=\sum_ja_js_{jk}+b_k` with :math:`a\ge0`, and
the negative log-likelihood is convex. What is asked of it is the most that a concave functional
reaches where the likelihood is high; see `level_paths_compiled` and `level_means_compiled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from dubito._kernels.threads import over_blocks

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.intp]

#: Difference of the two rules on a panel; the finer rule, which is used, is far closer.
_TOLERANCE = 1e-8

#: Curvature, relative to the largest, below which a direction counts as not seen by the rows.
_UNSEEN = 1e-9

#: The curvature such directions get, relative to the largest.
_LIFT = 1e-6

#: Slopes of standardised scores that are zero but for rounding.
_NOTHING = 1e-11

_MAX_STEPS = 300


class SoftmaxFit(NamedTuple):
    """Coefficients, with the certificate that they are the optimum.

    `gradient` is that of the objective: zero where a coefficient is free, not negative where it is
    at its bound; `gradient_norm` is the largest breach of this for each unit of weight.
    """

    coef: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    n_iter: int
    gradient_norm: float


class SoftmaxEvidence(NamedTuple):
    """What the likelihood of a softmax model knows around its estimate."""

    coef: FloatArray
    bounds: FloatArray  # (p,): how far below the estimate coefficients may go
    rows: FloatArray  # (p, (K-1)n)
    utilities: FloatArray  # (K-1, n) at the estimate, against the first class
    proba: FloatArray  # (K-1, n)
    at: FloatArray  # (2, n): weight, log-partition
    penalty: FloatArray  # (p, p)
    pull: FloatArray  # (p,)

    @property
    def likelihood(self) -> tuple[FloatArray, ...]:
        """What the compiled kernels take."""
        return self.rows, self.utilities, self.proba, self.at, self.penalty, self.pull


def fit_softmax_model(
    rows: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
) -> SoftmaxFit:
    r"""Minimise the penalised cross-entropy over coefficients, some of them not negative.

    `rows` (n, K-1, p) are utilities against the first class, linear in the coefficients; `target`
    (n, K-1) the targets of all classes but the first. Projected Newton steps (Bertsekas, 1982).
    """
    from dubito._kernels.joint_softmax_compiled import fall, slope  # noqa: PLC0415 - loads numba

    n, n_others, p = rows.shape
    # Around coefficients 0 with the targets in place of probabilities, the fall is the objective.
    nothing = np.zeros((n_others, n))
    at = np.stack([weight, np.zeros(n)])
    linear, quadratic = np.zeros(p), np.diag(penalty)
    likelihood = _flat(rows), nothing, np.ascontiguousarray(target.T), at, quadratic, linear
    work = np.empty((3, n_others, n))
    gradient, hessian = np.empty(p), np.empty((p, p))

    def expand(coef: FloatArray) -> float:
        value = float(fall(likelihood, coef, work))
        slope(likelihood, coef, work, gradient, hessian)
        return value

    def breach() -> float:
        held = bounded & (coef <= 0.0) & (gradient > 0.0)
        return float(np.abs(np.where(held, 0.0, gradient)).max()) / float(weight.sum())

    lower = np.where(bounded, 0.0, -np.inf)
    coef = np.zeros(p)
    here = expand(coef)
    size = breach()
    for n_iter in range(_MAX_STEPS):  # noqa: B007 - reported
        free = ~(bounded & (coef <= 0.0) & (gradient > 0.0))
        step = np.zeros(p)
        step[free] = -_solve_block(hessian[np.ix_(free, free)], gradient[free])
        start, downhill, length, last = coef, gradient.copy(), 1.0, size
        coef = np.maximum(start + step, lower)
        there = expand(coef)
        gain = -float(downhill @ (coef - start))
        # Below rounding of the objective only the gradient can tell whether a step still helps.
        if gain <= 1e-12 * (float(weight.sum()) + abs(here)):
            if breach() >= 0.5 * last:
                coef, here = start, expand(start)
                break
        else:
            while there > here - 1e-4 * gain and length > 1e-10:
                length *= 0.5
                coef = np.maximum(start + length * step, lower)
                there = expand(coef)
                gain = -float(downhill @ (coef - start))
        here, size = there, breach()
    coef = np.where(bounded & (coef < _NOTHING), 0.0, coef)
    expand(coef)
    return SoftmaxFit(coef, gradient.copy(), hessian.copy(), n_iter + 1, breach())


def _solve_block(block: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve a system whose directions without curvature, if any, are left alone."""
    if not len(rhs):
        return rhs
    return np.asarray(np.linalg.pinv(block, rcond=1e-13, hermitian=True) @ rhs)


def _flat(rows: FloatArray) -> FloatArray:
    """Return rows (n, K-1, p) as (p, (K-1)n), as compiled kernels read them."""
    n, n_others, p = rows.shape
    return np.ascontiguousarray(rows.transpose(2, 1, 0)).reshape(p, n_others * n)


def softmax_evidence(
    rows: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
    fit: SoftmaxFit,
) -> SoftmaxEvidence:
    """Gather the likelihood around a fit."""
    utilities = rows @ fit.coef
    full = np.column_stack([np.zeros(len(rows)), utilities])
    held = bounded & (fit.coef <= 0.0)
    return SoftmaxEvidence(
        coef=fit.coef,
        bounds=np.where(bounded, -fit.coef, -np.inf),
        rows=_flat(rows),
        utilities=np.ascontiguousarray(utilities.T),
        proba=np.ascontiguousarray(softmax(full, axis=1)[:, 1:].T),
        at=np.stack([weight, logsumexp(full, axis=1)]),
        penalty=np.diag(penalty) + _lift(fit.hessian),
        pull=np.where(held, np.maximum(fit.gradient, 0.0), 0.0),
    )


def _lift(hessian: FloatArray) -> FloatArray:
    """Return a slight curvature in the directions the rows do not see: paths need an end."""
    size, axes = np.linalg.eigh(hessian)
    unseen = axes[:, size < _UNSEEN * size[-1]]
    return np.asarray(_LIFT * size[-1] * unseen @ unseen.T)


def quadratic_evidence(evidence: SoftmaxEvidence, hessian: FloatArray) -> SoftmaxEvidence:
    """Replace the likelihood by its quadratic at the estimate."""
    n_others = len(evidence.utilities)
    none = np.zeros((n_others, 0))
    return evidence._replace(
        rows=np.zeros((len(evidence.coef), 0)),
        utilities=none,
        proba=none,
        at=np.zeros((2, 0)),
        penalty=hessian + _lift(hessian),
    )


def lower_and_upper(
    evidence: SoftmaxEvidence, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper probabilities of every class at queries (m, K, p), each (m, K)."""
    from dubito._kernels.level_means_compiled import envelope  # noqa: PLC0415 - loads numba

    def block(part: FloatArray) -> FloatArray:
        return envelope(evidence.likelihood, evidence.bounds, part, evidence.coef, _TOLERANCE)

    lower, upper = np.moveaxis(over_blocks(block, (queries,), threads=threads), 1, 0)
    return lower, upper
