"""What a likelihood is asked to predict: the label, or a little less than it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.multinomial import LIGHT

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.intp]
    BoolArray = npt.NDArray[np.bool_]


def target_table(y: IntArray, weight: FloatArray, n_classes: int, targets: str) -> FloatArray:
    r"""Return the target distribution of the rows of each class, (K, K).

    One on the class itself ("raw"); :math:`(n_y+1)/(n_y+K)` there and :math:`1/(n_y+K)` on each
    other, with :math:`n_y` the weight of the rows of class y ("smoothed": P0, eq. 25, and Platt's
    for two classes); or :math:`(1-\epsilon)e_y+\epsilon/K` with :math:`\epsilon=c/(n+c)` and c a
    quarter of a row ("light").
    """
    own = np.eye(n_classes)
    if targets == "raw":
        return own
    if targets == "light":
        return shrunk_table(float(weight.sum()), n_classes, LIGHT)
    count = np.bincount(y, weights=weight, minlength=n_classes)[:, None]
    return np.asarray((count * own + 1) / (count + n_classes))


def event_targets(event: BoolArray, weight: FloatArray, targets: str) -> FloatArray:
    """Return the target of each row of two classes, (n,), from `target_table`."""
    column = event.astype(np.intp)
    return target_table(column, weight, 2, targets)[column, 1]


def shrunk_table(total: float, n_classes: int, pseudo: float) -> FloatArray:
    r"""Return the targets :math:`(1-\epsilon)e_y+\epsilon/K` of the rows of each class, (K, K).

    With :math:`\epsilon=c/(n+c)` they stand for c (`pseudo`) observations of unknown label beside
    rows of n (`total`) weight.
    """
    share = pseudo / (total + pseudo)
    return (1 - share) * np.eye(n_classes) + share / n_classes
