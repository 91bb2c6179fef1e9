r"""Lower and upper probabilities of a softmax model of several classifiers, from its likelihood.

Utilities are linear in the coefficients, :math:`u_k=\sum_ja_js_{jk}+b_k` with :math:`a\ge0`, and
the negative log-likelihood is convex. Bounds follow from the maximum of a concave functional over
the level sets of the likelihood (`constrained_maxima_compiled`, `joint_softmax_compiled`).
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

#: Largest difference of the Gauss and Kronrod rules on a panel. The Kronrod value, which is used,
#: is far more accurate than this difference.
_TOLERANCE = 1e-8

#: Eigenvalue of the Hessian, relative to the largest, below which the rows do not determine the
#: coefficients in its direction (`unseen`).
_UNSEEN = 1e-14

#: Largest number of unseen directions for which paths are computed; with more, queries that have a
#: component in them get the bounds 0 and 1.
_MAX_UNSEEN = 5

#: Component of a query in unseen directions, relative to its length, that exceeds rounding.
_OUTSIDE = 1e-4

#: Curvature given to unseen directions, relative to the largest eigenvalue.
_UNSEEN_CURVATURE = 1e-8

#: Slopes of standardised scores below this are rounding errors, and set to zero.
_ZERO_SLOPE = 1e-11

#: Slopes below this may be fixed at zero in a projected Newton step.
_NEAR_ZERO = 1e-5

_MAX_STEPS = 300

#: Largest gradient per unit of sample weight at which a fit counts as the optimum.
CERTIFIED = 1e-8

#: Newton steps with exact bounds, for fits that projected steps do not finish.
_MAX_EXACT_STEPS = 200


class SoftmaxFit(NamedTuple):
    """Coefficients of a softmax model, with the certificate that they are the optimum.

    `gradient` is that of the objective: zero where a coefficient is free, not negative where it is
    at its bound; `gradient_norm` is the largest violation of this per unit of sample weight.
    """

    coef: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    n_iter: int
    gradient_norm: float


class SoftmaxLikelihood(NamedTuple):
    """The likelihood of a softmax model around its estimate, as the compiled kernels take it."""

    coef: FloatArray
    bounds: FloatArray  # (p,): lower bounds of coefficients minus their estimates
    rows: FloatArray  # (p, (K-1)n)
    utilities: FloatArray  # (K-1, n) at the estimate, against the first class
    proba: FloatArray  # (K-1, n)
    at_estimate: FloatArray  # (2, n): sample weight, log-partition
    penalty: FloatArray  # (p, p)
    linear: FloatArray  # (p,)
    unseen: FloatArray  # (p, u): directions that the rows do not determine

    @property
    def likelihood(self) -> tuple[FloatArray, ...]:
        """The arguments `likelihood` of the compiled kernels."""
        return self.rows, self.utilities, self.proba, self.at_estimate, self.penalty, self.linear


def fit_softmax_model(
    rows: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
) -> SoftmaxFit:
    r"""Return the coefficients that minimise the penalised cross-entropy, some at least 0.

    `rows` (n, K-1, p) are utilities against the first class, linear in the coefficients; `target`
    (n, K-1) the targets of all classes but the first; `penalty` (p,), or (p, p). Projected Newton
    steps (Bertsekas, 1982).
    """
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import (  # noqa: PLC0415 - loads numba
        excess,
        gradient_and_hessian,
    )

    n, n_others, p = rows.shape
    # Around coefficients 0 with targets in place of probabilities, the excess is the objective.
    zeros = np.zeros((n_others, n))
    at_estimate = np.stack([weight, np.zeros(n)])
    linear, quadratic = np.zeros(p), penalty if penalty.ndim == 2 else np.diag(penalty)
    likelihood = _flat(rows), zeros, np.ascontiguousarray(target.T), at_estimate, quadratic, linear
    buffer = np.empty((3, n_others, n))
    gradient, hessian = np.empty(p), np.empty((p, p))

    def expand(coef: FloatArray) -> float:
        value = float(excess(likelihood, coef, buffer))
        gradient_and_hessian(likelihood, coef, buffer, gradient, hessian)
        return value

    def kkt_violation() -> float:
        held = bounded & (coef <= 0.0) & (gradient > 0.0)
        return float(np.abs(np.where(held, 0.0, gradient)).max()) / float(weight.sum())

    lower = np.where(bounded, 0.0, -np.inf)
    coef = np.zeros(p)
    objective = expand(coef)
    violation = kkt_violation()
    for n_iter in range(_MAX_STEPS):  # noqa: B007 - reported
        # Coefficients near 0 whose gradient points below 0 are set to 0; the others are free.
        free = ~(bounded & (coef <= _NEAR_ZERO) & (gradient > 0.0))
        step = np.where(free, 0.0, -coef)
        step[free] = -_solve_block(hessian[np.ix_(free, free)], gradient[free])
        start, start_gradient, length, last_violation = coef, gradient.copy(), 1.0, violation
        coef = np.maximum(start + step, lower)
        new_objective = expand(coef)
        # Where the decrease is below rounding of the objective, only the gradient shows progress.
        if -float(start_gradient @ step) <= 1e-12 * (float(weight.sum()) + abs(objective)):
            if kkt_violation() >= 0.5 * last_violation:
                coef, objective = start, expand(start)
                break
        else:
            # A step projected onto the bounds need not decrease the objective; a short one does.
            while (
                new_objective > objective - 1e-4 * abs(float(start_gradient @ (coef - start)))
                and length > 1e-10
            ):
                length *= 0.5
                coef = np.maximum(start + length * step, lower)
                new_objective = expand(coef)
        objective, violation = new_objective, kkt_violation()
    coef = np.where(bounded & (coef < _ZERO_SLOPE), 0.0, coef)
    expand(coef)
    if kkt_violation() > CERTIFIED:
        # With nearly identical classifiers, projected steps may fail to decrease the objective.
        coef, extra_iter = _fit_within_bounds(expand, gradient, hessian, lower, float(weight.sum()))
        expand(coef)
        n_iter += extra_iter
    return SoftmaxFit(coef, gradient.copy(), hessian.copy(), n_iter + 1, kkt_violation())


def _fit_within_bounds(
    expand: Callable[[FloatArray], float],
    gradient: FloatArray,
    hessian: FloatArray,
    lower: FloatArray,
    total: float,
) -> tuple[FloatArray, int]:
    """Return coefficients and steps of Newton's method with each quadratic model solved in bounds.

    `expand` returns the objective and writes its gradient and Hessian. Slower than projected steps,
    but each step is a descent direction.
    """

    def kkt_violation() -> float:
        held = (coef <= lower) & (gradient > 0.0)
        return float(np.abs(np.where(held, 0.0, gradient)).max()) / total

    coef = np.zeros(len(lower))
    value = expand(coef)
    min_eigenvalue = 1e-13 * float(np.linalg.eigvalsh(hessian)[-1])
    best, least_violation, n_stalled = coef, kkt_violation(), 0
    for n_iter in range(1, _MAX_EXACT_STEPS + 1):  # noqa: B007 - reported
        step = _bounded_step(hessian, gradient, lower - coef, min_eigenvalue)
        start, directional_derivative, length = coef, float(gradient @ step), 1.0
        rounding = 1e-14 * (total + abs(value))
        while length > 1e-12:
            coef = np.maximum(start + length * step, lower)
            if (
                new_value := expand(coef)
            ) <= value + 1e-4 * length * directional_derivative + rounding:
                break
            length *= 0.5
        violation = kkt_violation()
        # Where the decrease is below rounding of the objective, only the gradient shows progress.
        n_stalled = (
            0
            if new_value < value - rounding or violation < 0.5 * least_violation
            else n_stalled + 1
        )
        if new_value < value - rounding or violation < least_violation:
            best, least_violation = coef, violation
        value = new_value
        if least_violation <= CERTIFIED * 1e-3 or n_stalled > 5:
            break
    return best, n_iter


def _bounded_step(
    hessian: FloatArray, gradient: FloatArray, lower: FloatArray, min_eigenvalue: float
) -> FloatArray:
    """Return the step to the minimum of the quadratic model, with no component below `lower`.

    As a least-squares problem with bounds, whose active set is found exactly (Stark and Parker,
    1995). Curvature below `least` is raised to it.
    """
    eigenvalues, axes = np.linalg.eigh(hessian)
    root = np.sqrt(np.maximum(eigenvalues, min_eigenvalue))
    factor = root[:, None] * axes.T
    limits = (np.minimum(lower, -1e-300), np.full(len(lower), np.inf))
    return np.asarray(lsq_linear(factor, -(axes.T @ gradient) / root, limits, method="bvls").x)


def _solve_block(block: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return the least-norm solution: zero in directions without curvature."""
    if not len(rhs):
        return rhs
    return np.asarray(np.linalg.pinv(block, rcond=1e-13, hermitian=True) @ rhs)


def _flat(rows: FloatArray) -> FloatArray:
    """Return rows (n, K-1, p) as (p, (K-1)n), as the compiled kernels take them."""
    n, n_others, p = rows.shape
    return np.ascontiguousarray(rows.transpose(2, 1, 0)).reshape(p, n_others * n)


def softmax_likelihood(
    rows: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
    fit: SoftmaxFit,
) -> SoftmaxLikelihood:
    """Return the likelihood of a softmax model around a fit."""
    utilities = rows @ fit.coef
    full = np.column_stack([np.zeros(len(rows)), utilities])
    held = bounded & (fit.coef <= 0.0)
    eigenvalues, axes = np.linalg.eigh(fit.hessian)
    unseen = axes[:, eigenvalues < _UNSEEN * eigenvalues[-1]]
    return SoftmaxLikelihood(
        coef=fit.coef,
        bounds=np.where(bounded, -fit.coef, -np.inf),
        rows=_flat(rows),
        utilities=np.ascontiguousarray(utilities.T),
        proba=np.ascontiguousarray(softmax(full, axis=1)[:, 1:].T),
        at_estimate=np.stack([weight, logsumexp(full, axis=1)]),
        # A slight curvature in unseen directions makes level sets bounded, so that paths end.
        penalty=np.diag(penalty) + _UNSEEN_CURVATURE * eigenvalues[-1] * unseen @ unseen.T,
        linear=np.where(held, np.maximum(fit.gradient, 0.0), 0.0),
        unseen=unseen,
    )


def quadratic_softmax_likelihood(
    evidence: SoftmaxLikelihood, hessian: FloatArray, ridge: FloatArray
) -> SoftmaxLikelihood:
    """Return the second-order expansion of a likelihood; `hessian` includes the ridge."""
    n_others = len(evidence.utilities)
    empty = np.zeros((n_others, 0))
    return evidence._replace(
        rows=np.zeros((len(evidence.coef), 0)),
        utilities=empty,
        proba=empty,
        at_estimate=np.zeros((2, 0)),
        penalty=hessian + evidence.penalty - np.diag(ridge),
    )


def hessian_at_estimate(evidence: SoftmaxLikelihood) -> FloatArray:
    """Return the Hessian (p, p) of the negative log-likelihood at the estimate.

    Calling `excess` and `gradient_and_hessian` from here also loads them before the kernels that
    call them. Each such kernel has its own copy, optimised differently, and a process uses the copy
    that it loaded first: without a fixed order bounds would differ in the last digit between a
    process that fitted a model and one that loaded it.
    """
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import (  # noqa: PLC0415 - loads numba
        excess,
        gradient_and_hessian,
    )

    p = len(evidence.coef)
    buffer, hessian = np.empty((3, *evidence.utilities.shape)), np.empty((p, p))
    excess(evidence.likelihood, np.zeros(p), buffer)
    gradient_and_hessian(evidence.likelihood, np.zeros(p), buffer, np.empty(p), hessian)
    return hessian


def lower_and_upper(
    evidence: SoftmaxLikelihood, queries: FloatArray, *, threads: int = 1
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


def far_outside(evidence: SoftmaxLikelihood, queries: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which queries have a component in unseen directions, if those are many.

    Their bounds are 0 and 1, or nearly so: only slopes are bounded below. Computing the paths to
    confirm it would take minutes.
    """
    if evidence.unseen.shape[1] <= _MAX_UNSEEN:
        return np.zeros(len(queries), dtype=bool)
    unseen_part = np.linalg.norm(queries @ evidence.unseen, axis=2)
    return np.asarray((unseen_part > _OUTSIDE * np.linalg.norm(queries, axis=2)).any(axis=1))
