"""The public prediction methods of trees and ensembles, which work in chunks of rows."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dubito._validation import check_level
from dubito.base import CautiousMixin
from dubito.belief import Bounds
from dubito.dichotomies._calibrators import as_calibrator_input
from dubito.dichotomies._parallel import in_row_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.decision.rules import SetRule
    from dubito.dichotomies._training_rows import RowFormat

#: Smaller probabilities are near underflow and have lost digits.
_UNDERFLOW = 1e-300


def require_bounds(model: ManyClassesMixin) -> bool:
    """Return True if the model has bounds, else raise an AttributeError; for `available_if`."""
    model._require_bounds()
    return True


def vacuous_bounds(n: int, n_classes: int) -> FloatArray:
    """Return bounds of 0 and 1, (n, 2, K): no row could be held out to calibrate the model."""
    stacked = np.zeros((n, 2, n_classes))
    stacked[:, 1] = 1.0
    return stacked


class ManyClassesMixin(CautiousMixin):
    """Mixin with `predict` and similar methods, which check rows and work in chunks of them.

    The external calibrator is applied here. A subclass implements the rest for a chunk of checked
    rows: `_proba_before_external(X)` and `_log_proba_before_external(X)`, (n, K), whether or not
    there is an external calibrator, and `_bounds_without_external(X, level)`, lower and upper
    probabilities (n, 2, K), called only if there is none: products of the bounds of nodes, or
    `vacuous_bounds` where no row could be held out for a calibrator. In a single tree they call the
    methods of `_tree_model.TreeModel`, which compute the log-odds of nodes and multiply along paths
    by the formulas of `_kernels.tree_paths`.

    `_floored` is True if the user chose the external calibrator: log-probabilities are then raised
    to a floor before calibration (`as_calibrator_input`). `_require_bounds()` raises an
    AttributeError if the fitted model has no bounds, or, before `fit`, if the parameters define
    none. `_row_format` is that of the rows of the fit.
    """

    if TYPE_CHECKING:
        _proba_before_external: Callable[[Any], FloatArray]
        _log_proba_before_external: Callable[[Any], FloatArray]
        _bounds_without_external: Callable[..., FloatArray]
        _require_bounds: Callable[[], None]

    classes_: npt.NDArray[Any]
    external_: BaseCalibrator | None
    _floored: bool
    n_jobs: int | None
    _row_format: RowFormat

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.predict_topk(X, 1)[:, 0]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K)
            Rows sum to 1; columns as in ``classes_``. A row does not depend on the others.
        """
        return self._in_chunks(self._proba, X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of each class.

        It is exact where probabilities underflow to 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K)
        """
        return self._in_chunks(self._log_proba, X)

    def predict_topk(self, X: Any, k: Any, *, return_proba: bool = False) -> Any:
        """Return the k most probable classes of each row, the most probable first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        k : int
            From 1 to the number of classes. Of classes that tie, those first in ``classes_``.
        return_proba : bool, default=False
            Whether to return their probabilities as well.

        Returns
        -------
        labels : ndarray of shape (n, k)
        proba : ndarray of shape (n, k)
            Only with `return_proba`.
        """
        n_classes = len(self._fitted_classes())
        if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= n_classes:
            raise ValueError(
                f"k must be a whole number from 1 to {n_classes}, the number of classes; got {k!r}."
            )
        best = self._in_chunks(partial(self._top, k=int(k)), X)
        columns = best[:, 0].astype(np.intp)
        labels = self.classes_[columns]
        return (labels, best[:, 1]) if return_proba else labels

    def _top(self, X: Any, k: int) -> FloatArray:
        """Return columns and probabilities of the k most probable classes, (n, 2, k)."""
        columns, best = _top_columns(self._proba(X), k)
        # Probabilities that underflow to 0 have no order; their logarithms have.
        tiny = best[:, -1] < _UNDERFLOW
        if tiny.any():
            columns[tiny], best[tiny] = _top_columns(self._log_proba(X[tiny]), k)
            best[tiny] = np.exp(best[tiny])
        return np.stack([columns, best], axis=1)

    @available_if(require_bounds)
    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        level : float, optional
            None: belief and plausibility. A number in (0, 1), such as 0.9: bounds that contain the
            true probability of a class, given the scores, with about this frequency, if the form
            of the calibration maps is right. With an external calibrator they are its bounds,
            otherwise products of the bounds of nodes.

        Returns
        -------
        Bounds
            With ``lower`` and ``upper`` of shape (n, K), which contain the probability.
        """
        level = check_level(level)
        stacked = self._in_chunks(partial(self._stacked_bounds, level=level), X)
        return Bounds(stacked[:, 0], stacked[:, 1], level)

    @available_if(require_bounds)
    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the classes that remain possible, by a rule on the bounds.

        The sets have no guaranteed coverage; those of `dubito.conformal.ConformalClassifier` have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` by name, or a function of the bounds.
        level : float, optional
            The confidence level of the bounds, as in `predict_bounds`. It is not that of the set.
        **options
            Passed on to the rule, as in ``loss=L``.

        Returns
        -------
        ndarray of bool, shape (n, K)
            No row is empty; columns as in ``classes_``.
        """
        return super().predict_set(X, rule, level=level, **options)

    def _proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for a chunk of checked rows, (n, K)."""
        if self.external_ is None:
            return self._proba_before_external(X)
        return self.external_.predict_proba(self._external_input(self.external_, X))

    def _log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each class for a chunk of checked rows, (n, K)."""
        if self.external_ is None:
            return self._log_proba_before_external(X)
        return self.external_.predict_log_proba(self._external_input(self.external_, X))

    def _stacked_bounds(self, X: Any, level: float | None) -> FloatArray:
        """Return lower and upper probabilities for a chunk of checked rows, (n, 2, K)."""
        if self.external_ is None:
            return self._bounds_without_external(X, level)
        scores = self._external_input(self.external_, X)
        return np.stack([*self.external_.predict_bounds(scores, level=level)], axis=1)

    def _external_input(self, external: BaseCalibrator, X: Any) -> FloatArray:
        """Return log-probabilities of rows in the form that the external calibrator takes."""
        log_proba = self._log_proba_before_external(X)
        return as_calibrator_input(external, log_proba, floored=self._floored)

    def _fitted_classes(self) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return self.classes_

    def _in_chunks(self, function: Callable[[Any], npt.NDArray[Any]], X: Any) -> npt.NDArray[Any]:
        """Return `function(X)`, called with chunks of checked rows, dense or sparse as in `fit`."""
        n_classes = len(self._fitted_classes())
        dtype, was_sparse, ensure_all_finite = self._row_format
        rows = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=dtype,
            ensure_all_finite=ensure_all_finite,
        )
        if was_sparse and not sp.issparse(rows):
            rows = sp.csr_array(rows)
        function = partial(_as_fitted, function, was_sparse)
        return in_row_chunks(function, rows, n_classes, self.n_jobs)


def _as_fitted(
    function: Callable[[Any], npt.NDArray[Any]], was_sparse: bool, X: Any
) -> npt.NDArray[Any]:
    """Return the function's result for a chunk of rows, made dense if the rows of the fit were."""
    return function(X.toarray() if sp.issparse(X) and not was_sparse else X)


def _top_columns(values: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Return columns and values of the k largest values of each row, the largest first.

    Of equal values the earlier column comes first.
    """
    from dubito.dichotomies._kernels.top_classes_compiled import top_of_rows  # noqa: PLC0415 - loads numba

    best, columns = np.empty((len(values), k)), np.empty((len(values), k), dtype=np.int64)
    top_of_rows(np.ascontiguousarray(values), best, columns)
    return columns, best
