r"""Bounds of a probability whose log-odds are known up to a standard error.

The contour of the log-odds is :math:`pl(\eta)=\exp(-\tfrac12(\eta-\hat\eta)^2/s^2)`. Its cut at
:math:`-2\log pl=r^2` is :math:`\hat\eta\pm rs`, so

.. math:: \mathrm{Bel}=\int_0^\infty\sigma(\hat\eta-rs)\,re^{-r^2/2}dr,\qquad
          \mathrm{Pl}=\int_0^\infty\sigma(\hat\eta+rs)\,re^{-r^2/2}dr,

and the interval at a confidence level is the cut with :math:`r^2` its quantile of :math:`\chi^2_1`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from dubito._numerics.contour_cut import root_chi2_quantile
from dubito._numerics.quadrature import composite_gauss_legendre

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray

#: Mean of r under its density r·exp(-r²/2): the distance, in standard errors, that belief and
#: plausibility depend on most.
BELIEF_DEVIATION = np.sqrt(np.pi / 2)

#: Upper end of the integrals over r: exp(-r²/2) = 3e-18.
_LARGEST_R = 9.0
#: Largest standard error s, and number of points, of each Gauss rule of the density r·exp(-r²/2).
#: The integrals are then accurate to 1e-7: the poles of r ↦ σ(η + rs) are at distance π/s.
_GAUSS = ((0.5, 5), (0.75, 6), (1.0, 8), (1.5, 10), (2.0, 14), (3.0, 24), (4.0, 32))
#: For larger s rules have panels of 16 points: eight panels up to s = 8, twice as many up to 16,
#: and so on; the rule for s up to 64 is used for all that are larger.
_PANEL_POINTS, _FIRST_PANELS, _LAST_LIMIT = 16, 8, 64.0


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
    >>> from dubito.calibration._kernels.log_odds_bounds import belief_of_log_odds
    >>> deviation = np.array([0.0, 1.0])
    >>> lower, upper = belief_of_log_odds(np.zeros(2), deviation, deviation)
    >>> lower.round(4), upper.round(4)
    (array([0.5  , 0.241]), array([0.5  , 0.759]))
    """
    from dubito.calibration._kernels.log_odds_bounds_compiled import rayleigh_means  # noqa: PLC0415 - loads numba

    lower, upper = np.empty(eta.shape), np.empty(eta.shape)
    rayleigh_means(eta.ravel(), below.ravel(), _rules(), lower.ravel(), -1.0)
    rayleigh_means(eta.ravel(), above.ravel(), _rules(), upper.ravel(), 1.0)
    return lower, upper


def level_bounds_of_log_odds(
    eta: FloatArray, below: FloatArray, above: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds at a confidence level of an event with log-odds `eta`, of its shape."""
    t = root_chi2_quantile(level)
    return expit(eta - t * below), expit(eta + t * above)


@cache
def _rules() -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp], FloatArray]:
    """Return points and weights of all rules, concatenated, the start of each rule, and limits.

    Rule i is for standard errors up to ``limits[i]``, the last also for all that are larger.
    """
    from dubito._numerics.quadrature_compiled import gauss_rule  # noqa: PLC0415 - loads numba

    fine = _composite(100)
    rules = [gauss_rule(*fine, count) for _, count in _GAUSS]
    limits = [limit for limit, _ in _GAUSS]
    panels = _FIRST_PANELS
    while limits[-1] < _LAST_LIMIT:
        rules.append(_composite(panels))
        limits.append(2 * limits[-1])
        panels *= 2
    points, weights = np.concatenate(rules, axis=1)
    start = np.cumsum([0, *(rule.shape[1] for rule in rules)])
    return points, weights, start, np.array(limits)


def _composite(panels: int) -> FloatArray:
    """Return points and weights of Gauss-Legendre rules on panels of [0, 9], with the density."""
    edges = np.linspace(0.0, _LARGEST_R, panels + 1)
    r, weight = composite_gauss_legendre(np.column_stack([edges[:-1], edges[1:]]), _PANEL_POINTS)
    density = weight * r * np.exp(-0.5 * r * r)
    return np.stack([r, density / density.sum()])
