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
from dubito.belief._sets import from_words, group_equal, to_words
from dubito.belief.batch import MassBatch
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import DENSE_LIMIT
from dubito.belief.mass import MassFunction
from dubito.belief.transforms import mass_to_weights, weights_to_log_commonality

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dubito._checks import BoolArray, FloatArray
    from dubito.belief._sets import Words
    from dubito.belief.frame import Frame

    Product = Callable[[FloatArray, FloatArray], FloatArray]
    SetOperation = Callable[[Words, Words], Words]

# Numbers held at a time beside sources and result: a few megabytes.
_AT_A_TIME = 1 << 20

# Statically all sources are of one kind; at run time a single one may join batches.
M = TypeVar("M", MassFunction, MassBatch)


def dempster(*sources: M) -> M:
    r"""Combine distinct reliable sources by Dempster's rule.

    :math:`m(A)=\frac1{1-\kappa}\sum_{B\cap C=A}m_1(B)m_2(C)` for :math:`A\ne\emptyset`, with the
    conflict :math:`\kappa=\sum_{B\cap C=\emptyset}m_1(B)m_2(C)` (P2, eq. 3-4). Commutative and
    associative, with the vacuous mass function as neutral element.

    Parameters
    ----------
    *sources : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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

    Parameters
    ----------
    *sources : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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

    Parameters
    ----------
    *sources : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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

    Parameters
    ----------
    *sources : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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
    log_q[:, 0] = -np.inf
    q = np.exp(log_q)
    full = moebius.superset_difference(q)
    # Sets no source speaks for get rounding noise from the transform; it is not evidence. The
    # whole frame has no supersets, hence no noise.
    noise = moebius.ROUNDING * len(batches[0].frame) * q
    full[:, :-1][full[:, :-1] < noise[:, :-1]] = 0.0
    full[:, 0] = 0.0
    combined = MassBatch._from_full(batches[0].frame, full, subnormal=False)
    return as_given(normalised(combined), *sources)


def yager(*sources: M) -> M:
    r"""Combine all sources conjunctively and give the conflict to the whole frame (Yager 1987).

    Not associative in pairs: pass all sources at once.

    Parameters
    ----------
    *sources : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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

    Parameters
    ----------
    first, second : MassFunction or MassBatch
        On one frame; batches have the same number of rows, or one.

    Returns
    -------
    MassFunction if all sources are single, else MassBatch

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
    if _dense_is_cheaper(a, b):
        combined = _combine_dense(a, b, _intersection_or_union)
    else:
        combined = _combine_listed(a, b, _meet_or_union)
    return as_given(combined, first, second)


def _meet_or_union(a: Words, b: Words) -> Words:
    meet = a & b
    return np.where(meet.any(axis=-1, keepdims=True), meet, a | b)


def _intersection_or_union(a: FloatArray, b: FloatArray) -> FloatArray:
    together = moebius.intersection_product(a, b)
    together[:, 0] = 0.0
    together += moebius.disjoint_union_product(a, b)
    return together


def _intersect(a: MassBatch, b: MassBatch) -> MassBatch:
    if _dense_is_cheaper(a, b):
        return _combine_dense(a, b, moebius.intersection_product)
    return _intersect_listed(a, b)


def _unite(a: MassBatch, b: MassBatch) -> MassBatch:
    if _dense_is_cheaper(a, b):
        return _combine_dense(a, b, moebius.union_product)
    return _combine_listed(a, b, np.bitwise_or)


def _dense_is_cheaper(a: MassBatch, b: MassBatch) -> bool:
    n_classes, n_rows = len(a.frame), max(len(a), len(b))
    if n_classes > DENSE_LIMIT:
        return False
    if a.is_dense and b.is_dense:
        return True
    n_pairs = len(a.focal) * len(b.focal)
    # In nanoseconds: pairs are grouped once and multiplied per row; transforms are per row alone.
    listed = n_pairs * (60 + 5 * n_rows)
    dense = n_rows * (10 + n_classes / 2) * 2**n_classes
    return n_pairs > 4096 and listed > dense


def _combine_dense(a: MassBatch, b: MassBatch, product: Product) -> MassBatch:
    n_rows = _n_rows(a, b)
    full = np.empty((n_rows, 2 ** len(a.frame)))
    for rows in _row_blocks(n_rows, full.shape[1]):
        of_a, of_b = (_rows_of(source, rows).to_array() for source in (a, b))
        of_a, of_b = np.broadcast_arrays(of_a, of_b)
        full[rows] = product(np.ascontiguousarray(of_a), np.ascontiguousarray(of_b))
    return MassBatch._from_full(a.frame, full, subnormal=bool(full[:, 0].any()))


def _combine_listed(a: MassBatch, b: MassBatch, operation: SetOperation) -> MassBatch:
    """Combine pair by pair: some sets of a at a time with all of b, so that memory is bounded."""
    n_rows = _n_rows(a, b)
    words_a, words_b = to_words(a.focal), to_words(b.focal)
    step = max(1, _AT_A_TIME // words_b.size)
    sets, masses = [], []
    for start in range(0, len(words_a), step):
        some = slice(start, start + step)
        made = operation(words_a[some, None, :], words_b[None, :, :])
        groups = group_equal(made.reshape(-1, made.shape[-1]))
        mass = np.empty((n_rows, len(groups.sets)))
        for rows in _row_blocks(n_rows, len(groups.order)):
            left, right = _rows_of(a, rows).mass[:, some], _rows_of(b, rows).mass
            products = left[:, :, None] * right[:, None, :]
            mass[rows] = groups.add_up(products.reshape(len(products), len(groups.order)))
        sets.append(groups.sets)
        masses.append(mass)
    return _merged(a.frame, np.vstack(sets), np.hstack(masses))


def _intersect_listed(a: MassBatch, b: MassBatch) -> MassBatch:
    r"""Intersect listed sets, single classes apart: these need no pairs.

    :math:`\{k\}` meets a set in :math:`\{k\}` or not at all, so what a source gives to single
    classes is multiplied by the other's contour, and the rest of it is conflict. Discounted
    probabilities of thousands of classes combine in O(K) per row.
    """
    (single_a, rest_a), (single_b, rest_b) = a.split_singletons(), b.split_singletons()
    agreed = single_a * (single_b + rest_b.contour()) + rest_a.contour() * single_b
    against = _others(single_b) + rest_b.opposed()
    clash = (single_a * against + rest_a.opposed() * single_b).sum(axis=1, keepdims=True)
    named = _listed_singletons(a) | _listed_singletons(b)
    if not named.any():
        return _combine_listed(a, b, np.bitwise_and)
    sets, masses = [np.eye(len(named), dtype=bool)[named]], [agreed[:, named]]
    if clash.any():
        sets.append(np.zeros((1, len(named)), dtype=bool))
        masses.append(clash)
    if len(rest_a.focal) and len(rest_b.focal):
        met = _combine_listed(rest_a, rest_b, np.bitwise_and)
        sets.append(met.focal)
        masses.append(met.mass)
    return _merged(a.frame, to_words(np.vstack(sets)), np.hstack(masses))


def _listed_singletons(batch: MassBatch) -> BoolArray:
    return np.asarray(batch.focal[batch.focal.sum(axis=1) == 1].any(axis=0))


def _others(values: FloatArray) -> FloatArray:
    """Return for each column the sum of the others, without subtracting."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    before[:, 1:] = np.cumsum(values[:, :-1], axis=1)
    after[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return before + after


def _n_rows(a: MassBatch, b: MassBatch) -> int:
    return len(b) if len(a) == 1 else len(a)


def _rows_of(source: MassBatch, rows: slice) -> MassBatch:
    """Return some rows; a single one serves for all."""
    return source if len(source) == 1 else source[rows]


def _row_blocks(n_rows: int, row_size: int) -> Iterator[slice]:
    step = max(1, _AT_A_TIME // row_size)
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _merged(frame: Frame, words: Words, mass: FloatArray) -> MassBatch:
    """Build a batch from a list of sets that may repeat, adding up where they do."""
    groups = group_equal(words)
    focal = from_words(groups.sets, len(frame))
    return MassBatch._from_sorted(frame, focal, groups.add_up(mass))


def merge_equal_sets(batch: MassBatch, focal: BoolArray) -> MassBatch:
    """Give the masses of a batch to other focal sets, adding up where these coincide."""
    return _merged(batch.frame, to_words(focal), batch.mass)


def normalised(batch: MassBatch, *, single: bool = False) -> MassBatch:
    """Drop the empty set and divide by what is left."""
    focal, mass = _without_empty_set(batch)
    left = mass.sum(axis=1, keepdims=True)
    if not (left > 0).all():
        rows = np.flatnonzero(~(left[:, 0] > 0))
        raise TotalConflictError.of_single() if single else TotalConflictError(rows)
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
                f"{batches[0].frame!r} and {batch.frame!r}. Build them with the same frame=."
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
