"""Any classifier, calibrated."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._calibrator_names import CALIBRATORS
from dubito._checks import FloatArray, counted
from dubito._estimators import CautiousMixin
from dubito._responses import Response, class_scores
from dubito._rows import read_rows
from dubito._sklearn import HasMethods, StrOptions, fit_context
from dubito.belief import Bounds, MassBatch
from dubito.calibration._base import BaseCalibrator
from dubito.calibration._cross_fit import (
    Job,
    Scored,
    Source,
    carry_out,
    counted_rows,
    cross_fit_plan,
    every_row,
    folds_of,
    held_out,
    refuse_one_class,
    source_of,
    weight_of,
)
from dubito.calibration._named import named_calibrator
from dubito.calibration._responses import (
    RESPONSES,
    as_read_by,
    choose_response,
    input_for,
    input_of,
)
from dubito.calibration.errors import CalibrationInputError
from dubito.calibration.evidential_joint import EvidentialJointCalibrator

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from dubito.calibration._cross_fit import Rows


class Pair(NamedTuple):
    """A fitted estimator, or None where X are scores, and the calibrator of its scores."""

    estimator: Any
    calibrator: BaseCalibrator


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
        which fits as rich a map as the rows allow), "platt", "isotonic", "beta", "bins",
        "temperature", "vector", "matrix", "venn-abers", or "evidential-logistic", "-isotonic",
        "-bins", "-multinomial", "-joint". Its ``input`` becomes what the estimator's scores are,
        its ``classes`` those of the estimator.
    cv : int, splitter or iterable, default 5-fold, stratified
        How to get scores for rows the estimator was not trained on. Not used with a frozen
        estimator. Splitters that need groups come as ``list(splitter.split(X, y, groups))``.
    ensemble : bool, default False
        False: the scores of all folds fit one calibrator, and the estimator is fitted anew on all
        rows. The calibrator sees every row, so its bounds are as narrow as the data allow. True:
        one estimator and calibrator for each fold, whose answers are averaged (an average of
        belief functions is one).
    response_method : str, default "auto"
        What to ask the estimator for: "decision_function", "predict_proba", "predict_log_proba", or
        "auto". That asks for what loses least and knows what it is, also
        inside a pipeline, a search or a frozen model: logits of logistic regression, LDA, and
        boosting (scikit-learn's, LightGBM's, XGBoost's); exact log-probabilities of naive Bayes,
        QDA and scikit-learn's networks; of `SVC` with more than two classes the margin of each
        class over its nearest rival, :math:`\min_jd_{kj}` of its pairwise margins, which
        say more than the votes of its ``decision_function``; of others ``decision_function``, taken
        as margins, or else ``predict_proba``. A calibrator with ``input="proba"`` is given
        probabilities where there are any.
    n_jobs : int, optional
        Folds fitted at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    pairs_ : list of (estimator, calibrator)
        One pair, or one for each fold with ``ensemble=True``. ``pairs_[0].calibrator.input`` is
        what the scores were taken for.
    response_method_ : str
        What the estimator is asked for: a method, or "pairwise_margins" (`SVC`), "raw_score"
        (LightGBM), "output_margin" (XGBoost).
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    Notes
    -----
    `sample_weight` reaches the calibrator always, and the estimator where its ``fit`` takes it;
    where not, a warning says so.

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
        "cv": ["cv_object"],
        "ensemble": ["boolean"],
        "response_method": [StrOptions({"auto", *RESPONSES})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        calibrator: str | BaseCalibrator = "auto",
        *,
        cv: Any = None,
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
        return self._fit(*read_rows(self, X, y, sample_weight))

    def _fit(
        self,
        X: Any,
        y: npt.NDArray[Any],
        weight: FloatArray | None,
        *,
        known: npt.NDArray[Any] | None = None,
    ) -> Self:
        """Fit to checked labels; `known` are all classes where y or the estimator may lack some."""
        calibrator = named_calibrator(self.calibrator)
        if self.estimator is None:
            _refuse_features(X, y, calibrator, known)
            fresh = clone(calibrator)
            if known is not None:
                fresh.set_params(classes=known)
            self.pairs_ = [Pair(None, fresh.fit(X, y, weight))]
            self.classes_ = fresh.classes_
            return self._take_feature_names(fresh)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator.estimator)
        else:
            refuse_one_class(type(self).__name__, y, weight)
        if known is None:
            known = self.estimator.classes_ if frozen else np.unique(y[counted_rows(y, weight)])
        response = choose_response(
            self.estimator, input_of(calibrator), self.response_method, n_classes=len(known)
        )
        source = source_of(self.estimator, X, response, weight)
        plans, tests = self._plans(source, y, weight)
        scored = carry_out(plans, y, classes=known, n_jobs=self.n_jobs)
        return self._adopt(scored, tests, y, weight, known=known, response=response)

    def _plans(
        self, source: Source, y: npt.NDArray[Any], weight: FloatArray | None
    ) -> tuple[list[list[Job]], list[Rows]]:
        """Return one plan for each pair, and the rows whose scores its calibrator learns from."""
        every = every_row(y, weight)
        if isinstance(self.estimator, FrozenEstimator):
            return [[Job(source, None, every)]], [every]
        folds = folds_of(self.cv, source.X, y, weight)
        if self.ensemble:
            return [[Job(source, *fold)] for fold in folds], [test for _, test in folds]
        return [cross_fit_plan(source, folds, every)], [held_out(folds)]

    def _adopt(
        self,
        scored: Iterable[Scored],
        tests: Iterable[Rows],
        y: npt.NDArray[Any],
        weight: FloatArray | None,
        *,
        known: npt.NDArray[Any],
        response: Response,
    ) -> Self:
        """Take fitted estimators, and fit a calibrator to the held-out scores of each."""
        self.classes_ = known
        self.response_method_ = response.way
        fresh = clone(named_calibrator(self.calibrator)).set_params(classes=known)
        fresh.set_params(input=input_for(fresh, response.kind))
        self.pairs_ = [
            Pair(
                model,
                clone(fresh).fit(as_read_by(fresh, scores), y[rows], weight_of(weight, rows)),
            )
            for (model, scores), rows in zip(scored, tests, strict=True)
        ]
        return self._take_feature_names(self.pairs_[0].estimator)

    def _take_feature_names(self, fitted: Any) -> Self:
        """Keep what the fitted part knows of its features."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self

    def _scores(self, estimator: Any, X: Any) -> FloatArray:
        return class_scores(estimator, X, way=self.response_method_, classes=self.classes_)

    def _own_scores(self, X: Any) -> FloatArray:
        """Return the scores that the only pair's estimator gives."""
        return self._scores(self.pairs_[0].estimator, X)

    def _answers(self, method: str, X: Any, **options: Any) -> Iterable[Any]:
        """Ask every pair for a prediction."""
        check_is_fitted(self)
        return (
            getattr(calibrator, method)(
                X if estimator is None else as_read_by(calibrator, self._scores(estimator, X)),
                **options,
            )
            for estimator, calibrator in self.pairs_
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
        return np.mean(list(self._answers("predict_proba", X)), axis=0)

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), as 0.9: bounds that hold the true
            probability given the scores at least so often, as the calibrator's do. With
            ``ensemble=True`` those of the folds are averaged, which keeps the promise roughly.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        bounds = list(self._answers("predict_bounds", X, level=level))
        if len(bounds) == 1:
            return bounds[0]
        lower, upper = (np.mean(side, axis=0) for side in zip(*bounds, strict=True))
        return Bounds(lower, upper, level)

    @available_if(lambda self: _defines_mass(self))  # noqa: PLW0108 (defined below)
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
        masses = [batch.dense() for batch in self._answers("predict_mass", X)]
        if len(masses) == 1:
            return masses[0]
        first = masses[0]
        return MassBatch(first.frame, first.focal, np.mean([m.mass for m in masses], axis=0))

    @available_if(lambda self: _gives_reasons(self))  # noqa: PLW0108 (defined below)
    def explain(self, X: Any) -> Any:
        """Return the reasons that the estimator gives, where it has ``explain``.

        As `dubito.evidence.EvidentialClassifier` does. They are those of its scores, before
        calibration: beliefs told there are not the ones of `predict_bounds`.

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
        return self.pairs_[0].estimator.explain(X)

    @available_if(lambda self: _is_affine(self))  # noqa: PLW0108 (defined below)
    def affine_logits(self) -> tuple[Any, FloatArray, FloatArray]:
        """Return the fitted estimator, and the linear layer that calibrates its scores.

        There where scores come from ``decision_function``, one calibrator reads them
        (``ensemble=False``), and it has ``affine_logits``: those of Platt, temperature, vector and
        matrix scaling. Temperature scaling has it for probabilities too: the layer is then of the
        logits whose softmax they are.

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
        estimator, calibrator = self.pairs_[0]
        return estimator, *calibrator.affine_logits()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "pairs_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator
        if inner is None:
            inner = named_calibrator(self.calibrator)
        tags.input_tags = get_tags(inner).input_tags
        return tags


def _refuse_features(
    X: Any, y: npt.NDArray[Any], calibrator: BaseCalibrator, known: npt.NDArray[Any] | None
) -> None:
    """Ask for the estimator where X cannot be scores: more columns than labels, and no names."""
    if isinstance(calibrator, EvidentialJointCalibrator):
        return  # one column for each of any number of classifiers
    n_columns = 1 if np.ndim(X) == 1 else np.shape(X)[1]
    n_labels = len(np.unique(y))
    if known is None and calibrator.classes is None and max(n_columns, 2) != n_labels:
        raise CalibrationInputError(
            f"without an estimator X holds the scores, one column for each class; it has "
            f"{counted(n_columns, 'column')} and y shows {counted(n_labels, 'label')}. Pass the "
            "estimator, or name the columns by the calibrator's classes=."
        )


def _defines_mass(classifier: CalibratedClassifier) -> bool:
    """Whether the calibrator, fitted if there is one, gives masses."""
    if hasattr(classifier, "pairs_"):
        return hasattr(classifier.pairs_[0].calibrator, "predict_mass")
    return hasattr(named_calibrator(classifier.calibrator), "predict_mass")


def _gives_reasons(classifier: CalibratedClassifier) -> bool:
    """Whether one estimator gives the scores, and explains them."""
    if classifier.ensemble:
        return False
    fitted = getattr(classifier, "pairs_", None)
    return hasattr(fitted[0].estimator if fitted else classifier.estimator, "explain")


def _only_scales(calibrator: BaseCalibrator) -> bool:
    """Whether the logits behind probabilities serve as well as their logarithms."""
    return getattr(calibrator, "ignores_shifts", False)


def _is_affine(classifier: CalibratedClassifier) -> bool:
    """Whether one linear layer calibrates the estimator's scores, as far as is known."""
    if not hasattr(classifier, "pairs_"):
        return hasattr(named_calibrator(classifier.calibrator), "affine_logits")
    estimator, calibrator = classifier.pairs_[0]
    return (
        len(classifier.pairs_) == 1
        and estimator is not None
        and (classifier.response_method_ == "decision_function" or _only_scales(calibrator))
        and len(estimator.classes_) == len(classifier.classes_)  # else scores are made up
        and hasattr(calibrator, "affine_logits")
        and not calibrator._not_affine()
    )
