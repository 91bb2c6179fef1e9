"""The conformal contour, the p-value of each class, and its sets, bounds and masses.

Raised, so that the largest value in each row is 1, it is the contour function of a consonant belief
function (Cella and Martin 2022). Pure functions of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: A p-value within this distance of 1 - coverage counts as equal to it.
_ROUNDING = 1e-12


class Ranks(NamedTuple):
    """Calibration scores in increasing order, and the sums of the sample weights of their tails.

    ``tails[j]`` is the sum of the sample weights of ``scores[j:]``; the last one is 0.
    """

    scores: FloatArray
    tails: FloatArray


def rank(scores: FloatArray, weight: FloatArray | None = None) -> Ranks:
    """Return calibration scores in increasing order; by default each row has sample weight 1."""
    order = np.argsort(scores, kind="stable")
    counts = np.ones(len(scores)) if weight is None else weight[order]
    return Ranks(scores[order], np.append(np.cumsum(counts[::-1])[::-1], 0.0))


def rank_classes(
    scores: FloatArray, columns: IntArray, n_classes: int, weight: FloatArray | None = None
) -> list[Ranks]:
    """Return the calibration scores of each class, sorted."""
    rows = [np.flatnonzero(columns == k) for k in range(n_classes)]
    return [rank(scores[r], None if weight is None else weight[r]) for r in rows]


def weight_beyond(ranks: Ranks, scores: FloatArray) -> FloatArray:
    """Return the summed sample weight of calibration rows with at least each of `scores`."""
    return ranks.tails[np.searchsorted(ranks.scores, scores, side="left")]


def p_values(beyond: FloatArray, total: FloatArray, own: FloatArray) -> FloatArray:
    r"""Return :math:`(w+\sum_{i:a_i\ge a}w_i)/(w+\sum_iw_i)` for new rows of sample weight w.

    Without weights this is :math:`(1+\#\{i:a_i\ge a\})/(n+1)`.
    """
    return (beyond + own) / (total + own)


def raised(contour: FloatArray) -> FloatArray:
    """Return the contour with the largest value of each row replaced by 1."""
    return np.where(contour >= contour.max(axis=1, keepdims=True), 1.0, contour)


def consonant_bounds(contour: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return belief and plausibility of each class from a raised contour.

    :math:`\text{upper}_k=\pi_k` and :math:`\text{lower}_k=1-\max_{l\ne k}\pi_l`.
    """
    return 1 - largest_other(contour), contour


def largest_other(table: FloatArray) -> FloatArray:
    """Return the largest value among the other columns, for each column of each row."""
    top = table.argmax(axis=1)
    largest_two = np.partition(table, -2, axis=1)[:, -2:]
    other = np.repeat(largest_two[:, 1:], table.shape[1], axis=1)
    other[np.arange(len(table)), top] = largest_two[:, 0]
    return other


def confidence_sets(contour: FloatArray, coverage: float, *, allow_empty: bool) -> BoolArray:
    r"""Return the classes with :math:`\pi_k>1-\text{coverage}`; if none, the largest."""
    kept = contour > 1 - coverage + _ROUNDING
    if allow_empty:
        return kept
    none = ~kept.any(axis=1)
    kept[none] = contour[none] >= contour[none].max(axis=1, keepdims=True)
    return kept


def nested_masses(contour: FloatArray, most: int) -> tuple[BoolArray, FloatArray]:
    r"""Return the focal sets (F, K) and masses (n, F) of the rows of a raised contour.

    With :math:`\pi_{(1)}\ge\pi_{(2)}\ge\ldots` the j classes that come first have the mass
    :math:`\pi_{(j)}-\pi_{(j+1)}`, where :math:`\pi_{(K+1)}=0`. A table of more than `most` masses
    is a `MemoryError`.
    """
    n, n_classes = contour.shape
    order = np.argsort(-contour, axis=1, kind="stable")
    falling = np.take_along_axis(contour, order, axis=1)
    steps = falling - np.append(falling[:, 1:], np.zeros((n, 1)), axis=1)
    row, size = np.nonzero(steps > 0)
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.arange(n_classes)[None, :], axis=1)
    members = position[row] <= size[:, None]
    packed, focal_number = np.unique(np.packbits(members, axis=1), axis=0, return_inverse=True)
    focal = np.unpackbits(packed, axis=1, count=n_classes).astype(bool)
    if n * len(focal) > most:
        raise MemoryError(
            f"{n} rows have {len(focal)} distinct focal sets, a table of {n * len(focal)} masses. "
            "Ask for the masses of fewer rows at a time; bounds and sets need no such table."
        )
    mass = np.zeros((n, len(focal)))
    mass[row, focal_number.reshape(-1)] = steps[row, size]
    return focal, mass
