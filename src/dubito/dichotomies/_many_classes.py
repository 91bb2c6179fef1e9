"""Answers about many classes, of a tree or of several: in chunks of rows, side by side."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from dubito._validation import check_level
from dubito.base import CautiousMixin, offered_if
from dubito.belief import Bounds
from dubito.decision.rules import choose_set
from dubito.dichotomies._top import top_columns
from dubito.dichotomies._tree_model import over_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray
    from dubito.decision.rules import SetRule


#: Below this a probability has lost digits, or all of them.
_ROUNDS_TO_ZERO = 1e-300


def require_bounds(model: ManyClassesMixin) -> None:
    """Raise an AttributeError that says what to do where a model defines no bounds."""
    model._require_bounds()


def know_nothing(n: int, n_classes: int) -> FloatArray:
    """Return bounds of 0 and 1, (n, 2, K): no row could be spared to check a model on."""
    both = np.zeros((n, 2, n_classes))
    both[:, 1] = 1.0
    return both


class ManyClassesMixin(CautiousMixin):
    """`predict` and its kin, for models that give answers about a chunk of rows.

    Those are `_proba`, `_log_proba` and `_both_bounds(level, X)`, (n, 2, K), where
    `_require_bounds` lets it be asked.
    """

    if TYPE_CHECKING:
        _proba: Callable[[Any], FloatArray]
        _log_proba: Callable[[Any], FloatArray]
        _both_bounds: Callable[[float | None, Any], FloatArray]
        _require_bounds: Callable[[], None]

    classes_: npt.NDArray[Any]
    n_jobs: int | None
    #: Type of the features in the fit, and whether they were sparse.
    _features: tuple[np.dtype[Any], bool]

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
        return self._over_rows(self._proba, X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of each class.

        It is right where probabilities themselves round to zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K)
        """
        return self._over_rows(self._log_proba, X)

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
        best = self._over_rows(partial(self._top, int(k)), X)
        columns = best[:, 0].astype(np.intp)
        labels = self.classes_[columns]
        return (labels, best[:, 1]) if return_proba else labels

    def _top(self, k: int, X: Any) -> FloatArray:
        """Return columns and probabilities of the k best classes, (n, 2, k)."""
        columns, best = top_columns(self._proba(X), k)
        # Probabilities that round to 0 say nothing of the order; their logarithms do.
        deep = best[:, -1] < _ROUNDS_TO_ZERO
        if deep.any():
            columns[deep], best[deep] = top_columns(self._log_proba(X[deep]), k)
            best[deep] = np.exp(best[deep])
        return np.stack([columns, best], axis=1)

    @offered_if(require_bounds)
    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        level : float, optional
            None: products of the nodes' beliefs and plausibilities. A number in (0, 1), as 0.9:
            bounds that hold the true probability given the nodes' scores at least so often, where
            the form of the nodes' calibration maps is right. External calibrators, where they
            have bounds, are asked for theirs.

        Returns
        -------
        Bounds
            With ``lower`` and ``upper`` of shape (n, K). They hold the probability between them.
        """
        level = check_level(level)
        both = self._over_rows(partial(self._both_bounds, level), X)
        return Bounds(both[:, 0], both[:, 1], level)

    @offered_if(require_bounds)
    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the classes that remain possible, by a rule on the bounds.

        The set promises no coverage: how often it holds the label is not controlled.
        `dubito.conformal.ConformalClassifier` makes sets for which it is.

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
            Never an empty row; columns as in ``classes_``.
        """
        return choose_set(self.predict_bounds(X, level=level), rule, **options)

    def _fitted_classes(self) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return self.classes_

    def _over_rows(self, function: Callable[[Any], npt.NDArray[Any]], X: Any) -> npt.NDArray[Any]:
        """Return `function` of the rows of X as they were in the fit: dense or sparse."""
        n_classes = len(self._fitted_classes())
        dtype, was_sparse = self._features
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=dtype, **self._reading()
        )
        if was_sparse and not sp.issparse(rows):
            rows = sp.csr_array(rows)
        return over_rows(partial(_as_fitted, function, was_sparse), rows, n_classes, self.n_jobs)

    def _reading(self) -> dict[str, Any]:
        """Return how rows are read besides."""
        return {}


def _as_fitted(
    function: Callable[[Any], npt.NDArray[Any]], was_sparse: bool, X: Any
) -> npt.NDArray[Any]:
    """Call with rows as they were in the fit; only a chunk is made dense at a time."""
    return function(X.toarray() if sp.issparse(X) and not was_sparse else X)
