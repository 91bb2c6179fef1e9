"""A wrapper of any classifier that gives label sets with guaranteed coverage."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._compat import HasMethods, Interval, StrOptions, fit_context, pick
from dubito._rows import copy_feature_names, read_rows
from dubito._validation import check_level, no_level
from dubito.base import CautiousMixin, MethodAndParameter
from dubito.belief import Bounds, MassBatch
from dubito.conformal.contours import confidence_sets, consonant_bounds, nested_masses, raised
from dubito.conformal.p_values import (
    FullRefit,
    check_coverage,
    class_weights,
    compare,
    full_p_values,
    rank_fold,
    refuse_too_many_refits,
    warn_small,
)
from dubito.conformal.scores import SCORES, ScoreReader, choose_response, class_table
from dubito.conformal.training import (
    TrainingRows,
    fit_parts,
    n_rows,
    naming_classes,
    parts_of,
    refuse_one_class,
    training_rows,
)
from dubito.decision import choose_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.decision.rules import SetRule

#: Numbers that a prediction may hold at once besides its result: 32 MiB of them.
_CHUNK = 2**22

#: Numbers for each row and class while scores are computed and ranked.
_WORKING_SET = 8

#: Masses (rows times focal sets) that are built at once: 512 MiB of them.
_MOST_MASSES = 2**26


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


class ConformalClassifier(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Label sets with guaranteed coverage around any classifier.

    How badly class k fits a row x is its nonconformity score a(x, k). Among rows that the model
    was not fitted on, with the scores :math:`a_i` of their own labels, the p-value of class k is

    .. math:: \pi_k(x)=\frac{1+\#\{i:a_i\ge a(x,k)\}}{n+1},

    the conformal contour, and :math:`P(\pi_Y\le\alpha)\le\alpha` for all :math:`\alpha` at once
    if the new row and those n are exchangeable, whatever the model. The set
    :math:`\{k:\pi_k>1-\text{coverage}\}` then holds the true label with that probability.

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
        Whether each class is compared with rows of that class alone. The coverage then holds within
        each class; a class without calibration rows is in every set.
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
    folds_ : list of (model, ranks)
        The models of the folds, with the sorted calibration scores; empty with ``cv="full"``.
    n_calibration_ : ndarray of shape (K,)
        Number of calibration rows of each class.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    dubito.metrics.coverage, dubito.metrics.class_coverage, dubito.metrics.coverage_by_size

    Notes
    -----
    *Guarantee.* Split, frozen and full: the true label is in the set with a probability of at least
    `coverage`, averaged over calibration rows and new rows (not conditionally on X). Cross: the
    p-values of F folds nearly average to :math:`\pi`, hence at least
    :math:`1-2\alpha-2(1-\alpha)(F-1)/(n+F)` with :math:`\alpha=1-\text{coverage}` (Barber et al.
    2021, theorem 4; Vovk et al. 2018); in practice about :math:`1-\alpha`. With fewer than
    1/(1 - coverage) - 1 rows (of a class, if class-conditional) every set holds all classes, with a
    `SmallCalibrationWarning`.

    *Weights.* A row counts by its `sample_weight`, and the new row, whose weight is unknown, by the
    largest: :math:`\pi_k=(w+\sum_{i:a_i\ge a(x,k)}w_i)/(w+\sum_iw_i)`, :math:`w=\max_iw_i`. The
    promise then holds where new rows are w times as frequent as those of the fit (Tibshirani et al.
    2019), with weights that are no larger than w.

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

    refit_: FullRefit | None

    #: What the bounds are, for reports (`dubito._bounds_meaning`).
    _bounds_meaning: ClassVar[str] = "conformal"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "score": [StrOptions(set(SCORES))],
        "class_conditional": ["boolean"],
        "cv": ["cv_object", Interval(Real, 0, 1, closed="neither"), StrOptions({"full"})],
        "randomized": ["boolean"],
        "response_method": [StrOptions({"auto", "predict_proba", "decision_function"})],
        "max_refits": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(  # noqa: PLR0913 - as many as there are settings
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

    # `score` is a parameter here and the accuracy in every classifier of scikit-learn: it is both.
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
        response = choose_response(self.estimator, score, self.response_method)
        self.reader_ = ScoreReader(score, response)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = training_rows(self.estimator, X, labels, weight, frozen=frozen)
        every = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0)
        if frozen:
            return self._calibrate_one(self.estimator, rows.picked(every))
        refuse_one_class(self, labels[every])
        if isinstance(self.cv, str):
            return self._prepare_refits(rows.picked(every))
        return self._calibrate_folds(rows, every)

    def _calibrate_one(self, model: Any, held_out: TrainingRows) -> Self:
        """Calibrate a fitted model by rows that it was not fitted on."""
        known = np.asarray(model.classes_)
        if not isinstance(model, FrozenEstimator):
            unseen = np.setdiff1d(held_out.y, known)
            known = np.union1d(known, unseen) if len(unseen) else known
        refuse_one_class(self, known)
        self.estimator_, self.classes_ = model, known
        return self._rank([model], [held_out])

    def _calibrate_folds(self, rows: TrainingRows, every: IntArray) -> Self:
        """Fit a model for each fold, and one for all rows if there are several folds."""
        parts = parts_of(self.cv, rows, self.seed_)
        if len(parts) == 1:
            train, test = parts[0]
            refuse_one_class(self, rows.y[train])
            return self._calibrate_one(rows.picked(train).fitted(self.estimator), rows.picked(test))
        self.estimator_ = rows.picked(every).fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator_.classes_)
        copies = fit_parts(naming_classes(self.estimator, self.classes_), rows, parts, self.n_jobs)
        return self._rank(copies, [rows.picked(test) for _, test in parts])

    def _prepare_refits(self, rows: TrainingRows) -> Self:
        """Fit on all rows, and store them for the refits of full conformal prediction."""
        self.estimator_ = rows.fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator_.classes_)
        self._rank([], [rows])
        self.refit_ = FullRefit(
            naming_classes(self.estimator, self.classes_),
            rows,
            self.reader_,
            self.classes_,
            next(self._fractions([len(rows.y)])),
            self.class_conditional,
        )
        return self

    def _rank(self, models: list[Any], held_out: list[TrainingRows]) -> Self:
        """Compute the sorted calibration scores of each fold by its model."""
        conditional = self.class_conditional
        fractions = self._fractions([len(rows.y) for rows in held_out])
        self.refit_ = None
        self.folds_ = [
            rank_fold(
                self.reader_, model, rows, self.classes_, fraction, class_conditional=conditional
            )
            for model, rows, fraction in zip(models, held_out, fractions, strict=False)
        ]
        self.weights_ = class_weights(held_out, self.classes_, class_conditional=conditional)
        self.n_calibration_ = self.weights_.rows
        copy_feature_names(self, self.estimator_)
        return self

    def _fractions(self, sizes: list[int], *, new: bool = False) -> Iterator[FloatArray | None]:
        """Yield uniform numbers for parts of the training or new rows; None if not randomized."""
        rng = np.random.default_rng([self.seed_, int(new)])
        return (rng.random(size) if self.randomized else None for size in sizes)

    def predict_contour(self, X: Any) -> FloatArray:
        """Return the p-value of each class, before raising.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
            Multiples of 1/(n + 1) without weights, and never 0. A row whose values are all small
            is unlike the calibration rows.
        """
        return np.concatenate(list(self._contours(X)))

    def _contours(self, X: Any) -> Iterator[FloatArray]:
        """Yield the p-values of rows in chunks, so that memory is bounded."""
        check_is_fitted(self)
        n, n_classes = n_rows(X), len(self.classes_)
        if self.refit_ is not None:
            refuse_too_many_refits(self.refit_, X, n, self.max_refits)
            yield full_p_values(
                self.refit_, X, n, next(self._fractions([n], new=True)), self.n_jobs
            )
            return
        step = max(1, _CHUNK // (_WORKING_SET * n_classes))
        starts = range(0, max(n, 1), step)
        fractions = self._fractions([min(step, n - start) for start in starts], new=True)
        for start, fraction in zip(starts, fractions, strict=True):
            part = X if n <= step else pick(X, np.arange(start, min(start + step, n)))
            yield compare(
                self.folds_,
                self.weights_,
                self.reader_,
                part,
                classes=self.classes_,
                fraction=fraction,
            )

    def predict_set(
        self,
        X: Any,
        rule: SetRule = None,
        *,
        level: float | None = None,
        coverage: float | None = None,
        allow_empty: bool = False,
        **options: Any,
    ) -> BoolArray:
        r"""Return label sets that hold the true label with a chosen probability.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        rule : str or callable, optional
            A decision rule on the bounds instead, as in the other models: "interval_dominance",
            "maximality", ... Such sets have no guaranteed coverage.
        level : None
            Must be None, as in `predict_bounds`.
        coverage : float, default 0.9
            Probability that a set holds the true label: :math:`\{k:\pi_k>1-\text{coverage}\}`.
        allow_empty : bool, default False
            Whether a set may be empty, which means that the row is unlike the calibration rows.
            Otherwise it holds the classes with the largest p-value, which only adds coverage.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Warns
        -----
        SmallCalibrationWarning
            With fewer than 1/(1 - coverage) - 1 rows: every set holds all classes.
        """
        if rule is not None:
            if coverage is not None:
                raise ValueError(
                    "rule and coverage were both given: a rule decides by the bounds, which "
                    "promise no coverage. Pass one of them."
                )
            return choose_set(self.predict_bounds(X, level=level), rule, **options)
        self._refuse_level(level)
        if options:
            raise TypeError(
                f"predict_set got {', '.join(sorted(options))}, which is for a rule: pass rule= "
                "as well."
            )
        wanted = check_coverage(coverage)
        check_is_fitted(self)
        warn_small(self.weights_, self.classes_, wanted, class_conditional=self.class_conditional)
        return np.concatenate(
            [confidence_sets(c, wanted, allow_empty=allow_empty) for c in self._contours(X)]
        )

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        r"""Return belief and plausibility of each class by the raised contour.

        :math:`\text{upper}_k=\pi_k` and :math:`\text{lower}_k=1-\max_{l\ne k}\pi_l`, with the
        largest :math:`\pi` raised to 1. Where the probability of `predict_proba` lies outside, the
        bound is moved to include it: a p-value is the fraction of rows that fit as badly, and can
        be smaller than the probability.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : None
            Must be None: these bounds are about labels, and have no confidence level.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        self._refuse_level(level)
        lower, upper = consonant_bounds(raised(self.predict_contour(X)))
        if hasattr(self.estimator_, "predict_proba"):
            proba = self.predict_proba(X)
            lower, upper = np.minimum(lower, proba), np.maximum(upper, proba)
        return Bounds(lower, upper)

    def _refuse_level(self, level: Any) -> None:
        if check_level(level) is not None:
            raise no_level(
                self,
                "its p-values are about labels, not about probabilities. Use "
                "predict_set(X, coverage=0.9), or level=None.",
            )

    def predict_mass(self, X: Any) -> MassBatch:
        r"""Return the consonant mass function of each row, whose contour is the raised one.

        Nested sets: with :math:`\pi_{(1)}\ge\pi_{(2)}\ge\ldots` the j classes that come first have
        the mass :math:`\pi_{(j)}-\pi_{(j+1)}`.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
            Of the focal sets that occur. `predict_bounds` differs from its bounds where those do
            not hold the probability.
        """
        focal, mass = nested_masses(raised(self.predict_contour(X)), _MOST_MASSES)
        return MassBatch(self.classes_.tolist(), focal, mass)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label that the estimator predicts for each row.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(lambda self: hasattr(_fitted_or_given(self), "predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the estimator's probabilities, where it has them.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        return class_table(self.estimator_, X, "predict_proba", self.classes_)

    @available_if(lambda self: hasattr(_fitted_or_given(self), "predict_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the estimator's probabilities, where it has them.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "folds_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _fitted_or_given(model: ConformalClassifier) -> Any:
    """Return the fitted estimator, before `fit` the parameter."""
    return getattr(model, "estimator_", model.estimator)
