r"""Lower and upper probabilities of a softmax model of several classifiers, from its likelihood.

Utilities are linear in the coefficients, :math:`u_k=\sum_ja_js_{jk}+b_k` with :math:`a\ge0`, and
the negative log-likelihood is convex. Bounds follow from the largest value of a concave functional
where the likelihood is high (`constrained_maxima_compiled`, `joint_softmax_compiled`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import logsumexp, softmax

from dubito._numerics.threads import over_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import FloatArray

#: Difference of the two rules on a panel; the finer rule, which is used, is far closer.
_TOLERANCE = 1e-8

#: Curvature, relative to the largest, below which a direction counts as not seen by the rows.
_UNSEEN = 1e-14

#: Largest number of unseen directions that are followed; with more, rows that have a part in them
#: get the bounds 0 and 1.
_FEW = 5

#: Part of a query in unseen directions, relative to its length, that is not put down to rounding.
_OUTSIDE = 1e-4

#: The curvature such directions get, relative to the largest.
_LIFT = 1e-8

#: Slopes of standardised scores that are zero but for rounding.
_ZERO_SLOPE = 1e-11

#: Slopes that may be held at zero while the fit is under way.
_SMALL = 1e-5

_MAX_STEPS = 300

#: Gradient for each unit of weight, and fall of the quadratic model, at which a fit is the optimum.
CERTIFIED = 1e-8

#: Steps with exact bounds, for fits that projected steps leave unfinished.
_MAX_EXACT_STEPS = 200


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
    """The likelihood of a softmax model around its estimate, as compiled kernels read it."""

    coef: FloatArray
    bounds: FloatArray  # (p,): how far below the estimate coefficients may go
    rows: FloatArray  # (p, (K-1)n)
    utilities: FloatArray  # (K-1, n) at the estimate, against the first class
    proba: FloatArray  # (K-1, n)
    at: FloatArray  # (2, n): weight, log-partition
    penalty: FloatArray  # (p, p)
    linear: FloatArray  # (p,)
    unseen: FloatArray  # (p, u): directions in which the rows do not differ

    @property
    def likelihood(self) -> tuple[FloatArray, ...]:
        """The arguments `likelihood` of the compiled kernels."""
        return self.rows, self.utilities, self.proba, self.at, self.penalty, self.linear


def fit_softmax_model(
    rows: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
) -> SoftmaxFit:
    r"""Minimise the penalised cross-entropy over coefficients, some of them not negative.

    `rows` (n, K-1, p) are utilities against the first class, linear in the coefficients; `target`
    (n, K-1) the targets of all classes but the first; `penalty` (p,), or (p, p). Projected Newton
    steps (Bertsekas, 1982).
    """
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import fall, slope  # noqa: PLC0415 - loads numba

    n, n_others, p = rows.shape
    # Around coefficients 0 with the targets in place of probabilities, the fall is the objective.
    nothing = np.zeros((n_others, n))
    at = np.stack([weight, np.zeros(n)])
    linear, quadratic = np.zeros(p), penalty if penalty.ndim == 2 else np.diag(penalty)
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
        # Coefficients near 0 whose gradient points below 0 are set to 0; the others are free.
        free = ~(bounded & (coef <= _SMALL) & (gradient > 0.0))
        step = np.where(free, 0.0, -coef)
        step[free] = -_solve_block(hessian[np.ix_(free, free)], gradient[free])
        start, downhill, length, last = coef, gradient.copy(), 1.0, size
        coef = np.maximum(start + step, lower)
        there = expand(coef)
        # Below rounding of the objective only the gradient shows whether a step still helps.
        if -float(downhill @ step) <= 1e-12 * (float(weight.sum()) + abs(here)):
            if breach() >= 0.5 * last:
                coef, here = start, expand(start)
                break
        else:
            # Cut at its bounds a step need not gain; a short one is hardly cut.
            while there > here - 1e-4 * abs(float(downhill @ (coef - start))) and length > 1e-10:
                length *= 0.5
                coef = np.maximum(start + length * step, lower)
                there = expand(coef)
        here, size = there, breach()
    coef = np.where(bounded & (coef < _ZERO_SLOPE), 0.0, coef)
    expand(coef)
    if breach() > CERTIFIED:
        # Where classifiers are nearly copies, steps cut at their bounds may lead nowhere.
        coef, more = _fit_within_bounds(expand, gradient, hessian, lower, float(weight.sum()))
        expand(coef)
        n_iter += more
    return SoftmaxFit(coef, gradient.copy(), hessian.copy(), n_iter + 1, breach())


def _fit_within_bounds(
    expand: Callable[[FloatArray], float],
    gradient: FloatArray,
    hessian: FloatArray,
    lower: FloatArray,
    total: float,
) -> tuple[FloatArray, int]:
    """Minimise by Newton steps that solve the quadratic model within the bounds exactly.

    `expand` returns the objective and writes its gradient and Hessian. Slower than projected steps,
    but each step leads downhill.
    """

    def breach() -> float:
        held = (coef <= lower) & (gradient > 0.0)
        return float(np.abs(np.where(held, 0.0, gradient)).max()) / total

    coef = np.zeros(len(lower))
    here = expand(coef)
    least = 1e-13 * float(np.linalg.eigvalsh(hessian)[-1])
    best, smallest, waited = coef, breach(), 0
    for n_iter in range(1, _MAX_EXACT_STEPS + 1):  # noqa: B007 - reported
        step = _bounded_step(hessian, gradient, lower - coef, least)
        start, downhill, length = coef, float(gradient @ step), 1.0
        rounding = 1e-14 * (total + abs(here))
        while length > 1e-12:
            coef = np.maximum(start + length * step, lower)
            if (there := expand(coef)) <= here + 1e-4 * length * downhill + rounding:
                break
            length *= 0.5
        size = breach()
        # Where the objective falls by no more than rounding, only the gradient counts.
        waited = 0 if there < here - rounding or size < 0.5 * smallest else waited + 1
        if there < here - rounding or size < smallest:
            best, smallest = coef, size
        here = there
        if smallest <= CERTIFIED * 1e-3 or waited > 5:
            break
    return best, n_iter


def _bounded_step(
    hessian: FloatArray, gradient: FloatArray, below: FloatArray, least: float
) -> FloatArray:
    """Return the step to the minimum of the quadratic model, with no component under `below`.

    As a least-squares problem with bounds, whose active set is found exactly (Stark and Parker,
    1995). Curvature below `least` is raised to it.
    """
    size, axes = np.linalg.eigh(hessian)
    root = np.sqrt(np.maximum(size, least))
    factor = root[:, None] * axes.T
    limits = (np.minimum(below, -1e-300), np.full(len(below), np.inf))
    return np.asarray(lsq_linear(factor, -(axes.T @ gradient) / root, limits, method="bvls").x)


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
    """Return the likelihood around a fit."""
    utilities = rows @ fit.coef
    full = np.column_stack([np.zeros(len(rows)), utilities])
    held = bounded & (fit.coef <= 0.0)
    size, axes = np.linalg.eigh(fit.hessian)
    unseen = axes[:, size < _UNSEEN * size[-1]]
    return SoftmaxEvidence(
        coef=fit.coef,
        bounds=np.where(bounded, -fit.coef, -np.inf),
        rows=_flat(rows),
        utilities=np.ascontiguousarray(utilities.T),
        proba=np.ascontiguousarray(softmax(full, axis=1)[:, 1:].T),
        at=np.stack([weight, logsumexp(full, axis=1)]),
        # A slight curvature in unseen directions, so that paths end.
        penalty=np.diag(penalty) + _LIFT * size[-1] * unseen @ unseen.T,
        linear=np.where(held, np.maximum(fit.gradient, 0.0), 0.0),
        unseen=unseen,
    )


def quadratic_evidence(
    evidence: SoftmaxEvidence, hessian: FloatArray, ridge: FloatArray
) -> SoftmaxEvidence:
    """Replace the likelihood by its quadratic at the estimate; `hessian` includes the ridge."""
    n_others = len(evidence.utilities)
    none = np.zeros((n_others, 0))
    return evidence._replace(
        rows=np.zeros((len(evidence.coef), 0)),
        utilities=none,
        proba=none,
        at=np.zeros((2, 0)),
        penalty=hessian + evidence.penalty - np.diag(ridge),
    )


def hessian_at_estimate(evidence: SoftmaxEvidence) -> FloatArray:
    """Return the Hessian (p, p) of the likelihood's fall at the estimate.

    Calling `fall` and `slope` from here also loads them before the kernels that call them. Each
    such kernel holds a copy of its own, optimised differently, and a process uses the copy that it
    loaded first: without a fixed order bounds would differ in the last digit between a process that
    fitted a model and one that loaded it.
    """
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import fall, slope  # noqa: PLC0415 - loads numba

    p = len(evidence.coef)
    work, hessian = np.empty((3, *evidence.utilities.shape)), np.empty((p, p))
    fall(evidence.likelihood, np.zeros(p), work)
    slope(evidence.likelihood, np.zeros(p), work, np.empty(p), hessian)
    return hessian


def lower_and_upper(
    evidence: SoftmaxEvidence, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper probabilities of every class at queries (m, K, p), each (m, K)."""
    from dubito.calibration._kernels.joint_softmax_compiled import envelope  # noqa: PLC0415 - loads numba

    n, n_classes, _ = queries.shape
    lower, upper = np.zeros((n, n_classes)), np.ones((n, n_classes))
    known = ~far_outside(evidence, queries)
    if known.any():
        estimate = evidence.coef, hessian_at_estimate(evidence)
        found = over_blocks(
            lambda part: envelope(evidence.likelihood, evidence.bounds, estimate, part, _TOLERANCE),
            (queries[known],),
            threads=threads,
        )
        lower[known], upper[known] = np.moveaxis(found, 1, 0)
    return lower, upper


def far_outside(evidence: SoftmaxEvidence, queries: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark queries outside the rows' span where this leaves many directions open.

    Anything is possible there, or nearly, for slopes may still not be negative; following the paths
    to find that out would take minutes.
    """
    if evidence.unseen.shape[1] <= _FEW:
        return np.zeros(len(queries), dtype=bool)
    off = np.linalg.norm(queries @ evidence.unseen, axis=2)
    return np.asarray((off > _OUTSIDE * np.linalg.norm(queries, axis=2)).any(axis=1))
