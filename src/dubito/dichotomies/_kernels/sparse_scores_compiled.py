"""Log-odds of sparse rows at all nodes, from sparse coefficients stored by column.

Entries ``start[j]:stop[j]`` of `nodes` and `values` are the nodes that have a coefficient for
column j, and these coefficients. Only those of columns in the row are read.
"""

from __future__ import annotations

import numpy as np

from dubito._numerics.jit import compiled


@compiled()
def sparse_scores(indptr, indices, data, coef_indptr, nodes, values, intercept, out):  # type: ignore[no-untyped-def] # noqa: PLR0917
    """Write the log-odds of every row at every node; rows and coefficients are as in CSR."""
    entries = (coef_indptr[:-1], coef_indptr[1:], nodes, values)
    for i in range(len(out)):
        out[i] = intercept
        add_products(
            indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]], entries, out[i]
        )


@compiled()
def add_products(columns, row, entries, scores):  # type: ignore[no-untyped-def]
    """Add the products of one sparse row and the coefficients of each node."""
    start, stop, nodes, values = entries
    for e in range(len(columns)):
        x = np.float64(row[e])
        for q in range(start[columns[e]], stop[columns[e]]):
            scores[nodes[q]] += x * values[q]


@compiled()
def put_by_column(columns, coef, node, free, entries):  # type: ignore[no-untyped-def]
    """Write the coefficients of a node to the next free entries of their columns."""
    nodes, values = entries
    for q in range(len(columns)):
        entry = free[columns[q]]
        nodes[entry] = node
        values[entry] = coef[q]
        free[columns[q]] = entry + 1
