"""Limited-memory BFGS around a Hessian from the caller (Nocedal and Wright 2006, algorithm 7.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray

    Objective = Callable[[FloatArray], tuple[float, FloatArray]]
    Solve = Callable[[FloatArray], FloatArray]

#: Number of pairs of steps and gradient changes that are kept.
_MEMORY = 20
#: After a Hessian refresh BFGS pairs are kept if the error of the new Hessian on the last pair
#: exceeds this multiple of the distance between the old and the new Hessian's predictions of it,
#: and this fraction of the step.
_ERROR_TO_CHANGE = 2.0
_ERROR_TO_STEP = 0.1


class Minimum(NamedTuple):
    """The last point of a minimisation, with the norm of the gradient there."""

    x: FloatArray
    gradient_norm: float
    n_iter: int


def minimise(
    objective: Objective,
    solver_at: Callable[[FloatArray], Solve],
    x: FloatArray,
    *,
    tolerance: float,
    refresh: int,
    max_iter: int = 200,
) -> Minimum:
    """Return the minimum of a convex function, to a gradient norm of at most `tolerance`.

    `solver_at(x)` returns a function that solves with (an approximation of) the Hessian at x. It is
    called again every `refresh` steps; in between limited-memory BFGS corrects it. With exact
    Hessians at every step no corrections are kept, and this is Newton's method.
    """
    value, gradient = objective(x)
    solve: Solve = _identity
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for n_iter in range(max_iter):
        norm = float(np.linalg.norm(gradient))
        if norm <= tolerance:
            return Minimum(x, norm, n_iter)
        if n_iter % refresh == 0:
            before, solve = solve, solver_at(x)
            if pairs and not _pairs_still_help(pairs[-1], before, solve):
                pairs = []
        step = -_two_loops(gradient, pairs, solve)
        found = _line_search(objective, x, value, gradient, step)
        if found is None:  # no further decrease above rounding
            return Minimum(x, norm, n_iter)
        new_x, value, new_gradient = found
        pair = (new_x - x, new_gradient - gradient)
        if pair[0] @ pair[1] > 0:
            pairs = [*pairs[1 - _MEMORY :], pair]
        x, gradient = new_x, new_gradient
    return Minimum(x, float(np.linalg.norm(gradient)), max_iter)


def _pairs_still_help(pair: tuple[FloatArray, FloatArray], before: Solve, solve: Solve) -> bool:
    """Return whether the last pair corrects an error of the new Hessian.

    If the Hessian changed by more than its error on that pair, the pairs are out of date.
    """
    step, change = pair
    expected = solve(change)
    error = np.linalg.norm(expected - step)
    moved = np.linalg.norm(expected - before(change))
    return bool(error > max(_ERROR_TO_CHANGE * moved, _ERROR_TO_STEP * np.linalg.norm(step)))


def _identity(gradient: FloatArray) -> FloatArray:
    return gradient


def _two_loops(
    gradient: FloatArray, pairs: list[tuple[FloatArray, FloatArray]], solve: Solve
) -> FloatArray:
    """Return the inverse Hessian, as `solve` and the stored pairs give it, times a gradient."""
    q = gradient.copy()
    used = []
    for s, y in reversed(pairs):
        coefficient = (s @ q) / (s @ y)
        q -= coefficient * y
        used.append(coefficient)
    r = solve(q)
    for (s, y), coefficient in zip(pairs, reversed(used), strict=True):
        r = r + (coefficient - (y @ r) / (s @ y)) * s
    return r


def _line_search(
    objective: Objective, x: FloatArray, value: float, gradient: FloatArray, step: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    """Return the first of the halved steps that decreases the function enough, or None."""
    slope = float(gradient @ step)
    size = 1.0
    for _ in range(40):
        candidate = x + size * step
        new_value, new_gradient = objective(candidate)
        if new_value <= value + 1e-4 * size * slope:
            return candidate, new_value, new_gradient
        # Near the minimum the decrease is below rounding of the value: compare gradients instead.
        rounding = 1e-13 * max(abs(value), 1.0)
        if new_value <= value + rounding and np.linalg.norm(new_gradient) < np.linalg.norm(
            gradient
        ):
            return candidate, new_value, new_gradient
        if -size * slope < 1e-3 * rounding:
            return None
        size /= 2
    return None
