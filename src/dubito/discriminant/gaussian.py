"""Gaussian discriminant analysis with class means known only up to a box."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dubito._compat import Interval, StrOptions, fit_context
from dubito._labels import as_labels
from dubito._meta_estimators import user_stacklevel
from dubito._validation import check_sample_weight
from dubito.belief import Bounds
from dubito.discriminant._fitted_model import ModelSettings, fit_model
from dubito.discriminant._kernels.moments import CovarianceSettings, class_counts
from dubito.discriminant._predictions import DiscriminantPredictionMixin
from dubito.discriminant.errors import (
    SingularCovarianceWarning,
    WideBoxWarning,
    describe_singular_covariances,
    describe_wide_boxes,
    warn_of_unsettled,
)
from dubito.discriminant.priors import prior_interval
from dubito.discriminant.tuning import DEFAULT_CS, as_cs, tune_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._kernels.posterior import Priors
    from dubito.discriminant.tuning import CPath

_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class ImpreciseGaussianDiscriminant(DiscriminantPredictionMixin, ClassifierMixin, BaseEstimator):
    r"""Linear or quadratic discriminant analysis with sets of classes where rows are ambiguous.

    The mean of class k is known only up to a box around its sample mean, which shrinks as its
    number of rows :math:`n_k` grows (see `box`). At a row x the density of each class then lies
    between those of the farthest and of the nearest mean of the box, and posteriors lie between
    `predict_bounds`.

    As in every model of dubito, `predict_set` compares these bounds by default (interval
    dominance). The published rule is ``predict_set(X, rule="maximality")``, which drops a class b
    if some class a is more probable for all means of the boxes, that is if

    .. math:: \log\pi_a+\inf\log p_a(x)>\log\pi_b+\sup\log p_b(x).

    Its sets are subsets of the default ones, the same for two classes, and faster to compute.
    `critical_c`, `c_path` and the choice of c by ``c="auto"`` refer to it.

    The published model has ``box="raw", shrinkage=None, divisor="unbiased"``. Without shrinkage,
    c = 0 is scikit-learn's `LinearDiscriminantAnalysis` (tied) or `QuadraticDiscriminantAnalysis`
    (full), to rounding; of scikit-learn before 1.9.1 with ``divisor="unbiased"``.

    Parameters
    ----------
    covariance_type : {"tied", "full", "diag", "spherical"}, default="tied"
        One covariance for all classes, pooled within them, or one for each: all of it,
        :math:`S_k`, its diagonal, or one variance for all features, :math:`\mathrm{tr}S_k/p`.
    c : float, "auto" or array-like, default=0.75
        Imprecision: the half widths of the boxes are proportional to it. "auto": the c of largest
        `scoring` in cross-validation among 0, 0.01, ..., 5.5; an array: among those listed. Scores
        are those of the sets by maximality, not of the default sets.
    box : {"inscribed", "standard_error", "scaled", "raw"}, default="inscribed"
        Half width of the boxes along feature j. With :math:`s_{kj}^2` on the diagonal of the
        covariance that class k is given and q features that vary:
        "inscribed": :math:`c\,s_{kj}/\sqrt{q\,n_k}`, the box inscribed in the ellipsoid of c
        standard errors: if features are uncorrelated, no mean in it is farther than c standard
        errors along any direction, for any number of features.
        "standard_error": :math:`c\,s_{kj}/\sqrt{n_k}`, c standard errors of each coordinate by
        itself; with many features its corners are far away, and sets are large.
        "scaled": :math:`c\,s_j/n_k` with the pooled standard deviation :math:`s_j` within classes,
        which shrinks faster than the error of the mean does.
        "raw": :math:`c/n_k`, as published; the sets then depend on whether lengths are in metres or
        millimetres; a `WideBoxWarning` names features whose box is wider than their spread.
    priors : array-like of shape (K,) or (K, 2), or mapping of labels, optional
        Prior probabilities of the classes, or a lower and an upper one for each, in the order of
        ``classes_``; class frequencies by default.
    prior_imprecision : float, default=0.0
        s of the imprecise Dirichlet model: priors lie between :math:`N\pi_k/(N+s)` and
        :math:`(N\pi_k+s)/(N+s)`.
    covariance_imprecision : float, default=0.0
        e: covariances lie between :math:`S/\kappa` and :math:`\kappa S` (in the Loewner
        order), with :math:`\kappa=1+e/n_k` (1 + e/N if tied).
    shrinkage : None, "auto" or float in [0, 1], default="auto"
        Fraction of the average variance times the identity in each covariance, in units of the
        pooled standard deviations; "auto" follows Ledoit and Wolf. Without effect if spherical.
    tol : float, default=1e-4
        Directions whose standard deviation is not above this fraction of the largest, in units of
        the pooled ones, are left out of distances and determinants alike.
    divisor : {"likelihood", "unbiased"}, default="likelihood"
        Divisor of the sums of squares. "likelihood": :math:`n_k` and :math:`N`, as in scikit-learn
        from 1.9.1 on. "unbiased": :math:`n_k-1`, so that :math:`S_k` is the sample covariance and
        the tied one is :math:`\sum_k(n_k-1)S_k/(N-K)`, as published and in scikit-learn before.
    scoring : {"u65", "u80"} or callable, default="u65"
        What a tuned c maximises. u65 or u80: a set of two with the true class is worth 0.65 or 0.8.
        A callable: ``scoring(y_true, sets)`` returns a number, larger for better sets, from labels
        (n,) and sets (n, K), columns as in ``classes_``. It is given ``sample_weight``, if that is
        one of its parameters; rows of weight 0 are left out.
    cv : int, splitter or iterable, default=5
        Folds to tune c on. An int: stratified folds, fewer where each class has fewer rows.
        Splits by groups are given as a list, ``list(GroupKFold().split(X, y, groups))``.
    max_subproblems : int or "auto", default="auto"
        Limit on the branch-and-bound subproblems of one search for a farthest mean; in `critical_c`
        of all searches for one class together. A search that reaches it leaves bounds and sets too
        wide, never too narrow; it is counted in ``n_unsettled_``, and warned of once. "auto": 1000
        for up to 64 features, beyond that in inverse proportion to the square of their number.
    n_jobs : int, optional
        Number of threads; -1 for all processors, None for one unless in a joblib context.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_counts_ : ndarray of shape (K,)
        Rows of each class, or sums of their weights.
    means_ : ndarray of shape (K, p)
    covariance_ : ndarray
        (p, p) if tied, (K, p, p) if full, (K, p) if diag, (K,) if spherical.
    rank_ : ndarray of shape (1,) or (K,)
        Number of directions that were not left out of each covariance.
    priors_ : ndarray of shape (K,)
        Precise priors, used by `predict_proba`.
    prior_bounds_ : Bounds
        One row: lower and upper priors.
    c_ : float
        The imprecision used.
    half_widths_ : ndarray of shape (K, p)
        Half widths of the boxes.
    c_path_ : CPath
        Cross-validated scores for all c, where c was tuned; by u65 or u80 up to a c beyond which
        none can score more.
    n_unsettled_ : int
        Searches since `fit` that reached `max_subproblems`.
    n_features_in_, feature_names_in_

    Notes
    -----
    The nearest mean is a convex quadratic programme, solved to its duality gap. The farthest is a
    corner of the box, which is NP-hard to find in general; branch and bound finds and proves it, in
    microseconds where the box is small relative to the spread of a class. Sets by "maximality" need
    only comparisons; `predict_bounds`, and so the default sets, needs all solutions.

    Singular covariances: directions without spread are left out of inverse and determinant. With
    one covariance for all classes this only ignores uninformative directions. If each has its own,
    densities of classes of different rank have different dimensions: by convention a direction in
    which a class has no spread counts with the pooled spread at distance 0, and a
    `SingularCovarianceWarning` is issued. `shrinkage`, the default, avoids it. A class with one row
    takes the pooled covariance.

    How often the posteriors of the true means lie within `predict_bounds` depends on `box`. The
    error of a sample mean is of order :math:`1/\sqrt{n_k}`, so that boxes of :math:`1/n_k` contain
    the true mean ever less often as rows increase. Boxes of c standard errors contain each
    coordinate of each mean with the normal probability of c (0.68 for 1, 0.95 for 2) for any number
    of rows; this is no joint guarantee for all coordinates and classes, nor for posteriors, and
    takes covariances and priors as estimated. Inscribed boxes rarely contain all coordinates of the
    means, but posteriors depend on few directions. ``docs/results/measured.md`` has
    numbers.

    c = 0.75 was chosen by u65 and u80 on digits, breast cancer and wine, with all their features
    and with 3 or 8 of them (``benchmarks/quality_discriminant.py``).

    Weights count rows: the box of a class whose weights sum to 2 is as wide as that of a class of
    two rows.

    Bounds with ``covariance_imprecision`` are exact for each class; with a tied covariance,
    which the classes share, sets may be larger than necessary.

    References
    ----------
    Carranza Alarcón and Destercke (2019), Imprecise Gaussian discriminant classification (ISIPTA).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> m = ImpreciseGaussianDiscriminant(c=1.2).fit(X, y)
    >>> rows = X[[0, 70, 83]]
    >>> m.predict_set(rows)
    array([[ True, False, False],
           [False,  True,  True],
           [False, False,  True]])
    >>> m.critical_c(rows).round(2)  # the last row's second class enters at c = 1.79
    array([[ 0.  , 22.6 , 32.23],
           [23.08,  1.03,  0.  ],
           [24.63,  1.79,  0.  ]])
    """

    #: Kind of bounds, for reports (`dubito._bounds_meaning`).
    _bounds_kind: ClassVar[str] = "box"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "covariance_type": [StrOptions({"tied", "full", "diag", "spherical"})],
        "c": [_NOT_NEGATIVE, StrOptions({"auto"}), "array-like"],
        "box": [StrOptions({"inscribed", "standard_error", "scaled", "raw"})],
        "priors": ["array-like", dict, None],
        "prior_imprecision": [_NOT_NEGATIVE],
        "covariance_imprecision": [_NOT_NEGATIVE],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "divisor": [StrOptions({"unbiased", "likelihood"})],
        "scoring": [StrOptions({"u65", "u80"}), callable],
        "cv": ["cv_object"],
        "max_subproblems": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
    }

    def __init__(  # noqa: PLR0913
        self,
        *,
        covariance_type: str = "tied",
        c: Any = 0.75,
        box: str = "inscribed",
        priors: Any = None,
        prior_imprecision: float = 0.0,
        covariance_imprecision: float = 0.0,
        shrinkage: float | str | None = "auto",
        tol: float = 1e-4,
        divisor: str = "likelihood",
        scoring: str | Callable[..., float] = "u65",
        cv: Any = 5,
        max_subproblems: int | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.covariance_type = covariance_type
        self.c = c
        self.box = box
        self.priors = priors
        self.prior_imprecision = prior_imprecision
        self.covariance_imprecision = covariance_imprecision
        self.shrinkage = shrinkage
        self.tol = tol
        self.divisor = divisor
        self.scoring = scoring
        self.cv = cv
        self.max_subproblems = max_subproblems
        self.n_jobs = n_jobs

    c_path_: CPath

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the classes and, unless c is a number, tune c.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Weight 2 is equivalent to the row twice.

        Returns
        -------
        self
        """
        rows, y = validate_data(self, X, y, dtype=np.float64)
        labels = as_labels(y, "y")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class, {self.classes_.tolist()[0]!r}; a discriminant needs at least "
                "two classes."
            )
        weight = check_sample_weight(sample_weight, len(rows))
        self.n_unsettled_ = 0
        counts = self._counts(codes, weight)
        self.c_ = self._choose_c(rows, codes, weight)
        self._model = fit_model(rows, codes, weight, self._priors_of(counts), self._settings())
        self._set_fitted_attributes()
        self._warn_of_problems()
        return self

    def _counts(self, codes: IntArray, weight: FloatArray) -> FloatArray:
        counts = class_counts(codes, weight, len(self.classes_))
        if not counts.all():
            empty = ", ".join(map(repr, self.classes_[counts == 0].tolist()))
            raise ValueError(
                f"all rows of class {empty} have weight 0; each class needs a row that counts. "
                "Drop the rows of the class, or give one of them a weight."
            )
        return counts

    def _settings(self) -> ModelSettings:
        covariance = CovarianceSettings(
            self.covariance_type, self.shrinkage, float(self.tol), self.divisor == "unbiased"
        )
        return ModelSettings(covariance, float(self.covariance_imprecision), self.box)

    def _priors_of(self, counts: FloatArray) -> Priors:
        return prior_interval(self.priors, float(self.prior_imprecision), counts, self.classes_)

    def _choose_c(self, rows: FloatArray, codes: IntArray, weight: FloatArray) -> float:
        """Return c as given, or tuned; set ``c_path_`` in the latter case."""
        if hasattr(self, "c_path_"):
            del self.c_path_  # of an earlier fit
        if isinstance(self.c, Real):
            return float(self.c)
        c, self.c_path_, n_unsettled = tune_c(
            rows,
            codes,
            weight,
            classes=self.classes_,
            scoring=self.scoring,
            cs=DEFAULT_CS if isinstance(self.c, str) else as_cs(self.c, "c"),
            cv=self.cv,
            priors_of=self._priors_of,
            settings=self._settings(),
            limits=self._search_limits(),
        )
        if n_unsettled:
            limit = self._search_limits().max_subproblems
            warn_of_unsettled(n_unsettled, limit, "while c was tuned")
        return c

    def _set_fitted_attributes(self) -> None:
        """Set the public fitted attributes."""
        moments, priors = self._model.moments, self._model.priors
        self.class_counts_, self.means_ = moments.counts, moments.means
        self.covariance_, self.rank_ = moments.covariance, moments.rank
        self.priors_ = priors.precise
        self.prior_bounds_ = Bounds(priors.lower[None], priors.upper[None])
        self.half_widths_ = self._model.boxed.half_widths(self.c_)

    def _warn_of_problems(self) -> None:
        model = self._model
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        message = describe_singular_covariances(
            model.moments, self.covariance_type, self.classes_, names
        )
        if message:
            warnings.warn(message, SingularCovarianceWarning, stacklevel=user_stacklevel())
        # A tuned c is adapted to the units of the features.
        if self.box == "raw" and not hasattr(self, "c_path_"):
            message = describe_wide_boxes(self.half_widths_, model.moments.spread, names)
            if message:
                warnings.warn(message, WideBoxWarning, stacklevel=user_stacklevel())
