"""Predictions of a novelty-aware classifier: those of its estimator, wider for unfamiliar rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._models import bounds_kind, has_bounds
from dubito._validation import check_level, level_error
from dubito.base import coverage_error
from dubito.belief import Bounds, Frame, MassBatch, discount
from dubito.conformal._estimator_predictions import EstimatorPredictionMixin
from dubito.conformal.contours import coverage_sets
from dubito.conformal.detector import novelty_scores
from dubito.conformal.familiarity import familiarity_of
from dubito.conformal.p_values import check_coverage
from dubito.conformal.preparation import prepared

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray
    from dubito.decision.rules import SetRule


class NoveltyPredictionMixin(EstimatorPredictionMixin):
    """Bounds, masses and sets of ``estimator_``, discounted by the familiarity of each row."""

    classes_: npt.NDArray[Any]
    detector_: Any
    preparation_: Any
    held_out_scores_: FloatArray
    rate: float

    @property
    def _bounds_kind(self) -> str:
        """Kind of bounds, for reports: that of the estimator."""
        return bounds_kind(self._unfrozen_estimator())

    def familiarity(self, X: Any) -> FloatArray:
        """Return the p-values of the novelty of rows among held-out training rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            In (0, 1]; 0.01 means that one in a hundred ordinary rows is as novel or more.
        """
        check_is_fitted(self)
        novelty = novelty_scores(self.detector_, prepared(self.preparation_, X))
        return familiarity_of(novelty, self.held_out_scores_)

    def _discount_factor(self, X: Any) -> FloatArray:
        """Return the factor (n, 1) by which the estimator's beliefs are discounted."""
        return np.minimum(self.familiarity(X) / self.rate, 1.0)[:, None]

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return the bounds of the estimator, wider for unfamiliar rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.
        level : float, optional
            Passed on to the estimator. Wider bounds keep what it promises.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        check_is_fitted(self)
        bounds = self._estimator_bounds(X, check_level(level))
        factor = self._discount_factor(X)
        # Rounding must not narrow the bounds of rows with factor 1.
        upper = np.maximum(1.0 - factor * (1.0 - bounds.upper), bounds.upper)
        return Bounds(factor * bounds.lower, upper, bounds.level)

    def _estimator_bounds(self, X: Any, level: float | None) -> Bounds:
        """Return the estimator's bounds, of width zero where it has probabilities alone."""
        if has_bounds(self.estimator_):
            passed = {} if level is None else {"level": level}
            return self.estimator_.predict_bounds(X, **passed)
        if level is not None:
            name = type(self._unfrozen_estimator()).__name__
            raise level_error(
                self,
                f"{name} gives probabilities without bounds. Calibrate it "
                "first, as NoveltyAwareClassifier(CalibratedClassifier(model)) with an evidential "
                "calibrator, or use level=None.",
            )
        return Bounds.precise(self.estimator_.predict_proba(X))

    @available_if(lambda self: self._has_mass())
    def predict_mass(self, X: Any) -> MassBatch:
        """Return the mass functions of the estimator, discounted for unfamiliar rows.

        Probabilities without bounds are masses of single classes.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        MassBatch
        """
        check_is_fitted(self)
        if hasattr(self.estimator_, "predict_mass"):
            undiscounted = self.estimator_.predict_mass(X)
        else:
            frame = Frame(self.classes_.tolist())
            proba = Bounds.precise(self.estimator_.predict_proba(X)).lower
            undiscounted = MassBatch(frame, np.eye(len(frame), dtype=bool), proba)
        return discount(undiscounted, 1.0 - self._discount_factor(X))

    def _has_mass(self) -> bool:
        """Return whether there are masses: the estimator's, or its probabilities."""
        model = self._unfrozen_estimator()
        return hasattr(model, "predict_mass") or not has_bounds(model)

    @available_if(lambda self: hasattr(self._unfrozen_estimator(), "predict_contour"))
    def predict_contour(self, X: Any) -> FloatArray:
        r"""Return the conformal p-values of the estimator, raised for unfamiliar rows.

        :math:`1-\alpha(1-\pi_k)`, which is never below :math:`\pi_k`.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        return 1.0 - self._discount_factor(X) * (1.0 - self.estimator_.predict_contour(X))

    def predict_set(
        self,
        X: Any,
        rule: SetRule = None,
        *,
        level: float | None = None,
        coverage: float | None = None,
        **options: Any,
    ) -> BoolArray:
        """Return the classes that remain possible, more of them for unfamiliar rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` on the widened bounds, by name, or a function of them.
        level : float, optional
            The confidence level of the bounds, as in `predict_bounds`.
        coverage : float, default 0.9 where the estimator is a `ConformalClassifier`
            Its sets with this coverage, and every class whose raised p-value exceeds
            ``1 - coverage``; not with a rule. Other estimators promise no coverage.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Never an empty row; columns as in ``classes_``.
        """
        check_is_fitted(self)
        conformal = hasattr(self._unfrozen_estimator(), "predict_contour")
        if rule is None and level is None and conformal:
            estimator_sets = self.estimator_.predict_set(X, coverage=coverage, **options)
            coverage = check_coverage(coverage)
            return estimator_sets | coverage_sets(
                self.predict_contour(X), coverage, allow_empty=True
            )
        if coverage is not None and conformal:
            raise ValueError(
                "coverage was given together with rule or level: these decide by the bounds, which "
                "promise no coverage. Pass coverage alone."
            )
        if coverage is not None:
            wrapped = "NoveltyAwareClassifier(ConformalClassifier(model))"
            raise coverage_error(self._unfrozen_estimator(), wrapped)
        return super().predict_set(X, rule, level=level, **options)
