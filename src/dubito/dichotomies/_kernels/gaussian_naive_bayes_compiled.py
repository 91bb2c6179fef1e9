"""Gaussian naive Bayes at every node of a tree, from moments of classes merged up the tree.

Rows are in leaf order: the rows of leaf j are [leaf_start[j], leaf_start[j + 1]). Moments are
arrays of the inner nodes in preorder, then the leaves; `left` and `right` are the indices of the
children there.
`without` is a number of folds and a fold: rows whose position has that remainder are left out.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import SIMD_FLAGS

#: Rows scored together, while a node's means are in the processor's cache.
_CHUNK_ROWS = 16

#: Standardised differences are clipped to ± this if squares overflow: sums of squares stay finite.
_LARGEST_Z = 1e150


@compiled()
def class_moments(rows, leaf_start, without, moments):  # type: ignore[no-untyped-def]
    """Write sample weight, mean and centred sum of squares of each leaf's rows, by feature.

    Sums are of differences from the class's first row, then from its mean: a mean far from 0 costs
    no digits, and a constant feature has a sum of squares of exactly 0.
    """
    X, weight = rows
    total, mean, squares = moments
    n_folds, fold = without
    n_features = X.shape[1]
    n_nodes = len(leaf_start) - 2
    for leaf in range(n_nodes + 1):
        at = n_nodes + leaf
        total[at] = 0.0
        mean[at] = 0.0
        squares[at] = 0.0
        first = -1
        for i in range(leaf_start[leaf], leaf_start[leaf + 1]):
            if i % n_folds == fold:
                continue
            first = i if first < 0 else first
            total[at] += weight[i]
            for j in range(n_features):
                mean[at, j] += weight[i] * (np.float64(X[i, j]) - X[first, j])
        if first < 0:
            continue
        for j in range(n_features):
            mean[at, j] = X[first, j] + mean[at, j] / total[at]
        for i in range(leaf_start[leaf], leaf_start[leaf + 1]):
            if i % n_folds == fold:
                continue
            for j in range(n_features):
                difference = X[i, j] - mean[at, j]
                squares[at, j] += weight[i] * difference * difference


@compiled()
def add_up_moments(left, right, moments):  # type: ignore[no-untyped-def]
    """Write the moments of each inner node from those of its children (Chan et al. 1979)."""
    total, mean, squares = moments
    for t in range(len(left) - 1, -1, -1):
        a, b = left[t], right[t]
        total[t] = total[a] + total[b]
        fraction = total[b] / total[t] if total[t] > 0.0 else 0.0
        spread = total[a] * fraction
        for j in range(mean.shape[1]):
            # A side without rows has mean 0, which is not to be merged.
            gap = mean[b, j] - mean[a, j] if spread > 0.0 else 0.0
            mean[t, j] = mean[a, j] + fraction * gap if total[a] > 0.0 else mean[b, j]
            squares[t, j] = squares[a, j] + squares[b, j] + spread * gap * gap


@compiled()
def largest_variance(total, squares, out):  # type: ignore[no-untyped-def]
    """Write the largest variance of a feature at each inner node."""
    for t in range(len(out)):
        out[t] = 0.0
        for j in range(squares.shape[1]):
            out[t] = max(out[t], squares[t, j] / total[t])


@compiled()
def gaussian_sides(children, moments, epsilon, model):  # type: ignore[no-untyped-def]
    """Write means, inverse standard deviations and the constant of the log-odds of each node.

    `epsilon` is added to variances. A feature whose variance is still 0 on a side is left out of
    the node; a node without rows on a side has the constant nan.
    """
    left, right = children
    total, mean, squares = moments
    centre, scale, constant = model
    for t in range(len(left)):
        a, b = left[t], right[t]
        if total[a] == 0.0 or total[b] == 0.0:
            constant[t] = np.nan
            centre[t] = 0.0
            scale[t] = 0.0
            continue
        constant[t] = np.log(total[b]) - np.log(total[a])
        for j in range(mean.shape[1]):
            variance_a = squares[a, j] / total[a] + epsilon[t]
            variance_b = squares[b, j] / total[b] + epsilon[t]
            centre[t, 0, j], centre[t, 1, j] = mean[a, j], mean[b, j]
            scale[t, 0, j] = scale[t, 1, j] = 0.0
            if variance_a > 0.0 and variance_b > 0.0:
                scale[t, 0, j], scale[t, 1, j] = 1 / np.sqrt(variance_a), 1 / np.sqrt(variance_b)
                constant[t] += 0.5 * (np.log(variance_a) - np.log(variance_b))


@compiled()
def gaussian_scores(X, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of the right side at every node, (n, K-1)."""
    centre, scale, constant = model
    n = len(X)
    rows = np.empty((_CHUNK_ROWS, X.shape[1]))
    for start in range(0, n, _CHUNK_ROWS):
        count = min(_CHUNK_ROWS, n - start)
        rows[:count] = X[start : start + count]
        for t in range(len(constant)):
            for i in range(count):
                out[start + i, t] = constant[t] + 0.5 * _distance_difference(
                    rows[i], centre[t], scale[t]
                )


@compiled()
def gaussian_out_of_fold(X, nodes, fold, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of the rows of one fold, each at the nodes of its own path.

    `nodes` are the first row of each node, and the start of its rows in `out`, with the end.
    """
    start, out_start = nodes
    n_folds, remainder = fold
    centre, scale, constant = model
    row = np.empty(X.shape[1])
    for t in range(len(start)):
        for k in range((remainder - start[t]) % n_folds, out_start[t + 1] - out_start[t], n_folds):
            row[:] = X[start[t] + k]
            out[out_start[t] + k] = constant[t] + 0.5 * _distance_difference(
                row, centre[t], scale[t]
            )


@compiled()
def _distance_difference(x, centre, scale):  # type: ignore[no-untyped-def]
    """Return the squared distance from the left side minus that from the right, always finite."""
    difference = _difference_of_squares(x, centre[0], scale[0], centre[1], scale[1])
    if np.isfinite(difference):
        return difference
    difference = 0.0  # where squares overflow, again with clipped factors
    for j in range(len(x)):
        a = _clipped(x[j] - centre[0, j], scale[0, j])
        b = _clipped(x[j] - centre[1, j], scale[1, j])
        difference += (a - b) * (a + b)
    return difference


@compiled(fastmath=SIMD_FLAGS)
def _difference_of_squares(x, mean_a, scale_a, mean_b, scale_b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        a = (x[j] - mean_a[j]) * scale_a[j]
        b = (x[j] - mean_b[j]) * scale_b[j]
        total += a * a - b * b
    return total


@compiled()
def _clipped(difference, scale):  # type: ignore[no-untyped-def]
    """Return the standardised difference, clipped; 0 where the scale is 0."""
    return max(-_LARGEST_Z, min(_LARGEST_Z, difference * scale)) if scale > 0.0 else 0.0
