r"""Bounds of a probability whose log-odds are known up to a standard error.

The contour of the log-odds is :math:`pl(\eta)=\exp(-\tfrac12(\eta-\hat\eta)^2/s^2)`. Its cut at
:math:`-2\log pl=r^2` is :math:`\hat\eta\pm rs`, so

.. math:: \mathrm{Bel}=\int_0^\infty\sigma(\hat\eta-rs)\,re^{-r^2/2}dr,\qquad
          \mathrm{Pl}=\int_0^\infty\sigma(\hat\eta+rs)\,re^{-r^2/2}dr,

and a confidence level has the cut at the square root of its quantile of :math:`\chi^2_1`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtri

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

#: Cuts beyond r = 8 have plausibility 1e-14.
_FARTHEST = 8.0
#: Points of a panel of 8, for standard errors up to 1.
_POINTS = 16
#: Panels at most: with a standard error above 64, errors of the integrals grow from 1e-9.
_MOST_PANELS = 64


def belief_of_log_odds(
    eta: FloatArray, below: FloatArray, above: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of an event with log-odds `eta`, arrays of any shape.

    Parameters
    ----------
    eta : array
        Estimated log-odds.
    below, above : array of the same shape
        Their standard errors downwards and upwards, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito._kernels.log_odds import belief_of_log_odds
    >>> deviation = np.array([0.0, 1.0])
    >>> lower, upper = belief_of_log_odds(np.zeros(2), deviation, deviation)
    >>> lower.round(4), upper.round(4)
    (array([0.5  , 0.241]), array([0.5  , 0.759]))
    """
    from dubito._kernels.log_odds_compiled import rayleigh_means  # noqa: PLC0415 - loads numba

    lower, upper = np.empty(eta.shape), np.empty(eta.shape)
    rayleigh_means(eta.ravel(), below.ravel(), _rules(), lower.ravel(), -1.0)
    rayleigh_means(eta.ravel(), above.ravel(), _rules(), upper.ravel(), 1.0)
    return lower, upper


def level_of_log_odds(
    eta: FloatArray, below: FloatArray, above: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval of a probability at a confidence level."""
    t = cut_of_level(level)
    return expit(eta - t * below), expit(eta + t * above)


def cut_of_level(level: float) -> float:
    """Return t, whose square is the quantile of χ² with one degree of freedom."""
    return float(ndtri(0.5 * (1 + level)))


@cache
def _rules() -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp]]:
    """Return points and weights of rules with 1, 2, 4, ... panels on [0, 8], one after another.

    Rule i begins at ``start[i]`` and serves standard errors up to 2ⁱ.
    """
    x, w = np.polynomial.legendre.leggauss(_POINTS)
    points, weights, start = [], [], [0]
    panels = 1
    while panels <= _MOST_PANELS:
        width = _FARTHEST / panels
        r = (width * (np.arange(panels)[:, None] + 0.5 * (x + 1))).ravel()
        points.append(r)
        density = np.tile(0.5 * width * w, panels) * r * np.exp(-0.5 * r * r)
        weights.append(density / density.sum())
        start.append(start[-1] + len(r))
        panels *= 2
    return np.concatenate(points), np.concatenate(weights), np.array(start)
