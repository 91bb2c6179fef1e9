"""Sets, bounds and masses from a conformal contour: the p-value of each class.

Raised, so that the largest value in each row is 1, it is the contour function of a consonant belief
function (Cella and Martin 2022). Pure functions of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.sums_of_others import maxima_of_others
from dubito._validation import TIE

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray


def raised(contour: FloatArray) -> FloatArray:
    """Return the contour with the largest value of each row replaced by 1."""
    return np.where(contour >= contour.max(axis=1, keepdims=True), 1.0, contour)


def consonant_bounds(contour: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return belief and plausibility of each class from a raised contour.

    :math:`\text{upper}_k=\pi_k` and :math:`\text{lower}_k=1-\max_{l\ne k}\pi_l`.
    """
    return 1 - maxima_of_others(contour), contour


def coverage_sets(contour: FloatArray, coverage: float, *, allow_empty: bool) -> BoolArray:
    r"""Return the classes with :math:`\pi_k>1-\text{coverage}`; if none, the largest."""
    kept = contour > 1 - coverage + TIE  # p-values this close are equal
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
