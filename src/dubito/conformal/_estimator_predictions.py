"""Labels and probabilities that a wrapper takes unchanged from its estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito.base import CautiousMixin

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


class EstimatorPredictionMixin(CautiousMixin):
    """Labels and probabilities of ``estimator_``."""

    estimator: Any
    estimator_: Any

    def _unfrozen_estimator(self) -> Any:
        """Return the estimator, fitted if there is one, without its FrozenEstimator."""
        model = getattr(self, "estimator_", self.estimator)
        return model.estimator if isinstance(model, FrozenEstimator) else model

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the labels that the estimator predicts.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(lambda self: hasattr(self._unfrozen_estimator(), "predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator, where it has them.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        return self._proba(X)

    def _proba(self, X: Any) -> FloatArray:
        return self.estimator_.predict_proba(X)

    @available_if(lambda self: hasattr(self._unfrozen_estimator(), "predict_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the estimator's probabilities, where it has them.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        return super().predict_log_proba(X)
