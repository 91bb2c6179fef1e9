r"""Rows of a logistic likelihood replaced by few weighted points with the same likelihood.

Within a panel on which the log-odds vary by less than 1 the softplus is a polynomial to 13 digits,
so the rows of a panel are replaced by 12 weighted points with the same sums of polynomials.

`condensed_rows_compiled` needs a quarter of the points, all of positive weight, for the same
accuracy. This version is used in `fit`, which does not load numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.logistic_curvature import logistic_curvature

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

#: Number of points that replace the rows of a panel.
_POINTS = 12

#: Distance from the estimate, in standard errors, up to which a slope has the same likelihood given
#: the points as given the rows.
_STANDARD_ERRORS = 10.0


def fewer_rows(
    x: FloatArray, event: BoolArray, weight: FloatArray, coef: tuple[float, float]
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return scores, events and sample weights of few rows with the same likelihood.

    `coef` are intercept and slope. The rows are returned unchanged if the standard error of the
    slope is large or undefined, or unless the points are less than half as many.
    """
    intercept, slope = coef
    curvature = logistic_curvature(intercept + slope * x, weight)
    total = curvature.sum()
    information = curvature @ (x - curvature @ x / total) ** 2 if total > 0 else 0.0
    slope_margin = _STANDARD_ERRORS / np.sqrt(information) if information > 0 else np.inf
    if slope_margin > max(abs(slope), 1.0):
        return x, event, weight
    # Log-odds vary by less than 1 within a panel, for any slope within `slope_margin`.
    width = 1 / max(abs(slope) + slope_margin, 2.0)
    parts = []
    for outcome in (False, True):
        chosen = event == outcome
        order = np.argsort(x[chosen], kind="stable")
        points = np.stack([x[chosen][order], weight[chosen][order]])
        parts.append(_same_moments(points, width) if points.size else points)
    label = np.repeat([False, True], [part.shape[1] for part in parts])
    positions, weights = np.hstack(parts)
    return (positions, label, weights) if 2 * len(label) < len(x) else (x, event, weight)


def _same_moments(points: FloatArray, width: float) -> FloatArray:
    """Return Chebyshev points and weights, (2, m), with the moments of the rows of each panel.

    `points` are positions, ascending, and weights; panels have the given width.
    """
    x, weight = points
    panel_number = np.floor((x - x[0]) / width)
    first, panel = np.unique(panel_number, return_inverse=True)
    local = np.clip(2 * ((x - x[0]) / width - panel_number) - 1, -1.0, 1.0)
    angle = (np.arange(_POINTS) + 0.5) * np.pi / _POINTS
    basis = np.cos(np.outer(np.arange(_POINTS), angle)) * (2 / _POINTS)
    basis[0] /= 2
    row_angle = np.arccos(local)
    moments = [np.bincount(panel, weight * np.cos(k * row_angle)) for k in range(_POINTS)]
    weights = np.stack(moments, axis=1) @ basis
    positions = x[0] + width * (first[:, None] + 0.5 * (1 + np.cos(angle)))
    return np.stack([positions.ravel(), weights.ravel()])
