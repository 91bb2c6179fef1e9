"""How cautious to be: c chosen by cross-validation, each fold being fitted once for all c."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from dubito._kernels.utility import ALPHA
from dubito.discriminant._model import GaussianModel, Priors, learn, sums_of_weights
from dubito.discriminant._path import CPath, ceiling, score_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._checks import FloatArray, IntArray
    from dubito.discriminant._model import Effort, Settings

_TINY = float(np.finfo(np.float64).tiny)

#: Shares of the largest c that are tried in turn: most of the work lies in large c.
_STAGES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1)


class _Fold(NamedTuple):
    """A model, and rows it has not seen."""

    model: GaussianModel
    present: IntArray  # the classes it knows
    test: IntArray

    def critical(
        self, X: FloatArray, n_classes: int, max_c: float, effort: Effort
    ) -> tuple[FloatArray, int]:
        """Return the c at which all classes enter its rows; those it does not know never do."""
        critical = np.full((len(self.test), n_classes), np.inf)
        critical[:, self.present], cut = self.model.critical(X[self.test], max_c, effort)
        return critical, cut


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

    The path ends where no larger c can score more, by either utility. `priors_of` gives the priors
    for the sums of weights of the classes.
    """
    n_classes = codes.max() + 1
    folds = [
        _fit_fold(X, codes, weight, train, test, n_classes, priors_of, settings)
        for train, test in _splits(cv, X, codes)
    ]
    rows = np.concatenate([fold.test for fold in folds])
    if not weight[rows].any():
        raise ValueError("the rows of cv to judge by all have weight 0; c cannot be tuned on them.")
    for share in _STAGES:
        largest = float(cs[np.searchsorted(cs, share * cs[-1])])
        parts, cuts = zip(
            *(fold.critical(X, n_classes, largest, effort) for fold in folds), strict=True
        )
        critical = np.concatenate(parts)
        path = score_path(critical, codes[rows], weight[rows], cs[cs <= largest])
        if not _may_rise(path, critical, codes[rows], weight[rows]):
            break
    return path, sum(cuts)


def _may_rise(path: CPath, critical: FloatArray, codes: IntArray, weight: FloatArray) -> bool:
    """Say whether a c beyond the path could score more than all on it, by either utility."""
    last = float(path.c[-1])
    return any(
        ceiling(critical, codes, weight, last, name) > getattr(path, name).max() for name in ALPHA
    )


def _fit_fold(  # noqa: PLR0917
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    train: IntArray,
    test: IntArray,
    n_classes: int,
    priors_of: Callable[[FloatArray], Priors],
    settings: Settings,
) -> _Fold:
    seen = train[weight[train] > 0]
    counts = sums_of_weights(codes[seen], weight[seen], n_classes)
    present = np.flatnonzero(counts)
    priors = _among(priors_of(counts), present)
    own = np.searchsorted(present, codes[seen])
    return _Fold(learn(X[seen], own, weight[seen], priors, settings), present, test)


def _splits(cv: Any, X: FloatArray, codes: IntArray) -> list[tuple[IntArray, IntArray]]:
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
        splits = list(check_cv(cv, codes, classifier=True).split(X, codes))
    if not splits:
        raise ValueError("cv has no folds; give it at least one, or leave it out for five.")
    numbers = np.arange(len(codes))  # folds may come as masks or lists
    return [(numbers[np.asarray(train)], numbers[np.asarray(test)]) for train, test in splits]


def _among(priors: Priors, present: IntArray) -> Priors:
    """Return the priors of some of the classes, given that it is one of them."""
    if len(present) == len(priors.precise):
        return priors
    precise = priors.precise[present]
    precise = precise / precise.sum() if precise.any() else np.full(len(present), 1 / len(present))
    if priors.are_precise:
        return Priors(precise, precise, precise)
    lower, upper = priors.lower[present], priors.upper[present]
    # The most and the least that a class can have beside the others that are present.
    low = lower / np.maximum(lower + upper.sum() - upper, _TINY)
    high = upper / np.maximum(upper + lower.sum() - lower, _TINY)
    return Priors(precise, low, high)
