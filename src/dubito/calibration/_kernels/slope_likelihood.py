r"""The likelihood of one slope: its fit and the relative likelihood around it.

With row scores :math:`s_i` and targets :math:`t_i` that sum to one, the negative log-likelihood

.. math:: f(\theta)=\sum_iw_i\Bigl[\log\sum_ke^{\theta s_{ik}}-\theta\,t_i^\top s_i\Bigr]

is convex, and its derivatives are sums of cumulants of :math:`s_i` under softmax
:math:`(\theta s_i)`: one pass over the data gives the value and three derivatives. The excess
:math:`f(\theta)-f(\hat\theta)` is stored as a piecewise polynomial on either side of the
estimate, so nothing after the fit needs the data again. The slope alone, for targets with
pseudo-observations, is found faster by `temperature_scaling.fit_slope`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.row_subsets import row_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray, IntArray


#: The excess up to which the likelihood is interpolated: relative likelihood 1e-16.
LARGEST_EXCESS = 16 * np.log(10.0)
#: Number of scores processed at once, so that they stay in the second-level cache.
_CHUNK_ENTRIES = 2**15
#: Limit on the Newton steps of the fit.
_MAX_NEWTON_STEPS = 200
#: Limit on the times that pieces of an interpolant are halved.
_MAX_HALVINGS = 60


class SlopeLikelihood(NamedTuple):
    """The fitted slope, the norm of the gradient at it, and the likelihood around it.

    With `score_range` 0 all rows have constant scores, and the likelihood is constant.
    """

    slope: float
    gradient_norm: float
    n_iter: int
    score_range: float  # the largest range of a row of scores
    below: ExcessCurve
    above: ExcessCurve


class ExcessCurve(NamedTuple):
    """Excess as a function of the distance from the estimate on one side: piecewise polynomial."""

    knots: FloatArray  # (m + 1,) distances, from 0 outward
    coefficients: FloatArray  # (m, 8), in powers of the position in the piece, 0 to 1
    excess: FloatArray  # (m + 1,) at the knots


#: The curve of constant scores, and of the upper side of a likelihood without a maximum.
_EMPTY_CURVE = ExcessCurve(np.zeros(1), np.zeros((0, 8)), np.zeros(1))


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
    largest = scores.max(axis=1)
    own_score = scores[np.arange(len(y)), y] - largest
    if not other.any():
        return float(weight @ (own * own_score))
    chunks = row_chunks(len(scores), scores.shape[1], _CHUNK_ENTRIES)
    total = np.concatenate([(scores[rows] - largest[rows, None]).sum(axis=1) for rows in chunks])
    return float(weight @ ((own - other) * own_score + other * total))


def fit_likelihood(
    scores: FloatArray, weight: FloatArray, linear: float, *, tolerance: float = 1e-11
) -> SlopeLikelihood:
    """Return the fitted slope and the likelihood on both sides of it.

    The error of the excess is at most `tolerance`, relative to one plus the excess. `linear` is the
    linear term of the likelihood, as `linear_term` returns it.
    """
    score_range = _score_range(scores)
    if score_range == 0.0:
        return SlopeLikelihood(0.0, 0.0, 0, score_range, _EMPTY_CURVE, _EMPTY_CURVE)
    derivatives = _scaled_derivatives(scores, weight, linear, score_range)
    scaled_slope, n_iter = _newton(derivatives)
    at_estimate = derivatives(np.array([scaled_slope]))[0]
    gradient = float(at_estimate[1] if scaled_slope > 0 else min(at_estimate[1], 0.0)) / float(
        weight.sum()
    )
    tolerance += _rounding(scores, weight)
    above = _excess_curve(derivatives, scaled_slope, at_estimate, sign=1.0, tolerance=tolerance)
    below = _excess_curve(derivatives, scaled_slope, at_estimate, sign=-1.0, tolerance=tolerance)
    return SlopeLikelihood(
        scaled_slope / score_range,
        abs(gradient),
        n_iter,
        score_range,
        below._replace(knots=below.knots / score_range),
        above._replace(knots=above.knots / score_range),
    )


def fit_without_maximum(
    scores: FloatArray, weight: FloatArray, linear: float = 0.0, *, tolerance: float = 1e-11
) -> SlopeLikelihood:
    """Return a likelihood that increases with the slope without a maximum, below a large slope.

    This is the case where the true class has the largest score in every row (`linear` is 0). The
    slope is one at which the log-likelihood is within `tolerance` of its supremum; `above` is
    empty.
    """
    score_range = _score_range(scores)
    if score_range == 0.0:
        return SlopeLikelihood(0.0, 0.0, 0, score_range, _EMPTY_CURVE, _EMPTY_CURVE)
    derivatives = _scaled_derivatives(scores, weight, linear, score_range)
    chunks = row_chunks(len(scores), scores.shape[1], _CHUNK_ENTRIES)
    ties = np.concatenate(
        [(scores[rows] == scores[rows].max(axis=1, keepdims=True)).sum(1) for rows in chunks]
    )
    limit = float(weight @ np.log(ties))
    tolerance += _rounding(scores, weight)
    scaled_slope, n_iter = 1.0, 1
    at_estimate = derivatives(np.array([scaled_slope]))[0]
    while at_estimate[0] - limit > tolerance and scaled_slope < 1e290:
        scaled_slope, n_iter = 2.0 * scaled_slope, n_iter + 1
        at_estimate = derivatives(np.array([scaled_slope]))[0]
    below = _excess_curve(derivatives, scaled_slope, at_estimate, sign=-1.0, tolerance=tolerance)
    below = below._replace(knots=below.knots / score_range)
    gradient = abs(float(at_estimate[1])) / float(weight.sum())
    slope = scaled_slope / score_range
    return SlopeLikelihood(slope, gradient, n_iter, score_range, below, _EMPTY_CURVE)


def _score_range(scores: FloatArray) -> float:
    """Return the largest range of a row of scores."""
    return float(np.max(scores.max(axis=1) - scores.min(axis=1)))


def _rounding(scores: FloatArray, weight: FloatArray) -> float:
    """Return the rounding error of the log-likelihood."""
    return 1e-15 * float(weight.sum()) * float(np.log(scores.shape[1]))


def _scaled_derivatives(
    scores: FloatArray, weight: FloatArray, linear: float, score_range: float
) -> Callable[[FloatArray], FloatArray]:
    """Return the negative log-likelihood and three derivatives as functions of slope · score_range.

    In these units the derivatives neither overflow nor underflow.
    """
    largest = scores.max(axis=1)

    def derivatives(scaled_slopes: FloatArray) -> FloatArray:
        out = _log_partition(scaled_slopes, scores, largest, weight, 1 / score_range)
        out[:, 0] -= scaled_slopes * (linear / score_range)
        out[:, 1] -= linear / score_range
        return out

    return derivatives


def _log_partition(
    slopes: FloatArray, scores: FloatArray, largest: FloatArray, weight: FloatArray, scale: float
) -> FloatArray:
    """Return the weighted sum of the log partition functions and three derivatives, (T, 4)."""
    out = np.zeros((len(slopes), 4))
    for rows in row_chunks(len(scores), scores.shape[1], _CHUNK_ENTRIES):
        s = (scores[rows] - largest[rows, None]) * scale
        s2 = s * s
        w = weight[rows]
        e = np.empty_like(s)
        for q, slope in enumerate(slopes):
            np.exp(np.multiply(s, slope, out=e), out=e)
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

    Newton's method in a bracket; while it has no upper end, steps are limited to a factor of 10.
    """
    x, low, high = 0.0, 0.0, np.inf
    for step in range(1, _MAX_NEWTON_STEPS + 1):
        _, gradient, curvature, _ = derivatives(np.array([x]))[0]
        if gradient >= 0:
            high = x
        else:
            low = x
        if gradient == 0 or high == 0:
            return x, step
        proposal = x - gradient / curvature if curvature > 0 else np.inf
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if high < np.inf else max(2 * x, 1.0)
        elif high == np.inf:
            proposal = min(proposal, max(10 * x, 10.0))
        if abs(proposal - x) <= 1e-14 * proposal:
            return x, step
        x = proposal
    return x, _MAX_NEWTON_STEPS


# A Hermite polynomial of degree 7 has given values and three derivatives at both ends of its piece.
# These rows give its four highest coefficients from the residuals, at the outer end, of the Taylor
# cubic of the inner end.
_OUTER = np.linalg.inv(
    np.array([[1, 1, 1, 1], [4, 5, 6, 7], [12, 20, 30, 42], [24, 60, 120, 210]], dtype=float)
)
_TAYLOR = np.array([1.0, 1.0, 0.5, 1 / 6])


def _excess_curve(
    derivatives: Callable[[FloatArray], FloatArray],
    estimate: float,
    at_estimate: FloatArray,
    *,
    sign: float,
    tolerance: float,
) -> ExcessCurve:
    """Return the excess on one side of the estimate, with pieces halved until they are accurate."""
    signs = np.array([1.0, sign, 1.0, sign])

    def outward(distance: FloatArray) -> FloatArray:
        data = derivatives(np.maximum(estimate + sign * distance, 0.0))
        data[:, 0] -= at_estimate[0]
        return np.asarray(data * signs)

    start = at_estimate * signs
    # The gradient at an interior estimate is rounding; at slope 0, its bound, it is not.
    start[:2] = 0.0, (at_estimate[1] if estimate == 0 else 0.0)
    knots, data = _first_piece(outward, start, estimate if sign < 0 else np.inf)
    settled = np.zeros(len(knots) - 1, dtype=bool)
    for _ in range(_MAX_HALVINGS):
        # Pieces that begin beyond the largest excess are not needed.
        used = np.searchsorted(data[:, 0], LARGEST_EXCESS, side="right") + 1
        knots, data, settled = knots[:used], data[:used], settled[: used - 1]
        inaccurate = np.flatnonzero(~settled)
        if len(inaccurate) == 0:
            break
        middle = 0.5 * (knots[inaccurate] + knots[inaccurate + 1])
        exact = outward(middle)
        interpolated = _horner(
            _coefficients(knots, data)[inaccurate], np.full(len(inaccurate), 0.5)
        )
        wide = middle > knots[inaccurate]
        accurate = (np.abs(interpolated - exact[:, 0]) <= tolerance * (1 + exact[:, 0])) | ~wide
        settled[inaccurate] = accurate
        settled = np.insert(settled, inaccurate, accurate)
        knots = np.insert(knots, inaccurate + 1, middle)
        data = np.insert(data, inaccurate + 1, exact, axis=0)
    excess = np.maximum.accumulate(data[:, 0])
    return ExcessCurve(knots, _coefficients(knots, data), excess)


def _first_piece(
    outward: Callable[[FloatArray], FloatArray], start: FloatArray, max_distance: float
) -> tuple[FloatArray, FloatArray]:
    """Return two knots: 0, and where the excess exceeds its largest or `max_distance`."""
    if max_distance == 0.0:
        return np.zeros(1), start[None]
    slope, curvature = start[1], max(start[2], 1e-300)
    # Where the second-order expansion reaches that excess, and 20% more.
    root = np.sqrt(slope * slope + 2 * LARGEST_EXCESS * curvature)
    step = min(1.2 * 2 * LARGEST_EXCESS / (slope + root), 1e150)
    while True:
        step = min(step, max_distance)
        data = outward(np.array([step]))
        if data[0, 0] >= LARGEST_EXCESS or step >= max_distance or step > 1e200:
            return np.array([0.0, step]), np.vstack([start, data])
        step *= 2


def _coefficients(knots: FloatArray, data: FloatArray) -> FloatArray:
    """Return coefficients (m, 8) of pieces, from value and derivatives at knots (m + 1, 4)."""
    width = np.diff(knots)[:, None] ** np.arange(4)
    inner = data[:-1] * width * _TAYLOR
    outer = data[1:] * width
    cubic = inner @ np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 2, 0], [1, 3, 6, 6]], dtype=float)
    return np.hstack([inner, (outer - cubic) @ _OUTER.T])


def _horner(coefficients: FloatArray, position: FloatArray) -> FloatArray:
    """Return the values of polynomials (m, degree + 1), each at its position (m,)."""
    value = coefficients[:, -1].copy()
    for degree in range(coefficients.shape[1] - 2, -1, -1):
        value = value * position + coefficients[:, degree]
    return value


def _derivative(coefficients: FloatArray) -> FloatArray:
    return np.asarray(coefficients[:, 1:] * np.arange(1, coefficients.shape[1]))


def excess_at(curve: ExcessCurve, distance: FloatArray) -> FloatArray:
    """Return the excess at distances (m,) from the estimate; linear beyond the last knot."""
    if len(curve.coefficients) == 0:
        return np.zeros_like(distance)
    distance = np.minimum(distance, 1e6 * curve.knots[-1])  # the relative likelihood is 0 there
    piece = np.clip(np.searchsorted(curve.knots, distance, side="right") - 1, 0, None)
    piece = np.minimum(piece, len(curve.coefficients) - 1)
    width = np.diff(curve.knots)[piece]
    position = (distance - curve.knots[piece]) / width
    inside = np.minimum(position, 1.0)
    chosen = curve.coefficients[piece]
    rate = _horner(_derivative(chosen), inside)
    return np.maximum(_horner(chosen, inside) + rate * (position - inside), 0.0)


def distance_at(curve: ExcessCurve, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distances at which the excess (m,) is reached, and the derivative of the excess there.

    Where the excess is not reached: the last knot, and an infinite derivative, as the level set no
    longer changes there.
    """
    if len(curve.coefficients) == 0:
        return np.zeros_like(excess), np.full_like(excess, np.inf)
    beyond = excess >= curve.excess[-1]
    target = np.minimum(excess, curve.excess[-1])
    piece = np.clip(np.searchsorted(curve.excess, target, side="right") - 1, 0, None)
    piece = np.minimum(piece, len(curve.coefficients) - 1)
    chosen = curve.coefficients[piece]
    derivative = _derivative(chosen)
    low, high, position = np.zeros_like(target), np.ones_like(target), np.full_like(target, 0.5)
    for _ in range(60):
        residual = _horner(chosen, position) - target
        low, high = np.where(residual <= 0, position, low), np.where(residual > 0, position, high)
        rate = _horner(derivative, position)
        proposal = position - residual / np.where(rate > 0, rate, np.inf)
        proposal = np.where((proposal >= low) & (proposal <= high), proposal, 0.5 * (low + high))
        done = np.abs(proposal - position) <= 1e-14
        position = proposal
        if done.all():
            break
    width = np.diff(curve.knots)[piece]
    distance = np.where(beyond, curve.knots[-1], curve.knots[piece] + position * width)
    distance = np.where(excess <= 0, 0.0, distance)
    rate = np.where(beyond, np.inf, np.maximum(_horner(derivative, position), 0.0) / width)
    return distance, rate


def level_set(fit: SlopeLikelihood, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the sets of slopes whose excess is at most the given ones, each (m,).

    The lower end is 0 where slope 0 is in the set; the upper one is infinite where no slope is
    excluded: scores are constant, or the likelihood has no maximum.
    """
    if fit.score_range == 0.0:
        return np.zeros_like(excess), np.full_like(excess, np.inf)
    down, _ = distance_at(fit.below, excess)
    low = np.maximum(fit.slope - down, 0.0)
    if len(fit.above.coefficients) == 0:
        return low, np.full_like(excess, np.inf)
    up, _ = distance_at(fit.above, excess)
    return low, fit.slope + up
