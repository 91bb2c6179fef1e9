"""`EvidentialClassifier`: the evidence behind the predictions of a scikit-learn classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dubito._compat import HasMethods, StrOptions, check_feature_names, fit_context
from dubito._meta_estimators import (
    fitted_copy,
    read_rows,
    read_unlabelled_rows,
    weight_parameters,
)
from dubito._validation import NotSupportedError, check_level, level_error
from dubito._wording import counted, name_some
from dubito.base import CautiousMixin
from dubito.evidence._classifier_fit import (
    mean_features,
    unfreeze,
    warn_of_other_probabilities,
)
from dubito.evidence._layers import read_last_layer, refuse_unreadable
from dubito.evidence.explanation import Explanation
from dubito.evidence.input_columns import input_columns, shown_values
from dubito.evidence.model import EvidenceModel

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray
    from dubito.belief import Bounds, MassBatch


#: Rows on which the probabilities of the evidence are compared with the model's own.
_ROWS_COMPARED = 100


class EvidentialClassifier(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier with the evidence behind its predictions: masses, bounds, conflict, ignorance.

    The features that enter the last linear layer are pieces of evidence for and against each
    class, which Dempster's rule combines. The layer's probabilities are the normalised
    plausibilities of the result (Denœux 2019); belief and plausibility also show whether doubt is
    lack of evidence or conflict.

    Parameters
    ----------
    estimator : classifier or FrozenEstimator
        `LogisticRegression`, `LogisticRegressionCV`, ``SGDClassifier(loss="log_loss")``,
        `LinearDiscriminantAnalysis`, or `MLPClassifier`, whose features are the outputs of its last
        hidden layer, also within temperature scaling; `LinearSVC`, `RidgeClassifier` and other
        linear classifiers in a `CalibratedClassifier` with a linear calibrator (such as
        `VectorCalibrator`), or in ``CalibratedClassifierCV(ensemble=False)``; and pipelines and
        searches that end in one of them, whose features are the outputs of their transformers. A
        fitted one is given as ``FrozenEstimator(model)``: it is not fitted again, and `fit` only
        computes the means of the features, preferably on the rows it was trained on.
    groups : {"input"} or sequence of labels, optional
        Which features form one piece of evidence. By default each by itself, as in the paper.
        "input": all features computed from one input column, as the splines of a generalised
        additive model or the columns of a one-hot encoding. Labels: features with the same label.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    estimator_ : classifier
        The fitted estimator.
    model_ : EvidenceModel
        Its last layer.
    piece_names_ : list of str
        Names of the pieces of evidence.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    EvidenceModel : The same for the coefficients of any linear layer.

    Notes
    -----
    One-vs-rest models of more than two classes (`SGDClassifier`, or sigmoids of `PlattCalibrator`
    and `CalibratedClassifierCV`) have one output for each class. Here ``predict_proba`` is the
    softmax of the outputs, the normalised plausibility of their evidence; the model's own
    ``predict_proba`` divides sigmoids by their sum. The most probable class is the same, its
    probability is not, and an `OneVsRestWarning` is issued. Calibrators with a softmax
    (temperature, vector, matrix scaling) have no such difference.

    The intercept is divided equally among all features (Denœux 2019, Prop. 2), also those whose
    coefficients are zero. Leave out features that the model does not use, such as a constant
    column or those that an L1 penalty set to zero: their part of the intercept would count as
    evidence.

    ``lower <= predict_proba <= upper`` always holds. For two classes the bounds are belief and
    plausibility. For more the belief may exceed the probability, since a normalised plausibility
    need not lie between belief and plausibility: there ``lower`` is the probability. The belief
    is that of `predict_mass` and, for any number of classes, of ``model_.bounds(ev.features(X))``.
    Rules on the bounds may thus give larger sets than rules on `predict_mass`; neither has
    guaranteed coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito.evidence import EvidentialClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([45, 5], [12, 1.5], size=(200, 2))
    >>> risk = 0.1 * (X[:, 0] - 45) + 0.5 * (X[:, 1] - 5) + rng.logistic(size=200)
    >>> y = np.where(risk > 0, "ill", "well")
    >>> ev = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    >>> bounds = ev.predict_bounds([[60, 4.0], [60, 8.0]])
    >>> bounds.lower.round(2)
    array([[0.7 , 0.13],
           [0.96, 0.  ]])
    >>> ev.conflict([[60, 4.0], [60, 8.0]]).round(2)
    array([0.36, 0.  ])
    >>> ev.predict_set([[47, 5.0]])
    array([[ True,  True]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "groups": [StrOptions({"input"}), "array-like", None],
    }

    def __init__(self, estimator: Any, *, groups: str | npt.ArrayLike | None = None) -> None:
        self.estimator = estimator
        self.groups = groups

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator, unless frozen, and compute the means of its features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, features)
        y : array-like of shape (n,)
            A frozen estimator needs none.
        sample_weight : array-like of shape (n,), optional
            Used for the means, and by the estimator, or the steps of a pipeline, that accept
            sample weights; a warning is issued where none does.

        Returns
        -------
        self
        """
        refuse_unreadable(self.estimator)
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_ = unfreeze(self.estimator, y)
            X, weight = read_unlabelled_rows(X, sample_weight)
        else:
            X, labels, weight = read_rows(self, X, y, sample_weight)
            other_use = "the means of the features"
            parameters = weight_parameters(self.estimator, weight, instead=other_use)
            self.estimator_ = fitted_copy(self.estimator, X, labels, weight, parameters)
            refuse_unreadable(self.estimator_)  # again: a search may have chosen another model
        self.classes_ = self.estimator_.classes_
        if np.ndim(X) == 2:
            check_feature_names(self, X, reset=True)
            self.n_features_in_ = np.shape(X)[1]
        self._layer = read_last_layer(self.estimator_)
        self._layer.check_outputs(len(self.classes_))
        phi = self._layer.features(X)
        self._columns = self._input_columns(X)
        self.model_ = EvidenceModel(
            self._layer.coef,
            self._layer.intercept,
            mean_features(phi, weight),
            classes=self.classes_,
            groups=self._groups(),
        )
        self.piece_names_ = self._name_pieces(X)
        warn_of_other_probabilities(self.estimator_, X, self.model_.proba(phi[:_ROWS_COMPARED]))
        return self

    def _input_columns(self, X: Any) -> list[int | None]:
        """Return the input column that each feature is computed from, None if several or none."""
        n_features = self._layer.coef.shape[1]
        if self._layer.is_hidden or np.ndim(X) < 2:  # texts have no columns
            return [None] * n_features
        return input_columns(self._layer.transformer, np.shape(X)[1], n_features)

    def _groups(self) -> Any:
        """Return for each feature the label of its piece of evidence, None for one piece each."""
        if not isinstance(self.groups, str):
            return self.groups
        if all(column is None for column in self._columns):
            raise NotSupportedError(
                'groups="input" joins the features that come from one input column; of the '
                f"{counted(len(self._columns), 'feature')} here none does, as far as is known. "
                "Leave groups out, or pass a label for each feature."
            )
        return [
            f"feature {j}" if column is None else f"column {column}"
            for j, column in enumerate(self._columns)
        ]

    def _name_pieces(self, X: Any) -> list[str]:
        unnamed = [f"x{j}" for j in range(np.shape(X)[1] if np.ndim(X) == 2 else 0)]
        inputs = [str(name) for name in getattr(self, "feature_names_in_", unnamed)]
        features = self._layer.names(inputs)
        if self.groups is None:
            return features
        if not isinstance(self.groups, str):
            return [str(piece) for piece in self.model_.pieces]
        columns = [self._columns[members[0]] for members in self.model_.members]
        return [
            features[members[0]] if column is None else inputs[column]
            for members, column in zip(self.model_.members, columns, strict=True)
        ]

    def features(self, X: Any) -> Any:
        """Return the features that enter the last layer, an array or sparse matrix (n, J)."""
        check_is_fitted(self)  # other methods call this before they use `model_`
        return self._layer.features(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the last layer, (n, K): the normalised plausibilities."""
        phi = self.features(X)
        return self.model_.proba(phi)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities, accurate also where these underflow to 0."""
        phi = self.features(X)
        return self.model_.log_proba(phi)

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class, for any number of classes.

        Parameters
        ----------
        X : array-like or sparse matrix
            As in `fit`.
        level : None
            No confidence level is supported: weights of evidence measure the evidence in the
            features, not the uncertainty of the fit.

        Returns
        -------
        Bounds
            Of shape (n, K): the smaller of belief and probability (with two classes always the
            belief), and the plausibility.
        """
        if check_level(level) is not None:
            raise level_error(
                self,
                "weights of evidence measure how much the features say, not how far the fit may "
                "be off. Use CalibratedClassifier with an evidential calibrator, or level=None.",
            )
        phi = self.features(X)
        return self.model_._bounds_around_proba(phi)

    def predict_mass(self, X: Any) -> MassBatch:
        """Return the mass functions that combine all evidence, dense, for up to 20 classes."""
        phi = self.features(X)
        return self.model_.mass(phi)

    def piece_mass(self, X: Any, piece: int | str) -> MassBatch:
        """Return the mass functions of one piece of evidence alone, dense, for up to 20 classes.

        `piece` is its index, or its name in ``piece_names_``.
        """
        phi = self.features(X)
        return self.model_.piece_mass(phi, self._piece_number(piece))

    def _piece_number(self, piece: int | str) -> int:
        if not isinstance(piece, str):
            return piece
        if piece not in self.piece_names_:
            shown = name_some(self.piece_names_, show=str, rest=", ...")
            raise ValueError(f"there is no piece of evidence {piece!r}; there are {shown}")
        return self.piece_names_.index(piece)

    def weights(self, X: Any) -> FloatArray:
        """Return the weights of evidence, (n, pieces, K), as `EvidenceModel.weights`."""
        phi = self.features(X)
        return self.model_.weights(phi)

    def totals(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return the total weights of evidence for and against each class, (n, K) each."""
        phi = self.features(X)
        return self.model_.totals(phi)

    def conflict(self, X: Any) -> FloatArray:
        """Return the degree of conflict of the evidence, (n,); see `conflict_from_weights`."""
        phi = self.features(X)
        return self.model_.conflict(phi)

    def ignorance(self, X: Any) -> FloatArray:
        """Return the mass of the whole frame, (n,); see `ignorance_from_weights`."""
        phi = self.features(X)
        return self.model_.ignorance(phi)

    def explain(self, X: Any) -> Explanation:
        """Return the evidence behind predictions, as a table and in words.

        It stores the weights of all rows, so pass few of them.
        """
        phi = self.features(X)
        return Explanation(
            weights=self.model_.weights(phi),
            names=self.piece_names_,
            classes=self.classes_,
            values=shown_values(
                X, phi, self.model_.members, self._columns, getattr(self, "feature_names_in_", None)
            ),
            rows=getattr(X, "index", None) if hasattr(X, "iloc") else None,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
