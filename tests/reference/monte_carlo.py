"""Monte Carlo bounds of Xu et al. 2015, eq. 32.

The reference for the integrals of `EvidentialMultinomialCalibrator`.

Pairs (level, noise) are drawn once for all rows. Levels are sorted, so that level sets are nested
and extremes over them are running extremes. A row costs O(M K).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito.belief import Bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dubito.calibration import EvidentialMultinomialCalibrator

    FloatArray = NDArray[np.float64]

Pair = tuple["FloatArray", "FloatArray"]

#: Number of (draw, class) pairs in a block.
_BLOCK = 1 << 17


def monte_carlo_bounds(
    model: EvidentialMultinomialCalibrator,
    scores: Any,
    *,
    draws: int = 10_000,
    random_state: Any = None,
) -> Bounds:
    """Return the bounds of ``model.predict_bounds(scores)``, estimated by simulation.

    `scores` are margins or logits. The standard error of a bound b is at most
    sqrt(b (1-b) / draws).
    """
    table = np.asarray(scores, dtype=np.float64)
    table = table - table.max(axis=1, keepdims=True)
    random = np.random.default_rng(random_state)
    low, high = model.level_set(draw_levels(draws, random))
    points = model.quadrature_
    if points.relative:  # calibration scores were constant: rows are scaled to range 1
        widest = -table.min(axis=1, keepdims=True)
        table /= np.where(widest > 0, widest, 1.0)
        high = np.minimum(high, points.upper[-1])
    return Bounds(*monte_carlo(table, (low, high), model.coupling, random))


def monte_carlo(
    scores: FloatArray,
    ends: Pair,
    coupling: str,
    random: np.random.Generator,
) -> Pair:
    """Return belief and plausibility of each class, (n, K), estimated by M draws.

    `scores` are at most 0; `ends` are lower and upper ends, each (M,), of the level sets of M
    levels drawn uniformly and sorted from 1 downward.
    """
    n_classes = scores.shape[1]
    low, high = ends
    step = max(1, _BLOCK // n_classes)
    lower, upper = np.zeros_like(scores), np.zeros_like(scores)
    extremes = [np.full((len(scores), n_classes + 1), fill) for fill in (np.inf, -np.inf)]
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        draws = len(low[part])
        noise = _noise(coupling, random, (draws, n_classes))
        for i, row in enumerate(scores):
            if coupling == "gumbel":
                counts = _gumbel(row, low[part], high[part], noise)
            else:
                count = _inverse_cdf if coupling == "inverse_cdf" else _envelope
                running = (extremes[0][i], extremes[1][i])
                counts = count(row, low[part], high[part], noise, running)
            lower[i] += counts[0]
            upper[i] += counts[1]
    return lower / len(low), upper / len(low)


def _noise(coupling: str, random: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    if coupling == "gumbel":
        return random.gumbel(size=shape)
    return random.random((shape[0], 1)) if coupling == "inverse_cdf" else np.empty(0)


def _softmax(theta: FloatArray, row: FloatArray) -> FloatArray:
    e = np.exp(theta[:, None] * row)
    e /= e.sum(axis=1, keepdims=True)
    return np.asarray(e)


def _running(low: FloatArray, high: FloatArray, extremes: Pair) -> Pair:
    """Return running minima and maxima; the last ones are stored for the next block of draws."""
    least, most = np.minimum(low, high), np.maximum(low, high)
    width = least.shape[1]
    np.minimum(least[0], extremes[0][:width], out=least[0])
    np.maximum(most[0], extremes[1][:width], out=most[0])
    np.minimum.accumulate(least, axis=0, out=least)
    np.maximum.accumulate(most, axis=0, out=most)
    extremes[0][:width], extremes[1][:width] = least[-1], most[-1]
    return least, most


def _inverse_cdf(
    row: FloatArray, low: FloatArray, high: FloatArray, z: FloatArray, extremes: Pair
) -> Pair:
    """Return the numbers of draws whose set is {k}, and of those whose set contains k."""

    def cumulative(theta: FloatArray) -> FloatArray:
        g = np.zeros((len(theta), len(row) + 1))
        np.cumsum(_softmax(theta, row), axis=1, out=g[:, 1:])
        g[:, -1] = 1.0
        return g

    least, most = _running(cumulative(low), cumulative(high), extremes)
    among = (least[:, :-1] <= z) & (z < most[:, 1:])
    alone = among & (among.sum(axis=1, keepdims=True) == 1)
    return alone.sum(axis=0).astype(float), among.sum(axis=0).astype(float)


def _envelope(
    row: FloatArray, low: FloatArray, high: FloatArray, _noise: FloatArray, extremes: Pair
) -> Pair:
    """Return the sums of the least and the greatest probabilities over the level sets."""
    least, most = _running(_softmax(low, row), _softmax(high, row), extremes)
    return least.sum(axis=0), most.sum(axis=0)


def _gumbel(row: FloatArray, low: FloatArray, high: FloatArray, noise: FloatArray) -> Pair:
    """Return the same counts for classes on the upper envelope of the lines theta s_k + g_k."""
    n_classes = len(row)
    winner = np.argmax(low[:, None] * row + noise, axis=1)
    among = np.bincount(winner, minlength=n_classes).astype(float)
    first, alone = winner.copy(), np.ones(len(low), dtype=bool)
    active = np.arange(len(low))
    while len(active):
        gain = row - row[winner[active], None]
        behind = noise[active, winner[active]][:, None] - noise[active]
        meets = np.divide(behind, gain, out=np.full_like(gain, np.inf), where=gain > 0)
        next_ = np.argmin(meets, axis=1)
        crosses = meets[np.arange(len(active)), next_] <= high[active]
        active, next_ = active[crosses], next_[crosses]
        winner[active] = next_
        alone[active] = False
        among += np.bincount(next_, minlength=n_classes)
    return np.bincount(first[alone], minlength=n_classes).astype(float), among


def draw_levels(draws: int, random: np.random.Generator) -> FloatArray:
    """Return uniform levels in (0, 1], sorted from 1 downward."""
    return np.sort(1.0 - random.random(draws))[::-1]
