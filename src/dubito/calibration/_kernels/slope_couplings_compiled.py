"""Compiled versions of the couplings of `slope_couplings`.

Rows are processed in blocks stored class by class, (K, width), so that every inner loop runs over
neighbouring rows and the compiler vectorises it. Quadrature points are rows of
`slope_quadrature.QuadraturePoints.columns`, (Q, 5): weight over γ, lower and upper end of the level
set, and the weights of the two ends. A `rule` is the estimated slope, these points in panels of
four, and the tables of a panel.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import exp_buffers, exp_in_place

#: As in `slope_couplings`.
_ROOT_STEPS, _ROOT_TOLERANCE = 12, 1e-9

#: Limit on the numbers in a block of rows: several blocks fit in the second-level cache.
_BLOCK_NUMBERS = 4096


@compiled()
def _width(n_classes):  # type: ignore[no-untyped-def]
    """Return the number of rows of a block."""
    return max(32, min(64, _BLOCK_NUMBERS // n_classes // 8 * 8))


@compiled()
def _exp(slope, s, power, bits, out):  # type: ignore[no-untyped-def]
    """Write exp(slope·s) for slope·s <= 0."""
    for i in range(s.size):
        out[i] = slope * s[i]
    exp_in_place(out, power, bits)


@compiled()
def _load(scores, order, start, n_rows, s):  # type: ignore[no-untyped-def]
    """Write a block of rows class by class in the given order, padded with zeros."""
    n_classes, width = s.shape
    for b in range(width):
        for j in range(n_classes):
            s[j, b] = scores[start + b, order[start + b, j]] if b < n_rows else 0.0


@compiled()
def _store(values, s, order, span, out):  # type: ignore[no-untyped-def]
    """Write sorted bounds to their classes: increasing with the scores, equal for equal scores."""
    start, n_rows = span
    n_classes = len(s)
    for b in range(n_rows):
        most = 0.0
        for j in range(n_classes):
            most = min(max(most, values[j, b]), 1.0)
            values[j, b] = most
        for j in range(n_classes - 1, -1, -1):
            if j < n_classes - 1 and s[j, b] == s[j + 1, b]:
                values[j, b] = values[j + 1, b]
            out[start + b, order[start + b, j]] = values[j, b]


@compiled()
def _add_point(s, exp_ends, weights, buffers, out):  # type: ignore[no-untyped-def]
    """Add one quadrature point of `slope_couplings.gumbel` to the bounds of a block."""
    n_classes, width = s.shape
    exp_low, exp_high = exp_ends
    lower, upper = out
    weight, low_weight, high_weight = weights
    low_total, high_total, low_sum, high_sum, low_gap, high_gap = buffers
    for b in range(width):
        low_total[b] = high_total[b] = 0.0
        low_sum[b] = high_sum[b] = low_gap[b] = high_gap[b] = 0.0
    for j in range(n_classes):
        for b in range(width):
            low_total[b] += exp_low[j, b]
            high_total[b] += exp_high[j, b]
    inverse_low_total = low_total  # the same memory: a buffer more would take time
    for b in range(width):
        inverse_low_total[b] = np.divide(1.0, low_total[b])
    for j in range(n_classes):
        below = s[max(j - 1, 0)]
        here, low_here, high_here = s[j], exp_low[j], exp_high[j]
        low_out, up_out = lower[j], upper[j]
        for b in range(width):
            gap = here[b] - below[b]
            low_gap[b] += low_sum[b] * gap
            high_gap[b] += high_sum[b] * gap
            low_sum[b] += low_here[b]
            high_sum[b] += high_here[b]
            inverse_total = inverse_low_total[b]
            rate = low_weight * low_gap[b] * inverse_total
            total = high_total[b]
            up_out[b] += low_here[b] * inverse_total * (weight + rate) + (
                high_weight * high_here[b] * np.divide(high_gap[b], total * total)
            )
            denominator = (total - high_sum[b]) * low_here[b] + low_sum[b] * high_here[b]
            low_out[b] += np.divide(weight * low_here[b] * high_here[b], denominator)


@compiled()
def gumbel(scores, order, points, lower, upper):  # type: ignore[no-untyped-def]
    """Write bounds of scores (n, K) with rows sorted by `order`, as `slope_couplings.gumbel`."""
    n, n_classes = scores.shape
    width = _width(n_classes)
    size = n_classes * width
    s, power, bits = exp_buffers(size)
    exp_low, exp_high = np.empty(size), np.empty(size)
    sums = np.empty((6, width))
    buffers = (sums[0], sums[1], sums[2], sums[3], sums[4], sums[5])
    ranked = s.reshape(n_classes, width)
    low_block, up_block = np.empty((n_classes, width)), np.empty((n_classes, width))
    for start in range(0, n, width):
        rows = min(width, n - start)
        _load(scores, order, start, rows, ranked)
        low_block[:] = 0.0
        up_block[:] = 0.0
        for q in range(len(points)):
            _exp(points[q, 1], s, power, bits, exp_low)
            _exp(points[q, 2], s, power, bits, exp_high)
            _add_point(
                ranked,
                (exp_low.reshape(n_classes, width), exp_high.reshape(n_classes, width)),
                (points[q, 0], points[q, 3], points[q, 4]),
                buffers,
                (low_block, up_block),
            )
        _store(low_block, ranked, order, (start, rows), lower)
        _store(up_block, ranked, order, (start, rows), upper)


@compiled()
def _probabilities(s, p, derivative, buffers):  # type: ignore[no-untyped-def]
    """Turn exponentials `p` into probabilities; write their derivatives in the slope."""
    n_classes, width = s.shape
    total, mean = buffers
    for b in range(width):
        total[b] = mean[b] = 0.0
    for j in range(n_classes):
        for b in range(width):
            total[b] += p[j, b]
            mean[b] += p[j, b] * s[j, b]
    for b in range(width):
        total[b] = np.divide(1.0, total[b])
        mean[b] *= total[b]
    for j in range(n_classes):
        for b in range(width):
            p[j, b] *= total[b]
            derivative[j, b] = p[j, b] * (s[j, b] - mean[b])


@compiled()
def _integral_beyond_root(v, weight, tables):  # type: ignore[no-untyped-def]
    """Return the integral of values with one root over the part of a panel where they are > 0."""
    basis, _, panel_weights, integrals = tables
    c0 = basis[0, 0] * v[0] + basis[0, 1] * v[1] + basis[0, 2] * v[2] + basis[0, 3] * v[3]
    c1 = basis[1, 0] * v[0] + basis[1, 1] * v[1] + basis[1, 2] * v[2] + basis[1, 3] * v[3]
    c2 = basis[2, 0] * v[0] + basis[2, 1] * v[1] + basis[2, 2] * v[2] + basis[2, 3] * v[3]
    c3 = basis[3, 0] * v[0] + basis[3, 1] * v[1] + basis[3, 2] * v[2] + basis[3, 3] * v[3]
    rising = c1 + c3 > 0  # from -1 to 1: not affected by rounding at a root near an end
    low, high, x = -1.0, 1.0, 0.0
    for _ in range(_ROOT_STEPS):
        value = c0 + x * (c1 + x * (c2 + x * c3))
        if (value > 0) == rising:
            high = x
        else:
            low = x
        proposal = x - np.divide(value, c1 + x * (2 * c2 + x * 3 * c3))
        if not low <= proposal <= high:
            proposal = 0.5 * (low + high)
        step = abs(proposal - x)
        x = proposal
        if step < _ROOT_TOLERANCE:
            break
    total = 0.0
    for q in range(4):
        left_integral = integrals[4, q]
        for k in range(3, -1, -1):
            left_integral = left_integral * x + integrals[k, q]
        part = panel_weights[q] - left_integral if rising else left_integral
        total += part * v[q] * np.divide(weight[q], panel_weights[q])
    return max(total, 0.0)


@compiled(fastmath={"contract"})
def _add_positive(v, weight, sign, panel_tables, out):  # type: ignore[no-untyped-def]
    """Add `sign` times the integral of the positive part of values (4, size) over a panel."""
    tables, crossed = panel_tables
    ends = tables[1]
    a0, a1, a2, a3 = ends[0, 0], ends[0, 1], ends[0, 2], ends[0, 3]
    b0, b1, b2, b3 = ends[1, 0], ends[1, 1], ends[1, 2], ends[1, 3]
    w0, w1, w2, w3 = weight
    v0, v1, v2, v3 = v
    for i in range(out.size):
        first = a0 * v0[i] + a1 * v1[i] + a2 * v2[i] + a3 * v3[i]
        last = b0 * v0[i] + b1 * v1[i] + b2 * v2[i] + b3 * v3[i]
        crossed[i] = first * last
    for i in range(out.size):
        total = w0 * (v0[i] if v0[i] > 0 else 0.0) + w1 * (v1[i] if v1[i] > 0 else 0.0)
        total += w2 * (v2[i] if v2[i] > 0 else 0.0) + w3 * (v3[i] if v3[i] > 0 else 0.0)
        # A panel with a root is integrated below.
        out[i] += sign * total if crossed[i] >= 0 else 0.0
    for i in range(out.size):
        if crossed[i] < 0:
            out[i] += sign * _integral_beyond_root((v0[i], v1[i], v2[i], v3[i]), weight, tables)


@compiled(fastmath={"contract"})
def _cumulative(s, g, d, buffers):  # type: ignore[no-untyped-def]
    """Turn exponentials `g` into cumulative probabilities; write their derivatives to `d`."""
    n_classes, width = s.shape
    inverse_total, mean = buffers
    for b in range(width):
        d[0, b] = g[0, b] * s[0, b]
    for j in range(1, n_classes):
        for b in range(width):
            d[j, b] = d[j - 1, b] + g[j, b] * s[j, b]
            g[j, b] += g[j - 1, b]
    for b in range(width):
        inverse_total[b] = np.divide(1.0, g[n_classes - 1, b])
        mean[b] = d[n_classes - 1, b] * inverse_total[b]
    for j in range(n_classes - 1):
        for b in range(width):
            d[j, b] = (d[j, b] - mean[b] * g[j, b]) * inverse_total[b]
            g[j, b] *= inverse_total[b]


@compiled()
def _inner_extremum(g0, d0, g1, d1):  # type: ignore[no-untyped-def]
    """Return the extremum in (0, 1) of the cubic with these values and derivatives at 0 and 1."""
    c2 = 3 * (g1 - g0) - 2 * d0 - d1
    c3 = d0 + d1 - 2 * (g1 - g0)
    root = np.sqrt(max(c2 * c2 - 3 * c3 * d0, 0.0))
    size = abs(d0)
    t = np.divide(size, max(root - c2 if d0 > 0 else root + c2, size + 1e-300))
    return min(max(g0 + t * (d0 + t * (c2 + t * c3)), 0.0), 1.0)


@compiled()
def _widen(least, most, before, here, step):  # type: ignore[no-untyped-def]
    """Update running extremes by an interval of slopes: its end, and an extremum inside, if any."""
    g0, d0 = before
    g1, d1 = here
    for j in range(len(least) - 1):
        n_inside = 0
        for b in range(least.shape[1]):
            g = g1[j, b]
            least[j, b] = min(least[j, b], g)
            most[j, b] = max(most[j, b], g)
            n_inside += 1 if d0[j, b] * d1[j, b] < 0 else 0
        if n_inside:
            for b in range(least.shape[1]):
                if d0[j, b] * d1[j, b] < 0:
                    value = _inner_extremum(g0[j, b], d0[j, b] * step, g1[j, b], d1[j, b] * step)
                    least[j, b] = min(least[j, b], value)
                    most[j, b] = max(most[j, b], value)


@compiled(fastmath={"contract"})
def _add_extremes(weight, least, most, upper, belief):  # type: ignore[no-untyped-def]
    """Add a quadrature point to upper bounds; write min G_j - max G_{j-1} of each class."""
    last = len(least) - 1
    least[last] = most[last] = 1.0
    for b in range(least.shape[1]):
        upper[0, b] += weight * most[0, b]
        belief[0, b] = least[0, b]
    for j in range(1, last + 1):
        for b in range(least.shape[1]):
            upper[j, b] += weight * (most[j, b] - least[j - 1, b])
            belief[j, b] = least[j, b] - most[j - 1, b]


@compiled()
def inverse_cdf(scores, rule, lower, upper):  # type: ignore[no-untyped-def]
    """Write bounds of scores (n, K) in label order, as `slope_couplings.inverse_cdf`."""
    slope, points, tables = rule
    n, n_classes = scores.shape
    width = _width(n_classes)
    size = n_classes * width
    flat, power, bits = exp_buffers(size)
    s = flat.reshape(n_classes, width)
    buffers = (np.empty(width), np.empty(width))
    # Cumulative sums and derivatives [end of the level set, last or current slope].
    g = np.empty((2, 2, size))
    d = np.empty((2, 2, n_classes, width))
    least, most = np.empty((n_classes, width)), np.empty((n_classes, width))
    low_block, up_block = np.empty(size), np.empty((n_classes, width))
    belief, panel_tables = np.empty((4, size)), (tables, np.empty(size))
    end_slope, current = np.empty(2), np.zeros(2, dtype=np.int64)
    for start in range(0, n, width):
        rows = min(width, n - start)
        s[:, :rows] = scores[start : start + rows].T
        s[:, rows:] = 0.0
        low_block[:] = 0.0
        up_block[:] = 0.0
        for end in range(2):
            end_slope[end], current[end] = slope, 0
            _exp(slope, flat, power, bits, g[end, 0])
            g_here = g[end, 0].reshape(n_classes, width)
            _cumulative(s, g_here, d[end, 0], buffers)
            least[:] = g_here
            most[:] = g_here
        for q in range(len(points)):
            for end in range(2):
                if points[q, 1 + end] != end_slope[end]:
                    old = current[end]
                    new = 1 - old
                    _exp(points[q, 1 + end], flat, power, bits, g[end, new])
                    g_here = g[end, new].reshape(n_classes, width)
                    _cumulative(s, g_here, d[end, new], buffers)
                    before = (g[end, old].reshape(n_classes, width), d[end, old])
                    here = (g_here, d[end, new])
                    _widen(least, most, before, here, points[q, 1 + end] - end_slope[end])
                    end_slope[end], current[end] = points[q, 1 + end], new
            _add_extremes(
                points[q, 0], least, most, up_block, belief[q % 4].reshape(n_classes, width)
            )
            if q % 4 == 3:
                w = (points[q - 3, 0], points[q - 2, 0], points[q - 1, 0], points[q, 0])
                if w[3] > 0:
                    v = (belief[0], belief[1], belief[2], belief[3])
                    _add_positive(v, w, 1.0, panel_tables, low_block)
        lower[start : start + rows] = low_block.reshape(n_classes, width).T[:rows]
        upper[start : start + rows] = up_block.T[:rows]


@compiled()
def envelope(scores, order, rule, lower, upper):  # type: ignore[no-untyped-def]
    """Write bounds of scores (n, K) with rows sorted by `order`, as `slope_couplings.envelope`."""
    slope, points, tables = rule
    n, n_classes = scores.shape
    width = _width(n_classes)
    size = n_classes * width
    flat, power, bits = exp_buffers(size)
    s = flat.reshape(n_classes, width)
    buffers = (np.empty(width), np.empty(width))
    p, derivative = np.empty((2, 4, size)), np.empty((2, 4, size))
    panel_tables = (tables, np.empty(size))
    low_block, up_block = np.empty(size), np.empty(size)
    for start in range(0, n, width):
        rows = min(width, n - start)
        _load(scores, order, start, rows, s)
        low_block[:] = 0.0
        _exp(slope, flat, power, bits, up_block)
        _probabilities(
            s, up_block.reshape(n_classes, width), p[0, 0].reshape(n_classes, width), buffers
        )
        for first in range(0, len(points), 4):
            for end in range(2):
                for q in range(4):
                    _exp(points[first + q, 1 + end], flat, power, bits, p[end, q])
                    _probabilities(
                        s,
                        p[end, q].reshape(n_classes, width),
                        derivative[end, q].reshape(n_classes, width),
                        buffers,
                    )
            weight = points[first : first + 4]
            for q in range(4):
                for i in range(size):
                    low_block[i] += weight[q, 0] * p[0, q, i]
                    p[0, q, i] -= p[1, q, i]
                    derivative[0, q, i] = -derivative[0, q, i]
            for k, v, sign, out in (
                (4, derivative[1], 1.0, up_block),
                (3, derivative[0], 1.0, up_block),
                (0, p[0], -1.0, low_block),
            ):
                w = (weight[0, k], weight[1, k], weight[2, k], weight[3, k])
                if w[0] + w[1] + w[2] + w[3] > 0:
                    _add_positive((v[0], v[1], v[2], v[3]), w, sign, panel_tables, out)
        _store(low_block.reshape(n_classes, width), s, order, (start, rows), lower)
        _store(up_block.reshape(n_classes, width), s, order, (start, rows), upper)
