r"""Isotonic regression of events on scores, and the profile likelihood of its value at a score.

Distinct scores :math:`x_0<\ldots<x_{m-1}` have :math:`k_i` successes and :math:`r_i` failures (sums
of sample weights). The likelihood of a non-decreasing f is :math:`\prod_i f_i^{k_i}(1-f_i)^{r_i}`;
pooling adjacent violators (PAV) maximises it.

**The contour at a score s** is
:math:`\mathrm{pl}(\theta;s)=\sup\{L(f): f(s)=\theta\}/\sup L`. Under :math:`f(s)=\theta` the two
sides separate: left scores need :math:`f_i\le\theta`, right scores :math:`f_i\ge\theta`, a score at
s has :math:`f_i=\theta`. The isotonic fit under an upper or a lower bound is the unconstrained fit,
clipped (Barlow et al., 1972), so

.. math:: f_i=\min(f_i^{\mathrm{left}},\theta)\;(x_i<s),\qquad
          f_i=\max(f_i^{\mathrm{right}},\theta)\;(x_i>s),

with :math:`f^{\mathrm{left}}` the PAV fit of the left scores **alone**, :math:`f^{\mathrm{right}}`
that of the right scores.

**Relation to the fit of all scores.** The PAV values are the slopes of the greatest
convex minorant (GCM) of the cumulative sums. Divide the scores at s, inside a block D of value v.
The GCM of the left scores lies between the GCM of all and the sums, which agree at the boundaries
of all blocks before D, and between two of these the GCM of all is a chord: so left of D nothing
changes. Inside D the sums lie above D's chord, so the left scores of D refitted alone have values
:math:`\ge v` and, by the same argument, its right scores have values :math:`\le v`. Hence for
:math:`\theta<v`:

* left scores of D, and a score at s, have value θ;
* right scores of D have the larger of θ and their refitted value;
* blocks left of D have the smaller of θ and their value; blocks right of D are unchanged.

Between consecutive values of these blocks, on a *segment*, the contour is thus a constant times
:math:`\theta^a(1-\theta)^b`. It depends on s only through the last score :math:`\le s`. For
θ > v the mirrored statement holds, with the first score :math:`\ge s`. If s separates two blocks,
every θ between their values has plausibility 1; below all scores so has every θ in
:math:`[0,f_0]`. One right-to-left PAV keeps the fits of all suffixes as a tree
(`isotonic_compiled.suffix_chains`), so no score is ever refitted.

**Belief and plausibility.** The level sets are intervals
:math:`[\theta_{lo}(\gamma),\theta_{hi}(\gamma)]`;
:math:`\mathrm{Bel}=\int\theta_{lo}d\gamma=v_{lo}-\int_0^{v_{lo}}\mathrm{pl}` and
:math:`\mathrm{Pl}=\int\theta_{hi}d\gamma=v_{hi}+\int_{v_{hi}}^1\mathrm{pl}` with
:math:`[v_{lo},v_{hi}]` the values of plausibility 1. The integrals are differences of incomplete
beta functions; they are computed by Gauss-Legendre rules in log-odds, segment by segment, which
loses no digits when exponents are large and segments narrow.

**Bounds at a confidence level** are the ends of :math:`\{\theta:-2\log\mathrm{pl}\le D\}` with D
a quantile of the likelihood ratio (`ratio_quantile`): the lower end lies in the
segment in which the contour falls below exp(-D/2). Both ends rise with s, since every f does.

**A row added at s** with outcome 1 multiplies the contour by θ, one with outcome 0 by 1-θ. The
value fitted at s is then where the product is largest: within one segment at
:math:`(a+1)/(a+b+1)` or :math:`a/(a+b+1)`, clipped to the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from dubito._numerics.bernoulli import LARGEST_WEIGHT, clopper_pearson
from dubito._numerics.contour_cut import root_chi2_quantile

if TYPE_CHECKING:
    from dubito._numerics.isotonic_compiled import SuffixFits
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Positive weights are raised to at least this fraction of the largest.
_MIN_FRACTION = 1e-12

#: Largest scores whose difference does not overflow.
_HUGE = 1e307


def pool_ties(
    score: FloatArray, event: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, ascending, with the weights of their successes and failures."""
    distinct, index = np.unique(score, return_inverse=True)
    successes = weight_sums(index, np.where(event, weight, 0.0), len(distinct))
    return distinct, successes, weight_sums(index, np.where(event, 0.0, weight), len(distinct))


def weight_sums(index: IntArray, weight: FloatArray, size: int) -> FloatArray:
    """Return the sums of the weights with each index 0..size-1, as floats also without weights."""
    return np.asarray(np.bincount(index, weight, size), dtype=np.float64)


def isotonic_fit(successes: FloatArray, failures: FloatArray) -> FloatArray:
    """Return the non-decreasing values that maximise the likelihood."""
    total = successes + failures
    return np.clip(isotonic_regression(successes / total, weights=total).x, 0.0, 1.0)


def interpolate(score: FloatArray, knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return non-decreasing `values` at ascending knots, interpolated linearly, constant beyond."""
    right = np.clip(np.searchsorted(knots, score), 1, max(len(knots) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(knots) - 1)
    scale = 0.25 if max(-knots[0], knots[-1]) > _HUGE else 1.0
    score = scale * np.clip(score, knots[0], knots[-1])
    gap = scale * knots[right] - scale * knots[left]
    fraction = np.divide(score - scale * knots[left], gap, out=np.zeros_like(score), where=gap > 0)
    low, high = values[left], values[right]
    return np.clip(low + fraction * (high - low), low, high)


def belief_steps(successes: FloatArray, failures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility as step functions of the score, each (m + 1,).

    ``belief[j]`` is that of a score with j distinct scores at or left of it, ``plausibility[j]``
    that of one with j distinct scores strictly left of it.
    """
    from dubito._numerics.isotonic_compiled import beliefs  # noqa: PLC0415

    below, above = _scaled_fits(successes, failures)
    belief = np.concatenate([[0.0], beliefs(below)])
    plausibility = np.concatenate([1 - beliefs(above)[::-1], [1.0]])
    # Both increase with the score, but for rounding.
    return np.maximum.accumulate(belief), np.minimum.accumulate(plausibility[::-1])[::-1]


def cut_bounds(
    n_at_or_left: IntArray,
    n_left: IntArray,
    successes: FloatArray,
    failures: FloatArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the contour's cut at a confidence level, each (n,).

    A position is given by the number of distinct scores at or left of it, and strictly left.
    """
    from dubito._numerics.isotonic_compiled import cut_ends_below_maximum  # noqa: PLC0415

    m = len(successes)
    if m == 0:
        return np.zeros(len(n_left)), np.ones(len(n_left))
    below, above = _scaled_fits(successes, failures)
    excess = 0.5 * ratio_quantile(level, flatness(below.starts, successes + failures))
    low, high = _occurring(n_at_or_left, m), _occurring(n_left, m)
    lower, upper = np.empty(m + 1), np.empty(m + 1)
    lower[low] = cut_ends_below_maximum(low - 1, excess, below)
    upper[high] = 1.0 - cut_ends_below_maximum(m - 1 - high, excess, above)
    return lower[n_at_or_left], upper[n_left]


#: Rows of a confidence level and the quantile of D at it (`ratio_quantile`), divided by that of
#: chi-square with one degree of freedom.
_FACTORS = np.array(
    [
        [0.05, 0.6534],
        [0.1, 0.6508],
        [0.2, 0.6406],
        [0.3, 0.6319],
        [0.4, 0.6239],
        [0.5, 0.6167],
        [0.6, 0.6109],
        [0.7, 0.6046],
        [0.75, 0.6022],
        [0.8, 0.5994],
        [0.85, 0.5955],
        [0.9, 0.5926],
        [0.925, 0.5909],
        [0.95, 0.5893],
        [0.975, 0.5851],
        [0.99, 0.5821],
        [0.995, 0.5807],
        [0.999, 0.5779],
    ]
)


def ratio_quantile(level: float, flat: float) -> float:
    r"""Return the quantile of the likelihood ratio: that of D at `flat` 0, of chi-square at 1.

    At a score where f has a positive slope :math:`-2\log\mathrm{pl}(f(s);s)` tends to a
    distribution D without parameters that is not :math:`\chi^2_1` (Banerjee and Wellner, 2001): the
    difference of the integrals of the squared slopes of the greatest convex minorants of
    :math:`W(t)+t^2`, without constraint and with slope 0 at t = 0, W a Brownian motion.
    ``experiments/validity/isotonic_limit.py`` simulates it (2 million draws of W). Its quantiles
    are close to 0.6 times those of :math:`\chi^2_1`; the factor is tabulated, interpolated
    linearly, and constant beyond the table.

    **Few rows.** Where f is flat the ratio is near :math:`\chi^2_1` instead (simulated: quantiles
    2.7 to 2.9 at 0.9, n = 10 to 1,000), and few rows do not distinguish a small slope from none:
    with D alone, f = expit(s) and s standard normal, 0.9 bounds contained f(s) in 0.85 of cases at
    10 to 100 rows. The quantile used is interpolated linearly between D and :math:`\chi^2_1` with
    weight :math:`u=(\sum_B(w_B/w)^2)^{1/2}` (`flatness`) for the latter, :math:`w_B` the weight of
    block B of the fit: 1 for one block, and decreasing as :math:`n^{-1/6}` where f has a positive
    slope. That contained f(s) in 0.87 to 0.98 of cases for nine functions and n = 10 to 1,000, at
    9 % more width than D alone at 1,000 rows, and a constant f in 0.85 to 0.96.
    """
    factor = np.interp(level, _FACTORS[:, 0], _FACTORS[:, 1])
    return float((factor + flat * (1 - factor)) * root_chi2_quantile(level) ** 2)


def flatness(starts: npt.NDArray[np.int64], weight: FloatArray) -> float:
    """Return the root of the sum of the blocks' squared fractions of the weight, 1 for one block.

    `starts` are the indices of the first score of each block, and the number of scores.
    """
    blocks = np.add.reduceat(weight, starts[:-1])
    return float(np.sqrt(((blocks / blocks.sum()) ** 2).sum()))


def _occurring(positions: IntArray, m: int) -> IntArray:
    """Return which of the positions 0..m occur, ascending."""
    occurs = np.zeros(m + 1, dtype=bool)
    occurs[positions] = True
    return np.flatnonzero(occurs)


def widened_bounds(
    n_at_or_left: IntArray,
    n_left: IntArray,
    successes: FloatArray,
    failures: FloatArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the ends of the contour's cut, widened near the first and last rows, each (n,).

    The isotonic fit is biased downwards near the first rows, being the least mean of all runs that
    begin there, and upwards near the last, for any n (Woodroofe and Sun, 1993): D is not the limit
    there. Where fewer than :math:`\lceil n^{2/3}\rceil` rows lie at or left of s, the upper end is
    at least that of `neighbour_bounds`; where as few lie at or right of s, the lower end is at most
    that of `neighbour_bounds`. The opposite end is conservative.
    """
    lower, upper = cut_bounds(n_at_or_left, n_left, successes, failures, level)
    outer_lower, outer_upper = neighbour_bounds(n_at_or_left, n_left, successes, failures, level)
    weight = np.concatenate([[0.0], np.cumsum(successes + failures)])
    window = _window(weight[-1])
    first, last = weight[n_at_or_left] < window, weight[-1] - weight[n_left] < window
    upper = np.where(first, np.maximum(upper, outer_upper), upper)
    return np.where(last, np.minimum(lower, outer_lower), lower), upper


def neighbour_bounds(
    n_at_or_left: IntArray,
    n_left: IntArray,
    successes: FloatArray,
    failures: FloatArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds that hold the value of any non-decreasing f at a confidence level, each (n,).

    The nearest :math:`\lceil n^{2/3}\rceil` rows at or left of s have probabilities of at most
    f(s), so their Clopper-Pearson lower limit is below f(s) at least as often as if all had
    probability f(s); the upper limit is that of the rows at or right of s. Ties are taken together;
    n is the sum of weights.
    """
    total = successes + failures
    window = _window(total.sum())
    m = len(total)
    lower, upper = np.empty(m + 1), np.empty(m + 1)
    low, high = _occurring(n_at_or_left, m), _occurring(n_left, m)
    lower[low] = _window_limits(low, successes, total, window, level)
    upper[high] = 1 - _window_limits(m - high, failures[::-1], total[::-1], window, level)
    return lower[n_at_or_left], upper[n_left]


def _window(weight: float) -> float:
    """Return the weight of the window of neighbours.

    It is a little less than a whole number: rounded sums of weights might include one row more.
    """
    return float(np.ceil(weight ** (2 / 3)) * (1 - 1e-12))


def _window_limits(
    ends: IntArray, successes: FloatArray, total: FloatArray, window: float, level: float
) -> FloatArray:
    """Return lower Clopper-Pearson limits of windows of weight `window` that end before `ends`."""
    weight = np.concatenate([[0.0], np.cumsum(total)])
    events = np.concatenate([[0.0], np.cumsum(successes)])
    start = np.searchsorted(weight, weight[ends] - window, side="right") - 1
    first = np.maximum(start, 0)
    k, n = events[ends] - events[first], weight[ends] - weight[first]
    # Without sample weights many windows have equal counts: compute each limit once.
    distinct, row = np.unique(k + 1j * n, return_inverse=True)
    k, n = distinct.real, distinct.imag
    return clopper_pearson(k, np.maximum(n - k, 0.0), level)[0][row]


def inserted_steps(successes: FloatArray, failures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values fitted at a score with a failure, and with a success, of weight 1 added.

    These are p0 and p1 of Venn-Abers prediction (Vovk and Petej, 2014): step functions of the
    score, each (m + 1,), as those of `belief_steps`.
    """
    from dubito._numerics.isotonic_compiled import values_with_failure  # noqa: PLC0415

    below, above = fits_below_and_above(successes, failures)
    with_failure = np.concatenate([[0.0], values_with_failure(below)])
    with_success = np.concatenate([1 - values_with_failure(above)[::-1], [1.0]])
    return with_failure, with_success


def contours(
    n_at_or_left: IntArray,
    n_left: IntArray,
    theta: FloatArray,
    successes: FloatArray,
    failures: FloatArray,
) -> FloatArray:
    """Return the contour at each θ, (n, len(theta)), for positions given as in `cut_bounds`."""
    from dubito._numerics.isotonic_compiled import contours_below_maximum  # noqa: PLC0415

    below, above = fits_below_and_above(successes, failures)
    # `n_at_or_left` is `n_left` or one more: the sum determines both.
    both, row = np.unique(n_left + n_at_or_left, return_inverse=True)
    n_left = both // 2
    down = np.argsort(-theta, kind="stable")
    up = down[::-1]
    result = np.ones((len(both), len(theta)))
    result[:, down] *= contours_below_maximum(both - n_left - 1, theta[down], below)
    result[:, up] *= contours_below_maximum(len(successes) - 1 - n_left, 1 - theta[up], above)
    return result[row]


def _scaled_fits(successes: FloatArray, failures: FloatArray) -> tuple[SuffixFits, SuffixFits]:
    """Return `fits_below_and_above` of a total weight of at most `LARGEST_WEIGHT`."""
    scale = LARGEST_WEIGHT / max(successes.sum() + failures.sum(), LARGEST_WEIGHT)
    return fits_below_and_above(scale * successes, scale * failures)


def fits_below_and_above(
    successes: FloatArray, failures: FloatArray
) -> tuple[SuffixFits, SuffixFits]:
    """Return the fits from which the contour below and above its maximum is computed."""
    from dubito._numerics.isotonic_compiled import fit_with_suffixes  # noqa: PLC0415

    # With a weight that is lost to rounding in sums the loop over segments of the contour would not
    # end; raising it to `_MIN_FRACTION` of the largest changes no digit.
    least = _MIN_FRACTION * max(successes.max(initial=0.0), failures.max(initial=0.0))
    successes = np.where(successes > 0, np.maximum(successes, least), 0.0)
    failures = np.where(failures > 0, np.maximum(failures, least), 0.0)
    below = fit_with_suffixes(successes, failures)
    above = fit_with_suffixes(failures[::-1].copy(), successes[::-1].copy())
    return below, above
