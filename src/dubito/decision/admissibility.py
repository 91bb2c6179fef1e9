"""E-admissibility: keep the acts that are best for at least one probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from dubito.belief import Bounds, MassBatch
from dubito.belief.transforms import mass_to_belief
from dubito.decision._risk import (
    TIE,
    Belief,
    as_belief,
    as_loss,
    n_classes_of,
    pignistic_risk,
    risk_bounds,
    smallest_in_sets,
)
from dubito.decision.dominance import maximality

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray
    from dubito.decision._risk import Risks

# The programmes are scaled to 1 and solved to 1e-10; an act this close to best is best.
_SOLVER = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_SOLVER_TIE = 1e-9

# With masses and 0/1 loss all subsets are listed up to this many classes.
_LISTED_UP_TO = 16


def e_admissibility(belief: Belief, loss: npt.ArrayLike | None = None) -> BoolArray:
    r"""Keep each act that minimises the expected loss for some probability in the credal set.

    The credal set holds every probability that the mass function allows,
    :math:`\mathrm{Bel}\le P\le\mathrm{Pl}`, or that lies between the bounds.

    Parameters
    ----------
    belief : Bounds, MassBatch, MassFunction or array of probabilities (n, K)
    loss : array-like of shape (acts, K), optional
        Loss of each act when each class is true; 0/1 loss for naming a class by default.

    Returns
    -------
    ndarray of bool, shape (n, acts)
        The acts kept, at least one in each row.

    Notes
    -----
    With 0/1 loss there are closed forms: for bounds in O(K log K) per row; for masses class k
    stays if and only if :math:`\mathrm{Bel}(S)\le|S|\,pl(k)` for every set S without k, in
    :math:`O(K2^K)` per row, up to 16 classes. (All that may go to k goes to k; Hall's condition
    then says whether the rest can be spread without any other class passing it.) Otherwise acts
    that two easy probabilities show to be best are kept at once, acts that are not maximal go,
    and a linear programme (HiGHS), a few milliseconds each, settles every act that is left.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> ignorant = Bounds([[0.0, 0.0]], [[1.0, 1.0]])
    >>> hedge = [[0, 1], [1, 0], [0.6, 0.6]]  # the third act is never best, yet never beaten
    >>> e_admissibility(ignorant, loss=hedge)
    array([[ True,  True, False]])
    >>> maximality(ignorant, loss=hedge)
    array([[ True,  True,  True]])
    """
    known = as_belief(belief)
    if loss is None and isinstance(known, Bounds):
        return _admissible_between(known)
    if loss is None and isinstance(known, MassBatch) and len(known.frame) <= _LISTED_UP_TO:
        return _admissible_for_masses(known)
    matrix = as_loss(loss, n_classes_of(known))
    maximal = maximality(known, loss)
    kept = maximal & (maximal.sum(axis=1, keepdims=True) == 1)
    kept |= _best(pignistic_risk(known, loss))
    if isinstance(known, MassBatch):
        for a in np.flatnonzero((maximal & ~kept).any(axis=0)):
            favourable = Bounds.precise(_most_favourable(known, matrix, int(a)))
            kept[:, a] |= _best(risk_bounds(favourable, loss))[:, a]
    kept &= maximal
    for row, a in np.argwhere(maximal & ~kept):
        kept[row, a] = _margin(known, int(row), matrix - matrix[a]) >= -_SOLVER_TIE
    return kept


def _admissible_between(bounds: Bounds) -> BoolArray:
    """Give class k all it may have and ask whether the others can stay at or below it."""
    lower, upper = bounds.lower, bounds.upper
    largest = bounds.tightened().upper
    needed = np.maximum(_lowest_peak(upper), lower.max(axis=1))
    return (largest >= needed[:, None] - TIE) | _best(pignistic_risk(bounds, None))


def _lowest_peak(upper: FloatArray) -> FloatArray:
    r"""Return how low the most probable class can lie: v with :math:`\sum_j\min(u_j,v)=1`."""
    ascending = np.sort(upper, axis=1)
    n_classes = upper.shape[1]
    # With the c smallest classes at their upper bounds, the others share what is left equally.
    capped = np.cumsum(ascending, axis=1) - ascending
    shared = (1 - capped) / (n_classes - np.arange(n_classes))
    feasible = shared <= ascending
    feasible[:, -1] = True
    first = feasible.argmax(axis=1)
    return np.take_along_axis(shared, first[:, None], axis=1)[:, 0]


def _admissible_for_masses(batch: MassBatch) -> BoolArray:
    r"""Compare :math:`pl(k)` with the largest :math:`\mathrm{Bel}(S)/|S|` over the S without k."""
    n_classes = len(batch.frame)
    size = np.array([mask.bit_count() for mask in range(1 << n_classes)])
    needed = np.zeros((len(batch), n_classes))
    step = max(1, (1 << 20) >> n_classes)  # rows at a time, so that memory stays bounded
    for start in range(0, len(batch), step):
        rows = slice(start, start + step)
        share = mass_to_belief(batch[rows].to_array()) / np.maximum(size, 1)
        for k in range(n_classes):
            without = share.reshape(len(share), share.shape[1] >> (k + 1), 2, 1 << k)[:, :, 0]
            needed[rows, k] = without.max(axis=(1, 2))
    return batch.contour() >= needed - TIE


def _best(risks: Risks) -> BoolArray:
    """Return which acts are best where the risks are precise; every one of a tie is."""
    return risks.upper - risks.tie <= (risks.upper + risks.tie).min(axis=1, keepdims=True)


def _most_favourable(batch: MassBatch, matrix: FloatArray, a: int) -> FloatArray:
    """Move each focal set's mass to the classes where act a is regretted least, (n, K)."""
    regret = matrix[a] - matrix.min(axis=0)
    least = smallest_in_sets(batch.focal, regret[None, :])
    chosen = batch.focal & (regret <= least)
    return batch.mass @ (chosen / chosen.sum(axis=1, keepdims=True))


def _margin(belief: Bounds | MassBatch, row: int, excess: FloatArray) -> float:
    """Return the most by which an act can be best: max over P of min over b of E[excess_b].

    `excess` (acts, K) is each act's loss over that of the act in question. Only the sign of the
    margin matters, so every other act is measured in units of its own largest excess.
    """
    scale = np.abs(excess).max(axis=1)
    excess = excess[scale > 0] / scale[scale > 0, None]
    if isinstance(belief, Bounds):
        to_class = np.arange(excess.shape[1])
        of_set = np.zeros_like(to_class)
        amount = np.ones(1)
        limits = list(zip(belief.lower[row], belief.upper[row], strict=True))
    else:
        used = np.flatnonzero(belief.mass[row])
        of_set, to_class = np.nonzero(belief.focal[used])
        amount = belief.mass[row, used]
        limits = [(0.0, None)] * len(to_class)
    # Unknowns: the share of each set that goes to each of its classes, and the margin itself.
    n_shares = len(to_class)
    shares = (np.ones(n_shares), (of_set, np.arange(n_shares)))
    programme = linprog(
        c=np.append(np.zeros(n_shares), -1.0),
        A_ub=np.hstack([-excess[:, to_class], np.ones((len(excess), 1))]),
        b_ub=np.zeros(len(excess)),
        A_eq=csr_array(shares, shape=(len(amount), n_shares + 1)),
        b_eq=amount,
        bounds=[*limits, (None, 1.0)],
        method="highs",
        options=_SOLVER,
    )
    if not programme.success:
        raise RuntimeError(f"the linear programme of row {row} failed: {programme.message}")
    return -float(programme.fun)
