"""Logistic fits of a few coefficients: Newton's method, sign constraints, choice of a ridge."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from dubito._numerics.logistic_curvature import logistic_curvature, logistic_hessian

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dubito._typing import BoolArray, FloatArray

#: Scores and log-odds are clipped to ± this: sums and differences of a few of them stay finite.
LARGEST = 1e300

#: Limit on the Newton steps of a fit; ordinary data take five to ten.
_MAX_STEPS = 300

#: Strengths from which a ridge is chosen, for standardised scores. The weakest is a normal prior of
#: standard deviation 4.5 on the standardised slope. Few rows are often separable, and
#: leave-one-out then always chooses the weakest, so it is set by hand: on 20 rows half and double
#: of it do as well, a hundredth does badly.
RIDGES = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0, 50.0)


class LogisticFit(NamedTuple):
    """Coefficients of a logistic fit, with a check that they are the optimum.

    `free` marks the coefficients that are not at their bound; `gradient_norm` is the largest
    component of the projected gradient divided by the total weight, 0 at the optimum.
    """

    coef: FloatArray
    free: BoolArray
    objective: float
    n_iter: int
    gradient_norm: float


def standardisation(score: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of scores, deviation 0 if they are constant.

    Scores that differ by rounding only count as constant: their slope would be noise.
    """
    largest = max(float(np.abs(score).max()), 1e-300)
    small = score / largest  # squares of huge scores would overflow
    centre = float(np.average(small, weights=weight))
    spread = float(np.sqrt(np.average((small - centre) ** 2, weights=weight)))
    if float(np.ptp(small)) <= 1e-13:
        spread = 0.0
    return centre * largest, spread * largest


def standardised(score: FloatArray, centre: float, scale: float) -> FloatArray:
    """Return scores in units of `scale` from `centre`; zeros where the scale is 0.

    Scores that would overflow are clipped to ±`LARGEST`.
    """
    if scale <= 0:
        return np.zeros_like(score)
    with np.errstate(over="ignore"):
        return np.clip((score - centre) / scale, -LARGEST, LARGEST)


def fit_logistic(
    design: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    prior: FloatArray,
    *,
    start: FloatArray | None = None,
    nonnegative: tuple[int, ...] = (),
) -> LogisticFit:
    r"""Return the least penalised cross-entropy fit, `nonnegative` coefficients at or above 0.

    .. math:: -\sum_iw_i[t_i\log p_i+(1-t_i)\log(1-p_i)]
        +\tfrac12\sum_j\lambda_j(\beta_j-\beta^0_j)^2,\quad p_i=\sigma(x_i^\top\beta).

    The optimum of a convex function over an orthant is the optimum of one of its faces: where the
    unconstrained optimum lies outside, the faces are fitted in turn and the best fit inside is
    returned.
    """
    problem = _Problem(design, target, weight, penalty, prior)
    best: LogisticFit | None = None
    for free in _faces(design.shape[1], nonnegative):
        fit = _newton(problem, free, np.zeros(len(prior)) if start is None else start * free)
        inside = all(fit.coef[j] >= 0 for j in nonnegative)
        if inside and free.all():
            return fit
        if inside and (best is None or fit.objective < best.objective):
            best = fit
    assert best is not None  # noqa: S101 - the smallest face has every bounded coefficient at 0
    return best


def _faces(size: int, nonnegative: tuple[int, ...]) -> Iterator[BoolArray]:
    """Yield masks of the free coefficients, one for each face, all free first."""
    for count in range(len(nonnegative) + 1):
        for bound in combinations(nonnegative, count):
            free = np.ones(size, dtype=bool)
            free[list(bound)] = False
            yield free


class _Problem(NamedTuple):
    design: FloatArray
    target: FloatArray
    weight: FloatArray
    penalty: FloatArray
    prior: FloatArray


class _Expansion(NamedTuple):
    """The objective at a point, up to second order."""

    value: float
    gradient: FloatArray
    hessian: FloatArray


def _expand(problem: _Problem, coef: FloatArray) -> _Expansion:
    """Return the second-order expansion of the objective at given coefficients."""
    design, target, weight, penalty, prior = problem
    eta = design @ coef
    small = np.exp(-np.abs(eta))
    p = np.where(eta >= 0, 1.0, small) / (1 + small)
    loss = np.maximum(eta, 0.0) + np.log1p(small) - target * eta
    deviation = coef - prior
    return _Expansion(
        float(weight @ loss) + 0.5 * float(penalty @ deviation**2),
        design.T @ (weight * (p - target)) + penalty * deviation,
        logistic_hessian(design, eta, weight, penalty),
    )


def _newton(problem: _Problem, free: BoolArray, coef: FloatArray) -> LogisticFit:
    """Return the fit of the free coefficients by damped Newton steps; the others stay at zero."""
    total = float(problem.weight.sum())
    current = _expand(problem, coef)
    gradient_norm = float(np.abs(current.gradient[free]).max())
    for n_iter in range(_MAX_STEPS):  # noqa: B007 - reported
        gradient = current.gradient * free
        step = -(_inverse_of_block(current.hessian, free) @ gradient) * free  # exactly 0 at bounds
        proposed = _expand(problem, coef + step)
        # The Newton decrement is twice the decrease still possible. Where it is below the rounding
        # error of the objective, a step is judged by the gradient.
        if -float(gradient @ step) <= 1e-12 * (total + abs(current.value)):
            if float(np.abs(proposed.gradient[free]).max()) >= 0.5 * gradient_norm:
                break
        else:
            while proposed.value > current.value and np.abs(step).max() > 1e-12:
                step = step / 2
                proposed = _expand(problem, coef + step)
        coef, current = coef + step, proposed
        gradient_norm = float(np.abs(current.gradient[free]).max())
    return LogisticFit(coef, free, current.value, n_iter, gradient_norm / total)


def _inverse_of_block(hessian: FloatArray, free: BoolArray) -> FloatArray:
    """Return the pseudo-inverse of the block of free coefficients, zero elsewhere.

    It is 0 in directions without information, such as the slope of constant scores.
    """
    block = hessian * np.outer(free, free)
    return np.asarray(np.linalg.pinv(block, rcond=1e-14, hermitian=True), dtype=np.float64)


def leave_one_out_loss(
    design: FloatArray,
    event: BoolArray,
    weight: FloatArray,
    penalty: FloatArray,
    fit: LogisticFit,
) -> float:
    r"""Return the sum of the rows' log losses, each under the fit without it, by one Newton step.

    With leverage :math:`h_i=x_i^\top H^{-1}x_i` the log-odds without row i are
    :math:`\eta_i+h_i(p_i-y_i)/(1-p_i(1-p_i)h_i)`. A row of sample weight w > 1 stands for w rows,
    of which one is left out.
    """
    eta = design @ fit.coef
    p = expit(eta)
    hessian = logistic_hessian(design, eta, weight, penalty)
    leverage = np.sum((design @ _inverse_of_block(hessian, fit.free)) * design, axis=1)
    leverage *= np.minimum(weight, 1.0)
    remaining = np.maximum(1 - logistic_curvature(eta, leverage), 1e-12)
    without = eta + leverage * (p - event) / remaining
    return float(-(weight @ log_expit(np.where(event, without, -without))))


def ridge_by_leave_one_out(
    fit_with: Callable[[float, FloatArray | None], LogisticFit],
    loss_of: Callable[[float, LogisticFit], float],
) -> tuple[float, LogisticFit]:
    """Return the ridge of `RIDGES` with the least loss, in a tie the larger, and its fit.

    `fit_with(ridge, start)` returns the fit begun at the coefficients `start` of the larger ridge
    before it (None for the largest), `loss_of(ridge, fit)` its leave-one-out loss.
    """
    best, least, start = None, np.inf, None
    for ridge in reversed(RIDGES):
        fit = fit_with(ridge, start)
        start = fit.coef
        loss = loss_of(ridge, fit)
        if best is None or loss < least:
            best, least = (ridge, fit), loss
    assert best is not None  # noqa: S101 - there are values to choose from
    return best
