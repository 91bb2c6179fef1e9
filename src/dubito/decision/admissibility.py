"""E-admissibility: the acts that are best for at least one probability in the credal set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from dubito._numerics.row_subsets import row_chunks
from dubito._validation import TIE
from dubito.belief import Bounds, MassBatch
from dubito.belief.transforms import mass_to_belief
from dubito.decision.dominance import maximality
from dubito.decision.risk import (
    Belief,
    as_belief,
    as_loss,
    lower_expectations,
    n_classes_of,
    pignistic_risk,
    risk_bounds,
    smallest_in_sets,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.decision.risk import Risks

#: Tolerances of the linear programmes, whose losses are scaled to 1.
_SOLVER = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
#: An act is among the best where no other is better by more than this.
_SOLVER_TIE = 1e-9

#: Largest number of classes for which the beliefs of all subsets are computed.
_LISTED_UP_TO = 16


def e_admissibility(belief: Belief, loss: npt.ArrayLike | None = None) -> BoolArray:
    r"""Return the acts that minimise the expected loss for some probability in the credal set.

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
    With 0/1 loss there are closed forms: for bounds in O(K log K) per row; for masses class k stays
    if and only if :math:`\mathrm{Bel}(S)\le|S|\,pl(k)` for every set S without k, in
    :math:`O(K2^K)` per row, up to 16 classes. (Class k gets all the mass it may get; Hall's
    condition then decides whether the rest can be divided so that no other class exceeds it.)
    Otherwise acts that are best for one of two simple probabilities are kept, acts that are not
    maximal are dropped, and small linear programmes (HiGHS), some milliseconds each, decide the
    others.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import e_admissibility, maximality
    >>> ignorant = Bounds([[0.0, 0.0]], [[1.0, 1.0]])
    >>> hedge = [[0, 1], [1, 0], [0.6, 0.6]]  # the third act is never best, yet never beaten
    >>> e_admissibility(ignorant, loss=hedge)
    array([[ True,  True, False]])
    >>> maximality(ignorant, loss=hedge)
    array([[ True,  True,  True]])
    """
    checked = as_belief(belief)
    if loss is None and isinstance(checked, Bounds):
        return _admissible_between(checked)
    if loss is None and isinstance(checked, MassBatch) and len(checked.frame) <= _LISTED_UP_TO:
        return _admissible_for_masses(checked)
    matrix = as_loss(loss, n_classes_of(checked))
    maximal = maximality(checked, loss)
    kept = maximal & (maximal.sum(axis=1, keepdims=True) == 1)
    kept |= _best(pignistic_risk(checked, loss))
    if isinstance(checked, MassBatch):
        for a in np.flatnonzero((maximal & ~kept).any(axis=0)):
            favourable = Bounds.precise(_most_favourable(checked, matrix, int(a)))
            kept[:, a] |= _best(risk_bounds(favourable, loss))[:, a]
    kept &= maximal
    for row in np.flatnonzero((maximal & ~kept).any(axis=1)).tolist():
        acts = np.flatnonzero(maximal[row] & ~kept[row])
        kept[row, acts] = _admissible_acts(checked, row, matrix, acts)
    return kept


def _admissible_between(bounds: Bounds) -> BoolArray:
    """Return the classes that are most probable for some probability between the bounds, (n, K).

    Class k is one of them if its largest probability is at least every lower bound, and at least
    the smallest possible maximum of all probabilities.
    """
    lower, upper = bounds.lower, bounds.upper
    largest = bounds.tightened().upper
    needed = np.maximum(_smallest_maximum(upper), lower.max(axis=1))
    return (largest >= needed[:, None] - TIE) | _best(pignistic_risk(bounds, None))


def _smallest_maximum(upper: FloatArray) -> FloatArray:
    r"""Return v, the smallest possible largest probability: :math:`\sum_j\min(u_j,v)=1`."""
    ascending = np.sort(upper, axis=1)
    n_classes = upper.shape[1]
    # The c classes with the smallest upper bounds, at these bounds; the others share the rest.
    capped = np.cumsum(ascending, axis=1) - ascending
    equal = (1 - capped) / (n_classes - np.arange(n_classes))
    feasible = equal <= ascending
    feasible[:, -1] = True
    first = feasible.argmax(axis=1)
    return np.take_along_axis(equal, first[:, None], axis=1)[:, 0]


def _admissible_for_masses(batch: MassBatch) -> BoolArray:
    r"""Return where :math:`pl(k)\ge\max_{S\not\ni k}\mathrm{Bel}(S)/|S|`, (n, K)."""
    n_classes = len(batch.frame)
    size = np.array([mask.bit_count() for mask in range(1 << n_classes)])
    needed = np.zeros((len(batch), n_classes))
    for rows in row_chunks(len(batch), len(size), 2**20):
        per_class = mass_to_belief(batch[rows].to_array()) / np.maximum(size, 1)
        for k in range(n_classes):
            shape = (len(per_class), per_class.shape[1] >> (k + 1), 2, 1 << k)
            needed[rows, k] = per_class.reshape(shape)[:, :, 0].max(axis=(1, 2))  # sets without k
    return batch.contour() >= needed - TIE


def _best(risks: Risks) -> BoolArray:
    """Return which acts have the smallest risk, where risks are precise; all acts of a tie."""
    return risks.upper - risks.tie <= (risks.upper + risks.tie).min(axis=1, keepdims=True)


def _most_favourable(batch: MassBatch, matrix: FloatArray, a: int) -> FloatArray:
    """Return probabilities (n, K) that favour act a: sets give mass to classes of least regret."""
    regret = matrix[a] - matrix.min(axis=0)
    least = smallest_in_sets(batch.focal, regret[None, :])
    chosen = batch.focal & (regret <= least)
    return batch.mass @ (chosen / chosen.sum(axis=1, keepdims=True))


def _admissible_acts(
    belief: Bounds | MassBatch, row: int, matrix: FloatArray, acts: IntArray
) -> list[bool]:
    """Return for each of the acts whether it is best for some probability of a row's credal set."""
    one = belief[row : row + 1]
    if isinstance(one, Bounds):
        margin = _CredalSet(one).margin
    elif len(one.frame) <= _LISTED_UP_TO:
        margin = _CredalSet(one.bounds(), mass_to_belief(one.to_array())[0]).margin
    else:
        margin = partial(_margin_by_allocation, one)
    return [margin(_scaled(matrix - matrix[a], one)) >= -_SOLVER_TIE for a in acts]


class _CredalSet:
    r"""Probabilities between bounds and, for masses, with :math:`P(S)\ge\mathrm{Bel}(S)` for all S.

    Few of the :math:`2^K` constraints are needed: each is added when a solution violates it, and
    kept for the next acts of the row. `subset_beliefs` are the beliefs of all subsets.
    """

    def __init__(self, bounds: Bounds, subset_beliefs: FloatArray | None = None) -> None:
        self.limits = list(zip(bounds.lower[0], bounds.upper[0], strict=True))
        self.subset_beliefs = subset_beliefs
        self.constrained: list[int] = []  # bit masks of the sets S whose constraint is used

    def margin(self, loss_differences: FloatArray) -> float:
        """Return the largest margin by which an act can be best, or a negative upper bound of it.

        `loss_differences` (acts, K) are the losses of the other acts minus those of this act.
        """
        while True:
            proba, margin = self._solve(loss_differences)
            violated = self._most_violated(proba)
            if violated is None or margin < -_SOLVER_TIE:
                return margin
            self.constrained.append(violated)

    def _solve(self, loss_differences: FloatArray) -> tuple[FloatArray, float]:
        """Return the probability of largest margin under the constraints used, and the margin."""
        n_classes = len(self.limits)
        inside = (np.array(self.constrained, dtype=int)[:, None] >> np.arange(n_classes)) & 1
        beliefs = self.subset_beliefs
        least = np.empty(0) if beliefs is None else beliefs[self.constrained]
        best = _maximise_margin(
            worse=np.vstack(
                [
                    np.column_stack([-loss_differences, np.ones(len(loss_differences))]),
                    np.column_stack([-inside, np.zeros(len(inside))]),
                ]
            ),
            at_most=np.concatenate([np.zeros(len(loss_differences)), np.negative(least)]),
            total=np.append(np.ones(n_classes), 0.0)[None, :],
            amount=np.ones(1),
            limits=self.limits,
        )
        return best[:-1], float(best[-1])

    def _most_violated(self, proba: FloatArray) -> int | None:
        """Return the bit mask of the set with the most violated constraint, None without one."""
        if self.subset_beliefs is None:
            return None
        single = np.zeros_like(self.subset_beliefs)
        single[1 << np.arange(len(proba))] = proba
        slack = mass_to_belief(single) - self.subset_beliefs
        worst = int(slack.argmin())
        if slack[worst] < -_SOLVER_TIE / 10 and worst not in self.constrained:
            return worst
        return None


def _margin_by_allocation(one: MassBatch, loss_differences: FloatArray) -> float:
    """Return the margin of an act on a frame too large to list all subsets.

    Unknowns: the mass that each focal set allocates to each of its classes, and the margin.
    """
    used = np.flatnonzero(one.mass[0])
    of_set, to_class = np.nonzero(one.focal[used])
    entries = (np.ones(len(of_set)), (of_set, np.arange(len(of_set))))
    best = _maximise_margin(
        worse=np.column_stack([-loss_differences[:, to_class], np.ones(len(loss_differences))]),
        at_most=np.zeros(len(loss_differences)),
        total=csr_array(entries, shape=(len(used), len(of_set) + 1)),
        amount=one.mass[0, used],
        limits=[(0.0, None)] * len(to_class),
    )
    return float(best[-1])


def _scaled(loss_differences: FloatArray, one: Bounds | MassBatch) -> FloatArray:
    """Return how much more the acts lose than one act, (acts, K), each divided by its scale.

    Only the sign of the margin matters, so each act may have its own scale: the upper expectation
    of the absolute differences. Impossible classes do not count, whatever their loss.
    """
    possible = one.contour()[0] > 0
    loss_differences = np.where(possible, loss_differences, 0.0)
    unit = -lower_expectations(one, -np.abs(loss_differences))[0]
    return np.asarray(loss_differences[unit > 0] / unit[unit > 0, None])


def _maximise_margin(
    *,
    worse: FloatArray,
    at_most: FloatArray,
    total: FloatArray | csr_array,
    amount: FloatArray,
    limits: list[tuple[float, float | None]],
) -> FloatArray:
    """Return the x of largest last entry, the margin, by HiGHS.

    Constraints are worse @ x <= at_most, total @ x = amount, and `limits` of the other entries.
    """
    programme = linprog(
        c=np.append(np.zeros(worse.shape[1] - 1), -1.0),
        A_ub=worse,
        b_ub=at_most,
        A_eq=total,
        b_eq=amount,
        bounds=[*limits, (None, 1.0)],
        method="highs",
        options=_SOLVER,
    )
    if not programme.success:
        raise RuntimeError(f"a linear programme of e_admissibility failed: {programme.message}")
    return np.asarray(programme.x)
