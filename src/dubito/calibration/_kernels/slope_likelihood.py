r"""The likelihood of one slope: its fit and the relative likelihood around it.

With row scores :math:`s_i` and targets :math:`t_i` that sum to one, the negative log-likelihood

.. math:: f(\theta)=\sum_iw_i\Bigl[\log\sum_ke^{\theta s_{ik}}-\theta\,t_i^\top s_i\Bigr]

is convex, and its derivatives are sums of cumulants of :math:`s_i` under softmax
:math:`(\theta s_i)`: one pass over the data gives the value and three derivatives. The excess
:math:`f(\theta)-f(\hat\theta)` is kept as a piecewise polynomial on either side of the estimate,
so nothing after the fit needs the data again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray, IntArray


#: The excess up to which the likelihood is followed: relative likelihood 1e-16.
DEEPEST = 16 * np.log(10.0)
#: Numbers of scores worked on at once, so that they stay in the second-level cache.
_BLOCK = 1 << 15
_MAX_NEWTON = 200
_MAX_ROUNDS = 60


class SlopeLikelihood(NamedTuple):
    """The slope, its certificate and the likelihood around it; `reach` 0: no row has a say."""

    slope: float
    gradient: float
    n_iter: int
    reach: float  # the widest row of scores
    below: ExcessCurve
    above: ExcessCurve


class ExcessCurve(NamedTuple):
    """Excess as a function of the distance from the estimate, a polynomial on each piece."""

    knots: FloatArray  # (m + 1,) distances, from 0 outward
    coefficients: FloatArray  # (m, 8), in powers of the share of the piece walked
    excess: FloatArray  # (m + 1,) at the knots


#: The side of an estimate on which nothing is known, or nothing is to be known.
_NOWHERE = ExcessCurve(np.zeros(1), np.zeros((0, 8)), np.zeros(1))


def linear_term(
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray,
    targets: tuple[FloatArray | float, FloatArray | float],
) -> float:
    r"""Return :math:`\sum_iw_it_i^\top(s_i-\max_ks_{ik})`, the linear term of the likelihood.

    `targets` are those of the own class and of each other class, numbers or one for each class, as
    `targets.class_targets` returns them.
    """
    own, other = (np.broadcast_to(target, scores.shape[1])[y] for target in targets)
    top = scores.max(axis=1)
    true = scores[np.arange(len(y)), y] - top
    if not other.any():
        return float(weight @ (own * true))
    total = np.concatenate(
        [(scores[rows] - top[rows, None]).sum(axis=1) for rows in _blocks(scores)]
    )
    return float(weight @ ((own - other) * true + other * total))


def fit_likelihood(
    scores: FloatArray, weight: FloatArray, target_total: float, *, tolerance: float = 1e-11
) -> SlopeLikelihood:
    """Fit the slope and follow the likelihood on both sides of it.

    The excess is followed to `tolerance`, relative to one plus the excess.
    """
    reach = _reach(scores)
    if reach == 0.0:
        return SlopeLikelihood(0.0, 0.0, 0, reach, _NOWHERE, _NOWHERE)
    derivatives = _in_units_of_reach(scores, weight, target_total, reach)
    theta, n_iter = _newton(derivatives)
    at = derivatives(np.array([theta]))[0]
    gradient = float(at[1] if theta > 0 else min(at[1], 0.0)) / float(weight.sum())
    tolerance += _rounding(scores, weight)
    above = _follow(derivatives, theta, at, sign=1.0, tolerance=tolerance)
    below = _follow(derivatives, theta, at, sign=-1.0, tolerance=tolerance)
    return SlopeLikelihood(
        theta / reach,
        abs(gradient),
        n_iter,
        reach,
        below._replace(knots=below.knots / reach),
        above._replace(knots=above.knots / reach),
    )


def fit_without_maximum(
    scores: FloatArray, weight: FloatArray, target_total: float = 0.0, *, tolerance: float = 1e-11
) -> SlopeLikelihood:
    """Follow a likelihood that rises with the slope for ever, from far out downwards.

    It does where the true class has the largest score in every row (`target_total` is 0). The slope
    is one at which no more than `tolerance` is missing to the supremum, and there is nothing above.
    """
    reach = _reach(scores)
    if reach == 0.0:
        return SlopeLikelihood(0.0, 0.0, 0, reach, _NOWHERE, _NOWHERE)
    derivatives = _in_units_of_reach(scores, weight, target_total, reach)
    ties = np.concatenate(
        [
            (scores[rows] == scores[rows].max(axis=1, keepdims=True)).sum(1)
            for rows in _blocks(scores)
        ]
    )
    limit = float(weight @ np.log(ties))
    tolerance += _rounding(scores, weight)
    theta, n_iter = 1.0, 1
    while (at := derivatives(np.array([theta]))[0])[0] - limit > tolerance and theta < 1e290:
        theta, n_iter = 2.0 * theta, n_iter + 1
    below = _follow(derivatives, theta, at, sign=-1.0, tolerance=tolerance)
    below = below._replace(knots=below.knots / reach)
    gradient = abs(float(at[1])) / float(weight.sum())
    return SlopeLikelihood(theta / reach, gradient, n_iter, reach, below, _NOWHERE)


def _reach(scores: FloatArray) -> float:
    """Return the width of the widest row of scores."""
    return float(np.max(scores.max(axis=1) - scores.min(axis=1)))


def _rounding(scores: FloatArray, weight: FloatArray) -> float:
    """Return how far rounding moves the likelihood."""
    return 1e-15 * float(weight.sum()) * float(np.log(scores.shape[1]))


def _in_units_of_reach(
    scores: FloatArray, weight: FloatArray, target_total: float, reach: float
) -> Callable[[FloatArray], FloatArray]:
    """Return the likelihood with three derivatives, in slopes times the widest row.

    In these units the size of the slope is no concern.
    """
    top = scores.max(axis=1)

    def derivatives(theta: FloatArray) -> FloatArray:
        out = _log_partition(theta, scores, top, weight, 1 / reach)
        out[:, 0] -= theta * (target_total / reach)
        out[:, 1] -= target_total / reach
        return out

    return derivatives


def _blocks(scores: FloatArray) -> list[slice]:
    step = max(1, _BLOCK // scores.shape[1])
    return [slice(i, i + step) for i in range(0, len(scores), step)]


def _log_partition(
    theta: FloatArray, scores: FloatArray, top: FloatArray, weight: FloatArray, scale: float
) -> FloatArray:
    """Return the weighted sum of the log partition functions and three derivatives, (T, 4)."""
    out = np.zeros((len(theta), 4))
    for rows in _blocks(scores):
        s = (scores[rows] - top[rows, None]) * scale
        s2 = s * s
        w = weight[rows]
        e = np.empty_like(s)
        for q, t in enumerate(theta):
            np.exp(np.multiply(s, t, out=e), out=e)
            total = e.sum(axis=1)
            first = np.einsum("ij,ij->i", s, e) / total
            second = np.einsum("ij,ij->i", s2, e) / total
            e *= s
            third = np.einsum("ij,ij->i", s2, e) / total
            variance = second - first * first
            skew = third - first * (3 * variance + first * first)
            out[q] += (w @ np.log(total), w @ first, w @ variance, w @ skew)
    return out


def _newton(derivatives: Callable[[FloatArray], FloatArray]) -> tuple[float, int]:
    """Return the minimiser on [0, inf) of a convex function and the steps it took.

    Newton, kept inside a bracket; where there is no upper end yet a step at most doubles.
    """
    theta, low, high = 0.0, 0.0, np.inf
    for step in range(1, _MAX_NEWTON + 1):
        _, slope, curvature, _ = derivatives(np.array([theta]))[0]
        if slope >= 0:
            high = theta
        else:
            low = theta
        if slope == 0 or high == 0:
            return theta, step
        ahead = theta - slope / curvature if curvature > 0 else np.inf
        if not low < ahead < high:
            ahead = 0.5 * (low + high) if high < np.inf else max(2 * theta, 1.0)
        elif high == np.inf:
            ahead = min(ahead, max(10 * theta, 10.0))
        if abs(ahead - theta) <= 1e-14 * ahead:
            return theta, step
        theta = ahead
    return theta, _MAX_NEWTON


# A polynomial of degree 7 has value and three derivatives at both ends of its piece: these rows
# give its four highest coefficients from what the cubic of the inner end misses at the outer end.
_OUTER = np.linalg.inv(
    np.array([[1, 1, 1, 1], [4, 5, 6, 7], [12, 20, 30, 42], [24, 60, 120, 210]], dtype=float)
)
_TAYLOR = np.array([1.0, 1.0, 0.5, 1 / 6])


def _follow(
    derivatives: Callable[[FloatArray], FloatArray],
    theta: float,
    at: FloatArray,
    *,
    sign: float,
    tolerance: float,
) -> ExcessCurve:
    """Follow the excess outward on one side, halving pieces until they are true."""
    signs = np.array([1.0, sign, 1.0, sign])

    def outward(distance: FloatArray) -> FloatArray:
        data = derivatives(np.maximum(theta + sign * distance, 0.0))
        data[:, 0] -= at[0]
        return np.asarray(data * signs)

    start = at * signs
    # At the estimate the gradient is rounding; beyond the guard at 0 it is real.
    start[:2] = 0.0, (at[1] if theta == 0 else 0.0)
    knots, data = _first_piece(outward, start, theta if sign < 0 else np.inf)
    settled = np.zeros(len(knots) - 1, dtype=bool)
    for _ in range(_MAX_ROUNDS):
        # Pieces that begin beyond the deepest level are of no use.
        used = np.searchsorted(data[:, 0], DEEPEST, side="right") + 1
        knots, data, settled = knots[:used], data[:used], settled[: used - 1]
        open_ = np.flatnonzero(~settled)
        if len(open_) == 0:
            break
        middle = 0.5 * (knots[open_] + knots[open_ + 1])
        found = outward(middle)
        guess = _horner(_coefficients(knots, data)[open_], np.full(len(open_), 0.5))
        wide = middle > knots[open_]
        true = (np.abs(guess - found[:, 0]) <= tolerance * (1 + found[:, 0])) | ~wide
        settled[open_] = true
        settled = np.insert(settled, open_, true)
        knots = np.insert(knots, open_ + 1, middle)
        data = np.insert(data, open_ + 1, found, axis=0)
    excess = np.maximum.accumulate(data[:, 0])
    return ExcessCurve(knots, _coefficients(knots, data), excess)


def _first_piece(
    outward: Callable[[FloatArray], FloatArray], start: FloatArray, room: float
) -> tuple[FloatArray, FloatArray]:
    """Return two knots between which the deepest level lies, or the room ends."""
    if room == 0.0:
        return np.zeros(1), start[None]
    slope, curvature = start[1], max(start[2], 1e-300)
    # Where the second-order expansion reaches the deepest level, and a little more.
    root = np.sqrt(slope * slope + 2 * DEEPEST * curvature)
    step = min(1.2 * 2 * DEEPEST / (slope + root), 1e150)
    while True:
        step = min(step, room)
        data = outward(np.array([step]))
        if data[0, 0] >= DEEPEST or step >= room or step > 1e200:
            return np.array([0.0, step]), np.vstack([start, data])
        step *= 2


def _coefficients(knots: FloatArray, data: FloatArray) -> FloatArray:
    width = np.diff(knots)[:, None] ** np.arange(4)
    inner = data[:-1] * width * _TAYLOR
    outer = data[1:] * width
    cubic = inner @ np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 2, 0], [1, 3, 6, 6]], dtype=float)
    return np.hstack([inner, (outer - cubic) @ _OUTER.T])


def _horner(coefficients: FloatArray, share: FloatArray) -> FloatArray:
    value = coefficients[:, -1].copy()
    for power in range(coefficients.shape[1] - 2, -1, -1):
        value = value * share + coefficients[:, power]
    return value


def _derivative(coefficients: FloatArray) -> FloatArray:
    return np.asarray(coefficients[:, 1:] * np.arange(1, coefficients.shape[1]))


def excess_at(side: ExcessCurve, distance: FloatArray) -> FloatArray:
    """Return the excess at distances (m,) from the estimate; linear beyond the last knot."""
    if len(side.coefficients) == 0:
        return np.zeros_like(distance)
    distance = np.minimum(distance, 1e6 * side.knots[-1])  # where nothing is left to tell apart
    piece = np.clip(np.searchsorted(side.knots, distance, side="right") - 1, 0, None)
    piece = np.minimum(piece, len(side.coefficients) - 1)
    width = np.diff(side.knots)[piece]
    share = (distance - side.knots[piece]) / width
    inside = np.minimum(share, 1.0)
    chosen = side.coefficients[piece]
    slope = _horner(_derivative(chosen), inside)
    return np.maximum(_horner(chosen, inside) + slope * (share - inside), 0.0)


def distance_at(side: ExcessCurve, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distances at which the excess (m,) is reached, and its slope there.

    Where it is not reached, the side's end and infinite slope: there the level set stops moving.
    """
    if len(side.coefficients) == 0:
        return np.zeros_like(excess), np.full_like(excess, np.inf)
    past = excess >= side.excess[-1]
    level = np.minimum(excess, side.excess[-1])
    piece = np.clip(np.searchsorted(side.excess, level, side="right") - 1, 0, None)
    piece = np.minimum(piece, len(side.coefficients) - 1)
    chosen = side.coefficients[piece]
    rate = _derivative(chosen)
    low, high, share = np.zeros_like(level), np.ones_like(level), np.full_like(level, 0.5)
    for _ in range(60):
        miss = _horner(chosen, share) - level
        low, high = np.where(miss <= 0, share, low), np.where(miss > 0, share, high)
        slope = _horner(rate, share)
        ahead = share - miss / np.where(slope > 0, slope, np.inf)
        ahead = np.where((ahead >= low) & (ahead <= high), ahead, 0.5 * (low + high))
        done = np.abs(ahead - share) <= 1e-14
        share = ahead
        if done.all():
            break
    width = np.diff(side.knots)[piece]
    distance = np.where(past, side.knots[-1], side.knots[piece] + share * width)
    distance = np.where(excess <= 0, 0.0, distance)
    slope = np.where(past, np.inf, np.maximum(_horner(rate, share), 0.0) / width)
    return distance, slope
