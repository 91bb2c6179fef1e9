r"""Lower and upper probabilities of a softmax model of several classifiers, from its likelihood.

The linear predictors, called utilities, are :math:`u_k=\sum_ja_js_{jk}+b_k` with :math:`a\ge0`,
and the negative log-likelihood is convex. Bounds follow from the maximum of a concave functional
over the level sets of the likelihood (`constrained_maxima_compiled`, `joint_softmax_compiled`).
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
#: coefficients in its direction (`undetermined`).
_UNDETERMINED_EIGENVALUE = 1e-14

#: Largest number of undetermined directions for which solution paths are computed; with more,
#: queries that have a component in them get the bounds 0 and 1.
_MAX_UNDETERMINED = 5

#: Largest component of a query in undetermined directions, relative to its length, that may be
#: rounding.
_OUTSIDE = 1e-4

#: Curvature given to undetermined directions, relative to the largest eigenvalue.
_UNDETERMINED_CURVATURE = 1e-8

#: Slopes of standardised scores below this are rounding errors, and set to zero.
_ZERO_SLOPE = 1e-11

#: Slopes below this may be fixed at zero in a projected Newton step.
_NEAR_ZERO = 1e-5

#: Limit on the projected Newton steps of a fit.
_MAX_STEPS = 300

#: Largest gradient per unit of sample weight at which a fit counts as the optimum.
CERTIFIED = 1e-8

#: Limit on the Newton steps whose quadratic model is minimised within the bounds, which are taken
#: where projected steps fail.
_MAX_EXACT_STEPS = 200


class SoftmaxFit(NamedTuple):
    """Coefficients of a softmax model, with a check that they are the optimum.

    At the optimum the gradient of the objective is 0 for coefficients inside their bounds and at
    least 0 for those at a bound; `gradient_norm` is the largest violation of this (of the
    Karush-Kuhn-Tucker conditions) per unit of sample weight.
    """

    coef: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    n_iter: int
    gradient_norm: float


class SoftmaxLikelihood(NamedTuple):
    """Likelihood of a softmax model around its estimate.

    `rows` to `linear` are the arrays of `joint_softmax_likelihood_compiled`.
    """

    coef: FloatArray
    bounds: FloatArray  # (p,): lower bounds of coefficients minus their estimates
    rows: FloatArray  # (p, (K-1)n)
    utilities: FloatArray  # (K-1, n) linear predictors at the estimate; the first class's are 0
    proba: FloatArray  # (K-1, n)
    at_estimate: FloatArray  # (2, n): sample weight, log-partition
    penalty: FloatArray  # (p, p)
    linear: FloatArray  # (p,)
    undetermined: FloatArray  # (p, u): directions that the rows do not determine

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """The argument `likelihood` of the compiled kernels."""
        return self.rows, self.utilities, self.proba, self.at_estimate, self.penalty, self.linear


def fit_softmax_model(
    rows: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    bounded: npt.NDArray[np.bool_],
) -> SoftmaxFit:
    """Return coefficients that minimise the penalised cross-entropy, those `bounded` at least 0.

    `rows` (n, K-1, p) times coefficients are utilities less the first class's; `target` (n, K-1)
    are the targets of all classes but the first; `penalty` is the Hessian of the penalty (p, p), or
    its diagonal (p,). Projected Newton steps (Bertsekas, 1982).
    """
    from dubito.calibration._kernels.joint_softmax_likelihood_compiled import (  # noqa: PLC0415 - loads numba
        excess,
        gradient_and_hessian,
    )

    n, n_others, p = rows.shape
    # Around coefficients 0, with targets in place of probabilities, the excess is the objective.
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
        at_bound = bounded & (coef <= 0.0) & (gradient > 0.0)
        return float(np.abs(np.where(at_bound, 0.0, gradient)).max()) / float(weight.sum())

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
    """Return coefficients and number of Newton steps, each to the minimum of its model in bounds.

    `expand` returns the objective and writes its gradient and Hessian. Slower than projected steps,
    but each step is a descent direction.
    """

    def kkt_violation() -> float:
        at_bound = (coef <= lower) & (gradient > 0.0)
        return float(np.abs(np.where(at_bound, 0.0, gradient)).max()) / total

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
    1995). Eigenvalues of the Hessian below `min_eigenvalue` are raised to it.
    """
    eigenvalues, axes = np.linalg.eigh(hessian)
    root = np.sqrt(np.maximum(eigenvalues, min_eigenvalue))
    factor = root[:, None] * axes.T
    limits = (np.minimum(lower, -1e-300), np.full(len(lower), np.inf))
    return np.asarray(lsq_linear(factor, -(axes.T @ gradient) / root, limits, method="bvls").x)


def _solve_block(block: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return the least-norm solution of a symmetric system: 0 in directions without curvature."""
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
    at_bound = bounded & (fit.coef <= 0.0)
    eigenvalues, axes = np.linalg.eigh(fit.hessian)
    undetermined = axes[:, eigenvalues < _UNDETERMINED_EIGENVALUE * eigenvalues[-1]]
    return SoftmaxLikelihood(
        coef=fit.coef,
        bounds=np.where(bounded, -fit.coef, -np.inf),
        rows=_flat(rows),
        utilities=np.ascontiguousarray(utilities.T),
        proba=np.ascontiguousarray(softmax(full, axis=1)[:, 1:].T),
        at_estimate=np.stack([weight, logsumexp(full, axis=1)]),
        # A slight curvature in undetermined directions makes level sets bounded, so that paths end.
        penalty=np.diag(penalty)
        + _UNDETERMINED_CURVATURE * eigenvalues[-1] * undetermined @ undetermined.T,
        linear=np.where(at_bound, np.maximum(fit.gradient, 0.0), 0.0),
        undetermined=undetermined,
    )


def quadratic_softmax_likelihood(
    likelihood: SoftmaxLikelihood, hessian: FloatArray, ridge: FloatArray
) -> SoftmaxLikelihood:
    """Return the second-order expansion of a likelihood; `hessian` includes the ridge."""
    empty = np.zeros((len(likelihood.utilities), 0))
    return likelihood._replace(
        rows=np.zeros((len(likelihood.coef), 0)),
        utilities=empty,
        proba=empty,
        at_estimate=np.zeros((2, 0)),
        penalty=hessian + likelihood.penalty - np.diag(ridge),
    )


def _hessian_at_estimate(likelihood: SoftmaxLikelihood) -> FloatArray:
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

    p = len(likelihood.coef)
    buffer, hessian = np.empty((3, *likelihood.utilities.shape)), np.empty((p, p))
    excess(likelihood.arrays, np.zeros(p), buffer)
    gradient_and_hessian(likelihood.arrays, np.zeros(p), buffer, np.empty(p), hessian)
    return hessian


def belief_and_plausibility(
    likelihood: SoftmaxLikelihood, queries: FloatArray, *, threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of each class at queries (m, K, p), each (m, K).

    They are the means, over the relative likelihood γ, of the least and greatest probabilities in
    the level set of γ.
    """
    from dubito.calibration._kernels.joint_softmax_compiled import mean_envelope  # noqa: PLC0415 - loads numba

    return within_span(mean_envelope, likelihood, queries, _TOLERANCE, threads)


def within_span(
    envelope: Callable[..., FloatArray],
    likelihood: SoftmaxLikelihood,
    queries: FloatArray,
    setting: float,
    threads: int,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds by a compiled `envelope`, whose last argument is `setting`; each (m, K).

    Queries with a component in undetermined directions, if those are many, get 0 and 1: their
    bounds are that or nearly so, as only slopes are bounded below, and computing the solution paths
    to confirm it would take minutes.
    """
    lower, upper = np.zeros(queries.shape[:2]), np.ones(queries.shape[:2])
    inside = np.ones(len(queries), dtype=bool)
    if likelihood.undetermined.shape[1] > _MAX_UNDETERMINED:
        outside = np.linalg.norm(queries @ likelihood.undetermined, axis=2)
        inside = ~(outside > _OUTSIDE * np.linalg.norm(queries, axis=2)).any(axis=1)
    if inside.any():
        estimate = likelihood.coef, _hessian_at_estimate(likelihood)
        bounds = over_blocks(
            lambda block: envelope(likelihood.arrays, likelihood.bounds, estimate, block, setting),
            (queries[inside],),
            threads=threads,
        )
        lower[inside], upper[inside] = np.moveaxis(bounds, 1, 0)
    return lower, upper
