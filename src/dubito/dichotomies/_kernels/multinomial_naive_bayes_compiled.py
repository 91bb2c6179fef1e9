"""Multinomial naive Bayes at every node of a tree, from counts of features.

Rows, indices and folds are as in `gaussian_naive_bayes_compiled`. With counts N of the two sides of
a node and S the sums of N + alpha, a row x has the log-odds

    prior + Σ_j x_j (log(N_right,j + alpha_j) - log(N_left,j + alpha_j))
          + log(S_left / S_right) Σ_j x_j.

A feature absent from the node adds 0 to the first sum: sparse nodes store the others only.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled
from dubito._numerics.vector_math_compiled import dot
from dubito.dichotomies._kernels.sparse_scores_compiled import add_products

#: Rows scored together, while a node's coefficients are in the processor's cache.
_CHUNK_ROWS = 16


@compiled()
def class_counts(rows, leaf_start, without, sums):  # type: ignore[no-untyped-def]
    """Write the sample weight and the weighted sums of features of each leaf's rows."""
    X, weight = rows
    total, counts = sums
    n_folds, fold = without
    n_nodes = len(leaf_start) - 2
    for leaf in range(n_nodes + 1):
        at = n_nodes + leaf
        total[at] = 0.0
        counts[at] = 0.0
        for i in range(leaf_start[leaf], leaf_start[leaf + 1]):
            if i % n_folds != fold:
                total[at] += weight[i]
                for j in range(X.shape[1]):
                    counts[at, j] += weight[i] * X[i, j]


@compiled()
def add_up_counts(left, right, sums):  # type: ignore[no-untyped-def]
    """Write the counts of each inner node from those of its children."""
    total, counts = sums
    for t in range(len(left) - 1, -1, -1):
        a, b = left[t], right[t]
        total[t] = total[a] + total[b]
        for j in range(counts.shape[1]):
            counts[t, j] = counts[a, j] + counts[b, j]


@compiled()
def count_coefficients(children, counts, alpha, coef):  # type: ignore[no-untyped-def]
    """Write the coefficients of the log-odds of each node, (K-1, features)."""
    left, right = children
    prior = alpha.sum()
    for t in range(len(left)):
        a, b = left[t], right[t]
        total_ratio = np.log(counts[a].sum() + prior) - np.log(counts[b].sum() + prior)
        for j in range(len(alpha)):
            coef[t, j] = _log_ratio(counts[a, j], counts[b, j], alpha[j]) + total_ratio


@compiled(inline="always")
def _log_ratio(count_a, count_b, alpha):  # type: ignore[no-untyped-def]
    """Return the log-ratio of the smoothed counts of the right side, b, and the left side, a."""
    return np.log((count_b + alpha) / (count_a + alpha))


@compiled()
def count_scores(X, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of the right side at every node, (n, K-1)."""
    coef, constant = model
    n = len(X)
    rows = np.empty((_CHUNK_ROWS, X.shape[1]))
    for start in range(0, n, _CHUNK_ROWS):
        count = min(_CHUNK_ROWS, n - start)
        rows[:count] = X[start : start + count]
        for t in range(len(constant)):
            for i in range(count):
                out[start + i, t] = constant[t] + dot(rows[i], coef[t])


@compiled()
def count_out_of_fold(X, nodes, fold, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of the rows of one fold, each at the nodes of its own path."""
    start, out_start = nodes
    n_folds, remainder = fold
    coef, constant = model
    row = np.empty(X.shape[1])
    for t in range(len(start)):
        for k in range((remainder - start[t]) % n_folds, out_start[t + 1] - out_start[t], n_folds):
            row[:] = X[start[t] + k]
            out[out_start[t] + k] = constant[t] + dot(row, coef[t])


@compiled()
def entries_of_features(csr, nodes, entry_start, entry_stop):  # type: ignore[no-untyped-def]
    """Write the start and the end of the entries of each feature; return the number of entries.

    A feature has an entry for each node in whose rows it occurs. Features are in the order in
    which they occur in the rows: those that occur together are then close in memory.
    """
    _, indices, indptr = csr
    start, _, stop = nodes
    last_node = np.full(len(entry_start), -1)
    entry_start[:] = 0
    entry_stop[:] = 0
    for t in range(len(start)):
        for q in range(indptr[start[t]], indptr[stop[t]]):
            j = indices[q]
            if last_node[j] != t:
                last_node[j] = t
                entry_stop[j] += 1
    n_entries = 0
    for q in range(len(indices)):
        j = indices[q]
        if last_node[j] >= 0:
            last_node[j] = -1
            entry_start[j] = n_entries
            n_entries += entry_stop[j]
            entry_stop[j] = n_entries
    return n_entries


@compiled()
def sparse_count_coefficients(rows, nodes, alpha, entries, of_nodes):  # type: ignore[no-untyped-def]
    """Write log-ratios feature by feature, each with its node, and the terms of each node.

    `entries` are the start of each feature (moved to its end here), nodes, and log-ratios;
    `of_nodes` are log(S_left / S_right), and the sample weights of the two sides.
    """
    start, split, stop = nodes
    cursor, node, value = entries
    factor, sides = of_nodes
    counts, total = np.zeros((len(alpha), 2, 1)), np.empty((2, 1))  # all rows are one fold
    present, last_node = np.empty(len(alpha), dtype=np.int64), np.full(len(alpha), -1)
    prior = alpha.sum()
    for t in range(len(start)):
        span = start[t], split[t], stop[t]
        n_present = _count_folds(rows, span, (counts, total), (present, last_node, t))
        sides[:, t] = total[:, 0]
        sum_a = sum_b = prior
        for j in present[:n_present]:
            sum_a += counts[j, 0, 0]
            sum_b += counts[j, 1, 0]
            node[cursor[j]] = t
            value[cursor[j]] = _log_ratio(counts[j, 0, 0], counts[j, 1, 0], alpha[j])
            cursor[j] += 1
            counts[j] = 0.0
        factor[t] = np.log(sum_a) - np.log(sum_b)


@compiled()
def sparse_count_scores(csr, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of the right side at every node, (n, K-1)."""
    data, indices, indptr = csr
    (start, stop), (node, value), factor, constant = model
    entries = (start, stop, node, value)
    for i in range(len(out)):
        row, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        total = 0.0  # in double precision, unlike row.sum()
        for q in range(len(row)):
            total += row[q]
        for t in range(len(factor)):
            out[i, t] = constant[t] + factor[t] * total
        add_products(columns, row, entries, out[i])


@compiled()
def sparse_count_out_of_fold(rows, nodes, alpha, options, out):  # type: ignore[no-untyped-def]
    """Write the out-of-fold log-odds of every row at the nodes of its own path.

    `options` are the number of folds and whether the weight of the sides is their prior. Counts
    are kept for each fold: those of the other folds are a sum, not a difference that cancels.
    """
    start, split, stop, out_start = nodes
    n_folds, fit_prior = options
    counts, total = np.zeros((len(alpha), 2, n_folds)), np.empty((2, n_folds))
    fold_terms = np.empty((4, n_folds))
    present, last_node = np.empty(len(alpha), dtype=np.int64), np.full(len(alpha), -1)
    for t in range(len(start)):
        if split[t] - start[t] < 2 or stop[t] - split[t] < 2:
            out[out_start[t] : out_start[t + 1]] = np.nan
            continue
        span = start[t], split[t], stop[t]
        n_present = _count_folds(rows, span, (counts, total), (present, last_node, t))
        features = present[:n_present]
        _to_log_ratios(features, counts, alpha, fold_terms)
        for f in range(n_folds):
            log_odds = np.log(_others(total[1], f)) - np.log(_others(total[0], f))
            fold_terms[2, f] = log_odds if fit_prior else 0.0
            fold_terms[3, f] = np.log(fold_terms[0, f]) - np.log(fold_terms[1, f])
        _score_folds(
            rows[0],
            span,
            (counts, fold_terms[2], fold_terms[3]),
            out[out_start[t] : out_start[t + 1]],
        )
        for j in features:
            counts[j] = 0.0


@compiled()
def _count_folds(rows, span, sums, features):  # type: ignore[no-untyped-def]
    """Write sums of a node's rows by feature, side and fold; return the number of features present.

    `features` are a buffer for the features present, the last node at which each feature occurred,
    and the node.
    """
    (data, indices, indptr), weight = rows
    start, split, stop = span
    counts, total = sums
    present, last_node, t = features
    total[:] = 0.0
    n_present = 0
    for i in range(start, stop):
        side, fold = 1 if i >= split else 0, i % total.shape[1]
        total[side, fold] += weight[i]
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            if last_node[j] != t:
                last_node[j] = t
                present[n_present] = j
                n_present += 1
            counts[j, side, fold] += weight[i] * data[q]
    return n_present


@compiled()
def _to_log_ratios(features, counts, alpha, fold_terms):  # type: ignore[no-untyped-def]
    """Replace the left side's counts by the log-ratios of the other folds' counts.

    Sums of the other folds' smoothed counts, of the left and of the right side, are written to rows
    0 and 1 of `fold_terms`; row 2 is a buffer. No row of a fold uses the log-ratio of a feature
    that the fold does not have.
    """
    fold_terms[:2] = alpha.sum()
    ratio = fold_terms[2]
    for j in features:
        for f in range(len(ratio)):
            count_a, count_b = _others(counts[j, 0], f), _others(counts[j, 1], f)
            fold_terms[0, f] += count_a
            fold_terms[1, f] += count_b
            used = counts[j, 0, f] > 0.0 or counts[j, 1, f] > 0.0
            ratio[f] = _log_ratio(count_a, count_b, alpha[j]) if used else 0.0
        counts[j, 0] = ratio


@compiled()
def _score_folds(csr, span, model, out):  # type: ignore[no-untyped-def]
    """Write the log-odds of a node's rows, each by the model fitted without its fold."""
    data, indices, indptr = csr
    start, _, stop = span
    ratios, constant, factor = model
    for i in range(start, stop):
        fold = i % len(constant)
        score = constant[fold]
        for q in range(indptr[i], indptr[i + 1]):
            score += data[q] * (ratios[indices[q], 0, fold] + factor[fold])
        out[i - start] = score


@compiled()
def _others(values, fold):  # type: ignore[no-untyped-def]
    """Return the sum of all values but one."""
    total = 0.0
    for f in range(len(values)):
        total += 0.0 if f == fold else values[f]
    return total
