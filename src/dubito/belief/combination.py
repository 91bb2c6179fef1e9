r"""Rules that combine mass functions from several sources.

Every rule takes mass functions or batches (a single one is used for every row of a batch) and
returns a `MassFunction` when all sources are one, a `MassBatch` otherwise. Dense batches are
combined by fast Möbius transforms, listed ones pair by pair as long as that is cheaper.

=============  ==========================  =====================================================
rule           sources are taken to be     conflict goes
=============  ==========================  =====================================================
dempster       reliable, distinct          away: the rest is divided by :math:`1-\kappa`
conjunctive    reliable, distinct          to the empty set
cautious       reliable, overlapping       away
yager          reliable, distinct          to the whole frame
dubois_prade   reliable unless they clash  to the union of the sets that clash
disjunctive    one of them reliable        nowhere: there is none
=============  ==========================  =====================================================
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dubito._kernels import moebius
from dubito.belief._sets import group_equal
from dubito.belief.batch import MassBatch
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import DENSE_LIMIT
from dubito.belief.mass import MassFunction
from dubito.belief.transforms import mass_to_weights, weights_to_log_commonality

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._checks import BoolArray, FloatArray

    Product = Callable[[FloatArray, FloatArray], FloatArray]
    SetOperation = Callable[[BoolArray, BoolArray], BoolArray]

# Statically all sources are of one kind; at run time a single one may join batches.
M = TypeVar("M", MassFunction, MassBatch)


def dempster(*sources: M) -> M:
    r"""Combine distinct reliable sources by Dempster's rule.

    :math:`m(A)=\frac1{1-\kappa}\sum_{B\cap C=A}m_1(B)m_2(C)` for :math:`A\ne\emptyset`, with the
    conflict :math:`\kappa=\sum_{B\cap C=\emptyset}m_1(B)m_2(C)` (P2, eq. 3-4). Commutative and
    associative, with the vacuous mass function as neutral element.

    Raises
    ------
    TotalConflictError
        Where :math:`\kappa=1`; it names the rows.

    Examples
    --------
    >>> doctor = MassFunction({"flu": 0.6, ("flu", "cold"): 0.4})
    >>> test = MassFunction({"cold": 0.5, ("flu", "cold"): 0.5}, frame=["flu", "cold"])
    >>> print(dempster(doctor, test))
    m{flu} = 0.4286, m{cold} = 0.2857, m{flu, cold} = 0.2857
            belief  pignistic  plausibility
      flu    0.429      0.571         0.714
      cold   0.286      0.429         0.571
    """
    first, *others = as_batches(*sources)
    single = _all_single(sources)
    combined = normalised(first, single=single)
    for other in others:
        combined = normalised(_intersect(combined, other), single=single)
    return as_given(combined, *sources)


def conjunctive(*sources: M) -> M:
    r"""Combine distinct reliable sources and keep the conflict on the empty set.

    :math:`m(A)=\sum_{B\cap C=A}m_1(B)m_2(C)` for all A, so that commonalities multiply and
    :math:`m(\emptyset)=\kappa` (Smets' unnormalised rule).

    Examples
    --------
    >>> m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    >>> n = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b"])
    >>> conjunctive(m, n)[()]
    0.25
    """
    return as_given(reduce(_intersect, as_batches(*sources)), *sources)


def disjunctive(*sources: M) -> M:
    r"""Combine sources of which at least one is reliable.

    :math:`m(A)=\sum_{B\cup C=A}m_1(B)m_2(C)`, so that implicabilities multiply.

    Examples
    --------
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b", "c"])
    >>> n = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b", "c"])
    >>> disjunctive(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b', 'c'])
    """
    return as_given(reduce(_unite, as_batches(*sources)), *sources)


def cautious(*sources: M) -> M:
    r"""Combine reliable sources whose evidence may overlap: the normalised cautious rule.

    The weight of evidence of each proper non-empty subset is the largest any source gives
    (Denœux 2008, where the weight is :math:`e^{-w}` and so the smallest), and the result is
    normalised. Commutative, associative and idempotent: saying it twice adds nothing.

    Raises
    ------
    ValueError
        Where a source is dogmatic (no mass on the whole frame), or the frame has more than 20
        classes.

    Examples
    --------
    >>> m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    >>> cautious(m, m)
    MassFunction({('a',): 0.5, ('a', 'b'): 0.5}, frame=['a', 'b'])
    """
    batches = as_batches(*sources)
    weights = reduce(np.maximum, (mass_to_weights(batch.to_array()) for batch in batches))
    weights[..., 0] = 0.0  # what speaks for the empty set goes with the normalisation
    log_q = weights_to_log_commonality(weights)
    log_q -= log_q[:, 1:].max(axis=1, keepdims=True)  # exp may underflow, never all of it
    full = moebius.superset_difference(np.exp(log_q))
    np.maximum(full, 0.0, out=full)
    full[:, 0] = 0.0
    # Sets no source speaks for get rounding noise from the transform; it is not evidence.
    full[full < 1e-15 * full.max(axis=1, keepdims=True)] = 0.0
    combined = MassBatch._from_full(batches[0].frame, full, subnormal=False)
    return as_given(normalised(combined), *sources)


def yager(*sources: M) -> M:
    r"""Combine all sources conjunctively and give the conflict to the whole frame (Yager 1987).

    Not associative in pairs: pass all sources at once.

    Examples
    --------
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b"])
    >>> n = MassFunction({"b": 1.0}, frame=["a", "b"])
    >>> yager(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b'])
    """
    combined = reduce(_intersect, as_batches(*sources))
    moved = combined.focal | ~combined.focal.any(axis=1, keepdims=True)
    return as_given(merge_equal_sets(combined, moved), *sources)


def dubois_prade(first: M, second: M) -> M:
    r"""Combine two sources; where two sets clash, their product goes to their union.

    :math:`m(A)=\sum_{B\cap C=A}m_1(B)m_2(C)+\sum_{B\cap C=\emptyset,B\cup C=A}m_1(B)m_2(C)`
    (Dubois and Prade 1988). Not associative, hence two sources.

    Examples
    --------
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b", "c"])
    >>> n = MassFunction({"b": 1.0}, frame=["a", "b", "c"])
    >>> dubois_prade(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b', 'c'])
    """
    a, b = as_batches(first, second)
    for source in (a, b):
        if (source.empty > 0).any():
            raise ValueError("dubois_prade needs sources without mass on the empty set.")
    combined = _combine(a, b, _meet_or_union, _intersection_or_union)
    return as_given(combined, first, second)


def _meet_or_union(a: BoolArray, b: BoolArray) -> BoolArray:
    meet = a & b
    return np.where(meet.any(axis=-1, keepdims=True), meet, a | b)


def _intersection_or_union(a: FloatArray, b: FloatArray) -> FloatArray:
    together = moebius.intersection_product(a, b)
    together[:, 0] = 0.0
    together += moebius.disjoint_union_product(a, b)
    return together


def _intersect(a: MassBatch, b: MassBatch) -> MassBatch:
    return _combine(a, b, np.logical_and, moebius.intersection_product)


def _unite(a: MassBatch, b: MassBatch) -> MassBatch:
    return _combine(a, b, np.logical_or, moebius.union_product)


def _combine(
    a: MassBatch, b: MassBatch, operation: SetOperation, dense_product: Product
) -> MassBatch:
    """Spread the products of masses onto the sets that `operation` makes of the focal sets."""
    n_classes = len(a.frame)
    n_pairs = len(a.focal) * len(b.focal)
    fits = n_classes <= DENSE_LIMIT
    if fits and (n_pairs > (4 * n_classes) << n_classes or (a.is_dense and b.is_dense)):
        full_a, full_b = np.broadcast_arrays(a.to_array(), b.to_array())
        full = dense_product(np.ascontiguousarray(full_a), np.ascontiguousarray(full_b))
        return MassBatch._from_full(a.frame, full, subnormal=bool(full[:, 0].any()))
    made = operation(a.focal[:, None, :], b.focal[None, :, :]).reshape(n_pairs, n_classes)
    groups = group_equal(made)
    mass = np.empty((max(len(a), len(b)), len(groups.sets)))
    step = max(1, (1 << 20) // n_pairs)  # rows at a time, so that products stay a few megabytes
    for start in range(0, len(mass), step):
        rows = slice(start, start + step)
        left = a.mass[rows] if len(a) > 1 else a.mass
        right = b.mass[rows] if len(b) > 1 else b.mass
        products = left[:, :, None] * right[:, None, :]
        mass[rows] = groups.add_up(products.reshape(len(products), n_pairs))
    return MassBatch._from_sorted(a.frame, groups.sets, mass)


def merge_equal_sets(batch: MassBatch, focal: BoolArray) -> MassBatch:
    """Give the masses of a batch to other focal sets, adding up where these coincide."""
    groups = group_equal(focal)
    return MassBatch._from_sorted(batch.frame, groups.sets, groups.add_up(batch.mass))


def normalised(batch: MassBatch, *, single: bool = False) -> MassBatch:
    """Drop the empty set and divide by what is left."""
    focal, mass = _without_empty_set(batch)
    left = mass.sum(axis=1, keepdims=True)
    if not (left > 0).all():
        raise TotalConflictError(np.flatnonzero(~(left[:, 0] > 0)), single=single)
    return MassBatch._trusted(batch.frame, focal, mass / left)


def _without_empty_set(batch: MassBatch) -> tuple[BoolArray, FloatArray]:
    if batch.is_dense:
        return batch.focal, batch.mass
    if batch.lists_all:
        return batch.frame.subsets(), batch.mass[:, 1:]
    kept = batch.focal.any(axis=1)
    return batch.focal[kept], batch.mass[:, kept]


def as_batches(*sources: MassFunction | MassBatch) -> list[MassBatch]:
    """Return the sources as batches on one frame whose rows fit together."""
    for source in sources:
        if not isinstance(source, MassFunction | MassBatch):
            raise TypeError(
                "sources must be MassFunction or MassBatch, each its own argument; "
                f"got {type(source).__name__}."
            )
    if not sources:
        raise TypeError("at least one mass function is needed; got none.")
    batches = [s.to_batch() if isinstance(s, MassFunction) else s for s in sources]
    for batch in batches[1:]:
        if batch.frame != batches[0].frame:
            raise ValueError(
                "sources must share one frame, in one order; got "
                f"{batches[0].frame!r} and {batch.frame!r}."
            )
    rows = {len(batch) for batch in batches} - {1}
    if len(rows) > 1:
        raise ValueError(f"batches must have the same number of rows, or one; got {sorted(rows)}.")
    return batches


def as_given(combined: MassBatch, *sources: MassFunction | MassBatch) -> Any:
    """Return one mass function where all sources were one, else the batch."""
    return MassFunction.from_batch(combined) if _all_single(sources) else combined


def _all_single(sources: tuple[MassFunction | MassBatch, ...]) -> bool:
    return all(isinstance(source, MassFunction) for source in sources)
