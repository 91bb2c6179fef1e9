"""Probability forecasts, and the yes-or-no events whose calibration is judged."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._checks import BoolArray, FloatArray, IntArray, as_float_array, check_proba
from dubito._labels import as_labels, label_columns
from dubito.belief import Frame
from dubito.metrics._rows import counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class Forecasts(NamedTuple):
    """True columns, probabilities (n, K) or of the second of two classes (n,), weights, labels."""

    column: IntArray
    proba: FloatArray
    weight: FloatArray
    labels: npt.NDArray[Any]

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return 2 if self.proba.ndim == 1 else self.proba.shape[1]


class Event(NamedTuple):
    """Forecast probabilities of one event, whether it happened, and the rows' weights."""

    probability: FloatArray
    happened: BoolArray
    weight: FloatArray

    @property
    def surplus(self) -> FloatArray:
        """Happened minus forecast, row by row."""
        return self.happened - self.probability


def read_forecasts(
    y: npt.ArrayLike,
    proba: npt.ArrayLike,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> Forecasts:
    """Check what the user gave and match labels to columns."""
    checked = _check_forecasts(proba)
    weight, labels, checked = counted_rows(sample_weight, y=as_labels(y, "y"), proba=checked)
    n_classes = 2 if checked.ndim == 1 else checked.shape[1]
    return Forecasts(label_columns(labels, n_classes, classes), checked, weight, labels)


def judged_event(forecasts: Forecasts) -> Event:
    """One event per row: the second class for (n,), the most probable class for (n, K)."""
    column, proba, weight, _ = forecasts
    if proba.ndim == 1:
        return Event(proba, column == 1, weight)
    top = proba.argmax(axis=1)
    return Event(proba[np.arange(len(proba)), top], column == top, weight)


def class_events(forecasts: Forecasts) -> Iterator[Event]:
    """One event per class; of two classes the second, since the first is its mirror image."""
    n_classes = forecasts.n_classes
    for k in range(1 if n_classes == 2 else 0, n_classes):
        yield class_event(forecasts, k)


def class_event(forecasts: Forecasts, k: int) -> Event:
    """Return the event "the label is class k"."""
    column, proba, weight, _ = forecasts
    if proba.ndim == 1:
        return Event(proba if k == 1 else 1 - proba, column == k, weight)
    return Event(proba[:, k], column == k, weight)


def column_of(label: Any, forecasts: Forecasts, classes: npt.ArrayLike | None) -> int:
    """Return the column of a class, named as the labels are."""
    if classes is not None:
        given: Any = classes.labels if isinstance(classes, Frame) else classes
        listed = as_labels(given, "classes").tolist()
        known = {name: k for k, name in enumerate(listed)}
    else:
        known = dict(zip(forecasts.labels.tolist(), forecasts.column.tolist(), strict=True))
        if all(name == k for name, k in known.items()):  # numbers of columns, seen or not
            known = {k: k for k in range(forecasts.n_classes)}
    if not isinstance(label, Hashable) or label not in known:
        names = ", ".join(repr(name) for name in sorted(known, key=known.__getitem__)[:10])
        more = f" and {len(known) - 10} more" if len(known) > 10 else ""
        raise ValueError(f"class_ must be one of the classes {names}{more}. Got {label!r} instead.")
    return known[label]


def _check_forecasts(proba: npt.ArrayLike) -> FloatArray:
    array = as_float_array(proba, "proba", ndim=(1, 2))
    if array.ndim == 1:
        return check_proba(np.column_stack((1 - array, array)))[:, 1]
    if array.shape[1] < 2:
        raise ValueError(
            f"proba has shape {array.shape}; it needs a column for each of at least two classes. "
            "For the probability of the second of two classes pass a 1-dimensional array."
        )
    return check_proba(array)
