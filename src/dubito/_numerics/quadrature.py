"""Quadrature rules: Gauss-Kronrod (7, 15) on [-1, 1], and Gauss-Legendre on adjacent panels.

The Gauss rule uses every second point of the Kronrod rule; the difference of both estimates the
error.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray

# As in QUADPACK: the points at and right of the middle, descending, and their weights.
_POINTS = np.array(
    [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144691258680,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
        0.000000000000000000000000000000000,
    ]
)
_KRONROD = np.array(
    [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
        0.209482141084727828012999174891714,
    ]
)
_GAUSS = np.array(
    [
        0.0,
        0.129484966168869693270611432679082,
        0.0,
        0.279705391489276667901467771423780,
        0.0,
        0.381830050505118944950369775488975,
        0.0,
        0.417959183673469387755102040816327,
    ]
)

#: The 15 points, ascending, with their weights under both rules.
KRONROD_POINTS = np.concatenate([-_POINTS, _POINTS[-2::-1]])
KRONROD_WEIGHTS = np.concatenate([_KRONROD, _KRONROD[-2::-1]])
GAUSS_WEIGHTS = np.concatenate([_GAUSS, _GAUSS[-2::-1]])

_gauss_legendre = cache(np.polynomial.legendre.leggauss)


def composite_gauss_legendre(ends: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of Gauss-Legendre rules on panels with ends (m, 2), in order."""
    x, w = _gauss_legendre(n_points)
    half = 0.5 * (ends[:, 1:] - ends[:, :1])
    return (ends[:, :1] + half * (x + 1)).ravel(), (half * w).ravel()
