"""Log-odds and their variances row by row, from the covariance of the logits of each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dubito._numerics.jit import compiled


@compiled()
def write_log_odds(  # noqa: C901 - one pass over a row
    pairs: Any, logits: Any, along: Any, out: Any
) -> None:
    """Write log-odds, variances and derivatives, as `LogitCovariances.log_odds` returns them.

    `pairs` (n, K(K+1)/2) lists the covariance of the logits of each row, its upper triangle.
    """
    value, variance, slope = out
    n_classes = logits.shape[1]
    p, product = np.empty(n_classes), np.empty(n_classes)
    # Of the best class: exponentials of the others, and the gradient of its log-odds.
    other_exp, gradient = np.empty(n_classes), np.empty(n_classes)
    for i in range(len(logits)):
        z = logits[i]
        best = 0
        for k in range(n_classes):
            if z[k] > z[best]:
                best = k
        largest, second = z[best], -np.inf
        for k in range(n_classes):
            if k != best and z[k] > second:
                second = z[k]
        total, rest = 0.0, 0.0
        for k in range(n_classes):
            p[k] = math.exp(z[k] - largest)
            total += p[k]
            # For the best class, sum the others directly, relative to their largest term.
            other_exp[k] = 0.0 if k == best else math.exp(z[k] - second)
            rest += other_exp[k]
        mean, own_slope = 0.0, along[i, best]
        for k in range(n_classes):
            value[i, k] = (z[k] - largest) - math.log(max(total - p[k], 0.5))
            p[k] /= total
            gradient[k] = -other_exp[k] / rest
            mean += p[k] * along[i, k]
            own_slope += gradient[k] * along[i, k]
            product[k] = 0.0
        value[i, best] = (largest - second) - math.log(rest)
        gradient[best] = 1.0
        own_variance, position = 0.0, 0
        for a in range(n_classes):
            v = pairs[i, position]
            variance[i, a] = v
            product[a] += v * p[a]
            own_variance += v * gradient[a] * gradient[a]
            twice = 2.0 * gradient[a]
            for b in range(a + 1, n_classes):
                v = pairs[i, position + b - a]
                product[a] += v * p[b]
                product[b] += v * p[a]
                own_variance += v * twice * gradient[b]
            position += n_classes - a
        quadratic_form = 0.0
        for k in range(n_classes):
            quadratic_form += p[k] * product[k]
        for k in range(n_classes):
            other = max(1.0 - p[k], 0.5)
            variance[i, k] = max(
                (variance[i, k] - 2 * product[k] + quadratic_form) / (other * other), 0.0
            )
            slope[i, k] = (along[i, k] - mean) / other
        variance[i, best] = max(own_variance, 0.0)
        slope[i, best] = own_slope
