"""The means of `log_odds`, entry by entry."""

from __future__ import annotations

import math
from typing import Any

from dubito._kernels.jit import compiled


@compiled()
def rayleigh_means(eta: Any, deviation: Any, rules: Any, out: Any, side: float) -> None:
    """Write the mean of σ(η ± sr) over r with density r·exp(-r²/2); `side` is the sign.

    `rules` are those of `log_odds._rules`; a rule with twice as many panels serves standard errors
    s twice as large.
    """
    points, weights, start = rules
    last = len(start) - 2
    for i in range(len(eta)):
        s = deviation[i]
        rule, reach = 0, 1.0
        while s > reach and rule < last:
            rule, reach = rule + 1, 2.0 * reach
        # Of σ and 1 - σ the one that is small at r = 0 is summed, so that none is lost to rounding.
        sign = 1.0 if eta[i] <= 0.0 else -1.0
        odds = math.exp(sign * eta[i])
        mean = 0.0
        for j in range(start[rule], start[rule + 1]):
            against = math.exp(-sign * side * min(s * points[j], 700.0))
            mean += weights[j] * (odds / (odds + against))
        out[i] = mean if sign > 0.0 else 1.0 - mean
