"""Smallest and largest distances and energies of one row from Gaussian classes with boxed means.

Energies are minus twice the logarithm of prior times density; near and far ones are those of the
mean nearest to the row and of the farthest one. Functions take the classes (or their `parameters`),
the buffers with the quantities of the row, the index k of a class and the imprecision c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, combine_rows, dot, matrix_vector
from dubito.discriminant._kernels.box_farthest_compiled import farthest
from dubito.discriminant._kernels.box_nearest_compiled import nearest
from dubito.discriminant._kernels.class_boxes import (
    DISTANCE_ROUNDING,
    FAR_OFFSET,
    LOG_FACTOR,
    NEAR_OFFSET,
    RADIUS,
    RANK,
    SIZE,
)

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray, SignArray
    from dubito.discriminant._kernels.class_boxes import BoxedGaussians


class RowBuffers(NamedTuple):
    """Quantities of one row, and buffers of the solvers."""

    distances: FloatArray  # (K,) squared, from the sample means
    projected: FloatArray  # (S, p) the row in coordinates of the axes
    linear: FloatArray  # (K, p) linear terms g = E P (x - m), computed on demand
    has_linear: BoolArray  # (K,) whether `linear` is computed
    work: FloatArray  # (p + 10, p) vectors, at the positions named below
    free: IntArray  # (p,) of `box_nearest_compiled.nearest`
    stack: FloatArray  # (p, p + 2) of `box_farthest_compiled.farthest`
    sign_stack: SignArray  # (p + 2, p) likewise


#: Rows of `work`: E P (x - origin) if the classes share a covariance; a point of the box, and half
#: the gradient there; the farthest corner found last. From the last on: buffers of the solvers.
_BASE, _POINT, _HALF_GRADIENT, _CORNER, _SOLVER = 0, 1, 2, 3, 4


@compiled(inline="always")
def make_buffers(classes: BoxedGaussians) -> RowBuffers:
    """Return buffers for one row, not initialised."""
    n_classes, p = len(classes.parameters), classes.units.shape[1]
    searched = p if len(classes.roots) == 0 else 0  # diagonal covariances need no search
    return RowBuffers(
        np.empty(n_classes),
        np.empty((len(classes.origins), p)),
        np.empty((n_classes if searched else 0, p)),
        np.empty(n_classes, dtype=np.bool_),
        np.empty((_SOLVER + searched + 6, p)),
        np.empty(p, dtype=np.intp),
        np.empty((searched, p + 2)),
        np.empty((searched + 2, p), dtype=np.int8),
    )


@compiled(inline="always")
def load_row(classes: BoxedGaussians, row: FloatArray, buffers: RowBuffers) -> None:
    """Write the projections of a row on the axes, and its squared distances from sample means."""
    buffers.has_linear[:] = False
    diagonal = len(classes.roots) > 0
    difference = buffers.work[_POINT]
    for s in range(len(classes.origins)):
        origin, projected = classes.origins[s], buffers.projected[s]
        for i in range(len(row)):
            difference[i] = row[i] - origin[i]
        if diagonal:
            root = classes.roots[s]
            for i in range(len(row)):
                projected[i] = abs(difference[i]) * root[i]
        else:
            combine_rows(classes.axes[s], difference, projected)
    if not diagonal and len(classes.origins) == 1:
        _scaled_product(
            classes.axes[0], buffers.projected[0], classes.units[0], buffers.work[_BASE]
        )
    for k in range(len(buffers.distances)):
        projected = buffers.projected[classes.covariances[k]]
        if diagonal:
            buffers.distances[k] = dot(projected, projected)
        else:
            buffers.distances[k] = _squared_distance(projected, classes.centres[k])


@compiled(fastmath=SIMD_FLAGS)
def _squared_distance(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


@compiled()
def _scaled_product(
    axes: FloatArray, projected: FloatArray, units: FloatArray, out: FloatArray
) -> None:
    matrix_vector(axes, projected, out)
    for i in range(len(out)):
        out[i] *= units[i]


@compiled()
def _linear_term(classes: BoxedGaussians, buffers: RowBuffers, k: int) -> FloatArray:
    """Return E P (x - m) of a class, computed at the first call for this row."""
    linear = buffers.linear[k]
    if not buffers.has_linear[k]:
        if len(classes.origins) == 1:
            base, mean = buffers.work[_BASE], classes.linear_of_means[k]
            for i in range(len(linear)):
                linear[i] = base[i] - mean[i]
        else:
            _scaled_product(classes.axes[k], buffers.projected[k], classes.units[k], linear)
        buffers.has_linear[k] = True
    return linear


@compiled(inline="always")
def nearest_distance(
    classes: BoxedGaussians, buffers: RowBuffers, k: int, c: float
) -> tuple[float, float, float]:
    """Return the smallest squared distance, its gap, and its derivative with respect to c."""
    size = classes.parameters[k, SIZE]
    if len(classes.roots):
        return _nearest_diagonal(buffers.projected[k], classes.roots[k], classes.units[k], size, c)
    linear, distance = _linear_term(classes, buffers, k), buffers.distances[k]
    if c == 0.0:
        return distance, 0.0, -2.0 * size * np.abs(linear).sum()
    y, half_gradient = buffers.work[_POINT], buffers.work[_HALF_GRADIENT]
    # No term of the quadratic form is larger than this.
    largest = distance_upper_bound(classes.parameters, k, distance, c)
    value, gap = nearest(
        distance, linear, classes.scaled_precisions[classes.covariances[k]], c * size, largest,
        y, half_gradient, buffers.work[_SOLVER:], buffers.free,
    )  # fmt: skip
    return value, gap + DISTANCE_ROUNDING * largest, 2.0 * dot(half_gradient, y) / c


@compiled(fastmath=SIMD_FLAGS)
def _nearest_diagonal(
    projected: FloatArray, root: FloatArray, units: FloatArray, size: float, c: float
) -> tuple[float, float, float]:
    value, rate = 0.0, 0.0
    for i in range(len(projected)):
        unit_width = root[i] * units[i] * size
        left = max(projected[i] - c * unit_width, 0.0)
        value += left * left
        rate -= 2.0 * left * unit_width
    return value, 0.0, rate


@compiled(inline="always")
def farthest_distance(  # noqa: PLR0917
    classes: BoxedGaussians,
    buffers: RowBuffers,
    k: int,
    c: float,
    target: float,
    max_subproblems: int,
) -> tuple[float, float, int]:
    """Return the largest squared distance found, an upper bound, and the number of subproblems."""
    distance = buffers.distances[k]
    if len(classes.roots):
        linear_c, square_c = corner_terms(classes, buffers, k, c)
        value = distance + c * (linear_c + c * square_c)
        return value, value, 0
    if c == 0.0:
        return distance, distance, 0
    s = classes.covariances[k]
    return farthest(
        distance, _linear_term(classes, buffers, k), classes.scaled_precisions[s],
        classes.off_diagonal_sums[s], classes.majorants[s], c * classes.parameters[k, SIZE],
        target, max_subproblems, buffers.work[_CORNER], buffers.work[_SOLVER:], buffers.stack,
        buffers.sign_stack,
    )  # fmt: skip


@compiled()
def corner_terms(
    classes: BoxedGaussians, buffers: RowBuffers, k: int, c: float
) -> tuple[float, float]:
    """Return the coefficients of c and c² in the squared distance of the corner found last."""
    linear_c, square_c = 0.0, 0.0
    if len(classes.roots):
        projected, root = buffers.projected[k], classes.roots[k]
        units, size = classes.units[k], classes.parameters[k, SIZE]
        for i in range(len(root)):
            unit_width = root[i] * units[i] * size
            linear_c += 2.0 * projected[i] * unit_width
            square_c += unit_width * unit_width
        return linear_c, square_c
    corner, product = buffers.work[_CORNER], buffers.work[_HALF_GRADIENT]
    matrix_vector(classes.scaled_precisions[classes.covariances[k]], corner, product)
    linear_c = -2.0 * dot(_linear_term(classes, buffers, k), corner) / c
    return linear_c, dot(product, corner) / (c * c)


@compiled()
def distance_lower_bound(parameters: FloatArray, k: int, distance: float, c: float) -> float:
    """Return a lower bound on the squared distance of the nearest mean, by the radius alone."""
    return max(distance**0.5 - c * parameters[k, RADIUS], 0.0) ** 2


@compiled()
def distance_upper_bound(parameters: FloatArray, k: int, distance: float, c: float) -> float:
    """Return an upper bound on the squared distance of the farthest mean, by the radius alone."""
    return (distance**0.5 + c * parameters[k, RADIUS]) ** 2


@compiled()
def near_energy(parameters: FloatArray, k: int, squared: float) -> float:
    """Return the smallest energy at a squared distance, over all covariances within the factor."""
    log_factor = parameters[k, LOG_FACTOR]
    if log_factor > 0.0:
        factor = np.exp(log_factor)
        clipped = min(max(squared, 1.0 / factor), factor)
        squared = np.log(clipped) + squared / clipped - (parameters[k, RANK] - 1.0) * log_factor
    return parameters[k, NEAR_OFFSET] + squared


@compiled()
def far_energy(parameters: FloatArray, k: int, squared: float) -> float:
    """Return the largest energy at a squared distance, over all covariances within the factor."""
    log_factor = parameters[k, LOG_FACTOR]
    if log_factor > 0.0:
        factor = np.exp(log_factor)
        others = (parameters[k, RANK] - 1.0) * log_factor  # log determinant of the other directions
        squared = others + max(log_factor + squared / factor, factor * squared - log_factor)
    return parameters[k, FAR_OFFSET] + squared


@compiled()
def distance_of_far_energy(parameters: FloatArray, k: int, energy: float) -> float:
    """Return the squared distance at which `far_energy` reaches an energy."""
    left = energy - parameters[k, FAR_OFFSET]
    log_factor = parameters[k, LOG_FACTOR]
    if log_factor > 0.0:
        factor = np.exp(log_factor)
        left -= (parameters[k, RANK] - 1.0) * log_factor
        left = min(factor * (left - log_factor), (left + log_factor) / factor)
    return left


@compiled()
def near_rate(parameters: FloatArray, k: int, squared: float) -> float:
    """Return the derivative of `near_energy` with respect to the squared distance."""
    factor = np.exp(parameters[k, LOG_FACTOR])
    return 1.0 / min(max(squared, 1.0 / factor), factor) if factor > 1.0 else 1.0


@compiled()
def far_rate(parameters: FloatArray, k: int, squared: float) -> float:
    """Return the derivative of `far_energy` with respect to the squared distance."""
    log_factor = parameters[k, LOG_FACTOR]
    factor = np.exp(log_factor)
    shrunk, stretched = factor * squared - log_factor, log_factor + squared / factor
    return factor if shrunk >= stretched else 1.0 / factor
