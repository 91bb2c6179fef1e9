r"""Belief and plausibility of each class, given level sets of the slope.

The probabilities at slope :math:`\theta` are :math:`p_j\propto e^{\theta s_j}`. A coupling
:math:`\varphi` draws a class of these probabilities from one random variable Z for all slopes at
once (Xu et al. 2015, eq. 28). With :math:`\gamma` uniform and :math:`\Gamma(\gamma)=[l,u]` the
slopes of relative likelihood :math:`pl(\theta)\ge\gamma`, :math:`\varphi(\Gamma(\gamma),Z)` is a
random set of classes, whose belief and plausibility of each class are returned here.

Scores of `gumbel` and `envelope` are sorted in each row, ascending, and at most 0; those of
`inverse_cdf` keep the order of the labels, on which it depends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dubito._numerics.softmax import softmax_in_place
from dubito.calibration._kernels.slope_quadrature import PANEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito._typing import FloatArray
    from dubito.calibration._kernels.slope_quadrature import QuadraturePoints

#: Largest number of Newton steps to the root of a panel's cubic, and size of the last one. The
#: integrand vanishes at the root, so its error counts by its square.
_ROOT_STEPS, _ROOT_TOLERANCE = 12, 1e-9

#: Number of exponentials from which the compiled versions are used: they take time to load.
COMPILED_FROM = 2**16


def gumbel(scores: FloatArray, points: QuadraturePoints) -> tuple[FloatArray, FloatArray]:
    r"""Return belief and plausibility for :math:`\varphi=\arg\max_k(\theta s_k+g_k)`, g Gumbel.

    .. math::
        pl_j=\int p_j(l)\,d\gamma+\int F_j(\theta)\,pl(\theta)\,d\theta,\qquad
        F_j=p_j\sum_{i:s_i<s_j}p_i(s_j-s_i),

    the probability that j is the maximum at the lower end plus the rate at which it becomes so, and
    :math:`\mathrm{Bel}_j=\int1/\sum_k\exp\max(l(s_k-s_j),u(s_k-s_j))\,d\gamma`.
    """
    lower, upper = np.zeros_like(scores), np.zeros_like(scores)
    steps = np.diff(scores, axis=1)
    for gamma_weight, low, high, low_weight, high_weight in points.columns():
        exp_low, exp_high = np.exp(low * scores), np.exp(high * scores)
        p_low = exp_low / exp_low.sum(axis=1, keepdims=True)
        p_high = exp_high / exp_high.sum(axis=1, keepdims=True)
        upper += p_low * (gamma_weight + low_weight * _gap_to_lower(p_low, steps))
        upper += high_weight * p_high * _gap_to_lower(p_high, steps)
        # Odds of classes above j are greatest at the upper end, of those below at the lower end.
        cumulative_high = np.cumsum(exp_high, axis=1)
        above = cumulative_high[:, -1:] - cumulative_high
        denominator = above * exp_low + np.cumsum(exp_low, axis=1) * exp_high
        product = exp_low * exp_high
        lower += gamma_weight * np.divide(
            product, denominator, out=np.zeros_like(denominator), where=denominator > 0
        )
    return lower, upper


def _gap_to_lower(p: FloatArray, steps: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{i<j}p_i(s_j-s_i)` from differences of neighbouring scores."""
    gap = np.zeros_like(p)
    np.cumsum(np.cumsum(p[:, :-1], axis=1) * steps, axis=1, out=gap[:, 1:])
    return gap


def envelope(scores: FloatArray, points: QuadraturePoints) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\int\min_\Gamma p_j\,d\gamma` and :math:`\int\max_\Gamma p_j\,d\gamma`.

    :math:`p_j` increases in :math:`\theta` until the mean score passes :math:`s_j` and decreases
    after that, so it is least at an end of :math:`\Gamma`, and
    :math:`\int\max_\Gamma p_j\,d\gamma=p_j(\hat\theta)+\int(\pm p_j'(\theta))_+pl(\theta)d\theta`
    with the sign of the side of :math:`\hat\theta`.
    """
    least, upper = np.zeros_like(scores), softmax_in_place(points.slope * scores)
    for start in range(0, len(points.gamma_weight), PANEL):
        panel = slice(start, start + PANEL)
        gamma_weight = points.gamma_weight[panel]
        p_low, derivative_low = _softmax_and_derivative(points.lower[panel], scores)
        p_high, derivative_high = _softmax_and_derivative(points.upper[panel], scores)
        upper += _integral_of_positive(derivative_high, points.upper_weight[panel])
        upper += _integral_of_positive(-derivative_low, points.lower_weight[panel])
        # min(p_low, p_high) = p_low - (p_low - p_high)_+
        least += np.einsum("q,qij->ij", gamma_weight, p_low)
        least -= _integral_of_positive(p_low - p_high, gamma_weight)
    return np.maximum(least, 0.0), upper


def _softmax_and_derivative(
    slopes: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return softmax(θs) at each slope θ and its derivatives in θ, each (len(slopes), n, K)."""
    p = np.stack([softmax_in_place(slope * scores) for slope in slopes])
    mean = np.einsum("qij,ij->qi", p, scores)
    return p, p * (scores - mean[:, :, None])


def _panel_tables() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Lagrange polynomials of a panel on [-1, 1], its weights, and their integrals.

    Polynomials are columns of coefficients of increasing powers; the integrals begin at -1.
    """
    x, w = np.polynomial.legendre.leggauss(PANEL)
    basis = np.linalg.inv(np.vander(x, increasing=True))
    integrals = np.zeros((PANEL + 1, PANEL))
    integrals[1:] = basis / np.arange(1, PANEL + 1)[:, None]
    integrals[0] = -((-1.0) ** np.arange(PANEL + 1) @ integrals)
    return np.asarray(basis, dtype=np.float64), w, integrals


_BASIS, _PANEL_WEIGHTS, _INTEGRALS = _panel_tables()
#: Values of the Lagrange polynomials at -1 and 1, (2, PANEL).
_BASIS_ENDS = np.vander([-1.0, 1.0], PANEL, increasing=True) @ _BASIS


def _integral_of_positive(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the integral of the positive part over a panel, (PANEL, n, K) to (n, K).

    Where the sign changes, the interpolating polynomial is integrated from or to its root, because
    the rule is inaccurate for an integrand with a kink.
    """
    total = np.einsum("q,qij->ij", weight, np.maximum(values, 0.0))
    first, last = _BASIS_ENDS @ values.reshape(PANEL, -1)
    first, last = first.reshape(total.shape), last.reshape(total.shape)
    crossed = np.sign(first) * np.sign(last) < 0  # the product of the values may overflow
    if weight.any() and crossed.any():
        total[crossed] = _integral_beyond_root(values[:, crossed], weight)
    return total


def _integral_beyond_root(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the integral of values with one root over the part of a panel where they are > 0."""
    root, rising = _root(_BASIS @ values)
    left_integral = np.stack([_polynomial(_INTEGRALS[:, [q]], root) for q in range(PANEL)])
    part = np.where(rising, _PANEL_WEIGHTS[:, None] - left_integral, left_integral)
    density = weight / _PANEL_WEIGHTS
    return np.maximum(np.einsum("qi,qi->i", part, density[:, None] * values), 0.0)


def _root(coefficients: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return roots in [-1, 1], by Newton in a bracket, and whether the values increase there."""
    low, high = np.full(coefficients.shape[1], -1.0), np.ones(coefficients.shape[1])
    x, rising = np.zeros_like(low), coefficients[1] + coefficients[3] > 0
    rates = coefficients[1:] * np.arange(1, PANEL)[:, None]
    for _ in range(_ROOT_STEPS):
        value, rate = _polynomial(coefficients, x), _polynomial(rates, x)
        root_is_left = (value > 0) == rising
        low, high = np.where(root_is_left, low, x), np.where(root_is_left, x, high)
        proposal = x - np.divide(value, rate, out=np.full_like(x, np.inf), where=rate != 0)
        proposal = np.where((proposal >= low) & (proposal <= high), proposal, 0.5 * (low + high))
        if (np.abs(proposal - x) < _ROOT_TOLERANCE).all():
            return proposal, rising
        x = proposal
    return x, rising


def _polynomial(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    value = np.zeros_like(x)
    for c in coefficients[::-1]:
        value = value * x + c
    return value


def inverse_cdf(scores: FloatArray, points: QuadraturePoints) -> tuple[FloatArray, FloatArray]:
    r"""Return belief and plausibility for :math:`\varphi` the inverse of the distribution function.

    With cumulative sums :math:`G_j=p_1+\dots+p_j` (Xu et al. 2015, eq. 34),

    .. math:: pl_j=\int(\max_\Gamma G_j-\min_\Gamma G_{j-1})d\gamma,\qquad
        \mathrm{Bel}_j=\int(\min_\Gamma G_j-\max_\Gamma G_{j-1})_+d\gamma.

    As level sets grow, the second integrand decreases before its positive part is taken: it has one
    root, where the integral ends.
    """
    lower, upper = np.zeros_like(scores), np.zeros_like(scores)
    belief = np.empty((PANEL, *scores.shape))
    for q, (gamma_weight, least, most) in enumerate(extremes(scores, points)):
        upper += gamma_weight * (most[:, 1:] - least[:, :-1])
        belief[q % PANEL] = least[:, 1:] - most[:, :-1]
        if q % PANEL == PANEL - 1:
            lower += _integral_of_positive(belief, points.gamma_weight[q + 1 - PANEL : q + 1])
    return lower, upper


def extremes(
    scores: FloatArray, points: QuadraturePoints
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """Yield each quadrature point's weight, minima and maxima of G_0..G_K over its level set."""
    start = _cumulative(points.slope, scores)
    least, most = start[0].copy(), start[0].copy()
    low_before = high_before = start
    low_slope = high_slope = points.slope
    for gamma_weight, low, high in zip(
        points.gamma_weight, points.lower, points.upper, strict=True
    ):
        if high > high_slope:
            here = _cumulative(high, scores)
            _widen(least, most, high_before, here, high - high_slope)
            high_before, high_slope = here, high
        if low < low_slope:
            here = _cumulative(low, scores)
            _widen(least, most, low_before, here, low - low_slope)
            low_before, low_slope = here, low
        yield gamma_weight, least, most


def _cumulative(slope: float, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cumulative sums G_0..G_K and their derivatives in the slope, each (n, K+1)."""
    p = softmax_in_place(slope * scores)
    derivative = p * (scores - np.einsum("ij,ij->i", p, scores)[:, None])
    g, d = np.zeros((len(p), p.shape[1] + 1)), np.zeros((len(p), p.shape[1] + 1))
    np.cumsum(p[:, :-1], axis=1, out=g[:, 1:-1])
    np.cumsum(derivative[:, :-1], axis=1, out=d[:, 1:-1])
    g[:, -1] = 1.0
    return np.minimum(g, 1.0), d


def _widen(
    least: FloatArray,
    most: FloatArray,
    before: tuple[FloatArray, FloatArray],
    here: tuple[FloatArray, FloatArray],
    step: float,
) -> None:
    """Update running extremes by an interval of slopes: its end, and an extremum inside, if any.

    `before` and `here` are values and derivatives at the ends of the interval, of length `step`.
    """
    (g0, d0), (g1, d1) = before, here
    np.minimum(least, g1, out=least)
    np.maximum(most, g1, out=most)
    inside = np.nonzero(d0 * d1 < 0)
    if len(inside[0]):
        value = _inner_extremum(g0[inside], d0[inside] * step, g1[inside], d1[inside] * step)
        least[inside] = np.minimum(least[inside], value)
        most[inside] = np.maximum(most[inside], value)


def _inner_extremum(g0: FloatArray, d0: FloatArray, g1: FloatArray, d1: FloatArray) -> FloatArray:
    """Return the extremum in (0, 1) of the cubic with these values and derivatives at 0 and 1."""
    c2 = 3 * (g1 - g0) - 2 * d0 - d1
    c3 = d0 + d1 - 2 * (g1 - g0)
    # The derivative d0 + 2 c2 t + 3 c3 t² has the sign of d0 at 0 and the opposite one at 1.
    root = np.sqrt(np.maximum(c2 * c2 - 3 * c3 * d0, 0.0))
    size = np.abs(d0)
    t = size / np.maximum(root - np.copysign(c2, c2 * d0), size + 1e-300)
    value = g0 + t * (d0 + t * (c2 + t * c3))
    return np.clip(value, 0.0, 1.0)


def belief_and_plausibility(
    scores: FloatArray, points: QuadraturePoints, coupling: str
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of each class, for scores at most 0 in any order."""
    compiled = scores.size * len(points.gamma_weight) >= COMPILED_FROM
    if coupling == "inverse_cdf":
        return (_compiled_bounds if compiled else inverse_cdf)(scores, points)
    order = np.argsort(scores, axis=1)
    if compiled:
        return _compiled_bounds(scores, points, order, coupling)
    ranked = np.take_along_axis(scores, order, axis=1)
    ranked_bounds = (gumbel if coupling == "gumbel" else envelope)(ranked, points)
    lower, upper = np.empty_like(scores), np.empty_like(scores)
    for out, ranked_bound in zip((lower, upper), ranked_bounds, strict=True):
        np.put_along_axis(out, order, _in_order(ranked, ranked_bound), axis=1)
    return lower, upper


def _compiled_bounds(
    scores: FloatArray,
    points: QuadraturePoints,
    order: npt.NDArray[np.intp] | None = None,
    coupling: str = "inverse_cdf",
) -> tuple[FloatArray, FloatArray]:
    from dubito.calibration._kernels import slope_couplings_compiled as compiled  # noqa: PLC0415

    columns = points.columns()
    rule = (points.slope, columns, (_BASIS, _BASIS_ENDS, _PANEL_WEIGHTS, _INTEGRALS))
    lower, upper = np.empty_like(scores), np.empty_like(scores)
    if coupling == "gumbel":
        compiled.gumbel(scores, order, columns, lower, upper)
    elif coupling == "envelope":
        compiled.envelope(scores, order, rule, lower, upper)
    else:
        compiled.inverse_cdf(scores, rule, lower, upper)
    return lower, upper


def _in_order(ranked: FloatArray, bound: FloatArray) -> FloatArray:
    """Return bounds that increase with the scores, equal for equal scores, in spite of rounding."""
    bound = np.clip(np.maximum.accumulate(bound, axis=1), 0.0, 1.0)
    for j in range(ranked.shape[1] - 2, -1, -1):
        tied = ranked[:, j] == ranked[:, j + 1]
        bound[tied, j] = bound[tied, j + 1]
    return bound


def inverse_cdf_mass(scores: FloatArray, points: QuadraturePoints) -> FloatArray:
    """Return the mass of each non-empty set of classes, in bit-mask order, (n, 2^K - 1).

    At one quadrature point class j is possible for Z from min G_{j-1} to max G_j: the set changes
    only at these ends.
    """
    n, n_classes = scores.shape
    bits = 2 ** np.arange(n_classes)
    row_start = np.arange(n)[:, None] * 2**n_classes
    mass = np.zeros(n * 2**n_classes)
    for gamma_weight, least, most in extremes(scores, points):
        if gamma_weight == 0.0:
            continue
        ends = np.sort(np.hstack([least, most]), axis=1)
        middle = (0.5 * (ends[:, 1:] + ends[:, :-1]))[:, :, None]
        members = (least[:, None, :-1] <= middle) & (middle < most[:, None, 1:])
        index, interval_mass = row_start + members @ bits, gamma_weight * np.diff(ends, axis=1)
        mass += np.bincount(index.ravel(), interval_mass.ravel(), minlength=len(mass))
    mass = mass.reshape(n, -1)[:, 1:]
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))
