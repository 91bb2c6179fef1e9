"""Compiled versions of the subset transforms and products; import only from `moebius`."""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled

#: Entries transformed together for the ten lowest classes: they fit into the first-level cache.
_CHUNK_ENTRIES = 2**10


@compiled()
def _superset_low_bits(x, start, length, sign):  # type: ignore[no-untyped-def]
    """Transform in place for the three lowest classes, eight neighbours at a time, in registers."""
    for b in range(start, start + length, 8):
        x1, x3, x5, x7 = x[b + 1], x[b + 3], x[b + 5], x[b + 7]
        x0 = x[b] + sign * x1
        x2 = x[b + 2] + sign * x3
        x4 = x[b + 4] + sign * x5
        x6 = x[b + 6] + sign * x7
        x0 += sign * x2
        x1 += sign * x3
        x4 += sign * x6
        x5 += sign * x7
        x[b] = x0 + sign * x4
        x[b + 1] = x1 + sign * x5
        x[b + 2] = x2 + sign * x6
        x[b + 3] = x3 + sign * x7
        x[b + 4] = x4
        x[b + 5] = x5
        x[b + 6] = x6


@compiled()
def _superset_bits(x, start, length, stride, sign):  # type: ignore[no-untyped-def]
    """Transform in place for the classes of bit value stride, 2 stride, ..., length / 2.

    Each pass over the entries from `start` to `start + length` does two classes. The four quarters
    are separate slices, so that the compiler can vectorise the loop over them.
    """
    if stride == 1 and length >= 8:
        _superset_low_bits(x, start, length, sign)
        stride = 8
    while 4 * stride <= length:
        for base in range(start, start + length, 4 * stride):
            x0 = x[base : base + stride]
            x1 = x[base + stride : base + 2 * stride]
            x2 = x[base + 2 * stride : base + 3 * stride]
            x3 = x[base + 3 * stride : base + 4 * stride]
            for i in range(stride):
                y2 = x2[i] + sign * x3[i]
                x0[i] = (x0[i] + sign * x1[i]) + sign * y2
                x1[i] += sign * x3[i]
                x2[i] = y2
        stride *= 4
    if 2 * stride <= length:
        for base in range(start, start + length, 2 * stride):
            x0 = x[base : base + stride]
            x1 = x[base + stride : base + 2 * stride]
            for i in range(stride):
                x0[i] += sign * x1[i]


@compiled()
def superset_rows(x, sign):  # type: ignore[no-untyped-def]
    """Replace each row (2^K,) by its sums over supersets (sign 1), or invert that (sign -1)."""
    n, size = x.shape
    block = min(size, _CHUNK_ENTRIES)
    for r in range(n):
        for start in range(0, size, block):
            _superset_bits(x[r], start, block, 1, sign)
        _superset_bits(x[r], 0, size, block, sign)


@compiled()
def intersection_rows(a, b):  # type: ignore[no-untyped-def]
    """Return the products onto intersections, and the total mass of the non-empty sets of each row.

    The products are computed from commonalities. Negative rounding errors are set to 0.
    """
    n, size = a.shape
    out = np.empty((n, size))
    not_empty = np.empty(n)
    other = np.empty(size)
    block = min(size, _CHUNK_ENTRIES)
    for r in range(n):
        row = out[r]
        row[:] = a[r]
        other[:] = b[r]
        _superset_bits(row, 0, size, block, 1.0)
        _superset_bits(other, 0, size, block, 1.0)
        for start in range(0, size, block):
            _superset_bits(row, start, block, 1, 1.0)
            _superset_bits(other, start, block, 1, 1.0)
            for i in range(start, start + block):
                row[i] *= other[i]
            _superset_bits(row, start, block, 1, -1.0)
        _superset_bits(row, 0, size, block, -1.0)
        total = 0.0
        for i in range(size):
            row[i] = max(row[i], 0.0)
            total += row[i]
        not_empty[r] = total - row[0]
    return out, not_empty


@compiled("void(f8[::1], f8[::1], f8[::1], f8[::1], i8, i8, i8, i8, i8)")
def _add_positive_intersection(a, b, out, buffer, ia, ib, io, free, size):  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    """Add the product of two slices onto intersections to a third, by recursion on the classes.

    With a = (a0, a1) for sets without and with the highest class: out1 = a1∘b1 and
    out0 = a0∘(b0+b1) + a1∘b0, three products of half the size and no subtraction. The slices have
    `size` entries from `ia`, `ib` and `io` on; `buffer` is free from `free` on.
    """
    if size == 1:
        out[io] += a[ia] * b[ib]
        return
    if size == 4:  # two classes, without recursion: most of the work is in such small slices
        a0, a1, a2, a3 = a[ia], a[ia + 1], a[ia + 2], a[ia + 3]
        b0, b1, b2, b3 = b[ib], b[ib + 1], b[ib + 2], b[ib + 3]
        out[io] += a0 * (b0 + b1 + b2 + b3) + a1 * (b0 + b2) + a2 * (b0 + b1) + a3 * b0
        out[io + 1] += a1 * (b1 + b3) + a3 * b1
        out[io + 2] += a2 * (b2 + b3) + a3 * b2
        out[io + 3] += a3 * b3
        return
    half = size // 2
    _add_positive_intersection(a, b, out, buffer, ia + half, ib + half, io + half, free, half)
    _add_positive_intersection(a, b, out, buffer, ia + half, ib, io, free, half)
    for i in range(half):
        buffer[free + i] = b[ib + i] + b[ib + half + i]
    _add_positive_intersection(a, buffer, out, buffer, ia, free, io, free + half, half)


@compiled()
def positive_intersection_rows(a, b):  # type: ignore[no-untyped-def]
    """Return products onto intersections, computed without subtractions.

    By pairs of sets where few have mass, else by recursion over the classes: 3^K steps per row.
    """
    n, size = a.shape
    out = np.zeros((n, size))
    buffer = np.empty(size)
    steps = 3.0 ** np.log2(size)
    for r in range(n):
        in_a, in_b = np.flatnonzero(a[r]), np.flatnonzero(b[r])
        if len(in_a) * float(len(in_b)) <= steps:
            for i in in_a:
                for j in in_b:
                    out[r, i & j] += a[r, i] * b[r, j]
        else:
            _add_positive_intersection(a[r], b[r], out[r], buffer, 0, 0, 0, 0, size)
    return out


@compiled()
def disjoint_union_rows(a, b):  # type: ignore[no-untyped-def]
    """Return products of the masses of disjoint sets, added to their unions, over all submasks."""
    n, size = a.shape
    out = np.empty((n, size))
    for r in range(n):
        for mask in range(size):
            submask = mask
            total = a[r, 0] * b[r, mask]
            while submask > 0:
                total += a[r, submask] * b[r, mask ^ submask]
                submask = (submask - 1) & mask
            out[r, mask] = total
    return out
