"""Numbers that describe mass functions: probabilities, conflict, imprecision, distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import beta, xlogy

from dubito.belief._kernels import moebius
from dubito.belief._products import n_rows_of
from dubito.belief._set_words import from_words, group_equal, to_words
from dubito.belief._sources import all_single, as_batches
from dubito.belief.batch import MassBatch
from dubito.belief.bounds import Bounds
from dubito.belief.combination import conjunctive
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import DENSE_LIMIT, all_subsets
from dubito.belief.mass import MassFunction

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray

Mass: TypeAlias = MassFunction | MassBatch


def pignistic(belief: Mass | Bounds) -> FloatArray:
    r"""Return the pignistic probability: masses divided equally among the classes of their sets.

    :math:`\mathrm{BetP}(k)=\frac1{1-m(\emptyset)}\sum_{A\ni k}m(A)/|A|`. Bounds do not determine
    it in general; for them see `Bounds.pignistic`.

    Returns
    -------
    ndarray of shape (K,) for one mass function, (n, K) otherwise

    Examples
    --------
    >>> from dubito.belief import MassFunction, pignistic
    >>> pignistic(MassFunction({"a": 0.5, ("a", "b"): 0.5}))
    array([0.75, 0.25])
    """
    return _check_belief(belief).pignistic()


def plausibility_transform(belief: Mass | Bounds) -> FloatArray:
    r"""Return the contour divided by its sum: :math:`p(k)=pl(k)/\sum_l pl(l)` (Denœux 2019, eq. 9).

    Unlike the pignistic probability it agrees with Dempster's rule: the transform of a
    combination is the normalised product of the transforms.

    Returns
    -------
    ndarray of shape (K,) for one mass function, (n, K) otherwise

    Examples
    --------
    >>> from dubito.belief import MassFunction, plausibility_transform
    >>> plausibility_transform(MassFunction({"a": 0.5, ("a", "b"): 0.5})).round(4)
    array([0.6667, 0.3333])
    """
    contour = _check_belief(belief).contour()
    total = contour.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise TotalConflictError(np.flatnonzero(~(total > 0)))
    return np.asarray(contour / total)


def conflict(*sources: Mass) -> float | FloatArray:
    r"""Return the degree of conflict :math:`\kappa=\sum_{B\cap C=\emptyset}m_1(B)m_2(C)`.

    The mass that the conjunctive combination of all sources puts on the empty set; for one
    source, the mass it has there.

    Returns
    -------
    float for single mass functions, ndarray of shape (n,) for batches

    Examples
    --------
    >>> from dubito.belief import MassFunction, conflict
    >>> m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    >>> n = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b"])
    >>> conflict(m, n)
    0.25
    """
    return _float_or_array(conjunctive(*as_batches(*sources)).empty, *sources)


def nonspecificity(source: Mass) -> float | FloatArray:
    r"""Return :math:`N(m)=\sum_{A\ne\emptyset}m(A)\log_2|A|` in bits.

    0 when all focal sets are single classes, :math:`\log_2K` for total ignorance.

    Examples
    --------
    >>> from dubito.belief import MassFunction, nonspecificity
    >>> nonspecificity(MassFunction({"a": 0.5, ("a", "b"): 0.5}))
    0.5
    """
    (batch,) = as_batches(source)
    size = np.maximum(batch.focal.sum(axis=1), 1)
    return _float_or_array(batch.mass @ np.log2(size), source)


def pignistic_entropy(source: Mass | Bounds) -> float | FloatArray:
    r"""Return the Shannon entropy of the pignistic probability in bits.

    It increases with conflict and with ignorance; `nonspecificity` with ignorance only.

    Examples
    --------
    >>> from dubito.belief import MassFunction, pignistic_entropy
    >>> pignistic_entropy(MassFunction({"a": 0.5, "b": 0.5}))
    1.0
    """
    p = np.atleast_2d(_check_belief(source).pignistic())
    return _float_or_array(-xlogy(p, p).sum(axis=1) / np.log(2), source)


def jousselme_distance(first: Mass, second: Mass) -> float | FloatArray:
    r"""Return the distance of Jousselme, Grenier and Bossé (2001), between 0 and 1.

    :math:`d=\sqrt{\tfrac12\sum_{A,B}\delta(A)\delta(B)\frac{|A\cap B|}{|A\cup B|}}` with
    :math:`\delta=m_1-m_2`.

    Notes
    -----
    On dense batches it takes :math:`O(K 2^K)` steps instead of :math:`4^K`. Since
    :math:`1/|A\cup B|=\int_0^1t^{|A\cup B|-1}dt` and :math:`t^{|A\cup B|}` is a product over
    classes, the double sum equals

    .. math:: \sum_k\sum_{C\not\ni k} \mathrm{B}(K-|C|,|C|+1)\,[b(C\cup k)-b(C)]^2,
              \qquad b(C)=\sum_{A\subseteq C}\delta(A),

    with the beta function B: the squared changes of the difference in implicability, weighted
    as in the Shapley value. No term is negative, so nothing cancels.

    Examples
    --------
    >>> from dubito.belief import MassFunction, jousselme_distance
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b"])
    >>> jousselme_distance(m, MassFunction({"b": 1.0}, frame=["a", "b"]))
    1.0
    >>> round(jousselme_distance(m, MassFunction.vacuous(["a", "b"])), 4)
    0.7071
    """
    a, b = as_batches(first, second)
    n_sets = len(a.focal) + len(b.focal)
    if len(a.frame) <= DENSE_LIMIT and n_sets**2 > len(a.frame) << len(a.frame):
        squared = _squared_distance_dense(a.to_array() - b.to_array())
    else:
        squared = _squared_distance_listed(a, b)
    distance = np.sqrt(np.maximum(squared, 0.0) / 2)
    return _float_or_array(distance, first, second)


def _squared_distance_listed(a: MassBatch, b: MassBatch) -> FloatArray:
    """Return twice the squared distance of each row, by pairs of focal sets, (n,)."""
    groups = group_equal(to_words(np.vstack([a.focal, b.focal])))
    rows = n_rows_of(a, b)
    signed = [np.broadcast_to(m, (rows, m.shape[1])) for m in (a.mass, -b.mass)]
    delta = groups.add_up(np.hstack(signed))  # equal masses cancel exactly
    focal = from_words(groups.sets, len(a.frame))
    return np.einsum("nf,nf->n", delta @ _jaccard(focal), delta)


def _squared_distance_dense(delta: FloatArray) -> FloatArray:
    """Return twice the squared distance from differences of masses (n, 2^K), (n,)."""
    n_classes = moebius.frame_size(delta)
    implied = moebius.subset_sum(delta)
    sizes = all_subsets(n_classes).sum(axis=1)
    sizes[-1] = 0  # the weight of the whole frame, beta(0, K + 1), is infinite and not used
    weight = beta(n_classes - sizes, sizes + 1)
    total = delta[:, 0] ** 2
    for k in range(n_classes):
        shape = (len(delta), implied.shape[1] >> (k + 1), 2, 1 << k)
        without_and_with = implied.reshape(shape)  # subsets, by class k
        change = without_and_with[:, :, 1] - without_and_with[:, :, 0]
        total += np.einsum("nij,nij,ij->n", change, change, weight.reshape(-1, 2, 1 << k)[:, 0])
    return total


def _jaccard(focal: BoolArray) -> FloatArray:
    """Return the Jaccard index of each pair of sets, 1 for two empty ones, (F, F)."""
    inside = focal.astype(np.float64)
    common = inside @ inside.T
    size = inside.sum(axis=1)
    union = size[:, None] + size - common
    return np.divide(common, union, out=np.ones_like(common), where=union > 0)


def _check_belief(belief: Mass | Bounds) -> Mass | Bounds:
    if not isinstance(belief, MassFunction | MassBatch | Bounds):
        raise TypeError(
            "a MassFunction, MassBatch or Bounds is needed; "
            f"got {type(belief).__name__}. Probabilities are MassBatch.from_proba(classes, proba)."
        )
    return belief


def _float_or_array(values: FloatArray, *sources: Mass | Bounds) -> float | FloatArray:
    """Return a float if every source is a single mass function, else the array."""
    return float(values[0]) if all_single(sources) else np.asarray(values)
