"""Bounds at a confidence level by their definition: constrained optima, one at a time.

The hull of the level sets of two contours, of the plain likelihood and of the likelihood with p/2
pseudo-observations beside the rows (p coefficients). Uses no code of dubito.
"""

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit
from scipy.stats import chi2

from reference.joint import JointLogistic


def joint_bounds(scores, y, row, level, weight=None):
    """Return the bounds at one row of scores whose classes overlap."""
    size = np.shape(scores)[1] + 1
    models = [JointLogistic(scores, y, targets=c, weight=weight) for c in ("raw", 0.5 * size)]
    ends = [_ends(model, row, level) for model in models]
    return expit(min(low for low, _ in ends)), expit(max(high for _, high in ends))


def _ends(model, row, level):
    relative, (best, deviation) = model.profile(row), model.estimate(row)

    def excess(eta):
        return -2 * np.log(relative(eta)) - chi2.ppf(level, 1)

    ends = []
    for sign in (-1, 1):
        outside = best + sign * deviation
        while excess(outside) < 0:
            outside += sign * deviation
        ends.append(brentq(excess, best, outside, xtol=1e-11))
    return ends


def one_score_bounds(s, y, at, level):
    """Return the bounds at one score, also of separated classes: slopes start from a grid.

    Log-odds beyond 40 count as certainty.
    """
    s = np.asarray(s, dtype=float)
    size = 2 if np.ptp(s) > 0 else 1
    ends = [_ends_on_a_line(s, np.asarray(y), at, level, c) for c in (1e-9, 0.5 * size)]
    return expit(min(low for low, _ in ends)), expit(max(high for _, high in ends))


def _ends_on_a_line(s, y, at, level, pseudo):
    fraction = pseudo / (len(s) + pseudo)
    target = (1 - fraction) * y + fraction / 2
    centred = (s - at) / max(np.ptp(s), 1e-12)
    grid = np.r_[-np.logspace(5, -2, 40), 0.0, np.logspace(-2, 5, 40)]

    def value(eta, slope):
        log_odds = eta + np.multiply.outer(slope, centred)
        return (np.logaddexp(0, log_odds) - target * log_odds).sum(axis=-1)

    def least(eta):
        values = value(eta, grid)
        k = values.argmin()
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        found = minimize_scalar(
            lambda slope: value(eta, slope), bounds=ends, method="bounded", options={"xatol": 1e-11}
        )
        return min(found.fun, values[k])

    etas = np.linspace(-40, 40, 81)
    values = [least(eta) for eta in etas]
    k = int(np.argmin(values))
    ends = etas[max(k - 1, 0)], etas[min(k + 1, 80)]
    found = minimize_scalar(least, bounds=ends, method="bounded", options={"xatol": 1e-10})
    best, bottom = (found.x, found.fun) if found.fun < values[k] else (etas[k], values[k])

    def excess(eta):
        return 2 * (least(eta) - bottom) - chi2.ppf(level, 1)

    low = brentq(excess, -40, best, xtol=1e-11) if excess(-40) > 0 else -np.inf
    high = brentq(excess, best, 40, xtol=1e-11) if excess(40) > 0 else np.inf
    return low, high
