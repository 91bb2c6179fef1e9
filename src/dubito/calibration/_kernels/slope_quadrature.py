r"""Quadrature points over the relative likelihood of the slope, with the level set at each.

They integrate :math:`\int_0^1h(\Gamma(\gamma))\,d\gamma` with :math:`\Gamma(\gamma)` the slopes of
relative likelihood at least :math:`\gamma` (Xu et al. 2015, eq. 27), and are computed once for all
rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.quadrature import composite_gauss_legendre
from dubito.calibration._kernels.slope_likelihood import distance_at

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.slope_likelihood import SlopeLikelihood


class QuadraturePoints(NamedTuple):
    r"""Level sets [lower, upper] at quadrature points over :math:`\gamma`, from 1 down to 0.

    `gamma_weight` integrates over :math:`\gamma`, :math:`\int h(\Gamma(\gamma))d\gamma`;
    `lower_weight` and `upper_weight` integrate over the slope,
    :math:`\int h(\theta)\,pl(\theta)d\theta`, by the values of h at the ends of the level sets.
    `relative` points are for rows scaled to range 1.
    """

    slope: float
    gamma_weight: FloatArray
    lower: FloatArray
    upper: FloatArray
    lower_weight: FloatArray
    upper_weight: FloatArray
    relative: bool

    def columns(self) -> FloatArray:
        """Return the five arrays as columns (Q, 5), in the order of the fields."""
        return np.column_stack(self[1:6])


#: Largest r of the integrals: relative likelihoods below exp(-r²/2) = 2e-11 are left out.
_LARGEST_R = 7.0
#: Panels are halved until the error of test integrals is below this.
_PANEL_TOLERANCE = 1e-8
#: Test integrands include rows of scores this many times wider than the widest of the fit.
_LARGEST_RELATIVE_RANGE = 1e3
#: Number of points in each panel of a composite rule.
PANEL = 4


def quadrature_points(fit: SlopeLikelihood, n_points: int, *, refine: int = 0) -> QuadraturePoints:
    r"""Return quadrature points in r, where :math:`\gamma=e^{-r^2/2}`.

    A Gauss-Legendre rule of `n_points` points, or several of them on adjacent panels where level
    sets are asymmetric or reach slope 0, is accurate for smooth integrands. For others, `refine` >
    0 makes each a composite rule of panels of `PANEL` points, with up to `refine` times as many.
    """
    if fit.score_range == 0.0:
        return _points_for_constant_scores(n_points, refine)
    offset, boundaries = _offset_and_boundaries(fit)
    panels = _resolved_panels(fit, boundaries, offset, n_points, min(refine, 1))
    x, panel_weight = _compose(panels, n_points, refine)
    points = _points_at(fit, x, panel_weight, offset)
    return points._replace(gamma_weight=points.gamma_weight / points.gamma_weight.sum())


def _points_at(
    fit: SlopeLikelihood, x: FloatArray, panel_weight: FloatArray, offset: float
) -> QuadraturePoints:
    """Return quadrature points at x, the variable of `_offset_and_boundaries`."""
    excess = 0.5 * x * (x + 2 * offset)
    gamma_weight = panel_weight * (x + offset) * np.exp(-excess)
    down, down_rate = distance_at(fit.below, excess)
    up, up_rate = distance_at(fit.above, excess)
    return QuadraturePoints(
        fit.slope,
        gamma_weight,
        np.maximum(fit.slope - down, 0.0),
        fit.slope + up,
        gamma_weight / down_rate,
        gamma_weight / up_rate,
        False,
    )


def _offset_and_boundaries(fit: SlopeLikelihood) -> tuple[float, FloatArray]:
    r"""Return the offset a of :math:`r^2=x^2+2ax` and the boundaries of smooth intervals of x.

    With the estimate at its bound, slope 0, the level set's end is proportional to :math:`r^2` at
    first and to r later; in :math:`x=\sqrt{r^2+a^2}-a` it is nearly linear. Otherwise a is 0 and x
    is r; where the level set reaches slope 0, its lower end is constant from there on.
    """
    offset = 0.0
    if fit.slope == 0.0:
        _, rate, half_curvature = fit.above.coefficients[0, :3]
        offset = float(rate / np.sqrt(2 * half_curvature))
    last_x = _LARGEST_R**2 / (np.hypot(_LARGEST_R, offset) + offset)
    lower_stop = float(np.sqrt(2 * fit.below.excess[-1]))
    if fit.slope > 0.0 and lower_stop < last_x:
        return offset, np.array([0.0, lower_stop, last_x])
    return offset, np.array([0.0, last_x])


def _resolved_panels(
    fit: SlopeLikelihood, boundaries: FloatArray, offset: float, n_points: int, refine: int
) -> FloatArray:
    """Return panels on which the rule agrees with that on their halves, for all test integrands."""

    def integrals(ends: FloatArray) -> FloatArray:
        return _test_integrals(fit, _compose(ends, n_points, refine), offset, len(ends))

    ends = np.column_stack([boundaries[:-1], boundaries[1:]])
    whole = integrals(ends)
    panels = []
    while len(ends):
        middle = ends.mean(axis=1)
        halves = np.column_stack([ends[:, 0], middle, middle, ends[:, 1]]).reshape(-1, 2)
        parts = integrals(halves)
        difference = np.abs(whole - parts[::2] - parts[1::2]).max(axis=1)
        wide = ends[:, 1] - ends[:, 0] > boundaries[-1] * 2.0**-30
        divide = wide & (difference > _PANEL_TOLERANCE)
        panels.append(ends[~divide])
        ends, whole = halves[np.repeat(divide, 2)], parts[np.repeat(divide, 2)]
    resolved = np.concatenate(panels)
    return np.asarray(resolved[np.argsort(resolved[:, 0])])


def _test_integrals(
    fit: SlopeLikelihood, rule: tuple[FloatArray, FloatArray], offset: float, n_panels: int
) -> FloatArray:
    r"""Return integrals of probabilities :math:`1/(1+Me^{-c\theta})`, all scales c, on each panel.

    They are the probabilities of rows with two distinct scores, whose curvature in the slope is the
    largest of any row.
    """
    points = _points_at(fit, *rule, offset)
    largest_slope = fit.slope + fit.above.knots[-1]
    last = np.log2(_LARGEST_RELATIVE_RANGE * fit.score_range)
    # Where all slopes are tiny even the widest rows are flat in them, and one scale is enough.
    scales = 2.0 ** np.arange(np.floor(min(-np.log2(largest_slope), last)), last + 1)

    def by_panel(values: FloatArray) -> FloatArray:
        return np.asarray(values.reshape(len(scales), n_panels, -1).sum(axis=2).T)

    results = []
    for slopes, slope_weight in (
        (points.lower, points.lower_weight),
        (points.upper, points.upper_weight),
    ):
        decay = np.exp(-np.minimum(np.multiply.outer(scales, slopes), 700.0))
        for n_others in (1.0, 30.0, 1000.0):  # M of the formula
            p = 1 / (1 + n_others * decay)
            results += [by_panel(p * points.gamma_weight)]
            results += [by_panel(p * (1 - p) * np.multiply.outer(scales, slope_weight))]
    return np.hstack(results)


def _compose(ends: FloatArray, n_points: int, refine: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of Gauss-Legendre rules on panels with ends (m, 2), in order."""
    if refine:
        ends, n_points = _divided(ends, n_points, refine), PANEL
    return composite_gauss_legendre(ends, n_points)


def _divided(ends: FloatArray, n_points: int, refine: int) -> FloatArray:
    """Return panels divided for rules of `PANEL` points; narrow ones keep their point count."""
    width = ends[:, 1] - ends[:, 0]
    count = np.ceil(n_points * np.maximum(refine * width / ends[-1, 1], 1.0) / PANEL).astype(int)
    index = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    step, start = np.repeat(width / count, count), np.repeat(ends[:, 0], count)
    return np.column_stack([start + index * step, start + (index + 1) * step])


def _points_for_constant_scores(n_points: int, refine: int) -> QuadraturePoints:
    """Return quadrature points for constant scores, whose likelihood is constant in the slope.

    Every level set is [0, inf); rows are scaled to range 1, for which slopes from 1e-6 to 1e6
    represent it.
    """
    boundaries = np.concatenate([[0.0], 4.0 ** np.arange(-10, 11)])
    slopes, panel_weight = _compose(
        np.column_stack([boundaries[:-1], boundaries[1:]]), n_points, min(refine, 1)
    )
    largest_slope = np.full(PANEL, boundaries[-1])
    zeros, no_weight = np.zeros_like(slopes), np.zeros(PANEL)
    return QuadraturePoints(
        0.0,
        np.append(zeros, np.full(PANEL, 1 / PANEL)),
        np.append(zeros, no_weight),
        np.append(slopes, largest_slope),
        np.append(zeros, no_weight),
        np.append(panel_weight, no_weight),
        True,
    )
