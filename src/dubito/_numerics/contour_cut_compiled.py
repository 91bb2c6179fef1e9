r"""Secant search for an end of a cut of a contour, :math:`\{\eta:-2\log pl(\eta)\le t^2\}`.

The secant method is applied to :math:`r=\sqrt{-2\log pl}`, which is nearly linear in the log-odds,
and takes four to seven contour values. `outward` is η in the search of the upper end and -η in that
of the lower one, so that it always increases towards the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Log-odds whose probability is 0 or 1 to rounding, with a logistic density below 5e-18. A cut that
#: reaches them counts as unbounded on that side; integrals over log-odds end there.
CERTAIN_LOG_ODDS = 40.0

#: Limit on the steps of a search; after them the last point evaluated outside the cut counts as its
#: end.
MAX_STEPS = 80


@compiled()
def begin_search(search: FloatArray, inside: float, r: float) -> None:
    """Write the state before a search begins.

    Rows of `search` are (outward, r) of the last point inside the cut, of the last one outside it,
    and of the last one evaluated.
    """
    search[0, 0], search[0, 1] = inside, r
    search[1, 0], search[1, 1] = np.inf, np.inf
    search[2, 0], search[2, 1] = np.nan, np.nan


@compiled()
def next_point(search: FloatArray, outward: float, r: float, t: float, scale: float) -> float:
    """Store r at the point just evaluated, and return the next point to evaluate.

    `scale` is the change of `outward` with r at the estimate: a standard error.
    """
    last_outward, last_r = search[2]
    search[2, 0], search[2, 1] = outward, r
    row = 0 if r < t else 1
    search[row, 0], search[row, 1] = outward, r
    rate = (r - last_r) / (outward - last_outward) if outward != last_outward else np.nan
    if math.isnan(rate):  # no earlier point: the rate of a normal likelihood
        rate = 1.0 / scale
    new = outward + (t - r) / rate if rate > 0.0 else np.nan
    inside, outside = search[0, 0], search[1, 0]
    if outside == np.inf:
        if not new > inside:
            new = inside + scale
        return min(new, inside + 8.0 * max(scale, 1.0), CERTAIN_LOG_ODDS)
    if inside < new < outside:
        return new
    return 0.5 * (inside + outside)


@compiled()
def is_converged(search: FloatArray, new: float, scale: float, step: int) -> bool:
    """Return whether the next point is the end, to about nine digits of a probability.

    Secant steps converge superlinearly: the next error is far below the length of this step.
    """
    near = 1e-6 if step > 0 else 1e-10
    if abs(new - search[2, 0]) <= near * min(scale, 1.0):
        return True
    return bool(search[1, 0] - search[0, 0] <= 1e-10 * min(scale, 1.0))
