r"""Posteriors and decisions from bounds on class densities and on priors.

The densities of the classes vary independently of each other and of the priors, which lie between
reachable bounds, so that every extreme below is attained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.spare_mass import distribute_mass
from dubito._numerics.sums_of_others import log_sums_of_others

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest number of entries of an array (rows, classes, classes); others are computed in parts.
_CHUNK_ENTRIES = 2**20

#: Expected losses closer than this, relative to their terms, are equal.
_LOSS_TIE = 1e-12


class Priors(NamedTuple):
    """Prior probabilities of the classes, each (K,); the lower and upper ones are reachable."""

    precise: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def are_precise(self) -> bool:
        return bool((self.lower == self.upper).all())


def posterior_bounds(
    lower: FloatArray, upper: FloatArray, priors: Priors
) -> tuple[FloatArray, FloatArray]:
    r"""Return lower and upper posteriors from lower and upper log densities, each (n, K).

    .. math:: \underline P(k)=\frac{l_k\underline p_k}
              {l_k\underline p_k+\max_\pi\sum_{j\ne k}\pi_j\overline p_j}

    over the priors with :math:`\pi_k=l_k`; the upper one likewise, with lower and upper exchanged.
    """
    with np.errstate(divide="ignore"):  # a prior of zero has log -inf, and posterior 0
        log_lower_prior, log_upper_prior = np.log(priors.lower), np.log(priors.upper)
    if priors.are_precise:
        most = log_sums_of_others(upper + log_upper_prior)
        least = log_sums_of_others(lower + log_lower_prior)
    else:
        spare = max(1 - priors.lower.sum(), 0.0)
        width = priors.upper - priors.lower
        most = _others_within_bounds(
            upper, priors, np.full(len(width), spare), np.argsort(-upper, axis=1)
        )
        least = _others_within_bounds(lower, priors, spare - width, np.argsort(lower, axis=1))
    return _posterior(lower + log_lower_prior, most), _posterior(upper + log_upper_prior, least)


def _posterior(own: FloatArray, others: FloatArray) -> FloatArray:
    """Return e^own / (e^own + e^others)."""
    with np.errstate(invalid="ignore"):
        posterior = expit(own - others)
    # A class of prior 0 has posterior 0, also where all other terms vanish (-inf minus -inf).
    return np.where(np.isneginf(own), 0.0, posterior)


def _others_within_bounds(
    values: FloatArray, priors: Priors, spare: FloatArray, order: IntArray
) -> FloatArray:
    r"""Return :math:`\log\sum_{j\ne k}\pi_je^{v_j}` for each k, over priors between their bounds.

    All classes but k start from their lower priors; `spare[k]` is the prior mass left for them,
    which raises them to their upper priors in the given order.
    """
    n, n_classes = values.shape
    result = np.empty(values.shape)
    classes_per_block = min(n_classes, max(1, _CHUNK_ENTRIES // n_classes))
    for rows in row_chunks(n, n_classes * classes_per_block, _CHUNK_ENTRIES):
        ranking = order[rows]
        sorted_values = np.take_along_axis(values[rows], ranking, axis=1)[:, None, :]
        for first in range(0, n_classes, classes_per_block):
            block = np.arange(first, min(first + classes_per_block, n_classes))
            other = ranking[:, None, :] != block[:, None]  # (rows, k, position in the ranking)
            width = (priors.upper - priors.lower)[ranking][:, None, :] * other
            added = distribute_mass(spare[block][:, None], width)
            prior = (priors.lower[ranking][:, None, :] + added) * other
            with np.errstate(divide="ignore"):
                result[rows, block] = logsumexp(np.log(prior) + sorted_values, axis=2)
    return result


def maximal_acts(
    lower: FloatArray, upper: FloatArray, priors: Priors, loss: FloatArray
) -> BoolArray:
    r"""Return the acts that no other dominates, for all densities and priors, (n, acts).

    Act a dominates b when :math:`\min\sum_k\pi_kp_k(x)(L_{bk}-L_{ak})>0`. The minimum takes lower
    densities where a is the better act, upper ones elsewhere.
    """
    maximal = np.ones((len(lower), len(loss)), dtype=bool)
    acts = range(len(loss))
    best = _middle_risks(lower, upper, priors, loss).argmin(axis=1)
    # Dominance is transitive: try the likely best act of each row first, it excludes most others.
    for a in np.unique(best).tolist():
        rows = np.flatnonzero(best == a)
        for b in acts:
            _exclude(maximal, a, b, rows, lower, upper, priors, loss)
    for a in acts:
        for b in acts:
            rows = np.flatnonzero(maximal[:, a] & maximal[:, b])
            _exclude(maximal, a, b, rows, lower, upper, priors, loss)
    return maximal


def _middle_risks(
    lower: FloatArray, upper: FloatArray, priors: Priors, loss: FloatArray
) -> FloatArray:
    """Return expected losses at the middle of the log densities, (n, acts)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        posterior = softmax(0.5 * (lower + upper) + np.log(priors.precise), axis=1)
    return np.asarray(np.nan_to_num(posterior) @ loss.T)


def _exclude(  # noqa: PLR0917
    maximal: BoolArray,
    a: int,
    b: int,
    rows: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    priors: Priors,
    loss: FloatArray,
) -> None:
    """Exclude act b from the rows in which a dominates it."""
    if a != b and len(rows):
        maximal[rows, b] &= ~_dominates(lower[rows], upper[rows], priors, loss[b] - loss[a])


def _dominates(lower: FloatArray, upper: FloatArray, priors: Priors, gain: FloatArray) -> BoolArray:
    """Return the rows in which the expected gain is positive for all densities and priors, (n,)."""
    if not (gain > 0).any():
        return np.zeros(len(lower), dtype=bool)
    with np.errstate(divide="ignore"):
        # In logs: densities of rows far from all classes underflow.
        terms = np.where(gain > 0, lower, upper) + np.log(np.abs(gain))
        terms += np.log(_least_favourable(terms, np.sign(gain), priors))
    gained, lost = (
        logsumexp(np.where(side, terms, -np.inf), axis=1) for side in (gain > 0, gain < 0)
    )
    return np.asarray(
        gained > lost + _LOSS_TIE * (1 + np.abs(np.where(gained > lost, gained, 0.0)))
    )


def _least_favourable(terms: FloatArray, sign: FloatArray, priors: Priors) -> FloatArray:
    """Return the prior with the smallest expectation of signed terms, given in logs, (n, K)."""
    if priors.are_precise:
        return np.broadcast_to(priors.precise, terms.shape)
    # Losses first, the largest of them first; gains last, the largest of them last.
    size = sign * np.where(sign == 0, 0.0, terms)
    order = np.lexsort((size, np.broadcast_to(sign, terms.shape)))
    width = (priors.upper - priors.lower)[order]
    filled = priors.lower[order] + distribute_mass(1 - priors.lower.sum(), width)
    prior: FloatArray = np.empty_like(filled)
    np.put_along_axis(prior, order, filled, axis=1)
    return prior
