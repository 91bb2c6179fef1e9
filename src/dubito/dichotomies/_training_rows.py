"""The checked training rows of a tree or an ensemble."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dubito._labels import as_labels
from dubito._validation import check_sample_weight
from dubito._wording import name_some

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


class RowFormat(NamedTuple):
    """Type and layout of the rows of a fit, to which the rows of predictions are converted."""

    dtype: np.dtype[Any]
    sparse: bool
    ensure_all_finite: bool | str  # as in scikit-learn's `validate_data`


@dataclass(frozen=True)
class ClassRows:
    """Rows and their class numbers, 0..K-1; a row of weight 0 is not used in the fit.

    ``weighted``: whether sample weights differ, so that classifiers must be given them.
    """

    X: Any
    codes: IntArray
    weight: FloatArray
    classes: npt.NDArray[Any]
    weighted: bool
    ensure_all_finite: bool | str

    def without(self, held_out: BoolArray) -> ClassRows:
        """Return the rows with weight 0 for those held out."""
        return replace(self, weight=np.where(held_out, 0.0, self.weight))

    @property
    def row_format(self) -> RowFormat:
        """Type and layout of the rows."""
        return RowFormat(self.X.dtype, sp.issparse(self.X), self.ensure_all_finite)


def read_class_rows(
    owner: Any, X: Any, y: Any, sample_weight: Any, *, dtype: Any, ensure_all_finite: bool | str
) -> ClassRows:
    """Return the checked rows of a fit, and set the feature attributes of the estimator `owner`."""
    X, y = validate_data(
        owner,
        X,
        y,
        accept_sparse="csr",
        dtype=_dtypes(dtype),
        ensure_all_finite=ensure_all_finite,
    )
    labels = as_labels(y, "y")
    with warnings.catch_warnings():
        # Nested dichotomies are meant for many classes with few rows each.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}; a tree needs at least two classes."
        )
    weight = check_sample_weight(sample_weight, len(codes))
    empty = classes[np.bincount(codes, weight) == 0]
    if len(empty):
        raise ValueError(
            f"all rows of class {name_some(empty.tolist(), rest='')} have weight 0; each "
            "class needs a row that counts. Drop the rows of the class, or give one a weight."
        )
    counted = weight[weight > 0]
    weighted = bool((counted != counted[0]).any())
    return ClassRows(X, codes, weight, classes, weighted, ensure_all_finite)


def _dtypes(dtype: Any) -> list[Any]:
    """Return the types that rows may have; others are converted to the first."""
    if dtype is None:
        return [np.float64, np.float32]
    allowed = (np.float64, np.float32)
    with suppress(TypeError):
        if np.dtype(dtype) in allowed:
            return [np.dtype(dtype).type]
    raise ValueError(f"dtype must be float32, float64 or None; got {dtype!r}.")
