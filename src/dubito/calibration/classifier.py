"""CalibratedClassifier: a classifier with a calibrator of its scores."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._calibrator_names import CALIBRATORS
from dubito._compat import HasMethods, Hidden, StrOptions, fit_context
from dubito._meta_estimators import (
    copy_feature_names,
    has_weight,
    read_rows,
    refuse_one_class,
    refuse_prefit,
)
from dubito._models import bounds_kind
from dubito.base import CautiousMixin
from dubito.belief import Bounds, MassBatch
from dubito.calibration._cross_fit import (
    HeldOutScores,
    Job,
    ScoredClassifier,
    cross_fit_plan,
    folds_of,
    held_out_indices,
    rows_with_weight,
    run_plans,
    scored_classifier,
    weight_of,
)
from dubito.calibration._fitted_pair import (
    FittedPair,
    can_explain,
    check_scores,
    has_mass,
    is_affine,
)
from dubito.calibration.base import BaseCalibrator
from dubito.calibration.by_name import named_calibrator
from dubito.calibration.responses import RESPONSE_METHODS, Response, choose_response, class_scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.calibration._cross_fit import Rows


class CalibratedClassifier(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Calibrate the scores of a classifier: probabilities, bounds, sets and masses for its rows.

    Parameters
    ----------
    estimator : classifier, FrozenEstimator or None
        A classifier with ``decision_function`` or ``predict_proba``. One that is fitted already
        comes as ``FrozenEstimator(model)`` and is left as it is: then all rows calibrate, and
        they must be rows it was not trained on. None: X are the scores themselves.
    calibrator : str or calibrator, default "auto"
        A name, for default parameters, or one of `dubito.calibration`: "auto" (`AutoCalibrator`,
        which chooses a map with as many parameters as the rows support), "platt", "isotonic",
        "beta", "bins", "temperature", "vector", "matrix", "venn-abers", or "evidential-logistic",
        "-isotonic", "-bins", "-multinomial", "-joint". Its ``input`` becomes what the estimator's
        scores are, its ``classes`` those of the estimator.
    cv : int, splitter or iterable, default 5
        How to get scores for rows the estimator was not trained on; an int: so many stratified
        folds. Not used with a frozen estimator. Splitters that need groups come as
        ``list(splitter.split(X, y, groups))``.
    ensemble : bool, default False
        False: one calibrator is fitted to the scores of all folds, and the estimator again to all
        rows; bounds are then as narrow as the data allow. True: one estimator and calibrator for
        each fold, whose predictions are averaged (an average of belief functions is one).
    response_method : str, default "auto"
        The source of the scores: "decision_function", "predict_proba", "predict_log_proba", or
        "auto", the most precise scores, also inside a pipeline, a search or a frozen model: logits
        of logistic regression, LDA, and boosting (of scikit-learn, LightGBM, XGBoost); exact
        log-probabilities of naive Bayes, QDA and networks of scikit-learn; for `SVC` with more
        than two classes the margin of each class over the closest other one, :math:`\min_jd_{kj}`
        of its pairwise margins; else ``decision_function`` as margins, or ``predict_proba``. A
        calibrator with ``input="proba"`` gets probabilities where there are any.
    n_jobs : int, optional
        Folds fitted at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    calibrated_classifiers_ : list of (estimator, calibrator)
        One pair, or one for each fold with ``ensemble=True``. The ``calibrator.input`` of a pair is
        what the scores are.
    response_method_ : str
        The source of the scores: a method, or "pairwise_margins" (`SVC`), "raw_score"
        (LightGBM), "output_margin" (XGBoost).
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    Notes
    -----
    `sample_weight` is passed to the calibrator, and to the estimator if its ``fit`` takes it; if
    not, there is a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from dubito.calibration import CalibratedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = CalibratedClassifier(LinearSVC()).fit(X[::3], y[::3])
    >>> clf.predict_bounds(X[[0, 77]]).lower.round(1)
    array([[1. , 0. , 0. ],
           [0. , 0.3, 0.4]])
    >>> clf.predict_set(X[[0, 77]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "calibrator": [BaseCalibrator, StrOptions(set(CALIBRATORS))],
        "cv": ["cv_object", Hidden(StrOptions({"prefit"}))],
        "ensemble": ["boolean"],
        "response_method": [StrOptions({"auto", *RESPONSE_METHODS})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        calibrator: str | BaseCalibrator = "auto",
        *,
        cv: Any = 5,
        ensemble: bool = False,
        response_method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response_method = response_method
        self.n_jobs = n_jobs

    @property
    def _bounds_kind(self) -> str:
        """Kind of bounds, for reports: that of the calibrator."""
        return bounds_kind(self.calibrated_classifiers_[0].calibrator)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator, unless frozen, and the calibrator on rows it did not see.

        Parameters
        ----------
        X : array-like of shape (n, features), or scores (n,) or (n, K) without an estimator
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        refuse_prefit(self.cv)
        return self._fit(*read_rows(self, X, y, sample_weight))

    def _fit(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weight: FloatArray | None,
        *,
        classes: npt.NDArray[Any] | None = None,
    ) -> Self:
        """Fit to checked rows; `classes` are all of them, if y or the estimator may lack some."""
        calibrator = named_calibrator(self.calibrator)
        if self.estimator is None:
            check_scores(X, y, calibrator, classes)
            fresh = clone(calibrator)
            if classes is not None:
                fresh.set_params(classes=classes)
            self.calibrated_classifiers_ = [FittedPair(None, fresh.fit(X, y, weight))]
            self.classes_ = fresh.classes_
            copy_feature_names(self, fresh)
            return self
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator.estimator)
        else:
            refuse_one_class(self, y, weight)
        if classes is None:
            classes = self.estimator.classes_ if frozen else np.unique(y[has_weight(y, weight)])
        response = choose_response(
            self.estimator, calibrator._single_input(), self.response_method, n_classes=len(classes)
        )
        classifier = scored_classifier(self.estimator, X, response, weight)
        plans, calibration_rows = self._plans(classifier, y, weight)
        scored = run_plans(plans, y, classes=classes, n_jobs=self.n_jobs)
        return self._fit_calibrators(
            scored, calibration_rows, y, weight, classes=classes, response=response
        )

    def _plans(
        self, classifier: ScoredClassifier, y: npt.NDArray[Any], weight: FloatArray | None
    ) -> tuple[list[list[Job]], list[Rows]]:
        """Return the plan of each pair, and the rows that its calibrator is fitted on."""
        every = rows_with_weight(y, weight)
        if isinstance(self.estimator, FrozenEstimator):
            return [[Job(classifier, None, every)]], [every]
        folds = folds_of(self.cv, classifier.X, y, weight)
        if self.ensemble:
            return [[Job(classifier, *fold)] for fold in folds], [test for _, test in folds]
        return [cross_fit_plan(classifier, folds, every)], [held_out_indices(folds)]

    def _fit_calibrators(
        self,
        scored: Iterable[HeldOutScores],
        calibration_rows: Iterable[Rows],
        y: npt.NDArray[Any],
        weight: FloatArray | None,
        *,
        classes: npt.NDArray[Any],
        response: Response,
    ) -> Self:
        """Fit a calibrator to the held-out scores of each fitted estimator."""
        self.classes_ = classes
        self.response_method_ = response.source
        fresh = clone(named_calibrator(self.calibrator)).set_params(classes=classes)
        fresh.set_params(input=fresh._input_for(response.kind))
        self.calibrated_classifiers_ = [
            FittedPair(
                model,
                clone(fresh).fit(fresh._single_scores(scores), y[rows], weight_of(weight, rows)),
            )
            for (model, scores), rows in zip(scored, calibration_rows, strict=True)
        ]
        copy_feature_names(self, self.calibrated_classifiers_[0].estimator)
        return self

    def _scores(self, estimator: Any, X: Any) -> FloatArray:
        return class_scores(estimator, X, source=self.response_method_, classes=self.classes_)

    def _scores_of_single_pair(self, X: Any) -> FloatArray:
        """Return the scores of the only pair's estimator."""
        return self._scores(self.calibrated_classifiers_[0].estimator, X)

    def _predictions(self, method: str, X: Any, **options: Any) -> Iterable[Any]:
        """Yield what `method` of each calibrator returns for its estimator's scores."""
        check_is_fitted(self)
        return (
            getattr(calibrator, method)(
                X if estimator is None else calibrator._single_scores(self._scores(estimator, X)),
                **options,
            )
            for estimator, calibrator in self.calibrated_classifiers_
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.mean(list(self._predictions("predict_proba", X)), axis=0)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of calibrated probabilities.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        logs = list(self._predictions("predict_log_proba", X))
        return logs[0] if len(logs) == 1 else logsumexp(logs, axis=0) - np.log(len(logs))

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), such as 0.9: bounds that contain the
            true probability of a class, given the scores, with about this frequency, if the form
            of the map is right. With ``ensemble=True`` those of the folds are averaged.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        bounds = list(self._predictions("predict_bounds", X, level=level))
        if len(bounds) == 1:
            return bounds[0]
        lower, upper = (np.mean(ends, axis=0) for ends in zip(*bounds, strict=True))
        return Bounds(lower, upper, level)

    @available_if(has_mass)
    def predict_mass(self, X: Any) -> MassBatch:
        """Return predictive mass functions, where the calibrator defines them.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
        """
        masses = [batch.dense() for batch in self._predictions("predict_mass", X)]
        if len(masses) == 1:
            return masses[0]
        first = masses[0]
        return MassBatch(first.frame, first.focal, np.mean([m.mass for m in masses], axis=0))

    @available_if(can_explain)
    def explain(self, X: Any) -> Any:
        """Return the estimator's ``explain``, which `dubito.evidence.EvidentialClassifier` has.

        It explains the scores before calibration: its beliefs are not those of `predict_bounds`.

        Parameters
        ----------
        X : array-like
            As in `fit`; few rows.

        Returns
        -------
        Explanation
            Or whatever else the estimator's ``explain`` returns.
        """
        check_is_fitted(self)
        return self.calibrated_classifiers_[0].estimator.explain(X)

    @available_if(is_affine)
    def affine_logits(self) -> tuple[Any, FloatArray, FloatArray]:
        """Return the fitted estimator, and the linear layer that calibrates its scores.

        Available if scores come from ``decision_function`` and one calibrator (``ensemble=False``)
        has ``affine_logits``: Platt, temperature, vector and matrix scaling. Temperature scaling
        has it for probabilities too: the layer is then for the logits whose softmax they are.

        Returns
        -------
        estimator : classifier
            Fitted, or the frozen one.
        matrix, offset : ndarray
            As the calibrator's ``affine_logits`` returns them: the logits of its
            ``decision_function`` s are ``matrix @ s + offset``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import LinearSVC
        >>> from dubito.calibration import CalibratedClassifier, TemperatureCalibrator
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = CalibratedClassifier(LinearSVC(), TemperatureCalibrator()).fit(X, y)
        >>> svm, matrix, offset = clf.affine_logits()
        >>> logits = svm.decision_function(X) @ matrix.T + offset
        >>> bool((logits.argmax(axis=1) == clf.predict(X)).all())
        True
        """
        check_is_fitted(self)
        estimator, calibrator = self.calibrated_classifiers_[0]
        return estimator, *calibrator.affine_logits()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrated_classifiers_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator
        if inner is None:
            inner = named_calibrator(self.calibrator)
        tags.input_tags = get_tags(inner).input_tags
        return tags
