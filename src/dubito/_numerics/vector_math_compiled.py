"""exp, log(1 + x), sigmoid, softplus and dot products, written so that loops are vectorised.

Where `noqa: FURB136` stands, `min` or `max` would keep a loop from being vectorised.
"""

from __future__ import annotations

import math

import numpy as np

from dubito._numerics.jit import compiled

#: LLVM fast-math flags with which sums are vectorised.
SIMD_FLAGS = {"reassoc", "contract", "nsz"}

_LOG2_E = 1.4426950408889634
# log 2 as a sum: the first term has trailing zeros, so its product with an exponent is exact.
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6


@compiled(fastmath={"contract"})
def _expm1_ratio(r):  # type: ignore[no-untyped-def]
    """Return (exp(r) - 1) / r for abs(r) <= log(2) / 2, exact to rounding: the Taylor series."""
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    return p * r + 1.0


@compiled()
def exp_buffers(size):  # type: ignore[no-untyped-def]
    """Return vectors of this size as `exp_in_place` takes them: values, powers of two, their bits.

    The last two are the same memory, as numbers and as integers.
    """
    power = np.empty(size)
    return np.empty(size), power, power.view(np.int64)


@compiled(fastmath={"contract"})
def exp_in_place(x, power, power_bits):  # type: ignore[no-untyped-def]
    """Replace non-positive x by exp(x); `power_bits` are the numbers of `power` as integers.

    Exact to rounding; below -708 the result is exp(-708), about 3e-308. Loops over the library's
    exp are not vectorised.
    """
    for k in range(len(x)):
        value = x[k] if x[k] > -708.0 else -708.0  # noqa: FURB136
        binade = np.floor(value * _LOG2_E + 0.5)
        r = value - binade * _LN2_HIGH - binade * _LN2_LOW
        x[k] = _expm1_ratio(r) * r + 1.0
        power_bits[k] = (np.int64(binade) + 1023) << 52
    # A separate loop: one that reads `power` and writes `power_bits` would not be vectorised.
    for k in range(len(x)):
        x[k] *= power[k]


@compiled(fastmath={"contract"})
def exp_and_complement(x, complement, power, power_bits):  # type: ignore[no-untyped-def]
    """Replace non-positive x by exp(x) and write 1 - exp(x), which loses no digits near x = 0."""
    for k in range(len(x)):
        value = x[k] if x[k] > -708.0 else -708.0  # noqa: FURB136
        binade = np.floor(value * _LOG2_E + 0.5)
        r = value - binade * _LN2_HIGH - binade * _LN2_LOW
        complement[k] = _expm1_ratio(r) * r
        power_bits[k] = (np.int64(binade) + 1023) << 52
    for k in range(len(x)):
        x[k] = (complement[k] + 1.0) * power[k]
        complement[k] = (1.0 - power[k]) - complement[k] * power[k]


@compiled(fastmath=SIMD_FLAGS)
def log_one_plus(x):  # type: ignore[no-untyped-def]
    """Return log(1 + x) for x in [0, 1], to rounding: twice the series of artanh(x / (2 + x))."""
    y = x / (2.0 + x)
    z = y * y
    p = 1.0 / 33.0
    p = p * z + 1.0 / 31.0
    p = p * z + 1.0 / 29.0
    p = p * z + 1.0 / 27.0
    p = p * z + 1.0 / 25.0
    p = p * z + 1.0 / 23.0
    p = p * z + 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    return 2.0 * y * (p * z + 1.0)


@compiled(fastmath=SIMD_FLAGS)
def softplus_terms(eta, small):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(eta)) and its first two derivatives, given small = exp(-abs(eta))."""
    larger = 1.0 / (1.0 + small)
    value = (eta if eta > 0.0 else 0.0) + log_one_plus(small)  # noqa: FURB136 - for vector lanes
    return value, larger if eta >= 0.0 else small * larger, small * larger * larger


@compiled()
def softplus(eta):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(eta)): the negative log-probability of log-odds -eta."""
    return softplus_terms(eta, math.exp(-abs(eta)))[0]


@compiled()
def sigmoid(eta):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(-eta)) without overflow."""
    small = math.exp(-abs(eta))
    return (1.0 if eta >= 0.0 else small) / (1.0 + small)


@compiled()
def logistic_density(eta):  # type: ignore[no-untyped-def]
    """Return σ'(eta), the derivative of the sigmoid."""
    small = math.exp(-abs(eta))
    return small / (1.0 + small) ** 2


@compiled(fastmath=SIMD_FLAGS)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Return the sum of products, in double precision."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled(fastmath=SIMD_FLAGS)
def matrix_vector(matrix, vector, out):  # type: ignore[no-untyped-def]
    """Write the product of a matrix, of either precision, and a vector, summed in double."""
    for i in range(len(out)):
        row, total = matrix[i], 0.0
        for j in range(len(vector)):
            total += row[j] * vector[j]
        out[i] = total


@compiled(fastmath=SIMD_FLAGS)
def add_multiple(row, factor, out):  # type: ignore[no-untyped-def]
    """Add a multiple of a row to `out`."""
    for j in range(len(out)):
        out[j] += factor * row[j]


@compiled(fastmath=SIMD_FLAGS)
def times(a, b, out):  # type: ignore[no-untyped-def]
    """Write the products of the entries of two vectors."""
    for i in range(len(a)):
        out[i] = a[i] * b[i]


@compiled(fastmath=SIMD_FLAGS)
def combine_rows(rows, factors, out):  # type: ignore[no-untyped-def]
    """Write the sum of the rows, each times its factor."""
    out[:] = 0.0
    for a in range(len(factors)):
        factor, row = factors[a], rows[a]
        for i in range(len(out)):
            out[i] += factor * row[i]
