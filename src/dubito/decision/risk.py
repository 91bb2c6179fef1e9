r"""Expected loss of each act under a belief: a lower and an upper one, equal for probabilities.

Every decision rule uses these functions; a belief is

- `MassBatch` or `MassFunction`: lower and upper expectations are sums of the smallest and largest
  value in each focal set, :math:`\sum_A m(A)\min_{\omega\in A}f(\omega)` (Denœux 2019, 2.1.7);
- `Bounds`: for 0/1 loss the bounds themselves; for other losses the smallest and largest
  expectation over all probabilities between the bounds, found greedily. Where the bounds come
  from a mass function this can only be more cautious than the mass function itself;
- an array (n, K) of probabilities: bounds of width zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dubito._numerics.spare_mass import distribute_mass
from dubito._validation import TIE, as_float_array
from dubito._wording import name_some
from dubito.belief import Bounds, MassBatch, MassFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito._typing import BoolArray, FloatArray

Belief: TypeAlias = Bounds | MassBatch | MassFunction | npt.ArrayLike


def as_belief(belief: Belief) -> Bounds | MassBatch:
    """Return a belief as bounds or a batch of normal mass functions."""
    if isinstance(belief, MassFunction):
        belief = belief.to_batch()
    if isinstance(belief, MassBatch):
        belief.check_normal()
        return belief.without_empty_set()
    if isinstance(belief, Bounds):
        return belief
    try:
        return Bounds.precise(belief)
    except TypeError as error:
        raise TypeError(
            "belief must be Bounds, a MassBatch, a MassFunction or an (n, K) array of "
            f"probabilities; got {type(belief).__name__}."
        ) from error


def n_classes_of(belief: Bounds | MassBatch) -> int:
    """Return the number of classes K."""
    return belief.lower.shape[1] if isinstance(belief, Bounds) else len(belief.frame)


def class_bounds(belief: Bounds | MassBatch) -> Bounds:
    """Return the belief and plausibility of each class, attained by some probability between."""
    return belief.tightened() if isinstance(belief, Bounds) else belief.bounds()


def as_loss(loss: npt.ArrayLike | None, n_classes: int) -> FloatArray:
    """Return the loss matrix (acts, K); without one, 0/1 loss for naming each class.

    A data frame with names is refused: here the names of the classes are not known.
    """
    if loss is None:
        return 1.0 - np.eye(n_classes)
    if _names(loss, "columns") is not None or _names(loss, "index") is not None:
        raise TypeError(
            "loss is a data frame with names, and a belief has no names of classes to compare them "
            "with. Pass the array loss.to_numpy(), with columns in the order of the classes."
        )
    matrix = as_float_array(loss, "loss", ndim=2)
    if matrix.shape[1] != n_classes or matrix.shape[0] == 0:
        raise ValueError(
            f"loss must have one row per act and {n_classes} columns, one per class; "
            f"got shape {matrix.shape}."
        )
    return matrix


def loss_in_class_order(loss: Any, classes: Sequence[Any]) -> Any:
    """Return a loss with its named columns and rows in the order of `classes`, as an array.

    The columns of a data frame are named after the classes, in any order, or have no names. So have
    its rows; the acts that name no class follow in their own order. Rows of which none is named
    after a class are other acts and keep their order. A loss that is no data frame is returned as
    it is.
    """
    columns, acts = _names(loss, "columns"), _names(loss, "index")
    if columns is None and acts is None:
        return loss
    matrix = np.asarray(loss)
    if columns is not None:
        matrix = matrix[:, _in_class_order(columns, classes, "columns")]
    if acts is not None and not set(classes).isdisjoint(acts):
        matrix = matrix[_in_class_order(acts, classes, "rows")]
    return matrix


def _names(loss: Any, axis: str) -> list[Any] | None:
    """Return the names of the rows or columns of a data frame, None if it has none."""
    names = getattr(loss, axis, None)
    if names is None or callable(names):  # lists have a method `index`
        return None
    listed = list(names)
    numbered = type(names).__name__ == "RangeIndex" and listed == list(range(len(listed)))
    return None if numbered else listed


def _in_class_order(names: list[Any], classes: Sequence[Any], axis: str) -> list[int]:
    """Return the positions of the classes among names, followed by those of the other names."""
    if len(set(names)) < len(names) or not set(classes) <= set(names):
        raise ValueError(
            f"the {axis} of loss are {name_some(names)}; name them after the classes, "
            f"{name_some(list(classes))}, or pass an array with {axis} in that order."
        )
    others = [name for name in names if name not in set(classes)]
    return [names.index(name) for name in (*classes, *others)]


class Risks(NamedTuple):
    r"""Lower and upper risk :math:`R_*,R^*` of every act, and their rounding tolerance.

    Each is (n, acts). Two risks are tied when they differ by no more than the sum of the two acts'
    `tie`. It is proportional to the losses that enter them, for each act and row: a forbidden act
    with a huge loss does not make the others tie.
    """

    lower: FloatArray
    upper: FloatArray
    tie: FloatArray


def risk_bounds(belief: Bounds | MassBatch, loss: npt.ArrayLike | None) -> Risks:
    r"""Return the risks of every act.

    With 0/1 loss :math:`R_*(k)=1-pl(k)` and :math:`R^*(k)=1-\mathrm{Bel}(\{k\})`.
    """
    if loss is None:
        bounds = class_bounds(belief)
        return Risks(1 - bounds.upper, 1 - bounds.lower, np.full(bounds.lower.shape, TIE))
    matrix = as_loss(loss, n_classes_of(belief))
    lower = lower_expectations(belief, matrix)
    # The rules need lower ≤ upper, which rounding could reverse.
    upper = np.maximum(-lower_expectations(belief, -matrix), lower)
    return Risks(lower, upper, -TIE * lower_expectations(belief, -np.abs(matrix)))


def pignistic_risk(belief: Bounds | MassBatch, loss: npt.ArrayLike | None) -> Risks:
    """Return the expected loss of every act under the pignistic probability, as lower and upper."""
    return risk_bounds(Bounds.precise(belief.pignistic()), loss)


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
    """Return the least expectation of a gamble: its small values get their upper bounds first."""
    order = np.argsort(gamble, kind="stable")
    width = bounds.width[:, order]
    spare = (1 - bounds.lower.sum(axis=1))[:, None]
    return bounds.lower @ gamble + distribute_mass(spare, width) @ gamble[order]
