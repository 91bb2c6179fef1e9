"""The rows of a node as a logistic loss: its left rows come first, then its right ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.jit import compiled
from dubito._kernels.lanes_compiled import LANES

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

#: Curvature of a row is kept above this share of its weight, so that its root can be divided by.
_LEAST_CURVATURE = 1e-12


@compiled()
def row_terms(
    odds: FloatArray, n_left: int, weight: FloatArray, pull: FloatArray, bend: FloatArray
) -> float:
    """Return the loss; write minus its slope and its curvature in the log-odds of every row."""
    value = 0.0
    for i in range(len(odds)):
        z = odds[i]
        e = math.exp(-abs(z))
        less_likely = e / (1.0 + e)
        towards = z if i >= n_left else -z
        value += weight[i] * (math.log1p(e) + max(-towards, 0.0))
        missing = less_likely if towards >= 0 else 1.0 - less_likely
        pull[i] = weight[i] * (missing if i >= n_left else -missing)
        bend[i] = weight[i] * max(less_likely / (1.0 + e), _LEAST_CURVATURE)
    return value


@compiled()
def row_loss(
    odds: FloatArray, step: FloatArray, length: float, n_left: int, weight: FloatArray
) -> float:
    """Return the loss at `odds + length * step`."""
    value = 0.0
    for i in range(len(odds)):
        z = odds[i] + length * step[i]
        against = -z if i >= n_left else z
        value += weight[i] * (math.log1p(math.exp(-abs(z))) + max(against, 0.0))
    return value


@compiled()
def search_length(
    odds: FloatArray,
    step: FloatArray,
    n_left: int,
    weight: FloatArray,
    quadratic: tuple[float, float, float],
    loss: float,
    slope: float,
) -> float:
    """Return how far to go along a step: halved until the objective falls as it should, or 0.

    The penalty along the step is half of :math:`q_0 + 2 q_1 t + q_2 t^2`.
    """
    q0, q1, q2 = quadratic
    before = loss + 0.5 * q0
    length = 1.0
    for _ in range(40):
        penalty = 0.5 * (q0 + 2.0 * length * q1 + length * length * q2)
        after = row_loss(odds, step, length, n_left, weight) + penalty
        # The last digits of a sum over rows are noise: a fall that drowns in it is believed.
        if after <= before + 1e-4 * length * slope + 1e-14 * abs(before):
            return length
        length *= 0.5
    return 0.0


@compiled()
def prior_odds(n_left: int, weight: FloatArray) -> float:
    """Return the log-odds of the right side without features: where both sides have weight."""
    left = weight[:n_left].sum()
    return math.log(weight[n_left:].sum() / left)


@compiled(fastmath=LANES)
def solve_factored(lower: FloatArray, out: FloatArray) -> None:
    """Replace the right-hand side in `out` by the solution, by a Cholesky factor."""
    for a in range(len(out)):
        value = out[a]
        row = lower[a]
        for b in range(a):
            value -= row[b] * out[b]
        out[a] = value / row[a]
    for a in range(len(out) - 1, -1, -1):
        row = lower[a]
        out[a] /= row[a]
        for b in range(a):
            out[b] -= row[b] * out[a]
