"""A classifier whose bounds, masses and sets are wider for rows unlike the training rows."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dubito._compat import HasMethods, Hidden, Interval, StrOptions, fit_context, pick
from dubito._meta_estimators import (
    copy_feature_names,
    fitted_copy,
    has_weight,
    read_rows,
    read_unlabelled_rows,
    refuse_prefit,
    weight_parameters,
)
from dubito._models import has_bounds
from dubito._validation import NotSupportedError, n_rows
from dubito.conformal._novelty_predictions import NoveltyPredictionMixin
from dubito.conformal.detector import NeighbourDistances, check_detector
from dubito.conformal.familiarity import detector_folds, held_out_scores, warn_of_few_rows
from dubito.conformal.preparation import fit_preparation, preparation_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


class NoveltyAwareClassifier(
    NoveltyPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    r"""Widen the bounds of a classifier for rows unlike any it was fitted on.

    Bounds and calibrated probabilities are valid for rows like the training rows. Far from those
    they can be narrow and wrong. A novelty detector gives each row a score :math:`d(x)`, and its
    *familiarity* is the conformal p-value of that score among the scores :math:`d_i` of n held-out
    training rows,

    .. math:: u(x) = \frac{1 + \#\{i: d_i \ge d(x)\}}{n + 1}.

    The predictions of a row that is less familiar than `rate` are discounted: with reliability
    :math:`\alpha(x)=\min(1, u(x)/\text{rate})` the bounds become :math:`\alpha\,\text{lower}` and
    :math:`1-\alpha(1-\text{upper})`, and mass functions are discounted (Shafer 1976). Of new rows
    from the distribution of the training rows, a fraction of about `rate` is affected.

    Parameters
    ----------
    estimator : classifier or FrozenEstimator
        Any classifier with ``predict_bounds`` or ``predict_proba``. Probabilities without bounds
        count as bounds of width zero. Pass a fitted one as ``FrozenEstimator(model)``; it is not
        refitted, and the rows passed to `fit` are those that count as familiar.
    detector : novelty detector, optional
        An estimator with ``fit`` and ``score_samples``, where higher means more normal:
        `IsolationForest`, ``LocalOutlierFactor(novelty=True)``, `OneClassSVM`, `GaussianMixture`,
        `KernelDensity`. By default the mean distance to the 5 nearest training rows after scaling
        (for sparse rows with many columns, after scaling rows to unit length).
    rate : float, default 0.02
        The fraction of ordinary rows whose predictions may be discounted. Needs at least 1/rate
        rows.
    cv : int, splitter or iterable, default 5
        Folds in which the detector is fitted on some rows and scores the others, so that no row
        is its own neighbour. An int makes shuffled folds, with a fixed seed. For groups of rows, as
        several of one patient, pass ``list(GroupKFold().split(X, y, groups))``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    estimator_ : classifier
        The fitted one.
    detector_ : novelty detector
        Fitted on all rows.
    preparation_ : Pipeline or None
        The transformers of the estimator, fitted for the detector.
    held_out_scores_ : ndarray of shape (n,)
        Novelty scores of the held-out rows, ascending.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    Warns
    -----
    FewRowsWarning
        Where there are so few rows that no p-value can be below `rate`: nothing is discounted.

    Notes
    -----
    Input of the detector is that of the estimator's last step. Where the estimator is a `Pipeline`,
    or holds one, as ``CalibratedClassifier(make_pipeline(...))`` does, rows go through its
    transformers first, so that tables with text columns, and texts, can be compared. In the folds
    the transformers are refitted, unless frozen. Without transformers the input is X.

    The promise is that of the p-value: if new rows and training rows are exchangeable,
    :math:`P(u(x) \le \text{rate})\le\text{rate}` for a detector that is fitted apart from the
    held-out rows. With folds it holds approximately, and conservatively where more training rows
    lower the novelty, as with distances to neighbours. How many unfamiliar rows are found depends
    on the detector; nothing is promised about it.

    `sample_weight` goes to the estimator. For the detector rows of weight 0 are absent and all
    others count alike.

    References
    ----------
    Bates, Candès, Lei, Romano and Sesia (2023), Testing for outliers with conformal p-values.
    Shafer (1976), A mathematical theory of evidence, chapter 11 (discounting).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.conformal import NoveltyAwareClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + rng.logistic(size=400) > 0
    >>> aware = NoveltyAwareClassifier(LogisticRegression()).fit(X, y)
    >>> aware.familiarity([[1.0, 0.0], [1.0, 9.0]]).round(3)
    array([0.86 , 0.002])
    >>> bounds = aware.predict_bounds([[1.0, 0.0], [1.0, 9.0]])
    >>> bounds.lower.round(2)
    array([[0.25, 0.75],
           [0.07, 0.05]])
    >>> bounds.upper.round(2)
    array([[0.25, 0.75],
           [0.95, 0.93]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "detector": [HasMethods(["fit"]), None],
        "rate": [Interval(Real, 0, 1, closed="neither")],
        "cv": ["cv_object", Hidden(StrOptions({"prefit"}))],
    }

    def __init__(
        self, estimator: Any, *, detector: Any = None, rate: float = 0.02, cv: Any = 5
    ) -> None:
        self.estimator = estimator
        self.detector = detector
        self.rate = rate
        self.cv = cv

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, unless frozen, and the detector; score held-out rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, features), or what the estimator reads
        y : array-like of shape (n,)
            A frozen estimator needs none.
        sample_weight : array-like of shape (n,), optional
            Passed to the estimator, or to the steps of a pipeline, where they take it.

        Returns
        -------
        self
        """
        refuse_prefit(self.cv)
        _check_estimator(self.estimator)
        check_detector(self.detector)
        if isinstance(self.estimator, FrozenEstimator) and y is None:
            check_is_fitted(self.estimator.estimator)
            labels, (X, weight) = None, read_unlabelled_rows(X, sample_weight)
            self.estimator_ = self.estimator
        else:
            X, labels, weight = read_rows(self, X, y, sample_weight)
            self.estimator_ = self._fitted_estimator(X, labels, weight)
        self.classes_ = self.estimator_.classes_
        copy_feature_names(self, self.estimator_)
        self._fit_detector(X, labels, weight)
        return self

    def _fitted_estimator(self, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> Any:
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator.estimator)
            return self.estimator
        other_use = "leaving out rows of weight 0 from the detector"
        parameters = weight_parameters(self.estimator, weight, instead=other_use)
        return fitted_copy(self.estimator, X, y, weight, parameters)

    def _fit_detector(self, X: Any, y: npt.NDArray[Any] | None, weight: FloatArray | None) -> None:
        """Score each row by a detector fitted on other folds, then fit one on all rows."""
        rows = np.flatnonzero(has_weight(X, weight))
        if len(rows) < 2:
            raise ValueError(
                f"{type(self).__name__} compares rows with each other and needs at least 2; got "
                f"n_samples={len(rows)}."
            )
        transformers = preparation_of(self.estimator_)
        detector = NeighbourDistances() if self.detector is None else self.detector
        folds = detector_folds(self.cv, X, y, weight)
        self.held_out_scores_ = held_out_scores(detector, transformers, X, y, folds)
        all_rows = len(rows) == n_rows(X)
        self.preparation_, prepared_rows = fit_preparation(
            transformers,
            X if all_rows else pick(X, rows),
            y if y is None or all_rows else y[rows],
        )
        self.detector_ = clone(detector).fit(prepared_rows)
        warn_of_few_rows(len(self.held_out_scores_), self.rate)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "detector_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        if self.detector is not None and preparation_of(self.estimator) is None:
            read = get_tags(self.detector).input_tags  # both read X
            tags.input_tags.sparse = tags.input_tags.sparse and read.sparse
            tags.input_tags.allow_nan = tags.input_tags.allow_nan and read.allow_nan
        return tags


def _check_estimator(estimator: Any) -> None:
    """Raise an error for a classifier with neither bounds nor probabilities."""
    if not (has_bounds(estimator) or hasattr(estimator, "predict_proba")):
        name = type(estimator).__name__
        raise NotSupportedError(
            f"{name} has neither predict_bounds nor predict_proba, so there is nothing to widen. "
            f"Calibrate it: NoveltyAwareClassifier(CalibratedClassifier({name}(...)))."
        )
