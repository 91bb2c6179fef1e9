r"""Target probabilities that a likelihood is fitted to, in place of labels of 0 and 1.

A row of class y has one target for its own class and another, the same, for each other class:

* "raw": 1 and 0;
* "smoothed": :math:`(n_y+1)/(n_y+K)` and :math:`1/(n_y+K)`, with :math:`n_y` the weight of the rows
  of class y (Xu et al. 2015, eq. 25; for two classes those of Platt 1999);
* "light": :math:`1-\epsilon+\epsilon/K` and :math:`\epsilon/K` with :math:`\epsilon=c/(n+c)`: c
  pseudo-observations of unknown label beside rows of weight n, a quarter of a row by default. For
  bounds at a confidence level c is half the number of coefficients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import AnyArray, BoolArray, FloatArray, IntArray

#: Number c of pseudo-observations of unknown label in "light" targets, in rows.
PSEUDO_ROWS = 0.25

#: The target of the own class and of each other class of "raw" targets: the labels themselves.
RAW = (1.0, 0.0)


def pseudo_fraction(total: float, pseudo_rows: float) -> float:
    r"""Return :math:`\epsilon=c/(n+c)`, the fraction of a target spread evenly over the classes."""
    return pseudo_rows / (total + pseudo_rows)


def mixed_targets(own: AnyArray, total: AnyArray, fraction: float, n_classes: int) -> FloatArray:
    r"""Return :math:`(1-\epsilon)s_{own}+\epsilon s_{total}/K`: sums of values times targets.

    `own` are sums of the values over the rows of each class, `total` over all rows.
    """
    return np.asarray((1 - fraction) * own + fraction / n_classes * total)


def class_targets(
    y: IntArray, weight: FloatArray, n_classes: int, targets: str
) -> tuple[FloatArray, FloatArray]:
    """Return targets of the own and of each other class, each (K,), for rows of each class."""
    if targets == "raw":
        own, other = RAW
    elif targets == "light":
        own, other = light_targets(float(weight.sum()), n_classes, PSEUDO_ROWS)
    else:
        count = np.bincount(y, weights=weight, minlength=n_classes)
        return (count + 1) / (count + n_classes), 1 / (count + n_classes)
    return np.full(n_classes, own), np.full(n_classes, other)


def light_targets(total: float, n_classes: int, pseudo_rows: float) -> tuple[float, float]:
    """Return light targets of the own and of each other class, with c = `pseudo_rows`."""
    fraction = pseudo_fraction(total, pseudo_rows)
    return (1 - fraction) + fraction / n_classes, fraction / n_classes


def target_table(y: IntArray, weight: FloatArray, n_classes: int, targets: str) -> FloatArray:
    """Return the target distribution of the rows of each class, (K, K)."""
    own, other = class_targets(y, weight, n_classes, targets)
    return np.where(np.eye(n_classes, dtype=bool), own[:, None], other[:, None])


def light_table(total: float, n_classes: int, pseudo_rows: float) -> FloatArray:
    """Return the (K, K) table of `light_targets`."""
    return np.where(np.eye(n_classes, dtype=bool), *light_targets(total, n_classes, pseudo_rows))


def event_targets(event: BoolArray, weight: FloatArray, targets: str) -> FloatArray:
    """Return the target of the event for each row of two classes, (n,)."""
    column = event.astype(np.intp)
    return target_table(column, weight, 2, targets)[column, 1]


def base_rate(y: IntArray, weight: FloatArray, n_classes: int, pseudo_rows: float) -> FloatArray:
    """Return class frequencies among the rows and `pseudo_rows` more of unknown label."""
    counts, total = np.bincount(y, weight, n_classes), weight.sum()
    return mixed_targets(counts, total, pseudo_fraction(total, pseudo_rows), n_classes) / total
