"""How many classes are left open, and which are taken for one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from dubito._checks import IntArray
    from dubito.report._answers import Answers, Rows

#: Sizes up to this have a bar of their own; larger ones share bars.
SINGLE_SIZES = 6
#: With more classes than this a heat map cannot be read; the list of pairs still can.
MOST_IN_MAP = 15
MOST_PAIRS = 10
#: Larger sets say that anything is possible rather than that two classes are alike.
LARGEST_TOLD = 10


def collect_sets(model: Answers, rows: Rows) -> dict[str, Any]:
    """Return how many rows have sets of each size, and how many of these hold the truth."""
    size = model.sets.sum(axis=1)
    held = model.sets[np.arange(len(rows)), rows.column]
    bars = []
    for low, high in _size_groups(int(size.min()), int(size.max()), len(rows.classes)):
        inside = (size >= low) & (size <= high)
        shown = f"{low}" if low == high else f"{low} to {high}"
        bars.append({"size": shown, "rows": int(inside.sum()), "held": int(held[inside].sum())})
    return {
        "bars": bars,
        "mean": float(size.mean()),
        "single": float((size == 1).mean()),
        "held": float(held.mean()),
    }


def _size_groups(smallest: int, largest: int, n_classes: int) -> list[tuple[int, int]]:
    """Return the sizes that share a bar; 0 where models of other houses leave sets empty.

    >>> _size_groups(1, 3, 10), _size_groups(0, 30, 50)[-4:]
    ([(1, 1), (2, 2), (3, 3)], [(6, 6), (7, 10), (11, 20), (21, 50)])
    """
    groups = [(size, size) for size in range(min(smallest, 1), min(largest, SINGLE_SIZES) + 1)]
    high = 10
    while largest > groups[-1][1]:
        groups.append((groups[-1][1] + 1, min(high, n_classes)))
        high = high * 2 if str(high)[0] in "15" else high * 5 // 2
    return groups


def collect_confusions(model: Answers, rows: Rows, labels: list[str]) -> dict[str, Any]:
    """Return what is predicted for what, and which classes stand together in sets."""
    k = len(labels)
    seen = np.bincount(rows.column, minlength=k)
    wrong = np.flatnonzero(model.predicted != rows.column)
    pair, count = np.unique(rows.column[wrong] * k + model.predicted[wrong], return_counts=True)
    return {
        "map": _map(model, rows, labels) if k <= MOST_IN_MAP else None,
        "mistaken": [
            {
                "truth": labels[pair[i] // k],
                "predicted": labels[pair[i] % k],
                "rows": int(count[i]),
                "share": float(count[i] / seen[pair[i] // k]),
            }
            for i in _largest(count)
        ],
        "together": _together(model, labels),
    }


def _map(model: Answers, rows: Rows, labels: list[str]) -> dict[str, Any]:
    k = len(labels)
    counts = np.bincount(rows.column * k + model.predicted, minlength=k * k).reshape(k, k)
    return {"labels": labels, "counts": counts.tolist()}


def _together(model: Answers, labels: list[str]) -> list[dict[str, Any]]:
    """Return the pairs of classes that most sets leave open together."""
    size = model.sets.sum(axis=1)
    told = (size > 1) & (size <= LARGEST_TOLD)
    sets = sparse.csr_array(model.sets[told].astype(np.int64))
    pairs = sparse.triu(sets.T @ sets, k=1).tocoo()
    return [
        {
            "first": labels[pairs.row[i]],
            "second": labels[pairs.col[i]],
            "rows": int(pairs.data[i]),
        }
        for i in _largest(pairs.data)
    ]


def _largest(count: IntArray) -> list[int]:
    """Return the places of the largest counts, ties in order."""
    return np.argsort(-np.asarray(count), kind="stable")[:MOST_PAIRS].tolist()
