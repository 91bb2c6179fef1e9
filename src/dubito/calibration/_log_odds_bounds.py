r"""Bounds of softmax maps that are shrunken towards temperature scaling.

The strengths that maximise the evidence are good for probabilities and too sure of themselves for
bounds: parameters that the data say nothing about are put at 0 as if that were known. For bounds
the strengths of slopes and biases are at most 1, a prior deviation of one log-odd, and the slope
that all classes share has next to no prior. The inverse of the Hessian with those strengths is the
covariance of the parameters, and log-odds of a class against the rest have standard errors by the
delta method.

Nearly separable rows do not tell how large the shared slope is, but that it is not small: along
this direction the likelihood is lopsided, and standard errors downwards and upwards are those that
the likelihood itself has, not its curvature.

Belief and plausibility are those around the fitted map. A level promises more. There, the strength
off the diagonal is at most 1 too, the deviation of slopes up to two log-odds, and the interval is
that around the map fitted with these strengths: shrinkage would else move its middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels.log_odds import belief_of_log_odds, cut_of_level, level_of_log_odds
from dubito._kernels.softmax import softmax_rows
from dubito._kernels.softmax_covariance import log_odds

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._checks import FloatArray
    from dubito._kernels.softmax_covariance import Covariance

#: Numbers held at once: 2 MiB of them stay in a cache.
_CHUNK = 2**18

#: Prior deviation of the slope that all classes share, in units of the deviation of the others.
_SHARED = 10.0

#: Cuts at which the likelihood along the shared slope is followed: the mean of a Rayleigh variable,
#: for belief, and those of levels 0.5, 0.9 and 0.99.
BELIEF_CUT = np.sqrt(np.pi / 2)
_CUTS = np.array([cut_of_level(0.5), BELIEF_CUT, cut_of_level(0.9), cut_of_level(0.99)])
#: How closely.
_TOLERANCE = 0.01


class SharedSlope(NamedTuple):
    """The direction in which all slopes move, one standard error long, and how far cuts reach.

    `direction` is (K, K+1), the bias last, or (K, 2) where only the diagonal moves. `down` and `up`
    are reaches at `_CUTS` over those of a parabola.
    """

    direction: FloatArray
    down: FloatArray
    up: FloatArray

    def reach(self, cut: float) -> tuple[float, float]:
        """Return how many times as far the likelihood reaches as a parabola, down and up."""
        return float(np.interp(cut, _CUTS, self.down)), float(np.interp(cut, _CUTS, self.up))

    def of_rows(self, scores: FloatArray) -> FloatArray:
        """Return the derivatives of the logits along the direction, (n, K)."""
        slopes, bias = self.direction[:, :-1], self.direction[:, -1]
        if slopes.shape[1] == 1:
            return scores * slopes[:, 0] + bias
        return scores @ slopes.T + bias


@dataclass(frozen=True)
class LogOddsSpread:
    """A softmax map and how sure it is: log-odds of each class with standard errors.

    `matrix` is (K, K), or (K,) where only the diagonal is not 0; `size` is the unit of the scores
    in which `covariance` and `shared` have their features.
    """

    matrix: FloatArray
    bias: FloatArray
    size: float
    covariance: Covariance
    shared: SharedSlope

    def proba(self, u: FloatArray) -> FloatArray:
        """Return the probabilities of the map, (n, K)."""
        return softmax_rows(self._logits(u))

    def _logits(self, u: FloatArray) -> FloatArray:
        logits = u * self.matrix if self.matrix.ndim == 1 else u @ self.matrix.T
        logits += self.bias
        return logits

    def log_odds(self, u: FloatArray, cut: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-odds of each class against the rest, and standard errors down and up.

        Parameters
        ----------
        u : array (n, K)
            Log scores.
        cut : float
            How many standard errors will be asked for.

        Returns
        -------
        eta, below, above : array (n, K)
        """
        eta, below, above = np.empty(u.shape), np.empty(u.shape), np.empty(u.shape)
        down, up = self.shared.reach(cut)
        step = max(1, _CHUNK // (self.covariance.numbers_per_row() + 8 * u.shape[1]))
        for i in range(0, len(u), step):
            part, rows = u[i : i + step], slice(i, i + step)
            scores = part / self.size
            found = log_odds(
                self.covariance.of_rows(scores), self._logits(part), self.shared.of_rows(scores)
            )
            eta[rows] = found.value
            falls = found.along < 0
            square = found.along**2
            below[rows] = np.sqrt(found.variance + np.where(falls, up**2, down**2) * square)
            above[rows] = np.sqrt(found.variance + np.where(falls, down**2, up**2) * square)
        return eta, below, above

    def belief(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of each class, each (n, K)."""
        return belief_of_log_odds(*self.log_odds(u, BELIEF_CUT))

    def at_level(self, u: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the interval of each class's probability at a confidence level, each (n, K)."""
        return level_of_log_odds(*self.log_odds(u, cut_of_level(level)), level)


def holding(
    proba: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return bounds widened to hold the probabilities, which are fitted in another way."""
    lower, upper = bounds
    return np.minimum(lower, proba), np.maximum(upper, proba)


def slope_strength(size: float) -> float:
    """Return the strength of slopes for a level, θ times typical scores being of some `size`.

    That of a prior deviation of the slope's own size, between one and two log-odds.
    """
    return float(1 / np.clip(size, 1.0, 2.0) ** 2)


def split_shared_slope(
    moved: FloatArray, slopes: FloatArray, strength: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return v and w: the covariance is :math:`C-vv^\mathsf T+ww^\mathsf T`.

    C has a penalty :math:`\tfrac\lambda2\lVert x\rVert^2` on K slopes. It pulls their mean towards
    θ, which is itself estimated from the rows; :math:`\lambda(I-\kappa11^\mathsf T/K)` would not,
    and :math:`\kappa<1` leaves the mean a prior of ten times the others' deviation. The covariance
    given the mean slope is :math:`C-vv^\mathsf T`, with either; the mean itself moves along w.

    Parameters
    ----------
    moved : array (p,)
        C times `slopes`.
    slopes : array (p,)
        1 for slopes, 0 for other parameters.
    strength : float
        λ.
    """
    n_slopes, spread = slopes.sum(), moved @ slopes
    freed = strength * (1 - 1 / (n_slopes * _SHARED**2))
    gap = max(n_slopes / freed - spread, 1e-12 * n_slopes / freed)
    return moved / np.sqrt(spread), moved * np.sqrt((1 + spread / gap) / spread)


def shared_slope(
    direction: FloatArray, shape: tuple[int, int], excess: Callable[[float], float] | None = None
) -> SharedSlope:
    """Return the direction with its reaches.

    Parameters
    ----------
    direction : array
        Of the parameters, one standard error long.
    shape : tuple
        Of `SharedSlope.direction`.
    excess : callable, optional
        Twice the fall of the log-likelihood at a multiple of the direction; a parabola if absent.
    """
    table = direction.reshape(shape)
    ones = np.ones(len(_CUTS))
    if excess is None:
        return SharedSlope(table, ones, ones)
    down, up = (np.array([_reach(excess, t, side) for t in _CUTS]) for side in (-1.0, 1.0))
    return SharedSlope(table, down, up)


def _reach(excess: Callable[[float], float], cut: float, side: float) -> float:
    """Return how many times farther than `cut` the excess is its square, by secants on its root."""
    low, high, factor = 0.0, np.inf, 1.0
    for _ in range(20):
        ratio = np.sqrt(max(excess(side * factor * cut), 0.0)) / cut
        if abs(ratio - 1) <= _TOLERANCE:
            break
        low, high = (factor, high) if ratio < 1 else (low, factor)
        middle = 0.5 * (low + high) if high < np.inf else 4 * factor
        guess = factor / max(ratio, 0.25)
        factor = guess if low < guess < high else middle
    return factor
