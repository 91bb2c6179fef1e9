"""Compiled version of the means of `log_odds_bounds`, entry by entry."""

from __future__ import annotations

import math
from typing import Any

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_buffers, exp_in_place


@compiled(fastmath=SIMD_FLAGS)
def _mean_towards(odds: Any, weights: Any, exp_neg: Any) -> Any:
    """Return the mean of σ(sr - |η|), with `odds` exp(-|η|) and `exp_neg` exp(-sr)."""
    total = 0.0
    for j in range(len(exp_neg)):
        total += weights[j] * (odds / (odds + exp_neg[j]))
    return total


@compiled(fastmath=SIMD_FLAGS)
def _mean_away(odds: Any, weights: Any, exp_neg: Any) -> Any:
    """Return the mean of σ(-sr - |η|)."""
    total = 0.0
    for j in range(len(exp_neg)):
        product = odds * exp_neg[j]
        total += weights[j] * (product / (1.0 + product))
    return total


@compiled()
def rayleigh_means(eta: Any, deviation: Any, rules: Any, out: Any, side: float) -> None:
    """Write the mean of σ(η ± sr) over r with density r·exp(-r²/2); `side` is the sign.

    `rules` are those of `log_odds_bounds._rules`: the first whose limit is at least s is used.
    """
    points, weights, start, limits = rules
    last = len(limits) - 1
    longest = 0
    for rule in range(len(limits)):
        longest = max(longest, start[rule + 1] - start[rule])
    exp_neg, power, bits = exp_buffers(longest)
    for i in range(len(eta)):
        s = deviation[i]
        rule = 0
        while s > limits[rule] and rule < last:
            rule += 1
        first, count = start[rule], start[rule + 1] - start[rule]
        for j in range(count):
            exp_neg[j] = -s * points[first + j]
        exp_in_place(exp_neg[:count], power[:count], bits[:count])
        # Sum whichever of σ and 1 - σ is smaller at r = 0, to keep its relative accuracy.
        odds, rule_weights = math.exp(-abs(eta[i])), weights[first : first + count]
        if (eta[i] <= 0.0) == (side > 0.0):
            mean = _mean_towards(odds, rule_weights, exp_neg[:count])
        else:
            mean = _mean_away(odds, rule_weights, exp_neg[:count])
        out[i] = mean if eta[i] <= 0.0 else 1.0 - mean
