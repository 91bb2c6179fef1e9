"""Log-odds and their variances row by row, from covariances that are listed in full."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dubito._numerics.jit import compiled


@compiled()
def listed_log_odds(  # noqa: C901 - one pass over a row
    pairs: Any, logits: Any, along: Any, out: Any
) -> None:
    """Write what `softmax_covariance.log_odds` returns: values, variances, derivatives.

    `pairs` (n, K(K+1)/2) lists the covariance of the logits of each row, its upper triangle.
    """
    value, variance, slope = out
    n_classes = logits.shape[1]
    p, gradient, product = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for i in range(len(logits)):
        z = logits[i]
        best = 0
        for k in range(n_classes):
            if z[k] > z[best]:
                best = k
        top, second = z[best], -np.inf
        for k in range(n_classes):
            if k != best and z[k] > second:
                second = z[k]
        total, rest = 0.0, 0.0
        for k in range(n_classes):
            p[k] = math.exp(z[k] - top)
            total += p[k]
            # Of the best class the rest is summed apart, from its own largest term.
            gradient[k] = 0.0 if k == best else math.exp(z[k] - second)
            rest += gradient[k]
        mean, own_slope = 0.0, along[i, best]
        for k in range(n_classes):
            value[i, k] = (z[k] - top) - math.log(max(total - p[k], 0.5))
            p[k] /= total
            gradient[k] /= -rest
            mean += p[k] * along[i, k]
            own_slope += gradient[k] * along[i, k]
            product[k] = 0.0
        value[i, best] = (top - second) - math.log(rest)
        gradient[best] = 1.0
        own, place = 0.0, 0
        for a in range(n_classes):
            v = pairs[i, place]
            variance[i, a] = v
            product[a] += v * p[a]
            own += v * gradient[a] * gradient[a]
            twice = 2.0 * gradient[a]
            for b in range(a + 1, n_classes):
                v = pairs[i, place + b - a]
                product[a] += v * p[b]
                product[b] += v * p[a]
                own += v * twice * gradient[b]
            place += n_classes - a
        spread = 0.0
        for k in range(n_classes):
            spread += p[k] * product[k]
        for k in range(n_classes):
            other = max(1.0 - p[k], 0.5)
            variance[i, k] = max((variance[i, k] - 2 * product[k] + spread) / (other * other), 0.0)
            slope[i, k] = (along[i, k] - mean) / other
        variance[i, best] = max(own, 0.0)
        slope[i, best] = own_slope
