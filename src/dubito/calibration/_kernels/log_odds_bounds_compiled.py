"""Compiled version of the means of `log_odds_bounds`, entry by entry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_in_place


@compiled(fastmath=SIMD_FLAGS)
def _nearer(odds: Any, weights: Any, small: Any) -> Any:
    """Return the mean of σ(sr - |η|), with odds exp(-|η|) and small numbers exp(-sr)."""
    total = 0.0
    for j in range(len(small)):
        total += weights[j] * (odds / (odds + small[j]))
    return total


@compiled(fastmath=SIMD_FLAGS)
def _farther(odds: Any, weights: Any, small: Any) -> Any:
    """Return the mean of σ(-sr - |η|)."""
    total = 0.0
    for j in range(len(small)):
        product = odds * small[j]
        total += weights[j] * (product / (1.0 + product))
    return total


@compiled()
def rayleigh_means(eta: Any, deviation: Any, rules: Any, out: Any, side: float) -> None:
    """Write the mean of σ(η ± sr) over r with density r·exp(-r²/2); `side` is the sign.

    `rules` are those of `log_odds._rules`: the first that serves a standard error s is taken.
    """
    points, weights, start, limits = rules
    last = len(limits) - 1
    longest = 0
    for rule in range(len(limits)):
        longest = max(longest, start[rule + 1] - start[rule])
    small, power = np.empty(longest), np.empty(longest)
    bits = power.view(np.int64)
    for i in range(len(eta)):
        s = deviation[i]
        rule = 0
        while s > limits[rule] and rule < last:
            rule += 1
        first, count = start[rule], start[rule + 1] - start[rule]
        for j in range(count):
            small[j] = -s * points[first + j]
        exp_in_place(small[:count], power[:count], bits[:count])
        # Of σ and 1 - σ the one that is small at r = 0 is summed, so that none is lost to rounding.
        odds, own = math.exp(-abs(eta[i])), weights[first : first + count]
        if (eta[i] <= 0.0) == (side > 0.0):
            mean = _nearer(odds, own, small[:count])
        else:
            mean = _farther(odds, own, small[:count])
        out[i] = mean if eta[i] <= 0.0 else 1.0 - mean
