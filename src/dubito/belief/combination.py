r"""Rules that combine mass functions from several sources.

Every rule takes mass functions or batches (a single one is used for every row of a batch) and
returns a `MassFunction` when all sources are one, a `MassBatch` otherwise. The sums of products are
computed by `_products`: for dense batches by the fast Möbius transforms of `_kernels.moebius`, for
other batches by pairs of focal sets where that is cheaper.

=============  ==========================  =====================================================
rule           sources are taken to be     conflict goes
=============  ==========================  =====================================================
dempster       reliable, distinct          away: the rest is divided by :math:`1-\kappa`
conjunctive    reliable, distinct          to the empty set
cautious       reliable, overlapping       away
yager          reliable, distinct          to the whole frame
dubois_prade   reliable unless disjoint    to the union of the disjoint sets
disjunctive    one of them reliable        there is none
=============  ==========================  =====================================================
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from dubito.belief._kernels import moebius
from dubito.belief._products import (
    combine_dense,
    combine_listed,
    dense_is_cheaper,
    intersect,
    merge_equal_sets,
    unite,
)
from dubito.belief._sources import AnyMass, all_single, as_batches, as_given, normalised
from dubito.belief.batch import MassBatch
from dubito.belief.transforms import mass_to_weights, weights_to_log_commonality

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.belief._set_words import Words


def dempster(*sources: AnyMass) -> AnyMass:
    r"""Combine distinct reliable sources by Dempster's rule.

    :math:`m(A)=\frac1{1-\kappa}\sum_{B\cap C=A}m_1(B)m_2(C)` for :math:`A\ne\emptyset`, with the
    conflict :math:`\kappa=\sum_{B\cap C=\emptyset}m_1(B)m_2(C)` (Denœux 2019, eq. 3-4). Commutative
    and associative, with the vacuous mass function as neutral element.

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
    >>> from dubito.belief import MassFunction, dempster
    >>> doctor = MassFunction({"flu": 0.6, ("flu", "cold"): 0.4})
    >>> test = MassFunction({"cold": 0.5, ("flu", "cold"): 0.5}, frame=["flu", "cold"])
    >>> print(dempster(doctor, test))
    m{flu} = 0.4286, m{cold} = 0.2857, m{flu, cold} = 0.2857
            belief  pignistic  plausibility
      flu    0.429      0.571         0.714
      cold   0.286      0.429         0.571
    """
    first, *others = as_batches(*sources)
    single = all_single(sources)
    combined = normalised(first, single=single)
    for other in others:
        # The sum over B and C: `moebius.intersection_product`, or pairs of focal sets.
        combined = normalised(intersect(combined, other), single=single)
    return as_given(combined, *sources)


def conjunctive(*sources: AnyMass) -> AnyMass:
    r"""Combine distinct reliable sources and keep the conflict on the empty set.

    :math:`m(A)=\sum_{B\cap C=A}m_1(B)m_2(C)` for all A, so that commonalities multiply and
    :math:`m(\emptyset)=\kappa` (Smets' unnormalised rule). Parameters and result as for `dempster`.

    Examples
    --------
    >>> from dubito.belief import MassFunction, conjunctive
    >>> m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    >>> n = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b"])
    >>> conjunctive(m, n)[()]
    0.25
    """
    return as_given(reduce(intersect, as_batches(*sources)), *sources)


def disjunctive(*sources: AnyMass) -> AnyMass:
    r"""Combine sources of which at least one is reliable.

    :math:`m(A)=\sum_{B\cup C=A}m_1(B)m_2(C)`, so that implicabilities multiply. Parameters and
    result as for `dempster`.

    Examples
    --------
    >>> from dubito.belief import MassFunction, disjunctive
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b", "c"])
    >>> n = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b", "c"])
    >>> disjunctive(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b', 'c'])
    """
    return as_given(reduce(unite, as_batches(*sources)), *sources)


def cautious(*sources: AnyMass) -> AnyMass:
    r"""Combine reliable sources whose evidence may overlap: the normalised cautious rule.

    The weight of evidence of each proper non-empty subset is the largest any source gives
    (in Denœux 2008, :math:`e^{-w}` is called weight, and the smallest is taken), and the result is
    normalised. Commutative, associative and idempotent. Parameters and result as for `dempster`.

    Raises
    ------
    ValueError
        Where a source is dogmatic (no mass on the whole frame), or the frame has more than 20
        classes.

    Examples
    --------
    >>> from dubito.belief import MassFunction, cautious
    >>> m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    >>> cautious(m, m)
    MassFunction({('a',): 0.5, ('a', 'b'): 0.5}, frame=['a', 'b'])
    """
    batches = as_batches(*sources)
    weights = reduce(np.maximum, (mass_to_weights(batch.to_array()) for batch in batches))
    weights[..., 0] = 0.0  # normalisation removes the empty set
    log_q = weights_to_log_commonality(weights)
    log_q -= log_q[:, 1:].max(axis=1, keepdims=True)  # the largest is 0, so not all underflow
    log_q[:, 0] = -np.inf
    q = np.exp(log_q)
    full = moebius.superset_difference(q)
    # Set rounding errors of the transform to 0. The whole frame has no supersets, so none.
    rounding = moebius.TRANSFORM_ROUNDING * len(batches[0].frame) * q
    full[:, :-1][full[:, :-1] < rounding[:, :-1]] = 0.0
    full[:, 0] = 0.0
    combined = MassBatch._from_full(batches[0].frame, full, subnormal=False)
    return as_given(normalised(combined), *sources)


def yager(*sources: AnyMass) -> AnyMass:
    r"""Combine all sources conjunctively and give the conflict to the whole frame (Yager 1987).

    Not associative: pass all sources at once. Parameters and result as for `dempster`.

    Examples
    --------
    >>> from dubito.belief import MassFunction, yager
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b"])
    >>> n = MassFunction({"b": 1.0}, frame=["a", "b"])
    >>> yager(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b'])
    """
    combined = reduce(intersect, as_batches(*sources))
    moved = combined.focal | ~combined.focal.any(axis=1, keepdims=True)
    return as_given(merge_equal_sets(combined, moved), *sources)


def dubois_prade(first: AnyMass, second: AnyMass) -> AnyMass:
    r"""Combine two sources; the product of the masses of disjoint sets goes to their union.

    :math:`m(A)=\sum_{B\cap C=A}m_1(B)m_2(C)+\sum_{B\cap C=\emptyset,B\cup C=A}m_1(B)m_2(C)`
    (Dubois and Prade 1988). Not associative, hence two sources. Parameters and result as for
    `dempster`.

    Examples
    --------
    >>> from dubito.belief import MassFunction, dubois_prade
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b", "c"])
    >>> n = MassFunction({"b": 1.0}, frame=["a", "b", "c"])
    >>> dubois_prade(m, n)
    MassFunction({('a', 'b'): 1}, frame=['a', 'b', 'c'])
    """
    a, b = as_batches(first, second)
    for source in (a, b):
        if (source.empty > 0).any():
            raise ValueError("dubois_prade needs sources without mass on the empty set.")
    if dense_is_cheaper(a, b):
        combined = combine_dense(a, b, _intersection_or_union_product)
    else:
        combined = combine_listed(a, b, _intersection_or_union_of_sets)
    return as_given(combined, first, second)


def _intersection_or_union_of_sets(a: Words, b: Words) -> Words:
    """Return the intersections of sets, or their unions where they are disjoint."""
    intersection = a & b
    return np.where(intersection.any(axis=-1, keepdims=True), intersection, a | b)


def _intersection_or_union_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product onto `_intersection_or_union_of_sets`, over all subsets."""
    product = moebius.intersection_product(a, b)
    product[:, 0] = 0.0
    product += moebius.disjoint_union_product(a, b)
    return product
