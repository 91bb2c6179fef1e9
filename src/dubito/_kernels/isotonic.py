r"""Isotonic regression of events on scores, and the profile likelihood of its value at a score.

Distinct scores :math:`x_0<\ldots<x_{m-1}` have :math:`k_i` successes and :math:`r_i` failures (sums
of weights). The likelihood of a non-decreasing f is :math:`\prod_i f_i^{k_i}(1-f_i)^{r_i}`; pooling
adjacent violators (PAV) maximises it.

**The contour at a score s** is
:math:`\mathrm{pl}(\theta;s)=\sup\{L(f): f(s)=\theta\}/\sup L`. Under :math:`f(s)=\theta` the two
sides separate: left scores need :math:`f_i\le\theta`, right scores :math:`f_i\ge\theta`, a score at
s has :math:`f_i=\theta`. With a bound at one end the isotonic fit is the free fit, clipped (Barlow
et al., 1972), so

.. math:: f_i=\min(f_i^{\mathrm{left}},\theta)\;(x_i<s),\qquad
          f_i=\max(f_i^{\mathrm{right}},\theta)\;(x_i>s),

with :math:`f^{\mathrm{left}}` the PAV fit of the left scores **alone**, and so on the right.

**What that has to do with the fit to all scores.** The PAV values are the slopes of the greatest
convex minorant (GCM) of the cumulative sums. Cut the data inside a block D of value v. The GCM of
the left part lies between the GCM of all and the sums, which agree at every block end before D, and
between two of those the GCM of all is a chord: so left of D nothing changes. Inside D the sums lie
above D's chord, so the left part of D refitted alone has values :math:`\ge v` and, by the same
argument, its right part has values :math:`\le v`. Hence for :math:`\theta<v`:

* left scores of D, and a score at s, are held at θ;
* right scores of D have their refitted value where it exceeds θ, and θ where not;
* blocks left of D have their value, or θ where it exceeds θ; blocks right of D are unchanged.

Between consecutive values in question the contour is thus a constant times
:math:`\theta^a(1-\theta)^b`. It depends on s only through the last score :math:`\le s`. For
θ > v the mirrored statement holds, with the first score :math:`\ge s`. If s separates two blocks,
every θ between their values has plausibility 1; below all scores so has every θ in
:math:`[0,f_0]`. One right-to-left PAV keeps the fits of all suffixes as a tree
(`isotonic_compiled.suffix_chains`), so no score is ever refitted.

**Belief and plausibility.** The levels are intervals
:math:`[\theta_{lo}(\gamma),\theta_{hi}(\gamma)]`;
:math:`\mathrm{Bel}=\int\theta_{lo}d\gamma=v_{lo}-\int_0^{v_{lo}}\mathrm{pl}` and
:math:`\mathrm{Pl}=\int\theta_{hi}d\gamma=v_{hi}+\int_{v_{hi}}^1\mathrm{pl}` with
:math:`[v_{lo},v_{hi}]` the values of plausibility 1. The integrals are differences of incomplete
beta functions; they are computed by Gauss-Legendre rules in log-odds, piece by piece, which loses
no digits when powers are large and pieces narrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: More weight than this in all is taken for this much: the bounds of a block
#: that has it all are then 1e-7 apart at most, and closer ones would be lost in rounding.
_MOST = 1e15

#: Differences of scores beyond this may overflow.
_HUGE = 1e307


def pool_ties(
    score: FloatArray, event: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, ascending, with the weights of their successes and failures."""
    distinct, place = np.unique(score, return_inverse=True)
    successes = sums(place, np.where(event, weight, 0.0), len(distinct))
    return distinct, successes, sums(place, np.where(event, 0.0, weight), len(distinct))


def sums(place: npt.NDArray[np.intp], weight: FloatArray, size: int) -> FloatArray:
    """Sum weights by their place among 0..size-1."""
    return np.asarray(np.bincount(place, weight, size), dtype=np.float64)


def isotonic_fit(successes: FloatArray, failures: FloatArray) -> FloatArray:
    """Return the non-decreasing values that maximise the likelihood."""
    total = successes + failures
    return np.clip(isotonic_regression(successes / total, weights=total).x, 0.0, 1.0)


def interpolate(score: FloatArray, knots: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate linearly between ascending knots, flat beyond them; `values` do not decrease."""
    right = np.clip(np.searchsorted(knots, score), 1, max(len(knots) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(knots) - 1)
    scale = 0.25 if max(-knots[0], knots[-1]) > _HUGE else 1.0
    score = scale * np.clip(score, knots[0], knots[-1])
    gap = scale * knots[right] - scale * knots[left]
    part = np.divide(score - scale * knots[left], gap, out=np.zeros_like(score), where=gap > 0)
    low, high = values[left], values[right]
    return np.clip(low + part * (high - low), low, high)


def belief_steps(successes: FloatArray, failures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility as step functions of the score, each (m + 1,).

    ``belief[j]`` is that of a score with j distinct scores at or left of it, ``plausibility[j]``
    that of one with j distinct scores strictly left of it.
    """
    from dubito._kernels.isotonic_compiled import lower_beliefs  # noqa: PLC0415

    scale = min(1.0, _MOST / (successes.sum() + failures.sum()))
    below, above = both_sides(scale * successes, scale * failures)
    belief = np.concatenate([[0.0], lower_beliefs(below)])
    plausibility = np.concatenate([1 - lower_beliefs(above)[::-1], [1.0]])
    # Both rise with the score; rounding may not.
    return np.maximum.accumulate(belief), np.minimum.accumulate(plausibility[::-1])[::-1]


def contours(place: npt.NDArray[np.intp], theta: FloatArray, sides: tuple[Any, Any]) -> FloatArray:
    """Return the contour at each θ, one row for each place among the distinct scores.

    Place 2j + 1 is that of distinct score j, place 2j lies just left of it. `sides` are those of
    `both_sides`.
    """
    from dubito._kernels.isotonic_compiled import lower_contours  # noqa: PLC0415

    below, above = sides
    m = len(below[0])
    places, row = np.unique(place, return_inverse=True)
    left = places // 2
    down = np.argsort(-theta, kind="stable")
    up = down[::-1]
    result = np.ones((len(places), len(theta)))
    result[:, down] *= lower_contours(places - left - 1, theta[down], below)
    result[:, up] *= lower_contours(m - 1 - left, 1 - theta[up], above)
    return result[row]


def both_sides(successes: FloatArray, failures: FloatArray) -> tuple[Any, Any]:
    """Return the fits that the lower and the upper side of the contour are read from."""
    from dubito._kernels.isotonic_compiled import fit_prefixes  # noqa: PLC0415

    below = fit_prefixes(successes, failures)
    above = fit_prefixes(failures[::-1].copy(), successes[::-1].copy())
    return below, above
