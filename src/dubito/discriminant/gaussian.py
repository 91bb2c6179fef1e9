"""Gaussian discriminants that know the means of their classes only up to a box."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dubito._checks import check_sample_weight
from dubito._labels import as_labels
from dubito._rows import frames_to_the_user
from dubito._sklearn import Interval, StrOptions, discriminants_divide_by_rows, fit_context
from dubito.belief import Bounds
from dubito.discriminant._answers import DiscriminantAnswers, warn_unsettled
from dubito.discriminant._model import Priors, Settings, learn, sums_of_weights
from dubito.discriminant._path import DEFAULT_CS, as_cs, best_c
from dubito.discriminant._priors import prior_interval
from dubito.discriminant._tuning import cross_validated_path
from dubito.discriminant._wording import describe_singular, describe_wide
from dubito.discriminant.errors import SingularCovarianceWarning, WideBoxWarning

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray
    from dubito.discriminant._path import CPath

_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class ImpreciseGaussianDiscriminant(DiscriminantAnswers, ClassifierMixin, BaseEstimator):
    r"""Linear or quadratic discriminant analysis that says when it cannot tell classes apart.

    The mean of class k is known only up to a box around its sample mean, the smaller the more of
    its :math:`n_k` rows there are (see `box`). At a row x the density of each class then lies
    between those of the farthest and of the nearest mean of the box, and posteriors lie between
    `predict_bounds`. Class a is preferred to b for all means of the boxes exactly when

    .. math:: \log\pi_a+\inf\log p_a(x)>\log\pi_b+\sup\log p_b(x),

    which is the published rule, ``predict_set(X, rule="maximality")``. The published model has
    ``box="raw", shrinkage=None``; with these and c = 0 it is scikit-learn's
    `LinearDiscriminantAnalysis` (tied) or `QuadraticDiscriminantAnalysis` (full), to rounding.

    Parameters
    ----------
    covariance_type : {"tied", "full", "diag", "spherical"}, default="tied"
        One covariance for all classes, pooled within them, or one for each: all of it,
        :math:`S_k`, its diagonal, or one variance for all features, :math:`\mathrm{tr}S_k/p`.
    c : float, "auto" or array-like, default=0.75
        Imprecision: the half widths that `box` makes of it grow with it. "auto": the c of largest
        `scoring` in cross-validation among 0, 0.01, ..., 5.5, or among those listed, by the sets of
        maximality.
    box : {"inscribed", "standard_error", "scaled", "raw"}, default="inscribed"
        Half width of the boxes along feature j. With :math:`s_{kj}^2` on the diagonal of the
        covariance that class k is given and q features that vary:
        "inscribed": :math:`c\,s_{kj}/\sqrt{q\,n_k}`, the box inscribed in the ellipsoid of c
        standard errors: along any direction no mean of it is farther than c standard errors, if
        features are uncorrelated, however many they are.
        "standard_error": :math:`c\,s_{kj}/\sqrt{n_k}`, c standard errors of each coordinate by
        itself; with many features its corners are far out, and sets large.
        "scaled": :math:`c\,s_j/n_k` with the pooled standard deviation :math:`s_j` within classes,
        which shrinks faster than the error of the mean does.
        "raw": :math:`c/n_k`, as published; the sets then depend on whether lengths are in metres or
        millimetres, and a `WideBoxWarning` says where a box is wider than the spread of a feature.
    priors : array-like of shape (K,) or (K, 2), or mapping of labels, optional
        Prior probabilities of the classes, or a lower and an upper one for each, in the order of
        ``classes_``; class frequencies by default.
    prior_imprecision : float, default=0.0
        s of the imprecise Dirichlet model: priors lie between :math:`N\pi_k/(N+s)` and
        :math:`(N\pi_k+s)/(N+s)`.
    covariance_imprecision : float, default=0.0
        e: covariances lie between :math:`S/\kappa` and :math:`\kappa S` (in the order of forms),
        with :math:`\kappa=1+e/n_k` (1 + e/N if tied).
    shrinkage : None, "auto" or float in [0, 1], default="auto"
        Fraction of the average variance times the identity in each covariance, in units of the
        pooled standard deviations; "auto" follows Ledoit and Wolf. Without effect if spherical.
    tol : float, default=1e-4
        Directions whose standard deviation is not above this share of the largest, in units of the
        pooled ones, are left out of distances and determinants alike.
    divisor : {"sklearn", "unbiased", "likelihood"}, default="sklearn"
        What sums of squares are divided by: "unbiased": :math:`n_k-1`, and :math:`N-K` if tied;
        "likelihood": :math:`n_k` and :math:`N`; "sklearn": as the installed scikit-learn's
        discriminants do, the first up to version 1.9.0, the second from 1.9.1 on.
    scoring : {"u65", "u80"}, default="u65"
        What a tuned c is to make large: a set of two with the true class is worth 0.65 or 0.8.
    cv : int, splitter or iterable, optional
        Folds to tune c on; five stratified ones by default. Splits by groups come as a list,
        ``list(GroupKFold().split(X, y, groups))``.
    max_nodes : int or "auto", default="auto"
        Limit for one search of a farthest mean, in `critical_c` for those of one class together. A
        search that meets it leaves bounds and sets too wide rather than too narrow, is counted in
        ``n_unsettled_`` where that is visible, and warned of once. "auto": 1000 for up to 64
        features, beyond them less as their square grows.
    n_jobs : int, default=-1
        Threads for many rows; -1 takes all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    class_counts_ : ndarray of shape (K,)
        Rows of each class, or sums of their weights.
    means_ : ndarray of shape (K, p)
    covariance_ : ndarray
        (p, p) if tied, (K, p, p) if full, (K, p) if diag, (K,) if spherical.
    rank_ : ndarray of shape (1,) or (K,)
        Directions that each covariance kept.
    priors_ : ndarray of shape (K,)
        Those of `predict_proba`.
    prior_bounds_ : Bounds
        One row: lower and upper priors.
    c_ : float
        The imprecision used.
    half_widths_ : ndarray of shape (K, p)
        Of the boxes.
    c_path_ : CPath
        Cross-validated scores for all c, where c was tuned, up to a c beyond which none can score
        more, by u65 or u80.
    n_unsettled_ : int
        Searches cut short since `fit`.
    n_features_in_, feature_names_in_

    Notes
    -----
    The nearest mean is a convex quadratic programme, solved to its duality gap. The farthest is a
    corner of the box, which is NP-hard to find in general; branch and bound proves it, in
    microseconds where the box is small beside the spread of a class. Sets by "maximality" only
    settle comparisons and are the fastest, `predict_bounds` solves all problems to the end.

    Singular covariances: directions without spread are left out of form and determinant. If all
    classes share one covariance that only ignores what cannot be learnt. If each has its own,
    densities of classes of different rank live in spaces of different dimension: a direction that
    a class has lost counts as one of pooled spread, met at its centre, which is a convention. A
    `SingularCovarianceWarning` says so, and `shrinkage`, there by default, avoids it. A class with
    a single row takes the pooled covariance.

    How often the posteriors of the true means lie within `predict_bounds` depends on `box`. A mean
    misses its sample by :math:`1/\sqrt{n_k}`, so that boxes of :math:`1/n_k` hold it the more
    seldom the more rows there are. Boxes of c standard errors hold each coordinate of each mean
    with the normal probability of c (0.68 for 1, 0.95 for 2), however many the rows; that is no
    joint promise for all coordinates and classes, nor for posteriors, and says nothing of
    covariances and priors, which are taken as estimated. Inscribed boxes hold all of the means'
    coordinates seldom, but posteriors depend on few directions. ``docs/discriminant.md`` has
    numbers.

    c = 0.75 was chosen by u65 and u80 on digits, breast cancer and wine, with all their features
    and with 3 or 8 of them (``benchmarks/quality_discriminant.py``).

    Weights count rows: the box of a class with weights that sum to 2 is as wide as that of one
    with two rows.

    Bounds with ``covariance_imprecision`` are exact for each class; under a tied covariance, which
    the classes share, sets may be larger than need be.

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

    #: What the bounds are, for reports (`dubito._promises`).
    _bounds_meaning: ClassVar[str] = "box"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "covariance_type": [StrOptions({"tied", "full", "diag", "spherical"})],
        "c": [_NOT_NEGATIVE, StrOptions({"auto"}), "array-like"],
        "box": [StrOptions({"inscribed", "standard_error", "scaled", "raw"})],
        "priors": ["array-like", dict, None],
        "prior_imprecision": [_NOT_NEGATIVE],
        "covariance_imprecision": [_NOT_NEGATIVE],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "divisor": [StrOptions({"sklearn", "unbiased", "likelihood"})],
        "scoring": [StrOptions({"u65", "u80"})],
        "cv": ["cv_object"],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
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
        divisor: str = "sklearn",
        scoring: str = "u65",
        cv: Any = None,
        max_nodes: int | str = "auto",
        n_jobs: int | None = -1,
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
        self.max_nodes = max_nodes
        self.n_jobs = n_jobs

    c_path_: CPath

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the classes and, where it is to be tuned, c.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Counts: weight 2 is the row twice.

        Returns
        -------
        self
        """
        rows, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        labels = as_labels(y, "y")
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
        self._model = learn(rows, codes, weight, self._priors_of(counts), self._settings())
        self._publish()
        self._warn()
        return self

    def _counts(self, codes: IntArray, weight: FloatArray) -> FloatArray:
        counts = sums_of_weights(codes, weight, len(self.classes_))
        if not counts.all():
            empty = ", ".join(map(repr, self.classes_[counts == 0].tolist()))
            raise ValueError(
                f"all rows of class {empty} have weight 0; each class needs a row that counts. "
                "Drop the rows of the class, or give one of them a weight."
            )
        return counts

    def _settings(self) -> Settings:
        return Settings(
            self.covariance_type,
            self.box,
            float(self.covariance_imprecision),
            self.shrinkage,
            float(self.tol),
            self.divisor == "unbiased"
            or (self.divisor == "sklearn" and not discriminants_divide_by_rows()),
        )

    def _priors_of(self, counts: FloatArray) -> Priors:
        return Priors(
            *prior_interval(self.priors, float(self.prior_imprecision), counts, self.classes_)
        )

    def _choose_c(self, rows: FloatArray, codes: IntArray, weight: FloatArray) -> float:
        """Return c as given, or tuned."""
        if hasattr(self, "c_path_"):
            del self.c_path_  # of an earlier fit
        if isinstance(self.c, Real):
            return float(self.c)
        self.c_path_, cut = cross_validated_path(
            rows,
            codes,
            weight,
            cs=DEFAULT_CS if isinstance(self.c, str) else as_cs(self.c, "c"),
            cv=self.cv,
            priors_of=self._priors_of,
            settings=self._settings(),
            effort=self._effort(),
        )
        if cut:
            warn_unsettled(cut, self._most_nodes(), "while c was tuned")
        return best_c(self.c_path_, self.scoring)

    def _publish(self) -> None:
        """Show what was learnt under public names."""
        moments, priors = self._model.moments, self._model.priors
        self.class_counts_, self.means_ = moments.counts, moments.means
        self.covariance_, self.rank_ = moments.covariance, moments.rank
        self.priors_ = priors.precise
        self.prior_bounds_ = Bounds(priors.lower[None], priors.upper[None])
        self.half_widths_ = self._model.half_widths(self.c_)

    def _warn(self) -> None:
        model = self._model
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        said = describe_singular(model.moments, self.covariance_type, self.classes_, names)
        if said:
            warnings.warn(said, SingularCovarianceWarning, stacklevel=frames_to_the_user())
        # A tuned c is as large as it should be, whatever the units.
        if self.box == "raw" and not hasattr(self, "c_path_"):
            said = describe_wide(self.half_widths_, model.moments.spread, names)
            if said:
                warnings.warn(said, WideBoxWarning, stacklevel=frames_to_the_user())
