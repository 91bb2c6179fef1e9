"""Familiarity of rows: conformal p-values of their novelty among held-out training rows."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from dubito._compat import pick
from dubito._meta_estimators import cv_folds, has_weight, user_stacklevel
from dubito._validation import TIE
from dubito.conformal.detector import novelty_scores
from dubito.conformal.errors import FewRowsWarning
from dubito.conformal.p_values import p_values
from dubito.conformal.preparation import fit_preparation, prepared

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._meta_estimators import Fold
    from dubito._typing import FloatArray

#: Novelty scores within this relative difference are equal: their rounding depends on the batch.
_NOVELTY_TIE = 1e-9


def detector_folds(
    cv: Any, X: Any, y: npt.NDArray[Any] | None, weight: FloatArray | None
) -> list[Fold]:
    """Return the folds of `cv_folds`; where `cv` is a number, they are shuffled."""
    if cv is None or isinstance(cv, Integral):
        rows = np.flatnonzero(has_weight(X, weight))
        n_folds = min(5 if cv is None else int(cv), len(rows))
        # Shuffled because tables are often sorted; not stratified because classes may be rare.
        shuffled = KFold(n_folds, shuffle=True, random_state=0).split(rows)
        return [(rows[train], rows[test]) for train, test in shuffled]
    return cv_folds(cv, X, y, weight)


def held_out_scores(
    detector: Any,
    transformers: Any,
    X: Any,
    y: npt.NDArray[Any] | None,
    folds: list[Fold],
) -> FloatArray:
    """Return novelty scores, ascending, of test rows by detectors fitted without their fold.

    `transformers` is an unfitted pipeline in front of the detector, or None.
    """
    scores = []
    for train, test in folds:
        labels = None if y is None else y[train]
        preparation, train_rows = fit_preparation(transformers, pick(X, train), labels)
        fitted = clone(detector).fit(train_rows)
        scores.append(novelty_scores(fitted, prepared(preparation, pick(X, test))))
    return np.sort(np.concatenate(scores))


def familiarity_of(novelty: FloatArray, held_out: FloatArray) -> FloatArray:
    r"""Return the p-values :math:`(1+\#\{i:d_i\ge d\})/(n+1)` of novelty scores d.

    `held_out` are the scores :math:`d_i` of the n held-out rows, ascending.
    """
    least_tied = np.where(np.isfinite(novelty), novelty - _NOVELTY_TIE * np.abs(novelty), novelty)
    n = len(held_out)
    as_novel = n - np.searchsorted(held_out, least_tied, side="left")
    return p_values(as_novel.astype(np.float64), n, 1.0)


def warn_of_few_rows(n: int, rate: float) -> None:
    """Warn where n held-out rows are so few that no p-value can be below `rate`."""
    needed = int(np.ceil(1 / rate))
    if rate * (n + 1) <= 1 + TIE:
        warnings.warn(
            f"{n} held-out rows give p-values of at least 1/{n + 1}, so none falls below "
            f"rate={rate:g} and no row is discounted. Fit on at least {needed} rows, or "
            f"raise rate above {1 / (n + 1):.2g}.",
            FewRowsWarning,
            stacklevel=user_stacklevel(),
        )
