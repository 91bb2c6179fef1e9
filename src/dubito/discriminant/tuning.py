"""The imprecision c: measures of the sets for all c at once, and c chosen by cross-validation."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._meta_estimators import cv_folds
from dubito._numerics.set_utility import ALPHA, utility_of_size
from dubito._validation import TIE, as_float_array
from dubito.discriminant._fitted_model import GaussianModel, fit_model
from dubito.discriminant._kernels.moments import class_counts
from dubito.discriminant._kernels.posterior import Priors
from dubito.discriminant._kernels.row_searches import critical_c

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._meta_estimators import Fold
    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._fitted_model import ModelSettings
    from dubito.discriminant._kernels.row_searches import SearchLimits

    Labels = npt.NDArray[Any]

_TINY = float(np.finfo(np.float64).tiny)

#: Fractions of the largest c. The c up to each are tried in turn, until no larger c can be better:
#: large c are slow.
_STAGES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1)

#: The imprecisions of the experiments of Carranza Alarcón and Destercke (2019): 0 to 5.5.
DEFAULT_CS = np.arange(551) / 100


class CPath(NamedTuple):
    """Measures of the sets for each imprecision c; every field is an array over the c.

    Attributes
    ----------
    c : ndarray
    u65, u80 : ndarray
        Mean utility-discounted accuracies.
    mean_set_size : ndarray
    coverage : ndarray
        Fraction of the sets that contain the true class.
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


def set_measures(
    critical: FloatArray, codes: IntArray, weight: FloatArray, cs: FloatArray
) -> CPath:
    """Return the measures of the sets for all c, in O(nK): sets change only where a class enters.

    `critical` (n, K) holds the c at which each class enters; `codes` (n,) are the true classes.
    """
    n, n_classes = critical.shape
    entries = np.sort(critical, axis=1)
    true_entry = critical[np.arange(n), codes]
    sizes = np.arange(1, n_classes + 1)
    contains = entries >= true_entry[:, None]  # whether the set of the first j has the true class
    # Classes that enter at the same c fall on one position: the set there contains all of them.
    positions = np.searchsorted(cs, entries.ravel(), side="left")
    fraction = weight / weight.sum()

    def mean_by_c(values: FloatArray) -> FloatArray:
        change = np.diff(values, axis=1, prepend=0.0) * fraction[:, None]
        return np.cumsum(np.bincount(positions, change.ravel(), minlength=len(cs) + 1)[: len(cs)])

    return CPath(
        cs,
        mean_by_c(contains * utility_of_size(sizes, ALPHA["u65"])),
        mean_by_c(contains * utility_of_size(sizes, ALPHA["u80"])),
        mean_by_c(np.broadcast_to(sizes, contains.shape).astype(np.float64)),
        mean_by_c(contains.astype(np.float64)),
    )


def utility_upper_bound(
    critical: FloatArray, codes: IntArray, weight: FloatArray, c: float, scoring: str
) -> float:
    """Return an upper bound on the mean utility of the sets of every c beyond the given one.

    Sets grow with c: the utility of a set that contains the true class can only fall, and one that
    does not contain it must grow by at least one class to do so.
    """
    inside = critical <= c
    contains = inside[np.arange(len(codes)), codes]
    utility = utility_of_size(inside.sum(axis=1) + ~contains, ALPHA[scoring])
    return float(utility @ weight / weight.sum())


class _FittedFold(NamedTuple):
    """A model fitted on the training rows of a fold, and its test rows of positive weight."""

    model: GaussianModel
    present: IntArray  # classes with training rows
    test: IntArray

    def critical(
        self, X: FloatArray, n_classes: int, max_c: float, limits: SearchLimits
    ) -> tuple[FloatArray, int]:
        """Return the c at which each class enters the sets of test rows; inf for absent classes."""
        critical = np.full((len(self.test), n_classes), np.inf)
        rows = X[self.test]
        found, n_unsettled = critical_c(self.model.boxed, rows, max_c, limits)
        critical[:, self.present] = found
        return critical, n_unsettled


def tune_c(  # noqa: PLR0913
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    *,
    classes: Labels,
    cs: FloatArray,
    scoring: str | Callable[..., float],
    cv: Any,
    priors_of: Callable[[FloatArray], Priors],
    settings: ModelSettings,
    limits: SearchLimits,
) -> tuple[float, CPath, int]:
    """Return the c of the best cross-validated score, the scores of all c, and unsettled searches.

    `scoring` is "u65", "u80" or a function of the true labels and the sets. The path ends where no
    larger c can be better, by u65 or u80. `priors_of` returns the priors for the class counts.
    """
    if callable(scoring):
        _check_scoring(scoring)
    n_classes = codes.max() + 1
    folds = [
        _fit_fold(X, codes, weight, train, test, n_classes, priors_of, settings)
        for train, test in _folds(cv, X, codes, weight)
    ]
    rows = np.concatenate([fold.test for fold in folds])
    if len(rows) == 0:
        raise ValueError("the test rows of cv all have weight 0; c cannot be tuned on them.")
    # No bound is known on the scores of a user's function at larger c: all c are tried.
    for fraction in (1,) if callable(scoring) else _STAGES:
        largest = float(cs[np.searchsorted(cs, fraction * cs[-1])])
        tables, unsettled = zip(
            *(fold.critical(X, n_classes, largest, limits) for fold in folds), strict=True
        )
        critical = np.concatenate(tables)
        path = set_measures(critical, codes[rows], weight[rows], cs[cs <= largest])
        if not _can_improve(path, critical, codes[rows], weight[rows]):
            break
    if callable(scoring):
        scores = _scores_by(scoring, classes[codes[rows]], weight[rows], critical, path.c)
    else:
        scores = getattr(path, scoring)
    # The smallest c among those of the best score, up to rounding.
    best = np.flatnonzero(scores >= scores.max() - TIE)[0]
    return float(path.c[best]), path, sum(unsettled)


def _check_scoring(scoring: Callable[..., float]) -> None:
    """Raise an error for a function that does not take labels and sets alone."""
    try:
        inspect.signature(scoring).bind([], [])
    except TypeError as error:
        raise TypeError(
            "scoring must be a function of the true labels and the sets, such as "
            f"dubito.metrics.u80; {scoring!r} takes other arguments ({error}). Scorers of an "
            "estimator, X and y are for scikit-learn's searches."
        ) from error
    except ValueError:  # a built-in function without a signature
        return


def _takes_weights(scoring: Callable[..., float]) -> bool:
    """Return whether a function has a parameter `sample_weight`."""
    try:
        return "sample_weight" in inspect.signature(scoring).parameters
    except ValueError:
        return False


def _scores_by(
    scoring: Callable[..., float],
    y_true: Labels,
    weight: FloatArray,
    critical: FloatArray,
    cs: FloatArray,
) -> FloatArray:
    """Return the score of the sets of each c by a function of the true labels and the sets."""
    options = {"sample_weight": weight} if _takes_weights(scoring) else {}
    scores = np.array([float(scoring(y_true, critical <= c, **options)) for c in cs])
    if np.isnan(scores).any():
        raise ValueError(
            f"scoring returned nan for the sets of c={cs[np.isnan(scores)][0]:g}; it must return a "
            "number, larger for better sets."
        )
    return scores


def _can_improve(path: CPath, critical: FloatArray, codes: IntArray, weight: FloatArray) -> bool:
    """Return whether a c beyond the path could be better than all on it, by u65 or u80."""
    last = float(path.c[-1])
    return any(
        utility_upper_bound(critical, codes, weight, last, name) > getattr(path, name).max()
        for name in ALPHA
    )


def _fit_fold(  # noqa: PLR0917
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    train: IntArray,
    test: IntArray,
    n_classes: int,
    priors_of: Callable[[FloatArray], Priors],
    settings: ModelSettings,
) -> _FittedFold:
    counts = class_counts(codes[train], weight[train], n_classes)
    present = np.flatnonzero(counts)
    priors = _condition(priors_of(counts), present)
    fold_codes = np.searchsorted(present, codes[train])
    model = fit_model(X[train], fold_codes, weight[train], priors, settings)
    return _FittedFold(model, present, test)


def _folds(cv: Any, X: FloatArray, codes: IntArray, weight: FloatArray) -> list[Fold]:
    """Return the folds of `cv_folds`, at most as many as the largest class has rows."""
    if cv is None or isinstance(cv, Integral):
        largest_class = int(np.bincount(codes).max())
        if largest_class < 2:
            raise ValueError(
                "c='auto' needs a class with at least two rows to try the c on; got one row for "
                "each class. Give c as a number."
            )
        cv = min(5 if cv is None else int(cv), largest_class)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is absent from some folds, which is allowed here.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = cv_folds(cv, X, codes, weight)
    if not folds:
        raise ValueError("cv has no folds; give it at least one, or leave it out for five.")
    return folds


def _condition(priors: Priors, present: IntArray) -> Priors:
    """Return the priors of some of the classes, given that the class is one of these."""
    if len(present) == len(priors.precise):
        return priors
    precise = priors.precise[present]
    precise = precise / precise.sum() if precise.any() else np.full(len(present), 1 / len(present))
    if priors.are_precise:
        return Priors(precise, precise, precise)
    lower, upper = priors.lower[present], priors.upper[present]
    smallest = lower / np.maximum(lower + upper.sum() - upper, _TINY)
    largest = upper / np.maximum(upper + lower.sum() - lower, _TINY)
    return Priors(precise, smallest, largest)
