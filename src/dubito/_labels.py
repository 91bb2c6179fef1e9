"""Column numbers of labels: looked up in a list of classes, or inferred where unambiguous."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._wording import name_rows, name_some
from dubito.belief import Frame

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, IntArray

    Labels = npt.NDArray[Any]


class AmbiguousLabelWarning(UserWarning):
    """Labels were taken for column numbers although they may count from 1."""


#: Stack level, in `label_columns`, of the user's call: its caller and the metric lie between.
_CALLER_OF_METRIC = 4


def as_labels(values: npt.ArrayLike, name: str) -> Labels:
    """Return the labels as an array, checked to be one per row and none missing."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must hold one label per row, so be 1-dimensional; "
            f"got an array of shape {labels.shape}."
        )
    if labels.dtype.kind in "US" and not isinstance(values, np.ndarray):
        # numpy turned numbers and nan in a list with strings into strings; keep them as given.
        as_given = np.asarray(values, dtype=object)
        labels = labels if all(isinstance(label, str) for label in as_given) else as_given
    missing = np.flatnonzero(_missing(labels))
    if len(missing):
        raise ValueError(f"{name} has no label in {name_rows(missing)}. Drop such rows first.")
    return labels


def label_columns(
    labels: Labels, n_classes: int, classes: npt.ArrayLike | None, name: str = "y"
) -> IntArray:
    """Return the column number of each label, (n,).

    With `classes`, labels are looked up there. Without, integers in 0..K-1 are column numbers (with
    a warning when exactly 1..K-1 occur, for these may be labels 1..K of which the last is absent);
    otherwise exactly K distinct labels are taken in sorted order; anything else is an error. `name`
    is the name of the labels in messages.

    >>> label_columns(np.array(["b", "a", "b"]), 2, None).tolist()
    [1, 0, 1]
    >>> label_columns(np.array(["b", "a", "b"]), 3, ["c", "b", "a"]).tolist()
    [1, 2, 1]
    """
    if classes is not None:
        return _look_up(labels, _listed_classes(classes, n_classes), name)
    if _are_column_numbers(labels, n_classes):
        columns = labels.astype(np.intp)
        if n_classes > 2 and np.array_equal(np.unique(columns), np.arange(1, n_classes)):
            warnings.warn(
                f"{name} shows the labels 1..{n_classes - 1} and is taken for column numbers "
                f"0..{n_classes - 1}. If the labels count from 1, pass classes=, as in "
                "estimator.classes_.",
                AmbiguousLabelWarning,
                stacklevel=_CALLER_OF_METRIC,
            )
        return columns
    return _look_up(labels, _sorted_classes(labels, n_classes, name), name)


def _look_up(labels: Labels, classes: list[Any], name: str) -> IntArray:
    """Return the index of each label in `classes`; raise an error for labels that are not there."""
    column_of = {label: column for column, label in enumerate(classes)}
    if len(column_of) < len(classes):
        twice = [label for column, label in enumerate(classes) if column_of[label] != column]
        raise ValueError(f"classes must list each label once; repeated: {name_some(twice)}.")
    listed = labels.tolist()
    columns = np.fromiter((column_of.get(label, -1) for label in listed), np.intp, len(listed))
    if (columns < 0).any():
        unknown = list(dict.fromkeys(label for label in listed if label not in column_of))
        raise ValueError(
            f"{name} has labels that classes does not list: {name_some(unknown)}. classes lists "
            f"{name_some(classes)}; pass all labels of the columns, as in estimator.classes_."
        )
    return columns


def _listed_classes(classes: npt.ArrayLike, n_classes: int) -> list[Any]:
    """Return the classes as a list, checked to be one for each column."""
    given = classes.labels if isinstance(classes, Frame) else classes
    listed: list[Any] = as_labels(given, "classes").tolist()
    if len(listed) != n_classes:
        raise ValueError(
            f"classes lists {len(listed)} labels ({name_some(listed)}) for {n_classes} columns; "
            "it must name every column once, in column order."
        )
    return listed


def _sorted_classes(labels: Labels, n_classes: int, name: str) -> list[Any]:
    """Return the distinct labels, sorted; raise an error unless there is one for each column."""
    distinct = set(labels.tolist())
    refusal = (
        f"{name} shows {len(distinct)} distinct labels ({name_some(list(distinct))}) for "
        f"{n_classes} columns, so which label belongs to which column is unclear. "
        "Pass classes=, one label per column, as in estimator.classes_."
    )
    if len(distinct) != n_classes:
        raise ValueError(refusal)
    try:
        return sorted(distinct)
    except TypeError as error:
        raise ValueError(refusal) from error


def _are_column_numbers(labels: Labels, n_classes: int) -> bool:
    """Return whether all labels are integers in 0..K-1."""
    # pandas gives integers as objects or floats where a table has missing values.
    numbers = np.asarray(labels.tolist()) if labels.dtype == object else labels
    if numbers.dtype.kind not in "biuf":
        return False
    whole = numbers.dtype.kind != "f" or bool((numbers == np.floor(numbers)).all())
    return whole and bool(numbers.min() >= 0) and bool(numbers.max() < n_classes)


def _missing(labels: Labels) -> BoolArray:
    """Return which labels are None, nan, NaT or pandas.NA, (n,)."""
    if labels.dtype == object:
        return np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    return np.not_equal(labels, labels)  # nan and NaT differ from themselves


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(np.not_equal(label, label))
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True
    except ValueError:  # a collection, compared entry by entry
        return False
