r"""Expected loss under a belief: one number per act where it is precise, an interval where not.

Every rule of this room is written on the few functions here, so that it works alike for

- `MassBatch` or `MassFunction`: lower and upper expectations are sums of the smallest and largest
  value in each focal set, :math:`\sum_A m(A)\min_{\omega\in A}f(\omega)` (P2, 2.1.7);
- `Bounds`: for 0/1 loss the bounds themselves; for other losses the smallest and largest
  expectation over all probabilities between the bounds, found greedily. Where the bounds come
  from a mass function this can only be more cautious than the mass function itself;
- an array (n, K) of probabilities: bounds of width zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from dubito._checks import FloatArray, as_float_array, name_rows
from dubito.belief import Bounds, MassBatch, MassFunction

if TYPE_CHECKING:
    from dubito._checks import BoolArray

Belief: TypeAlias = Bounds | MassBatch | MassFunction | npt.ArrayLike

#: Risks closer than this, in units of the largest loss, are ties.
TIE = 1e-12


def as_belief(belief: Belief) -> Bounds | MassBatch:
    """Return a belief as bounds or a batch of normal mass functions."""
    if isinstance(belief, MassFunction):
        belief = belief.to_batch()
    if isinstance(belief, MassBatch):
        if (belief.empty > 0).any():
            rows = name_rows(np.flatnonzero(belief.empty > 0))
            raise ValueError(
                f"there is mass on the empty set in {rows}. Normalise first: dempster(batch)."
            )
        return belief
    return belief if isinstance(belief, Bounds) else Bounds.precise(belief)


def n_classes_of(belief: Bounds | MassBatch) -> int:
    """Return the number of classes K."""
    return belief.lower.shape[1] if isinstance(belief, Bounds) else len(belief.frame)


def as_loss(loss: npt.ArrayLike | None, n_classes: int) -> FloatArray:
    """Return the loss matrix (acts, K); without one, 0/1 loss for naming each class."""
    if loss is None:
        return 1.0 - np.eye(n_classes)
    matrix = as_float_array(loss, "loss", ndim=2)
    if matrix.shape[1] != n_classes or matrix.shape[0] == 0:
        raise ValueError(
            f"loss must have one row per act and {n_classes} columns, one per class; "
            f"got shape {matrix.shape}."
        )
    return matrix


def tie_width(loss: npt.ArrayLike | None) -> float:
    """Return how close two risks may be and still count as equal."""
    return TIE * largest_loss(loss)


def largest_loss(loss: npt.ArrayLike | None) -> float:
    """Return the scale of a loss matrix; 1 for 0/1 loss."""
    return 1.0 if loss is None else float(np.abs(np.asarray(loss, dtype=np.float64)).max())


def risk_bounds(
    belief: Bounds | MassBatch, loss: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    r"""Return lower and upper risk :math:`R_*,R^*` of every act, each (n, acts).

    With 0/1 loss :math:`R_*(k)=1-pl(k)` and :math:`R^*(k)=1-\mathrm{Bel}(\{k\})`.
    """
    if loss is None:
        bounds = belief if isinstance(belief, Bounds) else belief.bounds()
        return 1 - bounds.upper, 1 - bounds.lower
    matrix = as_loss(loss, n_classes_of(belief))
    lower = lower_expectations(belief, matrix)
    # The rules rely on lower ≤ upper, which rounding could turn around.
    return lower, np.maximum(-lower_expectations(belief, -matrix), lower)


def pignistic_risk(belief: Bounds | MassBatch, loss: npt.ArrayLike | None) -> FloatArray:
    """Return the expected loss of every act under the pignistic probability, (n, acts)."""
    proba = belief.pignistic()
    return 1 - proba if loss is None else proba @ as_loss(loss, proba.shape[1]).T


def lower_expectations(belief: Bounds | MassBatch, gambles: FloatArray) -> FloatArray:
    """Return the smallest expectation of each gamble (G, K), row by row: (n, G)."""
    if isinstance(belief, Bounds):
        columns = [_lower_expectation_between(belief, gamble) for gamble in gambles]
        return np.stack(columns, axis=1)
    return belief.mass @ smallest_in_sets(belief.focal, gambles)


def smallest_in_sets(focal: BoolArray, gambles: FloatArray) -> FloatArray:
    """Return the smallest value of each gamble in each set, (F, G)."""
    smallest = np.full((len(focal), len(gambles)), np.inf)
    for k, values in enumerate(gambles.T):
        inside = focal[:, k]
        smallest[inside] = np.minimum(smallest[inside], values)
    return smallest


def _lower_expectation_between(bounds: Bounds, gamble: FloatArray) -> FloatArray:
    """Fill the classes up from the lower bounds, the smallest values first."""
    order = np.argsort(gamble, kind="stable")
    width = bounds.width[:, order]
    spare = (1 - bounds.lower.sum(axis=1))[:, None]
    filled = np.clip(spare - (np.cumsum(width, axis=1) - width), 0.0, width)
    return bounds.lower @ gamble + filled @ gamble[order]
