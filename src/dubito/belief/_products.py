"""Products of mass functions: dense batches by Möbius transforms, others by pairs of focal sets.

Memory is a small multiple of that of sources and result, for any number of pairs of sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.sums_of_others import sums_of_others
from dubito.belief._kernels import moebius
from dubito.belief._set_words import from_words, group_equal, to_words
from dubito.belief.batch import MassBatch
from dubito.belief.frame import DENSE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import BoolArray, FloatArray
    from dubito.belief._set_words import Words
    from dubito.belief.frame import Frame

    Product = Callable[[FloatArray, FloatArray], FloatArray]
    SetOperation = Callable[[Words, Words], Words]

#: Largest number of entries of an intermediate array, for bounded memory.
_CHUNK_ENTRIES = 2**20


def intersect(a: MassBatch, b: MassBatch) -> MassBatch:
    """Return the conjunctive combination: products of masses go to intersections of the sets."""
    if dense_is_cheaper(a, b):
        return combine_dense(a, b, moebius.intersection_product)
    return _intersect_listed(a, b)


def unite(a: MassBatch, b: MassBatch) -> MassBatch:
    """Return the disjunctive combination: products of masses go to unions of the sets."""
    if dense_is_cheaper(a, b):
        return combine_dense(a, b, moebius.union_product)
    return combine_listed(a, b, np.bitwise_or)


def dense_is_cheaper(a: MassBatch, b: MassBatch) -> bool:
    """Return whether transforms over all subsets cost less than pairs of focal sets."""
    n_classes, n_rows = len(a.frame), n_rows_of(a, b)
    if n_classes > DENSE_LIMIT:
        return False
    if a.is_dense and b.is_dense:
        return True
    n_pairs = len(a.focal) * len(b.focal)
    # Estimated nanoseconds. Pairs of sets are grouped once, and multiplied for each row.
    listed = n_pairs * (60 + 5 * n_rows)
    dense = n_rows * (10 + n_classes / 2) * 2**n_classes
    return n_pairs > 4096 and listed > dense


def combine_dense(a: MassBatch, b: MassBatch, product: Product) -> MassBatch:
    """Return the product of two batches as arrays over all subsets, in blocks of rows."""
    n_rows = n_rows_of(a, b)
    full = np.empty((n_rows, 2 ** len(a.frame)))
    for rows in row_chunks(n_rows, full.shape[1], _CHUNK_ENTRIES):
        of_a, of_b = (_rows_of(source, rows).to_array() for source in (a, b))
        of_a, of_b = np.broadcast_arrays(of_a, of_b)
        full[rows] = product(np.ascontiguousarray(of_a), np.ascontiguousarray(of_b))
    return MassBatch._from_full(a.frame, full, subnormal=bool(full[:, 0].any()))


def combine_listed(a: MassBatch, b: MassBatch, operation: SetOperation) -> MassBatch:
    """Return the product by pairs of sets, the sets of `a` in blocks for bounded memory."""
    n_rows = n_rows_of(a, b)
    words_a, words_b = to_words(a.focal), to_words(b.focal)
    sets, masses = [], []
    for some in row_chunks(len(words_a), words_b.size, _CHUNK_ENTRIES):
        results = operation(words_a[some, None, :], words_b[None, :, :])
        groups = group_equal(results.reshape(-1, results.shape[-1]))
        mass = np.empty((n_rows, len(groups.sets)))
        for rows in row_chunks(n_rows, len(groups.order), _CHUNK_ENTRIES):
            left, right = _rows_of(a, rows).mass[:, some], _rows_of(b, rows).mass
            products = left[:, :, None] * right[:, None, :]
            mass[rows] = groups.add_up(products.reshape(len(products), len(groups.order)))
        sets.append(groups.sets)
        masses.append(mass)
    return _merged(a.frame, np.vstack(sets), np.hstack(masses))


def _intersect_listed(a: MassBatch, b: MassBatch) -> MassBatch:
    r"""Return the product onto intersections; only sets of several classes pair by pair.

    The intersection of :math:`\{k\}` with a set is :math:`\{k\}` or empty, so the mass of a single
    class is multiplied by the other source's contour, and the remaining mass is conflict.
    Discounted probabilities of thousands of classes are combined in O(K) per row.
    """
    single = _listed_singletons(a) | _listed_singletons(b)
    if not single.any():
        return combine_listed(a, b, np.bitwise_and)
    (single_a, rest_a), (single_b, rest_b) = a._split_singletons(), b._split_singletons()
    agreed = single_a * (single_b + rest_b.contour()) + rest_a.contour() * single_b
    against = sums_of_others(single_b) + rest_b._opposed()
    conflict = (single_a * against + rest_a._opposed() * single_b).sum(axis=1, keepdims=True)
    sets, masses = [np.eye(len(single), dtype=bool)[single]], [agreed[:, single]]
    if conflict.any():
        sets.append(np.zeros((1, len(single)), dtype=bool))
        masses.append(conflict)
    if len(rest_a.focal) and len(rest_b.focal):
        rest = combine_listed(rest_a, rest_b, np.bitwise_and)
        sets.append(rest.focal)
        masses.append(rest.mass)
    return _merged(a.frame, to_words(np.vstack(sets)), np.hstack(masses))


def _listed_singletons(batch: MassBatch) -> BoolArray:
    """Return the classes whose singleton is a focal set, (K,)."""
    return np.asarray(batch.focal[batch.focal.sum(axis=1) == 1].any(axis=0))


def n_rows_of(a: MassBatch, b: MassBatch) -> int:
    """Return the number of rows of the product of two batches; a single row is used for all."""
    return len(b) if len(a) == 1 else len(a)


def _rows_of(source: MassBatch, rows: slice) -> MassBatch:
    """Return some rows of a batch, or its only one."""
    return source if len(source) == 1 else source[rows]


def _merged(frame: Frame, words: Words, mass: FloatArray) -> MassBatch:
    """Return a batch from a list of sets, adding the masses of equal sets."""
    groups = group_equal(words)
    focal = from_words(groups.sets, len(frame))
    return MassBatch._from_sorted(frame, focal, groups.add_up(mass))


def merge_equal_sets(batch: MassBatch, focal: BoolArray) -> MassBatch:
    """Return a batch with its focal sets replaced by `focal`, adding the masses of equal sets."""
    return _merged(batch.frame, to_words(focal), batch.mass)
