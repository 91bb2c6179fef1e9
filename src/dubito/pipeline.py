"""Preparation and model in one: a pipeline that keeps the bounds, sets and reasons of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dubito.base import offered_if

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CautiousPipeline"]


def _passed_on(name: str, returns: str) -> Any:
    """Make a method that prepares the rows and asks the last step, where that has such a method."""

    def find(pipeline: CautiousPipeline) -> Callable[..., Any]:
        return getattr(pipeline.steps[-1][1], name)

    def method(self: CautiousPipeline, X: Any, *args: Any, **options: Any) -> Any:
        check_is_fitted(self)
        prepared = self[:-1].transform(X) if len(self.steps) > 1 else X
        return find(self)(prepared, *args, **options)

    method.__name__, method.__qualname__ = name, f"CautiousPipeline.{name}"
    method.__doc__ = f"Return {returns}, as the last step does; its own options follow X."
    return offered_if(find)(method)


class CautiousPipeline(Pipeline):
    """scikit-learn's Pipeline, with what its last step knows beyond probabilities.

    A plain Pipeline hides `predict_bounds` and its kin. This one prepares the rows and passes such
    questions on; a method that the last step lacks is lacking here, with the last step's own
    message. All else, parameters, slices, searches, is scikit-learn's.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and a model of dubito (or any classifier) as the last step.
    transform_input : list of str, optional
        As in `sklearn.pipeline.Pipeline`.
    memory : str or object, optional
        As in `sklearn.pipeline.Pipeline`.
    verbose : bool, default False
        As in `sklearn.pipeline.Pipeline`.

    Notes
    -----
    What `explain` tells is about the columns that reach the last step. To have it told in columns
    as they were before preparation, put the pipeline inside the model instead:
    ``EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression()))``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = [("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=3))]
    >>> model = CautiousPipeline(steps).fit(X, y)
    >>> model.predict_set(X[[0, 70]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    predict_bounds = _passed_on("predict_bounds", "lower and upper probabilities")
    predict_set = _passed_on("predict_set", "the classes that remain possible")
    predict_mass = _passed_on("predict_mass", "a mass function for each row")
    predict_contour = _passed_on("predict_contour", "the p-value of each class")
    familiarity = _passed_on("familiarity", "how familiar each row is: a p-value")
    predict_topk = _passed_on("predict_topk", "the k most probable classes, best first")
    critical_c = _passed_on("critical_c", "the imprecision each class needs to become possible")
    conflict = _passed_on("conflict", "how far pieces of evidence, or members, contradict")
    ignorance = _passed_on("ignorance", "how far evidence is lacking")
    explain = _passed_on("explain", "the evidence behind each prediction")
