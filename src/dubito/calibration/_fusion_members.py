"""The members of a fusion: their classifiers, columns and rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dubito._compat import check_feature_names, check_n_features, pick
from dubito._wording import counted
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from numpy.random import RandomState

    from dubito._typing import FloatArray, IntArray


class Member(NamedTuple):
    """One classifier of the fusion, and the columns of X it reads (None: all)."""

    name: str
    estimator: Any
    columns: Any = None


class GivenScores:
    """Classifier of a member without one: its features are the scores."""

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        self.classes_ = classes

    def decision_function(self, X: Any) -> FloatArray:
        """Return the features as scores."""
        table = np.asarray(X, dtype=np.float64)
        if table.shape[1] not in ({1, 2} if len(self.classes_) == 2 else {len(self.classes_)}):
            raise CalibrationInputError(
                f"a member without a classifier has {counted(table.shape[1], 'column')} for "
                f"{counted(len(self.classes_), 'class')}; one for each class is needed."
            )
        return table[:, 0] if table.shape[1] == 1 else table


def read_members(estimators: list[Any]) -> list[Member]:
    """Return the checked members."""
    try:
        members = [Member(*entry) for entry in estimators]
    except TypeError as error:
        raise ValueError(
            "estimators must be a list of (name, estimator) or (name, estimator, columns). "
            f"Got {estimators!r} instead."
        ) from error
    if not members:
        raise ValueError("estimators is empty; at least one (name, estimator) is needed.")
    for name, estimator, _ in members:
        if isinstance(estimator, str | type):
            raise TypeError(
                f"member {name!r} is {estimator!r}; a classifier is needed, such as GaussianNB(), "
                "or None where the columns are scores. Leave a member out of the list to drop it."
            )
    return members


def features_of(X: Any, columns: Any) -> Any:
    """Return the columns a member reads."""
    if columns is None:
        return X
    if isinstance(X, list):
        X = np.asarray(X)
    try:
        return pick(X, [columns] if isinstance(columns, str | Integral) else columns, axis=1)
    except (IndexError, KeyError) as error:
        raise ValueError(
            f"a member reads the columns {columns!r}, which are not all in X, of shape {X.shape}."
        ) from error


def check_features(fusion: Any, X: Any, *, reset: bool) -> None:
    """Store the names and number of features of a fit, or compare with them."""
    if getattr(X, "ndim", 2) == 1:
        raise ValueError(
            f"X must be 2-dimensional; got an array of shape {X.shape}. Reshape your data: "
            "X.reshape(1, -1) if it is one row, X.reshape(-1, 1) if it is one feature."
        )
    check_feature_names(fusion, X, reset=reset)
    check_n_features(fusion, X, reset=reset)


def all_classes(labels: npt.NDArray[Any], members: list[Member]) -> npt.NDArray[Any]:
    """Return the classes of y and of frozen members, sorted."""
    classes = [labels]
    for name, member, _ in members:
        inner = member.estimator if isinstance(member, CalibratedClassifier) else member
        if not isinstance(inner, FrozenEstimator):
            continue
        if not hasattr(inner.estimator, "fit") or not is_classifier(inner.estimator):
            raise TypeError(f"member {name!r}, {inner.estimator!r}, is not a classifier.")
        _check_fitted(name, inner.estimator)
        check_labels(name, inner.classes_, labels)
        classes.append(inner.classes_)
    return np.unique(np.concatenate(classes))


def check_labels(name: str, classes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
    """Raise if y has words as labels and the member numbers, or the reverse."""
    if (classes.dtype.kind in "OUS") != (labels.dtype.kind in "OUS"):
        raise ValueError(
            f"member {name!r} knows the labels {classes.tolist()}, but y has labels "
            f"like {labels[:1].tolist()}; y must use the members' labels."
        )


def _check_fitted(name: str, model: Any) -> None:
    """Raise if a frozen member is not fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"member {name!r} is frozen but not fitted: FrozenEstimator takes a fitted model; "
            "leave it out to have the member trained here."
        ) from error


def disjoint_parts(
    y: npt.NDArray[Any], n_members: int, random_state: Any
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield disjoint rows for each member, as rows to train on and rows to hold out."""
    random = check_random_state(random_state)
    part = stratified_parts(y, n_members, random)
    for member in range(n_members):
        rows = np.flatnonzero(part == member)
        half = stratified_parts(y[rows], 2, random)
        yield rows[half == 0], rows[half == 1]


def stratified_parts(y: npt.NDArray[Any], n_parts: int, random: RandomState) -> IntArray:
    """Return the part of each row; parts have about equal sizes and class frequencies."""
    order = np.lexsort((random.uniform(size=len(y)), y))
    part = np.empty(len(y), dtype=np.intp)
    part[order] = np.arange(len(y)) % n_parts
    return part
