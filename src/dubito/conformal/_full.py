"""Full conformal prediction: the estimator is fitted anew with each query row and each class."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from dubito._checks import NotSupportedError, counted
from dubito._sklearn import pick
from dubito.conformal._fitting import own_scores

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray
    from dubito.conformal._fitting import TrainingRows
    from dubito.conformal._scores import ScoreReader


class FullRefit(NamedTuple):
    """All that is needed to fit anew with a query row among the others."""

    estimator: Any
    rows: TrainingRows
    reader: ScoreReader
    classes: npt.NDArray[Any]
    fraction: FloatArray | None  # of the rows, where scores are randomised
    class_conditional: bool

    def p_value(self, row: Any, label: Any, fraction: FloatArray | None) -> float:
        """Return the p-value of a class for one row, by one fit."""
        extended = self.rows.with_row(row, label)
        model = extended.fitted(self.estimator)
        fractions = self.fraction
        if fractions is not None and fraction is not None:
            fractions = np.append(fractions, fraction)
        scores, columns = own_scores(self.reader, model, extended, self.classes, fractions)
        weight = np.ones(len(scores)) if extended.weight is None else extended.weight
        if self.class_conditional:
            alike = columns == columns[-1]
            scores, weight = scores[alike], weight[alike].copy()
            weight[-1] = weight[:-1].max(initial=0.0) or 1.0
        return float(weight[scores >= scores[-1]].sum() / weight.sum())


def full_p_values(
    refit: FullRefit, X: Any, n: int, fractions: FloatArray | None, n_jobs: int | None
) -> FloatArray:
    """Return p-values (n, K) of query rows, each fitted anew with each class."""
    work = delayed(_p_values_of)
    rows = Parallel(n_jobs=n_jobs)(
        work(refit, pick(X, np.array([i])), None if fractions is None else fractions[i : i + 1])
        for i in range(n)
    )
    return np.array(rows).reshape(n, len(refit.classes))


def _p_values_of(refit: FullRefit, row: Any, fraction: FloatArray | None) -> FloatArray:
    return np.array([refit.p_value(row, label, fraction) for label in refit.classes])


def refuse_too_dear(refit: FullRefit, X: Any, n: int, max_refits: int) -> None:
    """Refuse more refits than allowed, with what they would cost."""
    refits = n * len(refit.classes)
    if refits <= max_refits:
        return
    start = time.perf_counter()
    refit.rows.with_row(pick(X, np.array([0])), refit.classes[0]).fitted(refit.estimator)
    seconds = time.perf_counter() - start
    raise NotSupportedError(
        f'cv="full" fits {type(refit.estimator).__name__} anew for each of {counted(n, "row")} and '
        f"{counted(len(refit.classes), 'class')}: {refits} fits of about {seconds:.2g} s, "
        f"{refits * seconds:.3g} s in all, and max_refits is {max_refits}. Raise max_refits, "
        "predict for fewer rows, or use cv=5."
    )
