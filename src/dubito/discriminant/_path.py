"""What sets are worth for every imprecision c, from the c at which classes enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._checks import as_float_array
from dubito._kernels.utility import ALPHA, utility_of_size

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray

#: The imprecisions of P3's experiments: 0 and 0.01 to 5.5.
DEFAULT_CS = np.arange(551) / 100


class CPath(NamedTuple):
    """What sets are worth for each imprecision c; every field is an array over the c.

    Attributes
    ----------
    c : ndarray
    u65, u80 : ndarray
        Mean utility-discounted accuracies.
    mean_set_size : ndarray
    coverage : ndarray
        Share of the sets that hold the true class.
    """

    c: FloatArray
    u65: FloatArray
    u80: FloatArray
    mean_set_size: FloatArray
    coverage: FloatArray


def as_cs(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return imprecisions in ascending order, each once."""
    cs = np.unique(as_float_array(values, name, ndim=(0, 1)))
    if len(cs) == 0 or cs[0] < 0:
        shown = "none" if len(cs) == 0 else f"{cs[0]:g}"
        raise ValueError(f"{name} must list numbers that are not negative; got {shown}.")
    return cs


def score_path(critical: FloatArray, codes: IntArray, weight: FloatArray, cs: FloatArray) -> CPath:
    """Score the sets of all c at once, in O(nK): a row's score changes where a class enters.

    `critical` (n, K) holds the c at which each class enters; `codes` (n,) are the true classes.
    """
    n, n_classes = critical.shape
    entries = np.sort(critical, axis=1)
    true = critical[np.arange(n), codes]
    sizes = np.arange(1, n_classes + 1)
    holds = entries >= true[:, None]  # from the j-th entry on the set holds the true class
    # Of classes that enter at once only the last makes a set; it holds all of them.
    places = np.searchsorted(cs, entries.ravel(), side="left")
    share = weight / weight.sum()

    def path(worth: FloatArray) -> FloatArray:
        change = np.diff(worth, axis=1, prepend=0.0) * share[:, None]
        return np.cumsum(np.bincount(places, change.ravel(), minlength=len(cs) + 1)[: len(cs)])

    return CPath(
        cs,
        path(holds * utility_of_size(sizes, ALPHA["u65"])),
        path(holds * utility_of_size(sizes, ALPHA["u80"])),
        path(np.broadcast_to(sizes, holds.shape).astype(np.float64)),
        path(holds.astype(np.float64)),
    )


def best_c(path: CPath, scoring: str) -> float:
    """Return the smallest c of the largest score."""
    scores = getattr(path, scoring)
    return float(path.c[np.flatnonzero(scores >= scores.max() - 1e-12)[0]])


def ceiling(
    critical: FloatArray, codes: IntArray, weight: FloatArray, c: float, scoring: str
) -> float:
    """Return what no c beyond the given one can score more than.

    Sets grow: one that holds the true class can only lose by it, and one that does not has at least
    one class more when it does.
    """
    inside = critical <= c
    holds = inside[np.arange(len(codes)), codes]
    worth = utility_of_size(inside.sum(axis=1) + ~holds, ALPHA[scoring])
    return float(worth @ weight / weight.sum())
