"""A classifier that declines rows where naming a class is expected to cost more."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._compat import HasMethods, Interval, StrOptions, fit_context
from dubito._labels import as_labels, label_columns
from dubito._meta_estimators import copy_feature_names, fitted_copy, read_rows, weight_parameters
from dubito._models import bounds_kind, has_bounds, inner_model, inner_model_and_rows, log_proba
from dubito._validation import (
    NotSupportedError,
    check_choice,
    check_rows_match,
    check_sample_weight,
)
from dubito.base import add_bounds_tag
from dubito.decision import reject
from dubito.decision.rejection import CHOICES, STRATEGIES
from dubito.decision.risk import as_loss, loss_in_class_order
from dubito.pipeline._inner_methods import InnerMethodsMixin

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dubito._typing import AnyArray, BoolArray, FloatArray, IntArray
    from dubito.belief import Bounds
    from dubito.decision.rules import SetRule


def _estimator_has(name: str) -> Callable[[RejectClassifier], Any]:
    """Return the condition of `available_if`: the estimator has the method."""
    return lambda outer: getattr(inner_model(outer._inner_estimator()), name)


class RejectClassifier(InnerMethodsMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier that declines the rows for which declining is expected to cost less.

    The acts are to name one of the K classes or to decline. With the loss :math:`L(a, k)` of act a
    when class k is true, `predict` chooses the act of least risk: the expected loss under the
    pignistic probability, or the upper or lower expectation under the bounds (Minary et al. 2017,
    2.1). A tie between a class and declining goes to the class. Methods of the estimator such as
    `predict_bounds`, `familiarity` and `explain` are here too, where it has them.

    Parameters
    ----------
    estimator : classifier or FrozenEstimator
        With `predict_bounds` or `predict_proba`. Pass a fitted one as ``FrozenEstimator(model)``.
    cost : float, default 0.2
        Cost of declining a row, on the scale of the loss; without `loss` an error costs 1.
    loss : array-like of shape (K, K) or (K + 1, K), optional
        Loss of each act (rows) when each class is true (columns, as in ``classes_``); by default 0
        for the right class and 1 for a wrong one. A last row K + 1 is the loss of declining and
        takes the place of `cost`. The columns of a data frame are named after the classes, in any
        order, and so may be its rows.
    strategy : {"pignistic", "pessimistic", "optimistic", "probabilistic"}, default "pignistic"
        Which risk counts, as in `dubito.decision.reject`. "probabilistic" uses `predict_proba`
        even where there are bounds; models without bounds use it for every strategy.
    reject_label : label, default None
        What `predict` returns for declined rows; not a class. With None the array is of type
        object, which scikit-learn's metrics do not take: for them use a label of the type of the
        classes.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (K,)
    n_features_in_, feature_names_in_
        As in scikit-learn, where the estimator has them.

    See Also
    --------
    dubito.decision.reject : The same rule on bounds, masses or probabilities.
    dubito.plots.ErrorRejectDisplay : Errors and declined rows at every cost.

    References
    ----------
    P. Minary, F. Pichon, D. Mercier, E. Lefevre and B. Droit, "Evidential joint calibration of
    binary SVM classifiers using logistic regression", SUM 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito import RejectClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> linear = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = RejectClassifier(linear, cost=0.1).fit(X[::2], y[::2])
    >>> model.predict(X[37:51:2])
    array([1, None, None, 0, 0, 0, None], dtype=object)
    >>> round(model.decision_cost(X[1::2], y[1::2]), 3)
    0.025

    Class 0 is malignant. Missing it costs ten, a false alarm one, a second look a half:

    >>> loss = [[0, 1], [10, 0], [0.5, 0.5]]
    >>> careful = RejectClassifier(linear, loss=loss, reject_label=-1).fit(X[::2], y[::2])
    >>> careful.predict(X[37:51:2])
    array([ 1,  0, -1,  0,  0,  0, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "cost": [Interval(Real, 0, None, closed="left")],
        "loss": ["array-like", None],
        "strategy": [StrOptions(set(STRATEGIES))],
        "reject_label": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cost: float = 0.2,
        loss: npt.ArrayLike | None = None,
        strategy: str = "pignistic",
        reject_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.loss = loss
        self.strategy = strategy
        self.reject_label = reject_label

    def _inner_estimator(self) -> Any:
        """Return the fitted estimator, or before `fit` the parameter."""
        return getattr(self, "estimator_", self.estimator)

    def _inner_estimator_and_rows(self, X: Any) -> tuple[Any, Any]:
        """Return the fitted estimator and the rows."""
        return self.estimator_, X

    @property
    def _bounds_kind(self) -> str:
        """Kind of bounds, for reports: that of the estimator."""
        return bounds_kind(self._inner_estimator())

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator, unless it is frozen.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, features), or what the estimator reads
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Passed to the estimator, or to the steps of a pipeline.

        Returns
        -------
        self
        """
        X, labels, weight = read_rows(self, X, y, sample_weight)
        parameters = weight_parameters(self.estimator, weight, instead=None)
        self.estimator_ = fitted_copy(self.estimator, X, labels, weight, parameters)
        _refuse_unknown_risk(inner_model(self.estimator_), self.strategy)
        self.classes_ = as_labels(self.estimator_.classes_, "classes_")
        label_columns(labels, len(self.classes_), self.classes_)  # a frozen model has its own
        self._check_reject_label()
        self._loss_matrix()  # a wrong shape is an error now, not at the first prediction
        copy_feature_names(self, self.estimator_)
        return self

    def _check_reject_label(self) -> None:
        """Raise an error unless the label of declined rows is a single value and no class."""
        if not isinstance(self.reject_label, Hashable):
            raise TypeError(
                "reject_label must be a single label, such as a text or a number; got an object of "
                f"type {type(self.reject_label).__name__}."
            )
        try:
            is_class = self.reject_label in self.classes_.tolist()
        except TypeError:  # pandas.NA is neither equal nor unequal to a label
            is_class = False
        if is_class:
            raise ValueError(
                f"reject_label={self.reject_label!r} is one of the classes, so declined rows could "
                "not be told from predicted ones. Choose another label."
            )

    def _loss_matrix(self) -> FloatArray | None:
        """Return the loss with rows and columns in class order, or None; refuse other shapes."""
        if self.loss is None:
            return None
        n_classes = len(self.classes_)
        loss = as_loss(loss_in_class_order(self.loss, self.classes_.tolist()), n_classes)
        if len(loss) not in {n_classes, n_classes + 1}:
            raise ValueError(
                f"loss must have {n_classes} rows, one for naming each class, or "
                f"{n_classes + 1}, the last one for declining; got shape {loss.shape}."
            )
        return loss

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each row, or `reject_label` where declining costs less.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Of type object where `reject_label` is not of the type of the classes.
        """
        acts = self._acts(X)
        return self._act_labels()[acts]

    def _act_labels(self) -> AnyArray:
        """Return the labels of all acts: the classes, then `reject_label`."""
        declined = np.asarray(self.reject_label)
        if declined.ndim == 0 and declined.dtype.kind == self.classes_.dtype.kind:
            return np.append(self.classes_, declined)
        labels = np.empty(len(self.classes_) + 1, dtype=object)
        labels[:-1], labels[-1] = self.classes_, self.reject_label
        return labels

    def _acts(self, X: Any) -> IntArray:
        """Return the number of the chosen act of each row; K is to decline."""
        check_is_fitted(self)
        check_choice(self.strategy, "strategy", STRATEGIES)
        belief, loss, n_classes = self._belief(X), self._loss_matrix(), len(self.classes_)
        acts = CHOICES[self.strategy](belief, loss)
        if loss is None or len(loss) == n_classes:
            acts[reject(belief, self.cost, self.strategy, loss=loss)] = n_classes
        return acts

    def _belief(self, X: Any) -> Bounds | FloatArray:
        """Return what the strategy compares: the bounds of the rows, or their probabilities."""
        inner, rows = inner_model_and_rows(self.estimator_, X)
        if has_bounds(inner) and self.strategy != "probabilistic":
            return inner.predict_bounds(rows)
        return inner.predict_proba(rows)

    def decision_cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean cost per row of what `predict` decides: losses, and declined rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        acts = self._acts(X)
        labels = as_labels(y, "y")
        check_rows_match("X", len(acts), "y", len(labels))
        weight = check_sample_weight(sample_weight, len(acts))
        return float(np.average(self._losses(acts, labels), weights=weight))

    def _losses(self, acts: IntArray, labels: AnyArray) -> FloatArray:
        """Return the loss of each act, given the true label."""
        loss, n_classes = self._loss_matrix(), len(self.classes_)
        if loss is None:
            return np.where(
                acts == n_classes, self.cost, acts != self._columns_or_minus_one(labels)
            )
        if len(loss) == n_classes:
            loss = np.vstack([loss, np.full(n_classes, self.cost)])
        return loss[acts, label_columns(labels, n_classes, self.classes_)]

    def _columns_or_minus_one(self, labels: AnyArray) -> IntArray:
        """Return the column of each label, -1 for one that was not in the fit.

        Naming any class is wrong there. Labels of which none was in the fit raise an error.
        """
        classes = set(self.classes_.tolist())
        known = np.array([label in classes for label in labels.tolist()], dtype=bool)
        if not known.any():
            return label_columns(labels, len(classes), self.classes_)
        columns = np.full(len(labels), -1)
        columns[known] = label_columns(labels[known], len(classes), self.classes_)
        return columns

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the `decision_cost`, so that searches look for the cheapest decisions.

        Search over `strategy` or the estimator's parameters, not over `cost` or `loss`: they state
        what decisions cost, and the cheapest statement is that declining costs nothing.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        return -self.decision_cost(X, y, sample_weight)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator, (n, K)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_estimator_has("predict_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the estimator's probabilities, (n, K)."""
        check_is_fitted(self)
        return log_proba(self.estimator_, X)

    @available_if(_estimator_has("predict_bounds"))
    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return the bounds of the estimator, as its `predict_bounds` does."""
        check_is_fitted(self)
        inner, rows = inner_model_and_rows(self.estimator_, X)
        return inner.predict_bounds(rows, level=level)

    @available_if(_estimator_has("predict_set"))
    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the sets of classes of the estimator, as its `predict_set` does."""
        check_is_fitted(self)
        inner, rows = inner_model_and_rows(self.estimator_, X)
        return inner.predict_set(rows, rule, level=level, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return add_bounds_tag(tags, hasattr(self, "predict_bounds"))


def _refuse_unknown_risk(model: Any, strategy: str) -> None:
    """Raise an error for a fitted model that lacks classes, or the outputs a strategy needs."""
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise TypeError(f"RejectClassifier needs a classifier; {name} has no classes_ after fit.")
    if not (has_bounds(model) or hasattr(model, "predict_proba")):
        raise NotSupportedError(
            f"{name} has neither predict_bounds nor predict_proba, so the risk of its predictions "
            f"is unknown. Calibrate it: RejectClassifier(CalibratedClassifier({name}(...)))."
        )
    if strategy == "probabilistic" and not hasattr(model, "predict_proba"):
        raise NotSupportedError(
            f'strategy="probabilistic" decides by predict_proba, which {name} has not. Use another '
            "strategy, which decides by its bounds."
        )
