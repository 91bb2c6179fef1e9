r"""Fast zeta and Möbius transforms over the subsets of K classes, and products built on them.

The last axis of every array has length :math:`2^K`; entry ``A`` belongs to the subset whose bit
mask is ``A`` (bit k set means class k is in it), so entry 0 is the empty set and the last one the
whole frame. Each transform costs :math:`K\,2^{K-1}` additions per row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import row_chunks

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Arrays with at least this many entries are transformed by the compiled version. For smaller ones
#: loading it costs more time than it saves.
COMPILED_FROM = 2**14

#: Where less than this fraction of the mass is outside the empty set, products onto intersections
#: are computed without subtractions. Those by commonalities have absolute errors near 1e-16, which
#: normalisation would magnify there.
CANCELLATION_BELOW = 1e-3

#: Where the exact result of a transform is 0, its rounding error is at most K times this.
TRANSFORM_ROUNDING = 1e-15


def frame_size(x: FloatArray) -> int:
    """Return K for an array whose last axis lists all :math:`2^K` subsets."""
    return x.shape[-1].bit_length() - 1


def superset_sum(x: FloatArray) -> FloatArray:
    r"""Return the zeta transform over supersets, :math:`y(A)=\sum_{B\supseteq A} x(B)`."""
    return _superset_transform(x, 1.0)


def superset_difference(y: FloatArray) -> FloatArray:
    r"""Return the inverse of `superset_sum`.

    :math:`x(A)=\sum_{B\supseteq A} (-1)^{|B\setminus A|}y(B)`.
    """
    return _superset_transform(y, -1.0)


def subset_sum(x: FloatArray) -> FloatArray:
    r"""Return the zeta transform over subsets, :math:`y(A)=\sum_{B\subseteq A} x(B)`."""
    return _complemented(_superset_transform(_complemented(x), 1.0))


def subset_difference(y: FloatArray) -> FloatArray:
    r"""Return the inverse of `subset_sum`.

    :math:`x(A)=\sum_{B\subseteq A} (-1)^{|A\setminus B|}y(B)`.
    """
    return _complemented(_superset_transform(_complemented(y), -1.0))


def _complemented(x: FloatArray) -> FloatArray:
    """Return a view in which each subset has the entry of its complement: the order reversed."""
    return x[..., ::-1]


def _superset_transform(x: FloatArray, sign: float) -> FloatArray:
    """Return the sums over supersets (sign 1), or the inverse of that transform (sign -1)."""
    out = np.array(x, dtype=np.float64, order="C")
    if out.size >= COMPILED_FROM:
        from dubito.belief._kernels import moebius_compiled as compiled  # noqa: PLC0415 - loads numba

        compiled.superset_rows(out.reshape(-1, out.shape[-1]), sign)
        return out
    for k in range(frame_size(out)):
        without_and_with = out.reshape(out.size >> (k + 1), 2, 1 << k)  # subsets, by class k
        without_and_with[:, 0] += sign * without_and_with[:, 1]
    return out


def intersection_product(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Return the product onto intersections: :math:`c(A)=\sum_{B\cap C=A} a(B)\,b(C)`.

    By the product of commonalities, :math:`O(K 2^K)` per row, for masses `a` and `b` of shape
    (n, 2^K). Conflict below the rounding error is set to 0. Rows with almost all mass on the empty
    set are recomputed without subtractions (at most :math:`3^K` steps), so that the other masses
    have full relative precision.
    """
    if a.size >= COMPILED_FROM:
        from dubito.belief._kernels import moebius_compiled as compiled  # noqa: PLC0415 - loads numba

        out, not_empty = compiled.intersection_rows(a, b)
    else:
        out = superset_difference(superset_sum(a) * superset_sum(b))
        np.maximum(out, 0.0, out=out)
        not_empty = out[:, 1:].sum(axis=1)
    is_rounding = out[:, 0] < frame_size(a) * TRANSFORM_ROUNDING
    out[is_rounding, 0] = 0.0
    cancelled = np.flatnonzero(not_empty < CANCELLATION_BELOW)
    if len(cancelled):
        from dubito.belief._kernels import moebius_compiled as compiled  # noqa: PLC0415 - loads numba

        out[cancelled] = compiled.positive_intersection_rows(a[cancelled], b[cancelled])
    return out


def union_product(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Return the product onto unions: :math:`c(A)=\sum_{B\cup C=A} a(B)\,b(C)`.

    By the product of implicabilities, :math:`O(K 2^K)` per row.
    """
    out = subset_difference(subset_sum(a) * subset_sum(b))
    return np.maximum(out, 0.0, out=out)


def disjoint_union_product(a: FloatArray, b: FloatArray) -> FloatArray:
    r"""Return :math:`c(A)=\sum_{B\cap C=\emptyset,B\cup C=A}a(B)\,b(C)`.

    Costs :math:`3^K` steps per row, without subtractions.
    """
    from dubito.belief._kernels import moebius_compiled as compiled  # noqa: PLC0415 - loads numba

    return compiled.disjoint_union_rows(a, b)


def spread_to_supersets(x: FloatArray, rate: FloatArray) -> FloatArray:
    """Return masses where each class k is added to each subset with probability ``rate[..., k]``.

    `x` is (n, 2^K) and `rate` broadcasts to (n, K). Costs O(K 2^K) per row, no subtractions.
    """
    out = np.array(x, dtype=np.float64, order="C")
    for rows in row_chunks(len(out), out.shape[1], 2**17):  # so few that they stay in the cache
        block = out[rows]
        for k in range(frame_size(out)):
            without_and_with = block.reshape(len(block), block.shape[1] >> (k + 1), 2, 1 << k)
            probability = rate[rows, k, None, None]
            without_and_with[:, :, 1] += without_and_with[:, :, 0] * probability
            without_and_with[:, :, 0] *= 1 - probability
    return out
