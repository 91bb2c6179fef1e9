"""Rules that choose one act per row. Ties go to the act that comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dubito._numerics.row_subsets import row_chunks
from dubito._validation import check_unit_interval
from dubito.belief import Bounds, MassBatch
from dubito.decision.risk import (
    Belief,
    as_belief,
    as_loss,
    n_classes_of,
    pignistic_risk,
    risk_bounds,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray


def maximin(belief: Belief, loss: npt.ArrayLike | None = None) -> IntArray:
    r"""Choose the act with the smallest upper risk: minimax in losses, maximin in utilities.

    Parameters
    ----------
    belief : Bounds, MassBatch, MassFunction or array of probabilities (n, K)
    loss : array-like of shape (acts, K), optional
        Loss of each act when each class is true; 0/1 loss for naming a class by default.

    Returns
    -------
    ndarray of int, shape (n,)
        Index of the chosen act.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import maximin
    >>> bounds = Bounds([[0.3, 0.4]], [[0.6, 0.7]])
    >>> maximin(bounds)
    array([1])
    """
    risks = risk_bounds(as_belief(belief), loss)
    return _first_smallest(risks.upper, risks.tie)


def maximax(belief: Belief, loss: npt.ArrayLike | None = None) -> IntArray:
    r"""Choose the act with the smallest lower risk: minimin in losses, maximax in utilities.

    With 0/1 loss, the most plausible class. Parameters and result as for `maximin`.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import maximax
    >>> maximax(Bounds([[0.1, 0.3]], [[0.7, 0.9]]))
    array([1])
    """
    risks = risk_bounds(as_belief(belief), loss)
    return _first_smallest(risks.lower, risks.tie)


def hurwicz(belief: Belief, loss: npt.ArrayLike | None = None, *, alpha: float = 0.5) -> IntArray:
    r"""Choose the act with the smallest :math:`\alpha R^*+(1-\alpha)R_*`.

    :math:`\alpha` in [0, 1] is the pessimism: 1 is `maximin`, 0 is `maximax`. Parameters and
    result as for `maximin`.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import hurwicz
    >>> hurwicz(Bounds([[0.3, 0.2]], [[0.7, 0.8]]), alpha=1.0)
    array([0])
    """
    weight = check_unit_interval(alpha, "alpha")
    risks = risk_bounds(as_belief(belief), loss)
    return _first_smallest(weight * risks.upper + (1 - weight) * risks.lower, risks.tie)


def pignistic_choice(belief: Belief, loss: npt.ArrayLike | None = None) -> IntArray:
    r"""Choose the act with the smallest expected loss under the pignistic probability.

    Bounds alone do not determine that probability; for them see `Bounds.pignistic`.

    Examples
    --------
    >>> from dubito.decision import pignistic_choice
    >>> pignistic_choice([[0.3, 0.7]], loss=[[0, 1], [5, 0]])
    array([0])
    """
    risks = pignistic_risk(as_belief(belief), loss)
    return _first_smallest(risks.upper, risks.tie)


def minimax_regret(belief: Belief, loss: npt.ArrayLike | None = None) -> IntArray:
    r"""Choose the act with the smallest upper expected regret.

    The regret of act a in class :math:`\omega` is :math:`L(a,\omega)-\min_bL(b,\omega)`. With 0/1
    loss regret is loss, so this is `maximin`.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import minimax_regret
    >>> minimax_regret(Bounds([[0.0, 0.0]], [[1.0, 1.0]]), loss=[[0, 10], [8, 9]])
    array([0])
    """
    checked = as_belief(belief)
    if loss is None:
        return maximin(checked)
    matrix = as_loss(loss, n_classes_of(checked))
    return maximin(checked, matrix - matrix.min(axis=0))


def owa(belief: Belief, loss: npt.ArrayLike | None = None, *, optimism: float = 0.5) -> IntArray:
    r"""Choose by ordered weighted averages of the losses inside each focal set.

    For each focal set the losses, from the smallest on, are averaged with the weights of largest
    entropy among those of the given `optimism` (orness) :math:`\beta\in[0,1]` (Yager 1992;
    O'Hagan 1988): 1 is `maximax`, 0 is `maximin`, 1/2 is `pignistic_choice`.

    Bounds do not determine the focal sets. For them the average is taken over the two ends of the
    risk interval, which is `hurwicz` and exact for two classes.

    Examples
    --------
    >>> from dubito.belief import MassFunction
    >>> from dubito.decision import owa
    >>> owa(MassFunction({("a", "b"): 0.6, "c": 0.4}), optimism=0.9)
    array([0])
    >>> owa(MassFunction({("a", "b"): 0.6, "c": 0.4}), optimism=0.5)
    array([2])
    """
    checked = as_belief(belief)
    orness = check_unit_interval(optimism, "optimism")
    if isinstance(checked, Bounds):
        return hurwicz(checked, loss, alpha=1 - orness)
    matrix = as_loss(loss, len(checked.frame))
    weights = _weights_by_size(checked.focal.sum(axis=1), matrix.shape[1], orness)
    risk = np.stack([_owa_risk(checked, losses, weights) for losses in matrix], axis=1)
    return _first_smallest(risk, risk_bounds(checked, loss).tie)


def _owa_risk(batch: MassBatch, losses: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the expected ordered weighted average of one act's losses, (n,)."""
    n_classes = len(losses)
    size = batch.focal.sum(axis=1)
    risk = np.zeros(len(batch))
    for sets in row_chunks(*batch.focal.shape):
        ascending = np.sort(np.where(batch.focal[sets], losses, np.inf), axis=1)
        inside = np.arange(n_classes) < size[sets, None]
        average = (np.where(inside, ascending, 0.0) * weights[size[sets]]).sum(axis=1)
        risk += batch.mass[:, sets] @ average
    return risk


def _weights_by_size(sizes: IntArray, n_classes: int, optimism: float) -> FloatArray:
    """Return the weights of each size that occurs, (K + 1, K): row s for sets of size s."""
    weights = np.zeros((n_classes + 1, n_classes))
    for size in np.unique(sizes).tolist():
        weights[size, :size] = entropic_weights(size, optimism)
    return weights


def entropic_weights(size: int, optimism: float) -> FloatArray:
    r"""Return the weights of largest entropy with a given orness: a geometric sequence.

    :math:`w_i\propto e^{-ti}` with t such that :math:`\sum_iw_i(n-i)/(n-1)=\beta`, i = 1..n.
    """
    rank = np.arange(size, dtype=np.float64)
    if size == 1 or optimism > 1 - 1e-15:
        return (rank == 0).astype(np.float64)
    if optimism < 1e-15:
        return (rank == size - 1).astype(np.float64)

    def orness(t: float) -> float:
        w = _geometric(rank, t)
        return float(w @ (1 - rank / (size - 1)))

    return _geometric(rank, brentq(lambda t: orness(t) - optimism, -700.0, 700.0, xtol=1e-14))


def _geometric(rank: FloatArray, t: float) -> FloatArray:
    """Return weights proportional to exp(-t rank) that sum to 1."""
    exponent = -t * rank
    w = np.exp(exponent - exponent.max())
    return np.asarray(w / w.sum())


def _first_smallest(risk: FloatArray, tie: FloatArray) -> IntArray:
    """Return the first act whose risk is smallest up to rounding."""
    return np.argmax(risk - tie <= (risk + tie).min(axis=1, keepdims=True), axis=1)
