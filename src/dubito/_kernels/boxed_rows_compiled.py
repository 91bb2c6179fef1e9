"""One row before boxed Gaussian classes: how near and how far each of them may be.

Energies are minus twice the logarithm of prior times density. All functions take the classes, the
room that holds what is known of the row, the number of a class and the imprecision c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels.box_farthest_compiled import farthest
from dubito._kernels.box_nearest_compiled import nearest, times_rows
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
    base: FloatArray  # (p,) the pull of a shared covariance towards its origin
    pulls: FloatArray  # (K, p)
    pulled: npt.NDArray[np.bool_]  # (K,) whose pulls are there
    y: FloatArray
    slope: FloatArray
    newton: FloatArray
    free: IntArray
    corner: FloatArray
    climb: FloatArray
    trail: FloatArray
    sides: npt.NDArray[np.int8]


@compiled()
def make_room(classes: BoxedGaussians) -> Room:
    """Make space for one row at a time."""
    n_classes, p = len(classes.widths), len(classes.units)
    searched = p if len(classes.roots) == 0 else 0  # diagonal covariances need no search
    return Room(
        np.empty(n_classes),
        np.empty((len(classes.origins), p)),
        np.empty(p),
        np.empty((n_classes, p)),
        np.empty(n_classes, dtype=np.bool_),
        np.empty(p),
        np.empty(p),
        np.empty((searched + 3, p)),
        np.empty(p, dtype=np.intp),
        np.empty(p),
        np.empty((4, p)),
        np.empty((searched, p + 1)),
        np.empty((searched + 2, p), dtype=np.int8),
    )


@compiled()
def place(classes: BoxedGaussians, row: FloatArray, room: Room) -> None:
    """Turn a row to the axes and measure its distances from the sample means."""
    room.pulled[:] = False
    for s in range(len(classes.origins)):
        origin, placed = classes.origins[s], room.placed[s]
        for i in range(len(row)):
            room.y[i] = row[i] - origin[i]
        if len(classes.roots):
            for i in range(len(row)):
                placed[i] = abs(room.y[i]) * classes.roots[s, i]
        else:
            combine_rows(classes.axes[s], room.y, placed)
    if len(classes.roots) == 0 and len(classes.origins) == 1:
        _pull(classes, 0, room.placed[0], room.base)
    for k in range(len(room.distances)):
        placed = room.placed[classes.shapes[k]]
        if len(classes.roots):
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
def _pull(classes: BoxedGaussians, s: int, placed: FloatArray, out: FloatArray) -> None:
    times_rows(classes.axes[s], placed, out)
    for i in range(len(out)):
        out[i] *= classes.units[i]


@compiled()
def pull_of(classes: BoxedGaussians, room: Room, k: int) -> FloatArray:
    """Return E P (x - m) of a class, computed when first asked for."""
    pull = room.pulls[k]
    if not room.pulled[k]:
        if len(classes.origins) == 1:
            mean = classes.centre_pulls[k]
            for i in range(len(pull)):
                pull[i] = room.base[i] - mean[i]
        else:
            _pull(classes, k, room.placed[k], pull)
        room.pulled[k] = True
    return pull


@compiled()
def nearest_of(classes: BoxedGaussians, room: Room, k: int, c: float) -> tuple[float, float, float]:
    """Return the smallest squared distance, its gap, and how fast it falls with c."""
    half_width = c * classes.widths[k]
    if len(classes.roots):
        value, rate = _nearest_diagonal(room.placed[k], classes.roots[k], classes.units, half_width)
        return value, 0.0, rate * classes.widths[k]
    pull = pull_of(classes, room, k)
    s = classes.shapes[k]
    if c == 0.0:
        return room.distances[k], 0.0, -2.0 * classes.widths[k] * np.abs(pull).sum()
    distance = room.distances[k]
    # No term of the quadratic form is larger than this.
    largest = (distance**0.5 + half_width * classes.sizes[s] ** 0.5) ** 2
    value, gap = nearest(
        distance, pull, classes.quads[s], half_width, largest,
        room.y, room.slope, room.newton, room.free,
    )  # fmt: skip
    return value, gap, 2.0 * dot(room.slope, room.y) / c


@compiled(fastmath=LANES)
def _nearest_diagonal(
    placed: FloatArray, root: FloatArray, units: FloatArray, half_width: float
) -> tuple[float, float]:
    value, rate = 0.0, 0.0
    for i in range(len(placed)):
        side = root[i] * units[i]
        left = max(placed[i] - half_width * side, 0.0)
        value += left * left
        rate -= 2.0 * left * side
    return value, rate


@compiled()
def farthest_of(  # noqa: PLR0917
    classes: BoxedGaussians, room: Room, k: int, c: float, target: float, max_nodes: int
) -> tuple[float, float, int]:
    """Return the largest squared distance found, a bound on all, and the nodes of the search."""
    half_width = c * classes.widths[k]
    if len(classes.roots):
        linear, square = corner_terms(classes, room, k, c)
        value = room.distances[k] + c * linear + c * c * square
        return value, value, 0
    if c == 0.0:
        return room.distances[k], room.distances[k], 0
    s = classes.shapes[k]
    return farthest(
        room.distances[k], pull_of(classes, room, k), classes.quads[s], classes.reaches[s],
        classes.lifts[s], half_width, target, max_nodes,
        room.corner, room.climb, room.trail, room.sides,
    )  # fmt: skip


@compiled()
def corner_terms(classes: BoxedGaussians, room: Room, k: int, c: float) -> tuple[float, float]:
    """Return how the squared distance of the corner found last grows: by linear c + square c^2."""
    width = classes.widths[k]
    linear, square = 0.0, 0.0
    if len(classes.roots):
        for i in range(len(classes.units)):
            side = classes.roots[k, i] * classes.units[i]
            linear += 2.0 * room.placed[k, i] * side
            square += side * side
        return linear * width, square * width * width
    times_rows(classes.quads[classes.shapes[k]], room.corner, room.slope)
    linear = -2.0 * dot(pull_of(classes, room, k), room.corner) / c
    square = dot(room.slope, room.corner) / (c * c)
    return linear, square


@compiled()
def reach_of(classes: BoxedGaussians, room: Room, k: int, c: float) -> tuple[float, float]:
    """Return bounds on the smallest and largest squared distance that need no search."""
    way = c * classes.widths[k] * classes.sizes[classes.shapes[k]] ** 0.5
    distance = room.distances[k] ** 0.5
    return max(distance - way, 0.0) ** 2, (distance + way) ** 2


@compiled()
def near_energy(classes: BoxedGaussians, k: int, squared: float) -> float:
    """Return the energy of the largest density at a squared distance, over the covariances."""
    scale = classes.log_scales[k]
    if scale > 0.0:
        factor = np.exp(scale)
        along = min(max(squared, 1.0 / factor), factor)
        squared = np.log(along) + squared / along - (classes.ranks[k] - 1.0) * scale
    return classes.near_offsets[k] + squared


@compiled()
def far_energy(classes: BoxedGaussians, k: int, squared: float) -> float:
    """Return the energy of the smallest density at a squared distance, over the covariances."""
    scale = classes.log_scales[k]
    if scale > 0.0:
        factor = np.exp(scale)
        spread = (classes.ranks[k] - 1.0) * scale
        squared = spread + max(scale + squared / factor, factor * squared - scale)
    return classes.far_offsets[k] + squared


@compiled()
def far_distance(classes: BoxedGaussians, k: int, energy: float) -> float:
    """Return the squared distance at which `far_energy` reaches an energy."""
    left = energy - classes.far_offsets[k]
    scale = classes.log_scales[k]
    if scale > 0.0:
        factor = np.exp(scale)
        left -= (classes.ranks[k] - 1.0) * scale
        left = min(factor * (left - scale), (left + scale) / factor)
    return left


@compiled()
def near_rate(classes: BoxedGaussians, k: int, squared: float) -> float:
    """Return the derivative of `near_energy` by the squared distance."""
    factor = np.exp(classes.log_scales[k])
    return 1.0 / min(max(squared, 1.0 / factor), factor) if factor > 1.0 else 1.0


@compiled()
def far_rate(classes: BoxedGaussians, k: int, squared: float) -> float:
    """Return the derivative of `far_energy` by the squared distance."""
    scale = classes.log_scales[k]
    factor = np.exp(scale)
    return factor if factor * squared - scale >= scale + squared / factor else 1.0 / factor
