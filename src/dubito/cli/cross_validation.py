"""Cross-validated metrics of the models that `dubito train` builds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from dubito.belief import Bounds
from dubito.cli.saved_models import bounds_and_sets
from dubito.metrics import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import AnyArray, IntArray
    from dubito.cli.training_data import TrainingData
    from dubito.metrics import Estimate


def stratified_folds(y: AnyArray, cv: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Return the training and test rows of each fold; empty if no class has two rows.

    A row that is the only one of its class is in every training part and in no test part: without
    it the model would lack its class. Any other class has rows in every training part.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    cv : int
        Number of folds, at most the size of the largest class; 0 for none.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    list of (ndarray, ndarray)

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.cli.cross_validation import stratified_folds
    >>> y = np.array(["a", "b", "a", "rare", "b", "a"])
    >>> folds = stratified_folds(y, 2, seed=0)
    >>> [sorted(y[test].tolist()) for _, test in folds]
    [['a', 'a', 'b'], ['a', 'b']]
    >>> all("rare" in y[train] for train, _ in folds)
    True
    """
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    n_folds = min(cv, int(counts.max()))
    if n_folds < 2:
        return []
    tested = np.flatnonzero(counts[codes] > 1)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Expected: a class with fewer rows than folds has at most one row in each.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        tests = [tested[test] for _, test in splitter.split(tested, codes[tested])]
    return [(np.setdiff1d(np.arange(len(y)), test), np.sort(test)) for test in tests]


def cross_validate(
    build: Callable[[AnyArray], Any],
    rows: TrainingData,
    folds: list[tuple[IntArray, IntArray]],
    advance: Callable[[int], None],
) -> dict[str, Estimate]:
    """Return the metrics of a model by cross-validation.

    Parameters
    ----------
    build : callable
        Returns an unfitted model for rows with given labels.
    rows : TrainingData
        All rows.
    folds : list of (ndarray, ndarray)
        From `stratified_folds`.
    advance : callable
        Called with 1 after each fold.

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
        bounds, sets = bounds_and_sets(model, X)
        parts.append((model.predict_proba(X), bounds.lower, bounds.upper, sets))
        advance(1)
    proba, lower, upper, sets = (np.concatenate(part) for part in zip(*parts, strict=True))
    tested = np.concatenate([test for _, test in folds])
    return evaluate(
        rows.y[tested],
        proba,
        bounds=Bounds(lower, upper),
        sets=sets,
        classes=np.unique(rows.y),
    )
