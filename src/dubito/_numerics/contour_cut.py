"""Chi-square cut of a contour: the values that are not rejected at a confidence level."""

from __future__ import annotations

from scipy.special import ndtri


def root_chi2_quantile(level: float) -> float:
    r"""Return t, the square root of the quantile of :math:`\chi^2_1` at a level.

    The cut :math:`\{\theta:-2\log pl(\theta)\le t^2\}` contains the true value with probability
    `level`, asymptotically (Wilks); for a normal likelihood it ends t standard errors from the
    estimate.
    """
    return float(-ndtri(0.5 * (1.0 - level)))
