"""Rules that return every act not clearly worse than another: a set of acts per row.

The sets are never empty, and nested: E-admissible acts are maximal, and maximal acts survive
interval dominance. An act is dropped only when another is better by more than rounding, so equal
acts stay together. (Some texts drop an act when another is at least as good; on a uniform
distribution that leaves nothing.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.decision.risk import (
    Belief,
    as_belief,
    as_loss,
    lower_expectations,
    n_classes_of,
    risk_bounds,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray


def interval_dominance(belief: Belief, loss: npt.ArrayLike | None = None) -> BoolArray:
    r"""Return the acts whose lower risk exceeds no upper risk.

    Act a is dropped when some b has :math:`R^*(b)<R_*(a)` (Denœux 2019, 2.1.7). With 0/1 loss:
    class k is dropped when some class has :math:`\mathrm{Bel}(\{l\})>pl(k)`. Bounds are tightened
    first (`Bounds.tightened`).

    Parameters
    ----------
    belief : Bounds, MassBatch, MassFunction or array of probabilities (n, K)
    loss : array-like of shape (acts, K), optional
        Loss of each act when each class is true; 0/1 loss for naming a class by default.

    Returns
    -------
    ndarray of bool, shape (n, acts)
        The acts kept, at least one in each row.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import interval_dominance
    >>> interval_dominance(Bounds([[0.4, 0.1, 0.1]], [[0.7, 0.3, 0.5]]))
    array([[ True, False,  True]])
    >>> interval_dominance([[0.5, 0.5]])
    array([[ True,  True]])
    """
    lower, upper, tie = risk_bounds(as_belief(belief), loss)
    return lower - tie <= (upper + tie).min(axis=1, keepdims=True)


def weak_dominance(belief: Belief, loss: npt.ArrayLike | None = None) -> BoolArray:
    r"""Return the acts that no other act dominates in both lower and upper risk.

    Act a is dropped when some b has :math:`R_*(b)\le R_*(a)` and :math:`R^*(b)\le R^*(a)`, one of
    them strictly. Parameters and result as for `interval_dominance`, whose sets contain these.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import weak_dominance
    >>> weak_dominance(Bounds([[0.3, 0.2, 0.0]], [[0.5, 0.6, 0.4]]))
    array([[ True,  True, False]])
    """
    lower, upper, tie = risk_bounds(as_belief(belief), loss)
    beaten = np.zeros(lower.shape, dtype=bool)
    for b in range(lower.shape[1]):
        lower_b, upper_b, ties = lower[:, b, None], upper[:, b, None], tie + tie[:, b, None]
        no_worse = (lower_b <= lower + ties) & (upper_b <= upper + ties)
        better = (lower_b < lower - ties) | (upper_b < upper - ties)
        beaten |= no_worse & better
    # With risks that nearly tie, acts may dominate each other: keep that of the best midpoint.
    middle = lower + upper
    return ~beaten | (middle == middle.min(axis=1, keepdims=True))


def maximality(belief: Belief, loss: npt.ArrayLike | None = None) -> BoolArray:
    r"""Return the acts that no other act beats under every probability in the credal set.

    Act a is dropped when some b has a positive lower expectation of :math:`L(a,\cdot)-L(b,\cdot)`:
    b is then better for every probability. With 0/1 loss that is
    :math:`\mathrm{Bel}(\{b\})>pl(a)`, the same as `interval_dominance`. Parameters and result as
    there.

    Notes
    -----
    With a loss matrix every pair of acts is compared: :math:`O(\text{acts}^2)` expectations.

    This is maximality for bounds and masses. `dubito.discriminant` (means in boxes) and
    `dubito.dichotomies` (bounds at the nodes of a tree) have smaller credal sets than the bounds of
    their classes describe, and their own algorithms for maximality.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import interval_dominance, maximality
    >>> ignorant = Bounds([[0.0, 0.0]], [[1.0, 1.0]])
    >>> maximality(ignorant, loss=[[0, 4], [1, 5]])  # the first act is better in both classes
    array([[ True, False]])
    >>> interval_dominance(ignorant, loss=[[0, 4], [1, 5]])
    array([[ True,  True]])
    """
    checked = as_belief(belief)
    if loss is None:
        return interval_dominance(checked)
    matrix = as_loss(loss, n_classes_of(checked))
    tie = risk_bounds(checked, loss).tie
    beaten = np.zeros(tie.shape, dtype=bool)
    for b, losses in enumerate(matrix):
        beaten |= lower_expectations(checked, matrix - losses) > tie + tie[:, b, None]
    return ~beaten & interval_dominance(checked, loss)
