"""A wrapper of any classifier that gives label sets with a chosen coverage."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from dubito._compat import HasMethods, Hidden, Interval, StrOptions, fit_context
from dubito._meta_estimators import (
    copy_feature_names,
    has_weight,
    read_rows,
    refuse_one_class,
    refuse_prefit,
)
from dubito.base import MethodAndParameter
from dubito.conformal._conformal_predictions import ConformalPredictionMixin
from dubito.conformal.full_refits import FullRefit
from dubito.conformal.p_values import calibration_totals, scored_fold
from dubito.conformal.scores import SCORES, NonconformityScore, choose_source
from dubito.conformal.training import (
    TrainingRows,
    calibration_folds,
    fit_folds,
    training_rows,
    with_classes,
)

if TYPE_CHECKING:
    from dubito._typing import IntArray


def _accuracy(self: ConformalClassifier, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the accuracy of `predict`, as in every classifier of scikit-learn.

    The parameter ``score`` has the same name and is stored separately.

    Parameters
    ----------
    X : array-like
        As in `fit`.
    y : array-like of shape (n,)
        True labels.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
    """
    return ClassifierMixin.score(self, X, y, sample_weight)


class ConformalClassifier(
    ConformalPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    r"""Label sets with a chosen coverage, for any classifier.

    With ``cv=5``, the default, the chosen coverage is what is observed and less is proven; see
    *What is proven* below.

    How badly class k fits a row x is its nonconformity score a(x, k). Among rows that the model
    was not fitted on, with the scores :math:`a_i` of their own labels, the p-value of class k is

    .. math:: \pi_k(x)=\frac{1+\#\{i:a_i\ge a(x,k)\}}{n+1},

    the conformal contour, and :math:`P(\pi_Y\le\alpha)\le\alpha` for all :math:`\alpha` at once
    if the new row and those n are exchangeable, whatever the model. The set
    :math:`\{k:\pi_k>1-\text{coverage}\}` then contains the true label with that probability.

    Parameters
    ----------
    estimator : classifier, calibrator or FrozenEstimator
        A classifier with ``predict_proba`` or ``decision_function``, or a calibrator of
        `dubito.calibration`, for which X are scores. Pass a fitted one as
        ``FrozenEstimator(model)``: all rows given to `fit` are then calibration rows, and must not
        be its training rows.
    score : {"margin", "probability", "cumulative", "plausibility"}, default "margin"
        The nonconformity score.

        - "margin": the largest log-probability (or decision value) of another class less its own.
        - "probability": :math:`1-p_k` (Sadinle et al. 2019).
        - "cumulative": :math:`\sum_{l:p_l>p_k}p_l+u\,p_k` (APS, Romano et al. 2020), with u random
          or, as it is by default, 1/2; sets adapt to how hard a row is.
        - "plausibility": 1 less the upper bound of ``predict_bounds``, for models of dubito.
    class_conditional : bool, default False
        Whether each class is compared with rows of that class alone. The coverage is then that
        within each class; a class without calibration rows is in every set.
    cv : int, splitter, iterable, float or "full", default 5
        How calibration rows are chosen. Not used with a frozen estimator.

        - int, splitter or iterable, *cross*: every row is scored by a model that was fitted
          without its fold, and a new row is compared to each fold by that fold's model.
        - a float between 0 and 1, *split*: this fraction of the rows calibrates one model, which
          is fitted on the others. Likewise a splitter with one fold.
        - "full": the estimator is refitted with each new row and each class. For calibrators and
          other estimators that are fast to fit.
    randomized : bool, default False
        For ``score="cumulative"``: whether u is drawn at random, uniform in [0, 1], as in the
        paper. The u of a row depends on its position in X.
    response_method : {"auto", "predict_proba", "decision_function"}, default "auto"
        What the score is computed from. "auto" is ``predict_proba`` where there is one.
    max_refits : int, default 10000
        With ``cv="full"``: the largest number of fits in one call.
    n_jobs : int, optional
        Number of folds, or with ``cv="full"`` of rows, fitted in parallel.
    random_state : int, RandomState or None, default None
        For the split of a float `cv`, and for `randomized`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    estimator_ : classifier
        Used by `predict` and `predict_proba`: fitted on all rows, or, with a split, on those that
        are not calibration rows.
    folds_ : list of (model, sorted scores)
        The models of the folds, and the calibration scores in increasing order; empty with
        ``cv="full"``.
    n_calibration_ : ndarray of shape (K,)
        Number of calibration rows of each class.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    dubito.metrics.coverage, dubito.metrics.class_coverage, dubito.metrics.coverage_by_size

    Notes
    -----
    *What is proven.* Split, frozen and full: the true label is in the set with a probability of at
    least `coverage`, averaged over calibration rows and new rows (not conditionally on X). Cross:
    the p-values of F folds nearly average to :math:`\pi`, hence at least
    :math:`1-2\alpha-2(1-\alpha)(F-1)/(n+F)` with :math:`\alpha=1-\text{coverage}` (Barber et al.
    2021, theorem 4; Vovk et al. 2018); in practice about :math:`1-\alpha`. With fewer than
    1/(1 - coverage) - 1 rows (of a class, if class-conditional) every set contains all classes,
    with a `SmallCalibrationWarning`.

    *Weights.* A row counts by its `sample_weight`, and the new row, whose weight is unknown, by the
    largest: :math:`\pi_k=(w+\sum_{i:a_i\ge a(x,k)}w_i)/(w+\sum_iw_i)`, :math:`w=\max_iw_i`. The
    same is then proven for new rows drawn in proportion to the weights (Tibshirani et al. 2019),
    none of which is larger than w.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world.
    Vovk (2015), Cross-conformal predictors.
    Barber, Candès, Ramdas and Tibshirani (2021), Predictive inference with the jackknife+.
    Romano, Sesia and Candès (2020), Classification with valid and adaptive coverage.
    Cella and Martin (2022), Validity, consonant plausibility measures, and conformal prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.conformal import ConformalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ConformalClassifier(LogisticRegression(max_iter=500)).fit(X[::2], y[::2])
    >>> clf.predict_set(X[[1, 77]], coverage=0.98)
    array([[ True, False, False],
           [False,  True,  True]])
    >>> clf.predict_contour(X[[1, 77]]).round(2)
    array([[0.68, 0.01, 0.01],
           [0.01, 0.05, 0.08]])
    """

    #: Kind of bounds, for reports (`dubito._bounds_meaning`).
    _bounds_kind: ClassVar[str] = "conformal"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "score": [StrOptions(set(SCORES))],
        "class_conditional": ["boolean"],
        "cv": [
            "cv_object",
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"full"}),
            Hidden(StrOptions({"prefit"})),
        ],
        "randomized": ["boolean"],
        "response_method": [StrOptions({"auto", "predict_proba", "decision_function"})],
        "max_refits": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(  # noqa: PLR0913
        self,
        estimator: Any,
        *,
        score: str = "margin",
        class_conditional: bool = False,
        cv: Any = 5,
        randomized: bool = False,
        response_method: str = "auto",
        max_refits: int = 10_000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.score = score
        self.class_conditional = class_conditional
        self.cv = cv
        self.randomized = randomized
        self.response_method = response_method
        self.max_refits = max_refits
        self.n_jobs = n_jobs
        self.random_state = random_state

    # `score` is a parameter of this class, and the accuracy in every classifier of scikit-learn.
    score = MethodAndParameter(_accuracy)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as in scikit-learn.

        Parameters
        ----------
        deep : bool, default True
            Whether those of the estimator are listed too.

        Returns
        -------
        dict of str to value
        """
        return {**super().get_params(deep), "score": vars(self)["score"]}

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator, unless frozen, and compute the scores of calibration rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, features)
            Or scores, as the calibrator takes them.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Counts in the p-values always, and for the estimator where its ``fit`` takes weights.

        Returns
        -------
        self
        """
        refuse_prefit(self.cv)
        score = self.get_params(deep=False)["score"]
        if self.randomized and score != "cumulative":
            raise ValueError(
                f'randomized=True is for score="cumulative"; score="{score}" has nothing to draw '
                "at random."
            )
        X, labels, weight = read_rows(self, X, y, sample_weight)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator.estimator)
        source = choose_source(self.estimator, score, self.response_method)
        self.nonconformity_ = NonconformityScore(score, source, bool(self.randomized))
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = training_rows(self.estimator, X, labels, weight)
        positive_rows = np.flatnonzero(has_weight(labels, weight))
        if frozen:
            return self._calibrate_one(self.estimator, rows.picked(positive_rows))
        refuse_one_class(self, labels, weight)
        if isinstance(self.cv, str):
            return self._prepare_refits(rows.picked(positive_rows))
        return self._calibrate_folds(rows, positive_rows)

    def _calibrate_one(self, model: Any, held_out: TrainingRows) -> Self:
        """Calibrate a fitted model by rows that it was not fitted on."""
        classes = np.asarray(model.classes_)
        if not isinstance(model, FrozenEstimator):
            unseen = np.setdiff1d(held_out.y, classes)
            classes = np.union1d(classes, unseen) if len(unseen) else classes
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs a model of at least two classes; this one has one."
            )
        self.estimator_, self.classes_ = model, classes
        return self._set_calibration([model], [held_out])

    def _calibrate_folds(self, rows: TrainingRows, positive_rows: IntArray) -> Self:
        """Fit a model for each fold, and one for all rows if there are several folds."""
        folds = calibration_folds(self.cv, rows, self.seed_)
        if len(folds) == 1:
            train, test = folds[0]
            refuse_one_class(self, rows.y[train], name="the training part of cv")
            return self._calibrate_one(rows.picked(train).fitted(self.estimator), rows.picked(test))
        self.estimator_ = rows.picked(positive_rows).fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator_.classes_)
        models = fit_folds(with_classes(self.estimator, self.classes_), rows, folds, self.n_jobs)
        return self._set_calibration(models, [rows.picked(test) for _, test in folds])

    def _prepare_refits(self, rows: TrainingRows) -> Self:
        """Fit on all rows, and store them for the refits of full conformal prediction."""
        self.estimator_ = rows.fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator_.classes_)
        self._set_calibration([], [rows])
        self.refit_ = FullRefit(
            with_classes(self.estimator, self.classes_),
            rows,
            self.nonconformity_,
            self.classes_,
            next(self._uniform_numbers([len(rows.y)])),
            self.class_conditional,
        )
        return self

    def _set_calibration(self, models: list[Any], held_out: list[TrainingRows]) -> Self:
        """Set the attributes of the calibration rows: by fold, and weights and numbers by class.

        With ``cv="full"`` there are no models and so no folds, and all rows are in `held_out`.
        """
        conditional = self.class_conditional
        uniforms = self._uniform_numbers([len(rows.y) for rows in held_out])
        self.refit_ = None
        self.folds_ = [
            scored_fold(
                self.nonconformity_,
                model,
                rows,
                self.classes_,
                uniform,
                class_conditional=conditional,
            )
            for model, rows, uniform in zip(models, held_out, uniforms, strict=bool(models))
        ]
        self.calibration_weights_ = calibration_totals(
            held_out, self.classes_, class_conditional=conditional
        )
        self.n_calibration_ = self.calibration_weights_.n_rows
        copy_feature_names(self, self.estimator_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "folds_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
