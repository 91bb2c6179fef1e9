"""How masses are multiplied: dense ones by transforms, listed ones set by set.

Memory stays a small multiple of that of sources and result, however many pairs of sets there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels import moebius
from dubito.belief._sets import from_words, group_equal, to_words
from dubito.belief.batch import MassBatch
from dubito.belief.frame import DENSE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dubito._checks import BoolArray, FloatArray
    from dubito.belief._sets import Words
    from dubito.belief.frame import Frame

    Product = Callable[[FloatArray, FloatArray], FloatArray]
    SetOperation = Callable[[Words, Words], Words]

# Numbers held at a time: a few megabytes.
_AT_A_TIME = 1 << 20


def intersect(a: MassBatch, b: MassBatch) -> MassBatch:
    """Spread the products of masses onto intersections."""
    if dense_is_cheaper(a, b):
        return combine_dense(a, b, moebius.intersection_product)
    return _intersect_listed(a, b)


def unite(a: MassBatch, b: MassBatch) -> MassBatch:
    """Spread the products of masses onto unions."""
    if dense_is_cheaper(a, b):
        return combine_dense(a, b, moebius.union_product)
    return combine_listed(a, b, np.bitwise_or)


def dense_is_cheaper(a: MassBatch, b: MassBatch) -> bool:
    """Whether transforms over all subsets cost less than pairs of focal sets."""
    n_classes, n_rows = len(a.frame), n_rows_of(a, b)
    if n_classes > DENSE_LIMIT:
        return False
    if a.is_dense and b.is_dense:
        return True
    n_pairs = len(a.focal) * len(b.focal)
    # In nanoseconds: pairs are grouped once and multiplied per row; transforms are per row alone.
    listed = n_pairs * (60 + 5 * n_rows)
    dense = n_rows * (10 + n_classes / 2) * 2**n_classes
    return n_pairs > 4096 and listed > dense


def combine_dense(a: MassBatch, b: MassBatch, product: Product) -> MassBatch:
    """Combine by a product of arrays over all subsets, some rows at a time."""
    n_rows = n_rows_of(a, b)
    full = np.empty((n_rows, 2 ** len(a.frame)))
    for rows in _row_blocks(n_rows, full.shape[1]):
        of_a, of_b = (_rows_of(source, rows).to_array() for source in (a, b))
        of_a, of_b = np.broadcast_arrays(of_a, of_b)
        full[rows] = product(np.ascontiguousarray(of_a), np.ascontiguousarray(of_b))
    return MassBatch._from_full(a.frame, full, subnormal=bool(full[:, 0].any()))


def combine_listed(a: MassBatch, b: MassBatch, operation: SetOperation) -> MassBatch:
    """Combine pair by pair: some sets of a at a time with all of b, so that memory is bounded."""
    n_rows = n_rows_of(a, b)
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
    named = _listed_singletons(a) | _listed_singletons(b)
    if not named.any():
        return combine_listed(a, b, np.bitwise_and)
    (single_a, rest_a), (single_b, rest_b) = a._split_singletons(), b._split_singletons()
    agreed = single_a * (single_b + rest_b.contour()) + rest_a.contour() * single_b
    against = _others(single_b) + rest_b._opposed()
    clash = (single_a * against + rest_a._opposed() * single_b).sum(axis=1, keepdims=True)
    sets, masses = [np.eye(len(named), dtype=bool)[named]], [agreed[:, named]]
    if clash.any():
        sets.append(np.zeros((1, len(named)), dtype=bool))
        masses.append(clash)
    if len(rest_a.focal) and len(rest_b.focal):
        met = combine_listed(rest_a, rest_b, np.bitwise_and)
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


def n_rows_of(a: MassBatch, b: MassBatch) -> int:
    """Return the number of rows two batches make together; a single row serves for all."""
    return len(b) if len(a) == 1 else len(a)


def _rows_of(source: MassBatch, rows: slice) -> MassBatch:
    """Return some rows of a batch, or its only one."""
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
