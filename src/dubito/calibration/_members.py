"""The members of a fusion: what each is, what it reads, and which rows are its own."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from dubito._sklearn import pick
from dubito.calibration.classifier import CalibratedClassifier

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import RandomState

    from dubito._checks import IntArray


class Member(NamedTuple):
    """One classifier of the fusion, and the columns of X it reads (None: all)."""

    name: str
    estimator: Any
    columns: Any = None


def features_of(X: Any, columns: Any) -> Any:
    """Return the columns a member reads."""
    if columns is None:
        return X
    if isinstance(X, list):
        X = np.asarray(X)
    return pick(X, [columns] if isinstance(columns, str | Integral) else columns, axis=1)


def all_classes(labels: npt.NDArray[Any], members: list[Member]) -> npt.NDArray[Any]:
    """Return the classes of y and those that frozen members know."""
    known = [labels]
    for name, member, _ in members:
        inner = member.estimator if isinstance(member, CalibratedClassifier) else member
        if not isinstance(inner, FrozenEstimator):
            continue
        check_is_fitted(inner.estimator)
        if (inner.classes_.dtype.kind in "OUS") != (labels.dtype.kind in "OUS"):
            raise ValueError(
                f"member {name!r} knows the labels {inner.classes_.tolist()}, but y has labels "
                f"like {labels[:1].tolist()}; y must use the members' labels."
            )
        known.append(inner.classes_)
    return np.unique(np.concatenate(known))


def stratified_parts(y: npt.NDArray[Any], n_parts: int, random: RandomState) -> IntArray:
    """Deal the rows of each class out in turn: parts of like size and like classes."""
    order = np.lexsort((random.uniform(size=len(y)), y))
    part = np.empty(len(y), dtype=np.intp)
    part[order] = np.arange(len(y)) % n_parts
    return part
