"""Chi-square cut of a contour: the depth at which it holds the true value at a confidence level."""

from __future__ import annotations

from scipy.special import ndtri


def root_chi2_quantile(level: float) -> float:
    r"""Return t, the square root of the quantile of :math:`\chi^2_1` at a level.

    The cut is where :math:`-2\log pl=t^2`, t standard errors from the estimate of a normal
    likelihood.
    """
    return float(-ndtri(0.5 * (1.0 - level)))
