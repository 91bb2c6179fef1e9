r"""Excess D of the negative log-likelihood of a softmax model over its minimum, and derivatives.

With :math:`\delta_{ik}=x_{ik}^\top\beta` the change of row i's utility (linear predictor) of class
k less that of the first class, the excess is a sum of Bregman divergences, a penalty and a linear
term,

.. math:: D(\beta)=\sum_iw_i[A(\hat v_i+\delta_i)-A(\hat v_i)-\hat p_i^\top\delta_i]
    +\tfrac12\beta^\top P\beta+\ell^\top\beta,\qquad A(v)=\log\Bigl(1+\sum_ke^{v_k}\Bigr).

It does not depend on the targets; :math:`\ell\ge0` is the gradient at the estimate of those
coefficients that are at their bounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, combine_rows, dot, exp_in_place, times

if TYPE_CHECKING:
    from dubito._typing import FloatArray

    #: x (p, (K-1)n), classes before rows; utilities v and probabilities at the estimate, each
    #: (K-1, n); sample weight w and log-partition A (2, n); penalty P (p, p); linear term ℓ (p,).
    Likelihood: TypeAlias = tuple[
        FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray
    ]


@compiled(fastmath=SIMD_FLAGS)
def _subtract_largest(utilities: FloatArray, largest: FloatArray, total: FloatArray) -> None:
    """Subtract the largest utility of each row; write the first class's, 0 before, to `total`."""
    n_others, n = utilities.shape
    largest[:] = 0.0
    for k in range(n_others):
        for i in range(n):
            value = utilities[k, i]
            largest[i] = value if value > largest[i] else largest[i]  # noqa: FURB136 - for vector lanes
    for k in range(n_others):
        for i in range(n):
            utilities[k, i] -= largest[i]
    for i in range(n):
        total[i] = -largest[i]


@compiled(fastmath=SIMD_FLAGS)
def excess(likelihood: Likelihood, beta: FloatArray, buffer: FloatArray) -> float:
    """Return D(β), and write the weighted probabilities (K-1, n) to buffer[0].

    `buffer` is (3, K-1, n).
    """
    rows, utilities, proba, at_estimate, penalty, linear = likelihood
    n_others, n = utilities.shape
    weighted_proba, delta = buffer[0], buffer[1]
    combine_rows(rows, beta, delta.reshape(n_others * n))
    largest, total, power = buffer[2, 0], np.empty(n), np.empty(n)
    value = 0.0
    for k in range(n_others):
        for i in range(n):
            weighted_proba[k, i] = utilities[k, i] + delta[k, i]
    _subtract_largest(weighted_proba, largest, total)
    bits = power.view(np.int64)
    exp_in_place(total, power, bits)
    for k in range(n_others):
        exp_in_place(weighted_proba[k], power, bits)
        for i in range(n):
            total[i] += weighted_proba[k, i]
            value -= at_estimate[0, i] * proba[k, i] * delta[k, i]
    for i in range(n):
        value += at_estimate[0, i] * (largest[i] + math.log(total[i]) - at_estimate[1, i])
        total[i] = at_estimate[0, i] / total[i]
    for k in range(n_others):
        for i in range(n):
            weighted_proba[k, i] *= total[i]
    for a in range(len(beta)):
        value += beta[a] * (0.5 * dot(penalty[a], beta) + linear[a])
    return value


@compiled(fastmath=SIMD_FLAGS)
def gradient_and_hessian(
    likelihood: Likelihood,
    beta: FloatArray,
    buffer: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Write gradient and Hessian of D, from the weighted probabilities that `excess` wrote."""
    rows, _, proba, at_estimate, penalty, linear = likelihood
    n_others, n = proba.shape
    p = len(beta)
    weighted_proba, residual = buffer[0], buffer[1]
    for k in range(n_others):
        for i in range(n):
            residual[k, i] = weighted_proba[k, i] - at_estimate[0, i] * proba[k, i]
    flat, flat_residual = weighted_proba.reshape(n_others * n), residual.reshape(n_others * n)
    means = np.zeros((p, n))
    for a in range(p):
        gradient[a] = dot(rows[a], flat_residual) + dot(penalty[a], beta) + linear[a]
    weighted, weighted_mean = flat_residual, buffer[2, 0]
    for a in range(p):
        times(rows[a], flat, weighted)
        for k in range(n_others):
            for i in range(n):
                means[a, i] += residual[k, i]
        for i in range(n):
            weighted_mean[i] = means[a, i] / at_estimate[0, i]
        for b in range(a + 1):
            covariance = dot(weighted, rows[b]) - dot(weighted_mean, means[b])
            hessian[a, b] = hessian[b, a] = covariance + penalty[a, b]
