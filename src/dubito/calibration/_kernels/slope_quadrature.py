"""Level sets of the slope at quadrature points over the level, computed once for all rows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.calibration._kernels.slope_likelihood import distance_at

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.slope_likelihood import SlopeLikelihood


class QuadraturePoints(NamedTuple):
    r"""Level sets [lower, upper] at nodes of an integral over the level, from 1 down to 0.

    `weight` integrates over the level, :math:`\int h(\Gamma(\gamma))d\gamma`; `lower_weight` and
    `upper_weight` integrate over the slope, :math:`\int h(\theta)\,pl(\theta)d\theta`, by its
    values at the level sets' ends. `relative` nodes are for rows scaled to range 1.
    """

    slope: float
    weight: FloatArray
    lower: FloatArray
    upper: FloatArray
    lower_weight: FloatArray
    upper_weight: FloatArray
    relative: bool


#: Levels below exp(-24.5) = 2e-11 are left out of integrals.
_DEPTH = 7.0
#: Panels are halved until test integrands are right to this.
_PANEL_TOLERANCE = 1e-8
#: Rows up to so many times wider than the widest of the fit are among the test integrands.
_WIDER = 1e3
#: Points of each panel of a composite rule.
PANEL = 4


def quadrature_points(fit: SlopeLikelihood, n_nodes: int, *, refine: int = 0) -> QuadraturePoints:
    r"""Return nodes in r, where :math:`\gamma=e^{-r^2/2}`.

    A Gauss-Legendre rule of `n_nodes` points, or several of them side by side where the level sets
    are lopsided or reach slope 0, serves smooth integrands; for others `refine` > 0 makes each a
    composite of panels of `PANEL` points, up to `refine` times as many.
    """
    if fit.reach == 0.0:
        return _flat_nodes(n_nodes, refine)
    drift, breaks = _drift_and_breaks(fit)
    panels = _resolved_panels(fit, breaks, drift, n_nodes, min(refine, 1))
    x, share = _compose(panels, n_nodes, refine)
    nodes = _nodes_at(fit, x, share, drift)
    return nodes._replace(weight=nodes.weight / nodes.weight.sum())


def _nodes_at(
    fit: SlopeLikelihood, x: FloatArray, share: FloatArray, drift: float
) -> QuadraturePoints:
    level = 0.5 * x * (x + 2 * drift)
    weight = share * (x + drift) * np.exp(-level)
    down, down_rate = distance_at(fit.below, level)
    up, up_rate = distance_at(fit.above, level)
    return QuadraturePoints(
        fit.slope,
        weight,
        np.maximum(fit.slope - down, 0.0),
        fit.slope + up,
        weight / down_rate,
        weight / up_rate,
        False,
    )


def _drift_and_breaks(fit: SlopeLikelihood) -> tuple[float, FloatArray]:
    r"""Return the drift a of :math:`r^2=x^2+2ax` and the ends of smooth stretches of x.

    With the estimate at the guard, slope 0, the level set's end moves as :math:`r^2` at first and
    as r later; as :math:`x=\sqrt{r^2+a^2}-a` it moves evenly. Elsewhere a is 0 and x is r, and
    where the level set reaches slope 0 its lower end stops.
    """
    drift = 0.0
    if fit.slope == 0.0:
        _, rate, bend = fit.above.coefficients[0, :3]
        drift = float(rate / np.sqrt(2 * bend))
    deepest = _DEPTH**2 / (np.hypot(_DEPTH, drift) + drift)
    stop = float(np.sqrt(2 * fit.below.excess[-1]))
    if fit.slope > 0.0 and stop < deepest:
        return drift, np.array([0.0, stop, deepest])
    return drift, np.array([0.0, deepest])


def _resolved_panels(
    fit: SlopeLikelihood, breaks: FloatArray, drift: float, n_nodes: int, refine: int
) -> FloatArray:
    """Halve stretches until rules on them and on their halves agree on all test integrands."""

    def integrals(ends: FloatArray) -> FloatArray:
        return _test_integrals(fit, _compose(ends, n_nodes, refine), drift, len(ends))

    ends = np.column_stack([breaks[:-1], breaks[1:]])
    whole = integrals(ends)
    panels = []
    while len(ends):
        middle = ends.mean(axis=1)
        halves = np.column_stack([ends[:, 0], middle, middle, ends[:, 1]]).reshape(-1, 2)
        parts = integrals(halves)
        apart = np.abs(whole - parts[::2] - parts[1::2]).max(axis=1)
        wide = ends[:, 1] - ends[:, 0] > breaks[-1] * 2.0**-30
        divide = wide & (apart > _PANEL_TOLERANCE)
        panels.append(ends[~divide])
        ends, whole = halves[np.repeat(divide, 2)], parts[np.repeat(divide, 2)]
    found = np.concatenate(panels)
    return np.asarray(found[np.argsort(found[:, 0])])


def _test_integrals(
    fit: SlopeLikelihood, rule: tuple[FloatArray, FloatArray], drift: float, n_panels: int
) -> FloatArray:
    r"""Integrate probabilities :math:`1/(1+Me^{-c\theta})` of all scales c over each panel.

    They are what rows of two distinct scores give, and their bends are as sharp as any row's.
    """
    nodes = _nodes_at(fit, *rule, drift)
    top = fit.slope + fit.above.knots[-1]
    last = np.log2(_WIDER * fit.reach)
    # Where slopes reach next to nowhere the widest rows see them not, and stand for all.
    scales = 2.0 ** np.arange(np.floor(min(-np.log2(top), last)), last + 1)

    def by_panel(values: FloatArray) -> FloatArray:
        return np.asarray(values.reshape(len(scales), n_panels, -1).sum(axis=2).T)

    results = []
    for theta, by_slope in ((nodes.lower, nodes.lower_weight), (nodes.upper, nodes.upper_weight)):
        decay = np.exp(-np.minimum(np.multiply.outer(scales, theta), 700.0))
        for rivals in (1.0, 30.0, 1000.0):
            p = 1 / (1 + rivals * decay)
            results += [by_panel(p * nodes.weight)]
            results += [by_panel(p * (1 - p) * np.multiply.outer(scales, by_slope))]
    return np.hstack(results)


def _compose(ends: FloatArray, points: int, refine: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of Gauss-Legendre rules on panels with ends (m, 2), in order."""
    if refine:
        ends, points = _divided(ends, points, refine), PANEL
    x, w = _gauss(points)
    half = 0.5 * (ends[:, 1:] - ends[:, :1])
    return (ends[:, :1] + half * (x + 1)).ravel(), (half * w).ravel()


def _divided(ends: FloatArray, points: int, refine: int) -> FloatArray:
    """Divide panels among rules of `PANEL` points: narrow panels need no more than they had."""
    width = ends[:, 1] - ends[:, 0]
    count = np.ceil(points * np.maximum(refine * width / ends[-1, 1], 1.0) / PANEL).astype(int)
    part = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    step, start = np.repeat(width / count, count), np.repeat(ends[:, 0], count)
    return np.column_stack([start + part * step, start + (part + 1) * step])


@cache
def _gauss(points: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(points)
    return x, w


def _flat_nodes(n_nodes: int, refine: int) -> QuadraturePoints:
    """Return nodes for constant scores: every slope is as likely as any other.

    The one level set is [0, inf); rows are scaled to range 1, and slopes from 1e-6 to 1e6 tell
    all that can be told of them.
    """
    breaks = np.concatenate([[0.0], 4.0 ** np.arange(-10, 11)])
    theta, share = _compose(np.column_stack([breaks[:-1], breaks[1:]]), n_nodes, min(refine, 1))
    end = np.full(PANEL, breaks[-1])
    none, last = np.zeros_like(theta), np.zeros(PANEL)
    return QuadraturePoints(
        0.0,
        np.append(none, np.full(PANEL, 1 / PANEL)),
        np.append(none, last),
        np.append(theta, end),
        np.append(none, last),
        np.append(share, last),
        True,
    )
