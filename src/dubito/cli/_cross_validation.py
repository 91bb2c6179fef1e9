"""How good is a model on rows it has not seen? Each fold is judged by one fitted without it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from dubito._promises import is_conformal
from dubito.belief import Bounds
from dubito.cli._test_rows import DEFAULT_COVERAGE
from dubito.metrics import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._checks import IntArray
    from dubito.cli._training_data import TrainingData
    from dubito.metrics import Estimate


def folds_of(y: npt.NDArray[Any], cv: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Return the rows to learn from and to judge by; none where nothing can be judged.

    A row that is the only one of its class is learnt from in every fold and judged in none: a
    model that has not seen it cannot know its class. Any other class is in every training part.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    cv : int
        Folds wanted; 0 for none. There are no more than the largest class has rows.
    seed : int
        Shuffles the rows.

    Returns
    -------
    list of (ndarray, ndarray)

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.cli._cross_validation import folds_of
    >>> y = np.array(["a", "b", "a", "rare", "b", "a"])
    >>> folds = folds_of(y, 2, seed=0)
    >>> [sorted(y[test].tolist()) for _, test in folds]
    [['a', 'a', 'b'], ['a', 'b']]
    >>> all("rare" in y[train] for train, _ in folds)
    True
    """
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    n_folds = min(cv, int(counts.max()))
    if n_folds < 2:
        return []
    judged = np.flatnonzero(counts[codes] > 1)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Of a class with fewer rows than folds, each row is in a fold of its own.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        tests = [judged[test] for _, test in splitter.split(judged, codes[judged])]
    return [(np.setdiff1d(np.arange(len(y)), test), np.sort(test)) for test in tests]


def cross_validate(
    build: Callable[[npt.NDArray[Any]], Any],
    rows: TrainingData,
    folds: list[tuple[IntArray, IntArray]],
    done: Callable[[int], None],
) -> dict[str, Estimate]:
    """Return the measures of models on the rows they were fitted without.

    Parameters
    ----------
    build : callable
        Makes an unfitted model for rows with given labels.
    rows : TrainingData
        All rows.
    folds : list of (ndarray, ndarray)
        From `folds_of`.
    done : callable
        Told of each fold, by 1.

    Returns
    -------
    dict
        As `dubito.metrics.evaluate` returns them; empty without folds.
    """
    if not folds:
        return {}
    parts = []
    for train, test in folds:
        y = rows.y[train]
        model = build(y).fit(rows.X.iloc[train], y)
        X = rows.X.iloc[test]
        bounds = model.predict_bounds(X)
        asked = {"coverage": DEFAULT_COVERAGE} if is_conformal(model) else {}
        sets = model.predict_set(X, **asked)
        parts.append((model.predict_proba(X), bounds.lower, bounds.upper, sets))
        done(1)
    proba, lower, upper, sets = (np.concatenate(part) for part in zip(*parts, strict=True))
    judged = np.concatenate([test for _, test in folds])
    return evaluate(
        rows.y[judged],
        proba,
        bounds=Bounds(lower, upper),
        sets=sets,
        classes=np.unique(rows.y),
    )
