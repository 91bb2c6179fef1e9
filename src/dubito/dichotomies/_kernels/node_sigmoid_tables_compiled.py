r"""Tables of functions of the score, for the sigmoid of each node: Chebyshev series over angles.

With mean m and deviation d of a node's rows, weighted by their curvature (its *angle units*), a
score x has the angle :math:`\psi=\arctan((x-m)/d)`. The bounds of the probability at x are smooth
functions of ψ on the whole half circle, infinite scores included: a few panels of Chebyshev series
approximate them for every score, and a look-up costs a few dozen products. Panels are halved until
their series have converged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.logistic_fit import LARGEST

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

    #: start (nodes + 1,): first panel of each node, then the number of all panels; units (nodes, 2)
    #: of the angles of each node; edges (panels,): left edge of each panel; series (panels,
    #: functions, terms): Chebyshev coefficients on each panel.
    Tables: TypeAlias = tuple[IntArray, FloatArray, FloatArray, FloatArray]

#: Rows looked up together, node by node, so that the node's table stays in the processor's cache.
CHUNK_ROWS = 64

#: Coordinates in a panel at which a series is compared with the function itself.
CHECKS = np.array([-0.97, -0.42, 0.29, 0.93])


def chebyshev(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Chebyshev points, descending, and the matrix from values there to coefficients."""
    angles = (np.arange(size) + 0.5) * np.pi / size
    to_series = np.cos(np.outer(np.arange(size), angles)) * (2 / size)
    to_series[0] /= 2
    return np.cos(angles), to_series


@compiled()
def clenshaw(series: FloatArray, x: float) -> float:
    """Return a Chebyshev series at x, by Clenshaw's recurrence."""
    ahead = after = 0.0
    for k in range(len(series) - 1, 0, -1):
        ahead, after = series[k] + 2.0 * x * ahead - after, ahead
    return series[0] + x * ahead - after


@compiled()
def standardised_score(score: float, coef: FloatArray) -> float:
    """Return a score in the units of a node's sigmoid; `coef` is a row of `fit_sigmoids`."""
    score = min(max(score, -LARGEST), LARGEST)
    return (score - coef[0]) / coef[1] if coef[1] > 0.0 else 0.0


@compiled()
def find_panel(x: float, t: int, tables: Tables) -> tuple[float, int, float]:
    """Return the angle of a standardised score, its panel, and its coordinate u in the panel.

    The panel is one of node t; u in [-1, 1] is the argument of its Chebyshev series.
    """
    start, units, edges, _ = tables
    psi = math.atan((x - units[t, 0]) / units[t, 1])
    panel = start[t]
    while panel + 1 < start[t + 1] and edges[panel + 1] <= psi:
        panel += 1
    end = edges[panel + 1] if panel + 1 < start[t + 1] else 0.5 * np.pi
    return psi, panel, 2.0 * (psi - edges[panel]) / (end - edges[panel]) - 1.0
