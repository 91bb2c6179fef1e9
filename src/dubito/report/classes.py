"""Label sets by size, classes that are confused, and the coverage of conformal sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dubito._models import is_conformal
from dubito.metrics.intervals import fraction_interval
from dubito.report.wording import INTERVAL_LEVEL, coverage_sentence

if TYPE_CHECKING:
    from dubito._typing import IntArray
    from dubito.report.predictions import LabelledRows, ModelOutputs

#: Set sizes up to this have a bar each; larger ones are grouped.
SINGLE_SIZES = 6
#: With more classes than this a heat map is unreadable, and only the list of pairs is shown.
MOST_IN_HEAT_MAP = 15
#: Pairs listed of confused classes, and of classes in the same set.
MOST_PAIRS = 10
#: Classes in larger sets are not counted as left open together.
LARGEST_SET = 10


def collect_sets(outputs: ModelOutputs, rows: LabelledRows) -> dict[str, Any]:
    """Return the number of sets of each size, and how many of them contain the true class."""
    size = outputs.sets.sum(axis=1)
    covered = outputs.sets[np.arange(len(rows)), rows.true_column]
    bars = []
    for low, high in _size_groups(int(size.min()), int(size.max()), len(rows.classes)):
        inside = (size >= low) & (size <= high)
        shown = f"{low}" if low == high else f"{low} to {high}"
        bars.append(
            {"size": shown, "rows": int(inside.sum()), "covered": int(covered[inside].sum())}
        )
    return {
        "bars": bars,
        "mean": float(size.mean()),
        "single": float((size == 1).mean()),
        "covered": float(covered.mean()),
    }


def _size_groups(smallest: int, largest: int, n_classes: int) -> list[tuple[int, int]]:
    """Return ranges of set sizes, one for each bar; size 0 only where sets are empty.

    >>> _size_groups(1, 3, 10), _size_groups(0, 30, 50)[-4:]
    ([(1, 1), (2, 2), (3, 3)], [(6, 6), (7, 10), (11, 20), (21, 50)])
    """
    groups = [(size, size) for size in range(min(smallest, 1), min(largest, SINGLE_SIZES) + 1)]
    high = 10
    while largest > groups[-1][1]:
        groups.append((groups[-1][1] + 1, min(high, n_classes)))
        high = high * 2 if str(high)[0] in "15" else high * 5 // 2
    return groups


def collect_confusions(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str]
) -> dict[str, Any]:
    """Return the confusion counts, and the pairs of classes most often in one set."""
    k = len(labels)
    seen = np.bincount(rows.true_column, minlength=k)
    wrong = np.flatnonzero(outputs.predicted != rows.true_column)
    pair, count = np.unique(
        rows.true_column[wrong] * k + outputs.predicted[wrong], return_counts=True
    )
    return {
        "map": _confusion_counts(outputs, rows, labels) if k <= MOST_IN_HEAT_MAP else None,
        "mistaken": [
            {
                "truth": labels[pair[i] // k],
                "predicted": labels[pair[i] % k],
                "rows": int(count[i]),
                "fraction": float(count[i] / seen[pair[i] // k]),
            }
            for i in _largest(count)
        ],
        "together": _pairs_in_sets(outputs, labels),
    }


def _confusion_counts(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str]
) -> dict[str, Any]:
    k = len(labels)
    counts = np.bincount(rows.true_column * k + outputs.predicted, minlength=k * k).reshape(k, k)
    return {"labels": labels, "counts": counts.tolist()}


def _pairs_in_sets(outputs: ModelOutputs, labels: list[str]) -> list[dict[str, Any]]:
    """Return the pairs of classes that are in the same set most often."""
    size = outputs.sets.sum(axis=1)
    counted = (size > 1) & (size <= LARGEST_SET)
    sets = sparse.csr_array(outputs.sets[counted].astype(np.int64))
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
    """Return the indices of the largest counts, ties in order."""
    return np.argsort(-np.asarray(count), kind="stable")[:MOST_PAIRS].tolist()


#: Classes listed with their coverage, the least covered first.
MOST_LISTED_CLASSES = 12


def collect_coverage(
    outputs: ModelOutputs, rows: LabelledRows, labels: list[str], coverage: float
) -> dict[str, Any] | None:
    """Return coverage requested and observed, also by class; None unless the model is conformal."""
    if not is_conformal(outputs.estimator):
        return None
    covered = outputs.sets[np.arange(len(rows)), rows.true_column]
    seen = np.bincount(rows.true_column, minlength=len(labels))
    n_covered = np.bincount(rows.true_column[covered], minlength=len(labels))
    present = np.flatnonzero(seen)
    order = present[np.argsort(n_covered[present] / seen[present], kind="stable")]
    observed = _observed(int(covered.sum()), len(rows))
    return {
        "requested": coverage,
        "by_class": bool(getattr(outputs.estimator, "class_conditional", False)),
        "observed": observed,
        "mean_set_size": float(outputs.sets.sum(axis=1).mean()),
        "classes": [
            {"label": labels[k], **_observed(int(n_covered[k]), int(seen[k]))}
            for k in order[:MOST_LISTED_CLASSES]
        ],
        "line": coverage_sentence(coverage, observed),
    }


def _observed(n_covered: int, n: int) -> dict[str, Any]:
    low, high = fraction_interval(n_covered / n, n, INTERVAL_LEVEL)
    return {
        "rows": n,
        "covered": n_covered,
        "fraction": n_covered / n,
        "low": float(low),
        "high": float(high),
    }
