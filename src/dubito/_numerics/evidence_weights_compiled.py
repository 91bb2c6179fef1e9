"""Compiled loops of `evidence_weights` over rows.

No nearly equal numbers are subtracted. Every exponent is at most 0, scaled by the largest
plausibility of the row, so nothing overflows, and terms that underflow are negligible in their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS, exp_and_complement, exp_in_place

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Largest :math:`w^+_k-w^-_k` of a row below which :math:`1-\prod_kq_k` may underflow. There it is
#: the sum of the :math:`e^{-w^-_k}` to rounding, which is computed with the factor :math:`e^{-M}`.
_ALL_OPPOSED = -600.0

#: Number of rows of a chunk, over which the inner loops are vectorised.
_CHUNK_ROWS = 256


@compiled()
def bounds_of_rows(
    w_plus: FloatArray, w_minus: FloatArray, lower: FloatArray, upper: FloatArray
) -> None:
    """Write belief and plausibility of each class."""
    buffers = np.empty((7, w_plus.shape[1]))
    for i in range(len(w_plus)):
        scaled_d = _fill(w_plus[i], w_minus[i], buffers)[1]
        _write_bounds(buffers, scaled_d, lower[i], upper[i])


@compiled()
def summaries_of_rows(
    w_plus: FloatArray, w_minus: FloatArray, log_d: FloatArray, conflict: FloatArray
) -> None:
    """Write the logarithm of D, which normalises the masses, and the conflict."""
    buffers = np.empty((7, w_plus.shape[1]))
    for i in range(len(w_plus)):
        shift, scaled_d = _fill(w_plus[i], w_minus[i], buffers)
        log_d[i] = shift + np.log(scaled_d)
        conflict[i] = _conflict(buffers)


@compiled(fastmath=SIMD_FLAGS)
def _fill(w_plus: FloatArray, w_minus: FloatArray, buffers: FloatArray) -> tuple[float, float]:
    r"""Fill the buffers for one row; return the shift M and :math:`e^{-M}D`.

    Rows of `buffers` are: 0 the scaled plausibility :math:`e^{w^+_k-w^-_k-M}`, 1 and 2
    :math:`e^{-w^+_k}` and one minus it, 3 and 4 the same of :math:`w^-_k`, 5 the product
    :math:`\prod_{l\ne k}(1-e^{-w^-_l})`, 6 the buffer of `exp_in_place`. M is the largest
    :math:`w^+_k-w^-_k`.
    """
    plausible, no_support, support = buffers[0], buffers[1], buffers[2]
    unopposed, opposition, others, power = buffers[3], buffers[4], buffers[5], buffers[6]
    n_classes = len(w_plus)
    bits = power.view(np.int64)
    shift = _largest_difference(w_plus, w_minus)
    for k in range(n_classes):
        plausible[k] = w_plus[k] - w_minus[k] - shift
        no_support[k] = -w_plus[k]
        unopposed[k] = -w_minus[k]
    exp_in_place(plausible, power, bits)
    exp_and_complement(no_support, support, power, bits)
    exp_and_complement(unopposed, opposition, power, bits)
    not_all_opposed = _products_of_others(unopposed, opposition, others)
    scaled_d = 0.0
    for k in range(n_classes):
        scaled_d += plausible[k] * support[k]
    if shift > _ALL_OPPOSED:
        return shift, scaled_d + not_all_opposed * np.exp(-shift)
    for k in range(n_classes):
        scaled_d += plausible[k] * no_support[k]
    return shift, scaled_d


@compiled(fastmath={"nnan", "nsz"})
def _largest_difference(a: FloatArray, b: FloatArray) -> float:
    """Return the largest entry of a - b."""
    largest = a[0] - b[0]
    for k in range(len(a)):
        largest = max(largest, a[k] - b[k])
    return largest


@compiled(fastmath={"contract"})
def _products_of_others(unopposed: FloatArray, opposition: FloatArray, others: FloatArray) -> float:
    r"""Write :math:`\prod_{l\ne k}q_l` for each k, and return :math:`1-\prod_lq_l`.

    Here :math:`q_l=1-e_l`; :math:`e_l` is `unopposed`, :math:`q_l` is `opposition`. The returned
    value is the sum of :math:`e_k\prod_{l<k}q_l`, with the class of smallest q as the last. The
    product without that class is the largest of all, the others are computed from it by ratios.
    """
    n_classes = len(opposition)
    last = np.argmin(opposition)
    least, least_unopposed = opposition[last], unopposed[last]
    opposition[last], unopposed[last] = 1.0, 0.0
    first_a, first_b, product_a, product_b = 0.0, 0.0, 1.0, 1.0
    half = n_classes // 2
    for k in range(half):  # two independent products, for instruction-level parallelism
        first_a += product_a * unopposed[k]
        product_a *= opposition[k]
        first_b += product_b * unopposed[half + k]
        product_b *= opposition[half + k]
    if n_classes % 2:
        first_b += product_b * unopposed[n_classes - 1]
        product_b *= opposition[n_classes - 1]
    product = product_a * product_b
    opposition[last], unopposed[last] = least, least_unopposed
    for k in range(n_classes):
        others[k] = product * (least / opposition[k])
    if least == 0.0:  # the ratio is 0/0; if q is 0 for two classes, `product` is 0 too
        for k in range(n_classes):
            if opposition[k] == 0.0:
                others[k] = product
    return first_a + product_a * first_b + product * least_unopposed


@compiled(fastmath={"contract"})
def _write_bounds(
    buffers: FloatArray, scaled_d: float, lower: FloatArray, upper: FloatArray
) -> None:
    """Write belief and plausibility of each class from the buffers of `_fill`."""
    plausible, no_support, support, others = buffers[0], buffers[1], buffers[2], buffers[5]
    scale = 1.0 / scaled_d
    for k in range(len(lower)):
        high = plausible[k] * scale
        high = high if high < 1.0 else 1.0  # noqa: FURB136 - for vector lanes
        belief_ratio = support[k] + no_support[k] * others[k]
        belief_ratio = belief_ratio if belief_ratio < 1.0 else 1.0  # noqa: FURB136
        upper[k] = high
        lower[k] = high * belief_ratio


@compiled()
def _conflict(buffers: FloatArray) -> float:
    """Return the mass of the empty set: the probability that independent sources contradict.

    A source of weight w is active with probability 1 - exp(-w). Sources contradict if some are
    active for two different classes; if for one class only, and one against it; or if for none,
    and against every class.
    """
    no_support, support, opposition, others = buffers[1], buffers[2], buffers[4], buffers[5]
    none, one_opposed, one, several = 1.0, 0.0, 0.0, 0.0
    for k in range(len(no_support)):
        several += one * support[k]
        one_opposed = one_opposed * no_support[k] + none * support[k] * opposition[k]
        one = one * no_support[k] + none * support[k]
        none *= no_support[k]
    return min(1.0, several + one_opposed + none * others[0] * opposition[0])


@compiled(fastmath=SIMD_FLAGS)
def totals_of_rows(
    phi: FloatArray,
    layer: tuple[FloatArray, FloatArray, FloatArray],
    layout: tuple[IntArray, IntArray],
    plus: FloatArray,
    minus: FloatArray,
) -> None:
    r"""Write sums of positive and negative parts of :math:`\sum_{j\in g}\beta_{jk}\phi'_j+b_k`.

    `layer` are the slopes (J, K), means (J,) and constants (K,) of the layer; `layout` the features
    in order, and the index in it at which each piece begins. Loops over rows are vectorised, not
    those over classes, of which there may be few.
    """
    slope, mean, base = layer
    order, starts = layout
    block = np.empty((len(order), _CHUNK_ROWS))
    weight, for_class, against = np.empty(_CHUNK_ROWS), np.empty(_CHUNK_ROWS), np.empty(_CHUNK_ROWS)
    for start in range(0, len(phi), _CHUNK_ROWS):
        n = min(_CHUNK_ROWS, len(phi) - start)
        for i in range(n):
            for j in range(len(order)):
                block[j, i] = phi[start + i, order[j]] - mean[order[j]]
        for k in range(len(base)):
            for_class[:] = 0.0
            against[:] = 0.0
            for g in range(len(starts) - 1):
                weight[:] = base[k]
                for j in range(starts[g], starts[g + 1]):
                    slope_jk, values = slope[order[j], k], block[j]
                    for i in range(n):
                        weight[i] += slope_jk * values[i]
                for i in range(n):
                    for_class[i] += weight[i] if weight[i] > 0.0 else 0.0  # noqa: FURB136
                    against[i] -= weight[i] if weight[i] < 0.0 else 0.0  # noqa: FURB136
            for i in range(n):
                plus[start + i, k] = for_class[i]
                minus[start + i, k] = against[i]


@compiled(fastmath=SIMD_FLAGS)
def totals_of_sparse_rows(
    values: tuple[FloatArray, IntArray, IntArray],
    weights: tuple[FloatArray, FloatArray],
    plus: FloatArray,
    minus: FloatArray,
) -> None:
    """Add the effect of values that are not zero to `plus` and `minus`, the totals of zero rows.

    `values` are the data, indices and indptr of a matrix in CSR form; `weights` the slopes (J, K)
    and the weights of evidence of features that are zero, (J, K).
    """
    data, indices, starts = values
    slope, at_zero = weights
    for i in range(len(starts) - 1):
        plus_row, minus_row = plus[i], minus[i]
        for entry in range(starts[i], starts[i + 1]):
            j, value = indices[entry], data[entry]
            slopes, zero_weights = slope[j], at_zero[j]
            for k in range(len(slopes)):
                weight = zero_weights[k] + slopes[k] * value
                plus_row[k] += max(weight, 0.0) - max(zero_weights[k], 0.0)
                minus_row[k] += max(-weight, 0.0) - max(-zero_weights[k], 0.0)
        for k in range(plus.shape[1]):
            plus_row[k] = max(plus_row[k], 0.0)
            minus_row[k] = max(minus_row[k], 0.0)
