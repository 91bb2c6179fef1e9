"""Any classifier, with label sets that hold the true label as often as promised."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from dubito._checks import check_level, no_level
from dubito._estimators import MethodAndParameter, offered_if
from dubito._rows import read_rows
from dubito._sklearn import HasMethods, Interval, StrOptions, fit_context, pick
from dubito.belief import Bounds, MassBatch
from dubito.conformal._contours import confidence_sets, consonant_bounds, nested_masses, raised
from dubito.conformal._fitting import (
    TrainingRows,
    fit_parts,
    naming_classes,
    parts_of,
    training_rows,
)
from dubito.conformal._full import FullRefit, full_p_values, refuse_too_dear
from dubito.conformal._ranking import (
    check_coverage,
    class_weights,
    compare,
    rank_fold,
    warn_small,
)
from dubito.conformal._scores import SCORES, ScoreReader, choose_response, class_table
from dubito.decision import choose_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray, IntArray
    from dubito.decision.rules import SetRule

#: Numbers that a prediction may hold at once besides its result: 32 MiB of them.
_CHUNK = 2**22

#: Numbers for each row and class while scores are computed and ranked.
_WORKING_SET = 8

#: Masses (rows times focal sets) that are built at once: 512 MiB of them.
_MOST_MASSES = 2**26


def _accuracy(self: ConformalClassifier, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the accuracy of `predict`, as in every classifier of scikit-learn.

    The parameter ``score`` has the same name and is kept apart.

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


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Label sets that hold the true label as often as promised, around any classifier.

    How badly class k fits a row x is its nonconformity score a(x, k). Among rows that the model
    was not fitted on, with the scores :math:`a_i` of their own labels, the p-value of class k is

    .. math:: \pi_k(x)=\frac{1+\#\{i:a_i\ge a(x,k)\}}{n+1},

    the conformal contour, and :math:`P(\pi_Y\le\alpha)\le\alpha` for all :math:`\alpha` at once
    if the new row and those n are exchangeable: nothing need be right about the model. The set
    :math:`\{k:\pi_k>1-\text{coverage}\}` then holds the true label with that probability.

    Parameters
    ----------
    estimator : classifier, calibrator or FrozenEstimator
        A classifier with ``predict_proba`` or ``decision_function``, or a calibrator of
        `dubito.calibration`, for which X are scores. One that is fitted already comes as
        ``FrozenEstimator(model)``: then all rows given to `fit` calibrate, and they must be rows
        it was not trained on.
    score : {"margin", "probability", "cumulative", "plausibility"}, default "margin"
        The nonconformity score.

        - "margin": the largest log-probability (or decision value) of another class less its own.
        - "probability": :math:`1-p_k` (Sadinle et al. 2019).
        - "cumulative": :math:`\sum_{l:p_l>p_k}p_l+u\,p_k` (APS, Romano et al. 2020), with u random
          or, as it is by default, 1/2; sets adapt to how hard a row is.
        - "plausibility": 1 less the upper bound of ``predict_bounds``, for models of dubito.
    class_conditional : bool, default False
        Whether each class is compared to rows of that class alone. The promise then holds within
        each class; a class without rows to calibrate on is in every set.
    cv : int, splitter, iterable, float or "full", default 5
        Where the rows to calibrate on come from. Not used with a frozen estimator.

        - int, splitter or iterable, *cross*: every row is scored by a model that was fitted
          without its fold, and a new row is compared to each fold by that fold's model.
        - a float between 0 and 1, *split*: this fraction of the rows calibrates one model, which
          is fitted on the others. Likewise a splitter with one fold.
        - "full": the estimator is fitted anew with each new row and each class. For calibrators,
          and others that are fitted in no time.
    randomized : bool, default False
        For ``score="cumulative"``: whether u is drawn at random, uniform in [0, 1], as in the
        paper. The u of a row depends on its place in X.
    response_method : {"auto", "predict_proba", "decision_function"}, default "auto"
        What the score is computed from. "auto" is ``predict_proba`` where there is one.
    max_refits : int, default 10000
        With ``cv="full"``: more fits than this, for one call, are refused.
    n_jobs : int, optional
        Folds, or with ``cv="full"`` rows, that are fitted at a time.
    random_state : int, RandomState or None, default None
        For the split of a float `cv`, and for `randomized`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    estimator_ : classifier
        What `predict` and `predict_proba` ask: fitted on all rows, or, where the rows were split,
        on those that do not calibrate.
    folds_ : list of (model, ranks)
        The models that rank new rows, with the calibration scores; empty with ``cv="full"``.
    n_calibration_ : ndarray of shape (K,)
        How many rows each class is compared to.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    dubito.metrics.coverage, dubito.metrics.class_coverage, dubito.metrics.coverage_by_size

    Notes
    -----
    *What is promised.* Split, frozen and full: the true label is in the set with a probability of
    at least `coverage`, averaged over rows to calibrate on and new rows (not for each kind of
    row). Cross: the p-values of F folds nearly average to :math:`\pi`, hence at least
    :math:`1-2\alpha-2(1-\alpha)(F-1)/(n+F)` with :math:`\alpha=1-\text{coverage}` (Barber et al.
    2021, theorem 4; Vovk et al. 2018); in practice about :math:`1-\alpha`. With fewer than
    1/(1 - coverage) - 1 rows (of a class, if class-conditional) no class can be left out, and a
    `SmallCalibrationWarning` says so.

    *Weights.* A row counts by its `sample_weight`, and the new row, whose weight nobody knows, by
    the largest: :math:`\pi_k=(w+\sum_{i:a_i\ge a(x,k)}w_i)/(w+\sum_iw_i)`, :math:`w=\max_iw_i`. The
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

    #: What the bounds are, for reports (`dubito._promises`).
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

    # A parameter here, and the accuracy in all classifiers of scikit-learn: both are kept.
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
        """Fit the estimator, unless frozen, and rank rows that it was not fitted on.

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
            return self._adopt_one(self.estimator, rows.picked(every))
        _refuse_one_class(self, labels[every])
        if isinstance(self.cv, str):
            return self._adopt_all(rows.picked(every))
        return self._adopt_folds(rows, every)

    def _adopt_one(self, model: Any, held_out: TrainingRows) -> Self:
        """Take a fitted model, and rank rows that it has not seen."""
        known = np.asarray(model.classes_)
        if not isinstance(model, FrozenEstimator):
            unseen = np.setdiff1d(held_out.y, known)
            known = np.union1d(known, unseen) if len(unseen) else known
        _refuse_one_class(self, known)
        self.estimator_, self.classes_ = model, known
        return self._rank([model], [held_out])

    def _adopt_folds(self, rows: TrainingRows, every: IntArray) -> Self:
        """Fit a model for each fold, and one for all rows if there are several folds."""
        parts = parts_of(self.cv, rows, self.seed_)
        if len(parts) == 1:
            train, test = parts[0]
            _refuse_one_class(self, rows.y[train])
            return self._adopt_one(rows.picked(train).fitted(self.estimator), rows.picked(test))
        self.estimator_ = rows.picked(every).fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator_.classes_)
        copies = fit_parts(naming_classes(self.estimator, self.classes_), rows, parts, self.n_jobs)
        return self._rank(copies, [rows.picked(test) for _, test in parts])

    def _adopt_all(self, rows: TrainingRows) -> Self:
        """Fit on all rows, and keep them to be fitted anew with each new one."""
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
        """Rank the rows of each fold by its model."""
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
        return self._take_feature_names()

    def _take_feature_names(self) -> Self:
        """Keep what the estimator knows of its features."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fractions(self, sizes: list[int], *, new: bool = False) -> Iterator[FloatArray | None]:
        """Yield uniform numbers for parts of rows, of the fit or new, where they are needed."""
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
            is unlike the rows that calibrate.
        """
        return np.concatenate(list(self._contours(X)))

    def _contours(self, X: Any) -> Iterator[FloatArray]:
        """Yield the p-values of runs of rows that keep memory bounded."""
        check_is_fitted(self)
        n, n_classes = _n_rows(X), len(self.classes_)
        if self.refit_ is not None:
            refuse_too_dear(self.refit_, X, n, self.max_refits)
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
        coverage: float | None = None,
        allow_empty: bool = False,
        level: float | None = None,
        **options: Any,
    ) -> BoolArray:
        r"""Return sets that hold the true label with a chosen probability.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        rule : str or callable, optional
            A decision rule on the bounds instead, as in the other models: "interval_dominance",
            "maximality", ... Such sets promise no coverage.
        coverage : float, default 0.9
            How often sets are to hold the true label: :math:`\{k:\pi_k>1-\text{coverage}\}`.
        allow_empty : bool, default False
            Where no class passes, the classes with the largest p-value are kept, which only adds
            to the coverage. True: the set is empty, which says that the row is unlike the others.
        level : None
            Refused, as in `predict_bounds`.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)

        Warns
        -----
        SmallCalibrationWarning
            With fewer than 1/(1 - coverage) - 1 rows no class can be left out.
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
        share = check_coverage(coverage)
        check_is_fitted(self)
        warn_small(self.weights_, self.classes_, share, class_conditional=self.class_conditional)
        return np.concatenate(
            [confidence_sets(c, share, allow_empty=allow_empty) for c in self._contours(X)]
        )

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        r"""Return belief and plausibility of each class by the raised contour.

        :math:`\text{upper}_k=\pi_k` and :math:`\text{lower}_k=1-\max_{l\ne k}\pi_l`, with the
        largest :math:`\pi` raised to 1. Where the probability of `predict_proba` lies outside,
        the bound is moved to hold it: a p-value is small where few rows fit as badly, which may be
        fewer than the probability says.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : None
            Any level is refused: these bounds are about labels, and promise `coverage`.

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

    @offered_if(lambda self: _asked(self).predict_proba)
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "folds_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _asked(model: ConformalClassifier) -> Any:
    """Return the fitted estimator, or the one that would be."""
    return getattr(model, "estimator_", model.estimator)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _refuse_one_class(model: Any, labels: npt.NDArray[Any]) -> None:
    """Refuse to choose among fewer than two classes."""
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"{type(model).__name__} needs rows of at least two classes to fit on; there "
            f"{'is one class' if len(labels) else 'are none'}."
        )
