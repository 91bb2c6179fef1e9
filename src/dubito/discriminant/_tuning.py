"""How cautious to be: scores of sets for every imprecision c, from the c at which classes enter."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from dubito._checks import as_float_array
from dubito._kernels.utility import ALPHA, utility_of_size
from dubito.discriminant._model import Priors, learn, sums_of_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray
    from dubito.discriminant._model import Effort, Settings

#: The imprecisions of P3's experiments: 0 and 0.01 to 5.5.
DEFAULT_CS = np.arange(551) / 100

_TINY = float(np.finfo(np.float64).tiny)


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
    cs = np.unique(as_float_array(values, name, ndim=1))
    if len(cs) == 0 or cs[0] < 0:
        shown = "none" if len(cs) == 0 else f"{cs[0]:g}"
        raise ValueError(f"{name} must list numbers that are not negative; got {shown}.")
    return cs


def score_path(critical: FloatArray, codes: IntArray, weight: FloatArray, cs: FloatArray) -> CPath:
    """Score the sets of all c at once, in O(nK): a row's score changes where a class enters.

    `critical` (n, K) holds the c at which each class enters; `codes` (n,) are the true classes, -1
    for one that is not among them and never enters.
    """
    n, n_classes = critical.shape
    entries = np.sort(critical, axis=1)
    true = np.where(codes >= 0, critical[np.arange(n), codes], np.inf)
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


def cross_validated_path(
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    *,
    cs: FloatArray,
    cv: Any,
    priors_of: Callable[[FloatArray], Priors],
    settings: Settings,
    effort: Effort,
) -> tuple[CPath, int]:
    """Score the sets of rows by models fitted without them; count searches cut short.

    `priors_of` gives the priors for the sums of weights of the classes.
    """
    n_classes = codes.max() + 1
    parts, judged, cut = [], [], 0
    for train, test in _folds(cv, X, codes):
        counts = sums_of_weights(codes[train], weight[train], n_classes)
        present = np.flatnonzero(counts > 0)
        priors = _among(priors_of(counts), present)
        seen = train[weight[train] > 0]
        own = np.searchsorted(present, codes[seen])
        model = learn(X[seen], own, weight[seen], priors, settings)
        entry, short = model.critical(X[test], float(cs.max()), effort)
        critical = np.full((len(test), n_classes), np.inf)
        critical[:, present] = entry
        parts.append(critical)
        judged.append(test)
        cut += short
    rows = np.concatenate(judged)
    return score_path(np.concatenate(parts), codes[rows], weight[rows], cs), cut


def _folds(cv: Any, X: FloatArray, codes: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Return the rows to fit on and to judge by; five folds, fewer where there are few rows."""
    if cv is None:
        cv = min(5, int(np.bincount(codes).max()))
        if cv < 2:
            raise ValueError(
                "c='auto' needs a class with at least two rows to try the c on; got one row for "
                "each class. Give c as a number."
            )
    with warnings.catch_warnings():
        # A class with fewer rows than folds is absent from some; that is provided for.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(check_cv(cv, codes, classifier=True).split(X, codes))


def _among(priors: Priors, present: IntArray) -> Priors:
    """Return the priors of some of the classes, given that it is one of them."""
    if len(present) == len(priors.precise):
        return priors
    precise = priors.precise[present] / priors.precise[present].sum()
    if priors.are_precise:
        return Priors(precise, precise, precise)
    lower, upper = priors.lower[present], priors.upper[present]
    # The most and the least that a class can have beside the others that are present.
    low = lower / np.maximum(lower + upper.sum() - upper, _TINY)
    high = upper / np.maximum(upper + lower.sum() - lower, _TINY)
    return Priors(precise, low, high)


def best_c(path: CPath, scoring: str) -> float:
    """Return the smallest c of the largest score."""
    scores = getattr(path, scoring)
    return float(path.c[np.flatnonzero(scores >= scores.max() - 1e-12)[0]])
