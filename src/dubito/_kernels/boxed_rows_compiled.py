"""One row before boxed Gaussian classes: how near and how far each of them may be.

Energies are minus twice the logarithm of prior times density. Functions take the classes (or their
table), the room that holds what is known of the row, the number of a class and the imprecision c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels.box_farthest_compiled import farthest
from dubito._kernels.box_nearest_compiled import nearest, times_rows
from dubito._kernels.boxed_gaussians import FAR, LOG_SCALE, NEAR, RANK, REACH, WIDTH
from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES, combine_rows, dot

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._kernels.boxed_gaussians import BoxedGaussians

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.intp]


class Room(NamedTuple):
    """What is known of one row, and space for the solvers."""

    distances: FloatArray  # (K,) squared, from the sample means
    placed: FloatArray  # (S, p) the row on the axes
    pulls: FloatArray  # (K, p)
    pulled: npt.NDArray[np.bool_]  # (K,) whose pulls are there
    work: FloatArray  # (p + 10, p) the vectors named below
    free: IntArray  # (p,)
    trail: FloatArray  # (p, p + 2)
    sides: npt.NDArray[np.int8]  # (p + 2, p)


#: What rounding may do to a squared distance, relative to the largest in the box.
ROUNDING = 1e-14

# Rows of `work`: the pull of a shared covariance towards its origin; a point of the box and the
# slope there; the corner found last; from here on what the solvers write in, in their turn.
_BASE, _POINT, _SLOPE, _CORNER, _SOLVER = 0, 1, 2, 3, 4


@compiled(inline="always")
def make_room(classes: BoxedGaussians) -> Room:
    """Make space for one row at a time."""
    n_classes, p = len(classes.table), classes.units.shape[1]
    searched = p if len(classes.roots) == 0 else 0  # diagonal covariances need no search
    return Room(
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
def place(classes: BoxedGaussians, row: FloatArray, room: Room) -> None:
    """Turn a row to the axes and measure its distances from the sample means."""
    room.pulled[:] = False
    diagonal = len(classes.roots) > 0
    way = room.work[_POINT]
    for s in range(len(classes.origins)):
        origin, placed = classes.origins[s], room.placed[s]
        for i in range(len(row)):
            way[i] = row[i] - origin[i]
        if diagonal:
            root = classes.roots[s]
            for i in range(len(row)):
                placed[i] = abs(way[i]) * root[i]
        else:
            combine_rows(classes.axes[s], way, placed)
    if not diagonal and len(classes.origins) == 1:
        _pull(classes.axes[0], room.placed[0], classes.units[0], room.work[_BASE])
    for k in range(len(room.distances)):
        placed = room.placed[classes.shapes[k]]
        if diagonal:
            room.distances[k] = dot(placed, placed)
        else:
            room.distances[k] = _squared_distance(placed, classes.centres[k])


@compiled(fastmath=LANES)
def _squared_distance(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


@compiled()
def _pull(axes: FloatArray, placed: FloatArray, units: FloatArray, out: FloatArray) -> None:
    times_rows(axes, placed, out)
    for i in range(len(out)):
        out[i] *= units[i]


@compiled()
def _pull_of(classes: BoxedGaussians, room: Room, k: int) -> FloatArray:
    """Return E P (x - m) of a class, computed when first asked for."""
    pull = room.pulls[k]
    if not room.pulled[k]:
        if len(classes.origins) == 1:
            base, mean = room.work[_BASE], classes.centre_pulls[k]
            for i in range(len(pull)):
                pull[i] = base[i] - mean[i]
        else:
            _pull(classes.axes[k], room.placed[k], classes.units[k], pull)
        room.pulled[k] = True
    return pull


@compiled(inline="always")
def nearest_of(classes: BoxedGaussians, room: Room, k: int, c: float) -> tuple[float, float, float]:
    """Return the smallest squared distance, its gap, and how fast it changes with c."""
    width = classes.table[k, WIDTH]
    if len(classes.roots):
        return _nearest_diagonal(room.placed[k], classes.roots[k], classes.units[k], width, c)
    pull, distance = _pull_of(classes, room, k), room.distances[k]
    if c == 0.0:
        return distance, 0.0, -2.0 * width * np.abs(pull).sum()
    y, slope = room.work[_POINT], room.work[_SLOPE]
    # No term of the quadratic form is larger than this.
    largest = (distance**0.5 + c * classes.table[k, REACH]) ** 2
    value, gap = nearest(
        distance, pull, classes.quads[classes.shapes[k]], c * width, largest,
        y, slope, room.work[_SOLVER:], room.free,
    )  # fmt: skip
    return value, gap + ROUNDING * largest, 2.0 * dot(slope, y) / c


@compiled(fastmath=LANES)
def _nearest_diagonal(
    placed: FloatArray, root: FloatArray, units: FloatArray, width: float, c: float
) -> tuple[float, float, float]:
    value, rate = 0.0, 0.0
    for i in range(len(placed)):
        side = root[i] * units[i] * width
        left = max(placed[i] - c * side, 0.0)
        value += left * left
        rate -= 2.0 * left * side
    return value, 0.0, rate


@compiled(inline="always")
def farthest_of(  # noqa: PLR0917
    classes: BoxedGaussians, room: Room, k: int, c: float, target: float, max_nodes: int
) -> tuple[float, float, int]:
    """Return the largest squared distance found, a bound on all, and the nodes of the search."""
    distance = room.distances[k]
    if len(classes.roots):
        linear, square = corner_terms(classes, room, k, c)
        value = distance + c * (linear + c * square)
        return value, value, 0
    if c == 0.0:
        return distance, distance, 0
    s = classes.shapes[k]
    return farthest(
        distance, _pull_of(classes, room, k), classes.quads[s], classes.guards[s],
        c * classes.table[k, WIDTH], target, max_nodes,
        room.work[_CORNER], room.work[_SOLVER:], room.trail, room.sides,
    )  # fmt: skip


@compiled()
def corner_terms(classes: BoxedGaussians, room: Room, k: int, c: float) -> tuple[float, float]:
    """Return how the squared distance of the corner found last grows: by linear c + square c^2."""
    linear, square = 0.0, 0.0
    if len(classes.roots):
        placed, root, width = room.placed[k], classes.roots[k], classes.table[k, WIDTH]
        units = classes.units[k]
        for i in range(len(root)):
            side = root[i] * units[i] * width
            linear += 2.0 * placed[i] * side
            square += side * side
        return linear, square
    corner, product = room.work[_CORNER], room.work[_SLOPE]
    times_rows(classes.quads[classes.shapes[k]], corner, product)
    linear = -2.0 * dot(_pull_of(classes, room, k), corner) / c
    return linear, dot(product, corner) / (c * c)


@compiled()
def least_distance(table: FloatArray, k: int, distance: float, c: float) -> float:
    """Return a squared distance that the nearest mean does not go below: no search needed."""
    return max(distance**0.5 - c * table[k, REACH], 0.0) ** 2


@compiled()
def largest_distance(table: FloatArray, k: int, distance: float, c: float) -> float:
    """Return a squared distance that the farthest mean does not exceed: no search needed."""
    return (distance**0.5 + c * table[k, REACH]) ** 2


@compiled()
def near_energy(table: FloatArray, k: int, squared: float) -> float:
    """Return the energy of the largest density at a squared distance, over the covariances."""
    scale = table[k, LOG_SCALE]
    if scale > 0.0:
        factor = np.exp(scale)
        along = min(max(squared, 1.0 / factor), factor)
        squared = np.log(along) + squared / along - (table[k, RANK] - 1.0) * scale
    return table[k, NEAR] + squared


@compiled()
def far_energy(table: FloatArray, k: int, squared: float) -> float:
    """Return the energy of the smallest density at a squared distance, over the covariances."""
    scale = table[k, LOG_SCALE]
    if scale > 0.0:
        factor = np.exp(scale)
        spread = (table[k, RANK] - 1.0) * scale
        squared = spread + max(scale + squared / factor, factor * squared - scale)
    return table[k, FAR] + squared


@compiled()
def far_distance(table: FloatArray, k: int, energy: float) -> float:
    """Return the squared distance at which `far_energy` reaches an energy."""
    left = energy - table[k, FAR]
    scale = table[k, LOG_SCALE]
    if scale > 0.0:
        factor = np.exp(scale)
        left -= (table[k, RANK] - 1.0) * scale
        left = min(factor * (left - scale), (left + scale) / factor)
    return left


@compiled()
def near_rate(table: FloatArray, k: int, squared: float) -> float:
    """Return the derivative of `near_energy` by the squared distance."""
    factor = np.exp(table[k, LOG_SCALE])
    return 1.0 / min(max(squared, 1.0 / factor), factor) if factor > 1.0 else 1.0


@compiled()
def far_rate(table: FloatArray, k: int, squared: float) -> float:
    """Return the derivative of `far_energy` by the squared distance."""
    scale = table[k, LOG_SCALE]
    factor = np.exp(scale)
    return factor if factor * squared - scale >= scale + squared / factor else 1.0 / factor
