"""Products of sparse rows with sparse weights, into dense log-odds."""

from __future__ import annotations

from dubito._numerics.jit import compiled


@compiled()
def sparse_scores(indptr, indices, data, starts, nodes, weights, intercept, out):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Write the log-odds of every row and node: only weights of columns in the row are read."""
    for i in range(len(out)):
        scores = out[i]
        scores[:] = intercept
        for e in range(indptr[i], indptr[i + 1]):
            value = data[e]
            column = indices[e]
            for q in range(starts[column], starts[column + 1]):
                scores[nodes[q]] += value * weights[q]


@compiled()
def put_by_column(columns, values, node, free, rows):  # type: ignore[no-untyped-def]
    """Write the weights of a node where the next free places of their columns are."""
    nodes, weights = rows
    for q in range(len(columns)):
        place = free[columns[q]]
        nodes[place] = node
        weights[place] = values[q]
        free[columns[q]] = place + 1
