"""The set metrics as scikit-learn scorers: ``scoring=dubito.metrics.u80_scorer``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._models import inner_model_and_rows
from dubito.metrics._coverage import class_coverage, coverage, coverage_by_size
from dubito.metrics._sets import discounted_accuracy, mean_set_size, u65, u80

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt


@dataclass(frozen=True, repr=False)
class SetScorer:
    """Score an estimator by the label sets of its ``predict_set``; greater is better.

    Usable wherever scikit-learn takes a callable ``scoring=``.

    Parameters
    ----------
    name : str
        The `repr` of the scorer.
    metric : callable
        ``metric(y, sets, *, classes, sample_weight)``, greater being better.
    weighted : bool, optional
        Whether scikit-learn's metadata routing is to pass `sample_weight`; see
        `set_score_request`.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.metrics import u80_scorer
    >>> class Undecided:
    ...     classes_ = np.array(["no", "yes"])
    ...     def predict_set(self, X):
    ...         return np.ones((len(X), 2), dtype=bool)
    >>> round(u80_scorer(Undecided(), [[0.3], [0.7]], ["no", "yes"]), 4)
    0.8
    >>> u80_scorer
    u80_scorer
    """

    name: str
    metric: Callable[..., float]
    weighted: bool | None = None

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the metric of the estimator's sets for `X` against the labels `y`.

        In a pipeline rows go through its transformers, in a search to its best estimator. A label
        that the estimator was not fitted on, as a rare class of another fold, is in no set.
        """
        estimator, X = inner_model_and_rows(estimator, X)
        if not hasattr(estimator, "predict_set"):
            raise TypeError(
                f"{self.name} scores label sets, so it needs an estimator with predict_set; "
                f"{type(estimator).__name__} has none. Use a dubito classifier, alone, in a "
                "search or as the last step of a Pipeline."
            )
        if not hasattr(estimator, "classes_"):
            raise TypeError(
                f"{self.name} needs the estimator's classes_ to tell the columns of its sets; "
                f"{type(estimator).__name__} has none. Set it in fit."
            )
        sets, classes = _with_unseen(estimator.predict_set(X), estimator.classes_, y)
        return self.metric(y, sets, classes=classes, sample_weight=sample_weight)

    def set_score_request(self, *, sample_weight: bool | None) -> SetScorer:
        """Return this scorer with its request for weights in scikit-learn's metadata routing."""
        return replace(self, weighted=sample_weight)

    def get_metadata_routing(self) -> Any:
        """Return the request for weights in scikit-learn's form."""
        from sklearn.utils.metadata_routing import MetadataRequest  # noqa: PLC0415

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.weighted)
        return request

    def __repr__(self) -> str:
        return self.name


def _with_unseen(
    sets: npt.NDArray[np.bool_], classes: npt.NDArray[Any], y: npt.ArrayLike
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Return sets and classes, with a column of False for each label that only y has."""
    unseen = np.setdiff1d(np.asarray(y), classes)
    if len(unseen) == 0:
        return sets, classes
    in_no_set = np.zeros((len(sets), len(unseen)), dtype=bool)
    return np.hstack([sets, in_no_set]), np.concatenate([classes, unseen])


def _neg_mean_set_size(
    _y: npt.ArrayLike, sets: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None, **_classes: Any
) -> float:
    return -mean_set_size(sets, sample_weight=sample_weight)


def _worst_class_coverage(y: npt.ArrayLike, sets: npt.ArrayLike, **options: Any) -> float:
    return float(np.nanmin(class_coverage(y, sets, **options)))


def _worst_size_coverage(y: npt.ArrayLike, sets: npt.ArrayLike, **options: Any) -> float:
    return float(coverage_by_size(y, sets, **options).coverage.min())


u65_scorer = SetScorer("u65_scorer", u65)
u80_scorer = SetScorer("u80_scorer", u80)
discounted_accuracy_scorer = SetScorer("discounted_accuracy_scorer", discounted_accuracy)
coverage_scorer = SetScorer("coverage_scorer", coverage)
neg_mean_set_size_scorer = SetScorer("neg_mean_set_size_scorer", _neg_mean_set_size)
worst_class_coverage_scorer = SetScorer("worst_class_coverage_scorer", _worst_class_coverage)
worst_size_coverage_scorer = SetScorer("worst_size_coverage_scorer", _worst_size_coverage)
