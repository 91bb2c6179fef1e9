"""scikit-learn's pipeline with bounds, label sets and the other methods of its last step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if

from dubito._models import bounds_kind, has_bounds, inner_model
from dubito.base import add_bounds_tag
from dubito.pipeline._inner_methods import InnerMethodsMixin, inner_method

if TYPE_CHECKING:
    from dubito._typing import FloatArray


class CautiousPipeline(InnerMethodsMixin, Pipeline):
    """scikit-learn's Pipeline, with the methods of its last step beyond `predict_proba`.

    A plain Pipeline has no `predict_bounds`, `predict_set` or `explain`. This one transforms the
    rows and calls the last step; methods that the last step does not have are absent here too. All
    else, such as parameters, slices and searches, is scikit-learn's.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and a model of dubito (or any classifier, or a search for one) as the last
        step.
    transform_input : list of str, optional
        As in `sklearn.pipeline.Pipeline`.
    memory : str or object, optional
        As in `sklearn.pipeline.Pipeline`.
    verbose : bool, default False
        As in `sklearn.pipeline.Pipeline`.

    See Also
    --------
    make_cautious_pipeline : Names the steps by their classes.

    Notes
    -----
    `explain` is about the columns that reach the last step. For explanations in the columns before
    the transformers, put the pipeline inside the model:
    ``EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression()))``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> from dubito.pipeline import CautiousPipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = [("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=3))]
    >>> model = CautiousPipeline(steps).fit(X, y)
    >>> model.predict_set(X[[0, 70]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    predict_bounds = inner_method("predict_bounds", "lower and upper probabilities")
    predict_set = inner_method("predict_set", "the classes that remain possible")
    decision_cost = inner_method("decision_cost", "the mean cost per row of what it decides")

    def _inner_estimator(self) -> Any:
        """Return the last step."""
        return self.steps[-1][1]

    def _inner_estimator_and_rows(self, X: Any) -> tuple[Any, Any]:
        """Return the last step and the transformed rows."""
        return self._inner_estimator(), self[:-1].transform(X) if len(self.steps) > 1 else X

    @property
    def _bounds_kind(self) -> str:
        """Kind of bounds, for reports: that of the last step."""
        return bounds_kind(self._inner_estimator())

    @available_if(lambda pipeline: pipeline._inner_estimator().predict_proba)
    def predict_log_proba(self, X: Any, **params: Any) -> FloatArray:
        """Return the logarithms of the last step's probabilities, (n, K)."""
        if hasattr(self._inner_estimator(), "predict_log_proba"):
            return super().predict_log_proba(X, **params)
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, **params))

    def __sklearn_tags__(self) -> Any:
        bounded = has_bounds(inner_model(self._inner_estimator()))
        return add_bounds_tag(super().__sklearn_tags__(), bounded)


def make_cautious_pipeline(
    *steps: Any, memory: Any = None, transform_input: list[str] | None = None, verbose: bool = False
) -> CautiousPipeline:
    """Return a `CautiousPipeline` whose steps are named by their classes, in lower case.

    Parameters
    ----------
    *steps : estimators
        Transformers, and a classifier last.
    memory, transform_input, verbose
        As in `CautiousPipeline`.

    Returns
    -------
    CautiousPipeline

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> from dubito.pipeline import make_cautious_pipeline
    >>> model = make_cautious_pipeline(StandardScaler(), ImpreciseGaussianDiscriminant())
    >>> list(model.named_steps)
    ['standardscaler', 'imprecisegaussiandiscriminant']
    """
    named = make_pipeline(*steps).steps
    return CautiousPipeline(named, transform_input=transform_input, memory=memory, verbose=verbose)
