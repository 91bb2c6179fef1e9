"""Full conformal prediction: p-values by a refit for each new row and class."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from dubito._compat import pick
from dubito._validation import NotSupportedError
from dubito._wording import counted
from dubito.conformal.p_values import p_values
from dubito.conformal.training import true_label_scores

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.conformal.scores import NonconformityScore
    from dubito.conformal.training import TrainingRows


class FullRefit(NamedTuple):
    """The rows and estimator of full conformal prediction, refitted with each row and class."""

    estimator: Any
    rows: TrainingRows
    nonconformity: NonconformityScore
    classes: npt.NDArray[Any]
    uniform: FloatArray | None  # u of each row (`scores.cumulative`) where scores are randomized
    class_conditional: bool

    def p_value(self, row: Any, label: Any, uniform: FloatArray | None) -> float:
        """Return the p-value of a class for one row, by one refit."""
        extended = self.rows.with_row(row, label)
        model = extended.fitted(self.estimator)
        uniforms = self.uniform
        if uniforms is not None and uniform is not None:
            uniforms = np.append(uniforms, uniform)
        scores, columns = true_label_scores(
            self.nonconformity, model, extended, self.classes, uniforms
        )
        weight = np.ones(len(scores)) if extended.weight is None else extended.weight
        if self.class_conditional:
            same = columns == columns[-1]
            scores, weight = scores[same], weight[same].copy()
            weight[-1] = weight[:-1].max(initial=0.0) or 1.0
        at_or_above = weight[:-1][scores[:-1] >= scores[-1]].sum()
        return float(p_values(at_or_above, weight[:-1].sum(), weight[-1]))


def full_p_values(
    refit: FullRefit, X: Any, n: int, uniforms: FloatArray | None, n_jobs: int | None
) -> FloatArray:
    """Return p-values (n, K) of new rows, by a refit for each row and class."""
    work = delayed(_p_values_of)
    rows = Parallel(n_jobs=n_jobs)(
        work(refit, pick(X, np.array([i])), None if uniforms is None else uniforms[i : i + 1])
        for i in range(n)
    )
    return np.array(rows).reshape(n, len(refit.classes))


def _p_values_of(refit: FullRefit, row: Any, uniform: FloatArray | None) -> FloatArray:
    return np.array([refit.p_value(row, label, uniform) for label in refit.classes])


def refuse_too_many_refits(refit: FullRefit, X: Any, n: int, max_refits: int) -> None:
    """Raise an error for more refits than allowed, with the time they would take."""
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
