"""Predictions of a fitted discriminant: posteriors, bounds, sets and critical c.

Sets are by default those of interval dominance on the bounds on posteriors (`posterior_bounds`).
Maximality compares the classes on the model instead, without bounds: by `maximal_classes` for 0/1
loss, by `maximal_acts` for other losses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from dubito._labels import as_labels, label_columns
from dubito._validation import check_level, check_rows_match, check_sample_weight, level_error
from dubito.base import CautiousMixin
from dubito.belief import Bounds
from dubito.decision.risk import as_loss, loss_in_class_order
from dubito.discriminant._kernels.posterior import maximal_acts, posterior_bounds
from dubito.discriminant._kernels.row_searches import SearchLimits, critical_c, maximal_classes
from dubito.discriminant.errors import warn_of_unsettled
from dubito.discriminant.tuning import DEFAULT_CS, CPath, as_cs, set_measures

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray
    from dubito.decision.rules import SetRule
    from dubito.discriminant._fitted_model import GaussianModel, LogDensityBounds

#: Limit on the subproblems of one search with up to this many features; less with more.
MAX_SUBPROBLEMS, FEW_FEATURES = 1000, 64


class DiscriminantPredictionMixin(CautiousMixin):
    """Predictions of a fitted model whose means lie in boxes of imprecision ``c_``."""

    _model: GaussianModel
    classes_: npt.NDArray[Any]
    c_: float
    n_unsettled_: int
    n_features_in_: int
    max_subproblems: int | str
    n_jobs: int | None

    def _search_limits(self) -> SearchLimits:
        if isinstance(self.max_subproblems, str):  # "auto": a subproblem costs at least p²
            fraction = min(1.0, FEW_FEATURES / self.n_features_in_) ** 2
            limit = max(1, round(MAX_SUBPROBLEMS * fraction))
        else:
            limit = int(self.max_subproblems)
        return SearchLimits(limit, effective_n_jobs(self.n_jobs))

    def _rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        # Read-only arrays are another type to numba: it would compile the kernels again.
        return np.require(rows, requirements=["C", "W"])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log posteriors at the sample means, whatever c is.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K)
        """
        rows = self._rows(X)
        return np.asarray(log_softmax(self._model.log_joint(rows), axis=1))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posteriors at the sample means, whatever c is.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.exp(self.predict_log_proba(X))

    def log_density_bounds(self, X: Any) -> LogDensityBounds:
        """Return the logarithms of the smallest and largest density of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        LogDensityBounds
            ``lower`` and ``upper``, each (n, K). They do not depend on the priors.
        """
        rows = self._rows(X)
        bounds, n_unsettled = self._model.log_density_bounds(rows, self.c_, self._search_limits())
        self._count_unsettled(n_unsettled)
        return bounds

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper posteriors of the classes.

        Parameters
        ----------
        X : array-like of shape (n, p)
        level : None
            Only None: the width of the bounds follows from `c`, not from a confidence level. With
            the default box, its corners are c standard errors from the sample mean.

        Returns
        -------
        Bounds
            Smallest and largest posterior of each class over all means in the boxes, priors and
            covariances.
        """
        self._refuse_level(level)
        lower, upper = self.log_density_bounds(X)
        return Bounds._trusted(*posterior_bounds(lower, upper, self._model.priors))

    def _refuse_level(self, level: float | None) -> None:
        if check_level(level) is not None:
            raise level_error(
                self,
                "its bounds are as wide as the boxes of the class means, which c sets. Ask for "
                "level=None (by default the boxes lie within c standard errors of the means), or "
                "calibrate it by CalibratedClassifier, whose bounds have levels.",
            )

    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return sets of classes by a decision rule on the bounds.

        The sets have no guaranteed coverage; those of `dubito.conformal.ConformalClassifier` have.

        Parameters
        ----------
        X : array-like of shape (n, p)
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` by name ("interval_dominance", "maximality",
            "e_admissibility", "weak_dominance", "set_utility") or a function of the bounds.
            "maximality" is the published rule: it compares the classes, or with ``loss=`` any acts,
            on the model's own means, covariances and priors, which is sharper than a comparison of
            the bounds. Its sets are those of `critical_c` and `c_path`, subsets of the default ones
            (equal for two classes), and are computed without the bounds, which is faster.
        level : None
            As in `predict_bounds`.
        **options
            ``loss=L``, (acts, K), or other options of the rule.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Never an empty row; columns as in ``classes_``. With a ``loss`` of other acts than
            naming a class: (n, acts).
        """
        if not (isinstance(rule, str) and rule == "maximality"):
            return super().predict_set(X, rule, level=level, **options)
        self._refuse_level(level)
        loss = options.pop("loss", None)
        if options:
            raise TypeError(f"rule 'maximality' takes loss= alone; got {', '.join(options)}.")
        return self._maximal(X, loss)

    def _maximal(self, X: Any, loss: npt.ArrayLike | None) -> BoolArray:
        check_is_fitted(self)
        if loss is not None:
            ordered = loss_in_class_order(loss, self.classes_.tolist())
            matrix = as_loss(ordered, len(self.classes_))
            return maximal_acts(*self.log_density_bounds(X), self._model.priors, matrix)
        rows, limits = self._rows(X), self._search_limits()
        sets, n_unsettled = maximal_classes(self._model.boxed, rows, self.c_, limits)
        self._count_unsettled(n_unsettled)
        return sets

    def critical_c(self, X: Any, max_c: float = np.inf) -> FloatArray:
        """Return the smallest imprecision c at which each class belongs to the set.

        Sets grow with c: class k belongs to the set of row i, by maximality and 0/1 loss, for all c
        from ``critical_c(X)[i, k]`` on. The larger the value, the less plausible the class.

        Parameters
        ----------
        X : array-like of shape (n, p)
        max_c : float, default=inf
            Larger values are reported as inf, which saves time.

        Returns
        -------
        ndarray of shape (n, K)
            0 for classes in the set at c = 0; inf for those that never enter, or beyond `max_c`.
        """
        rows = self._rows(X)
        if not max_c >= 0:  # also False for nan
            raise ValueError(f"max_c must be a number that is not negative. Got {max_c!r} instead.")
        limits = self._search_limits()
        critical, n_unsettled = critical_c(self._model.boxed, rows, float(max_c), limits)
        self._count_unsettled(n_unsettled)
        return critical

    def c_path(
        self,
        X: Any,
        y: npt.ArrayLike,
        cs: npt.ArrayLike | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
    ) -> CPath:
        """Return measures of the sets for many imprecisions c, from one pass of `critical_c`.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n,)
            True classes.
        cs : array-like, optional
            Imprecisions; 0, 0.01, ..., 5.5 by default.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        CPath
            ``c``, ``u65``, ``u80``, ``mean_set_size`` and ``coverage``, arrays over the c.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> path = ImpreciseGaussianDiscriminant().fit(X, y).c_path(X, y, [0, 1, 3])
        >>> path.mean_set_size.round(3)
        array([1.   , 1.007, 1.087])
        """
        given = DEFAULT_CS if cs is None else np.atleast_1d(np.asarray(cs))
        grid = as_cs(given, "cs")
        critical = self.critical_c(X, max_c=float(grid[-1]))
        codes = label_columns(as_labels(y, "y"), len(self.classes_), self.classes_)
        check_rows_match("y", len(codes), "X", len(critical))
        weight = check_sample_weight(sample_weight, len(codes))
        path = set_measures(critical, codes, weight, grid)
        as_given = np.searchsorted(grid, given)
        return CPath(*(column[as_given] for column in path))

    def _count_unsettled(self, n_unsettled: int) -> None:
        """Add to the count of unsettled searches, and warn the first time."""
        if n_unsettled == 0:
            return
        if self.n_unsettled_ == 0:
            limit = self._search_limits().max_subproblems
            warn_of_unsettled(n_unsettled, limit, "(n_unsettled_ goes on counting)")
        self.n_unsettled_ += n_unsettled
